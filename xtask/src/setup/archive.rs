//! The archive that this machine installs Debian packages from: it has other releases too.

use std::{env, fs, process::Command};

use anyhow::Context as _;

use crate::exec;

/// The archive that this machine installs from: a mirror that it may use has all releases.
///
/// # Errors
/// Where apt's sources name none, or one that only apt can read.
pub(super) fn url() -> anyhow::Result<String> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let targets = exec::stdout(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(RELEASE) $(COMPONENT) $(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    own_archive(&release, &targets)
        .context("apt's sources name no archive of Debian's main packages that can be read plainly")
}

/// Picks it from /etc/os-release and lines of `RELEASE COMPONENT URI`.
fn own_archive(os_release: &str, targets: &str) -> Option<String> {
    let field = |name: &str| {
        let line = os_release
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(line.trim_matches('"'))
    };
    if field("ID") != Some("debian") {
        return None;
    }
    let own = field("VERSION_CODENAME")?;
    targets.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (release, component, uri) = (words.next()?, words.next()?, words.next()?);
        let is_own = [own, "stable", "oldstable"].contains(&release);
        let usable = ["http://", "https://", "file:"];
        let is_usable = usable.iter().any(|scheme| uri.starts_with(scheme));
        (is_own && component == "main" && is_usable).then(|| uri.to_owned())
    })
}

/// Apt's proxies, for the programs that debootstrap fetches with; those of the environment hold.
pub(super) fn proxies() -> Vec<(&'static str, String)> {
    let said = exec::stdout(Command::new("apt-config").args([
        "shell",
        "http_proxy",
        "Acquire::http::Proxy",
        "https_proxy",
        "Acquire::https::Proxy",
    ]));
    let said = said.unwrap_or_default();
    ["http_proxy", "https_proxy"]
        .into_iter()
        .filter(|name| env::var_os(name).is_none())
        .filter_map(|name| {
            let line = said.lines().find_map(|line| line.strip_prefix(name))?;
            let proxy = line.strip_prefix('=')?.trim_matches('\'');
            (!proxy.is_empty() && proxy != "DIRECT").then(|| (name, proxy.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "ID=debian\nVERSION_CODENAME=bookworm\n";

    #[test]
    fn the_archive_is_the_one_of_the_machines_own_release() {
        let targets = "bookworm-security main http://localhost/security/\n\
                       nodistro main https://localhost/\n\
                       bookworm contrib http://localhost/contrib/\n\
                       bookworm main mirror+file:/etc/apt/mirrors\n\
                       bookworm main http://localhost/debian/\n";
        assert_eq!(
            own_archive(DEBIAN, targets).as_deref(),
            Some("http://localhost/debian/")
        );
    }

    #[test]
    fn another_distributions_archive_is_not_taken() {
        let ubuntu = "ID=ubuntu\nVERSION_CODENAME=noble\n";
        assert_eq!(own_archive(ubuntu, "noble main http://localhost/\n"), None);
        assert_eq!(own_archive(DEBIAN, "sid main http://localhost/\n"), None);
    }
}
