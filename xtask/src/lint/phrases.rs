//! Text that means nothing to a user of the project: paths of the machine it was written on, and
//! addresses of hosts other than the public ones that the project refers to.

use std::{fs, path::Path, process::Command};

use crate::exec;

/// Hosts that sources and documentation may refer to.
const HOSTS: [&str; 15] = [
    "127.0.0.1",
    "docs.openvswitch.org",
    "docs.ovn.org",
    "github.com",
    "keepachangelog.com",
    "localhost",
    "man7.org",
    "ovn-kubernetes.io",
    "rustup.rs",
    "semver.org",
    "www.apache.org",
    "www.gnu.org",
    "www.openvswitch.org",
    "www.ovn.org",
    "www.rfc-editor.org",
];

/// Folders that a person's or a build machine's files lie in.
const FOLDERS: [&str; 3] = ["/home/", "/root/", "/Users/"];

/// Files that other people wrote or that tools write.
const FOREIGN: [&str; 4] = ["Cargo.lock", "LICENSE", "LICENSE-MIT", "LICENSE-GPL-2.0"];

/// Checks every file that git knows; returns the faults.
///
/// # Errors
/// When git cannot list the files.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let listed = exec::stdout(Command::new("git").current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    // The folder above the clone: nothing in the clone may reach out of it.
    let above = root
        .parent()
        .filter(|above| above.parent().is_some())
        .map(|above| format!("{}/", above.display()));
    let mut faults = Vec::new();
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let path = root.join(name);
        let foreign = path
            .file_name()
            .is_some_and(|file| FOREIGN.iter().any(|known| file == *known));
        // Binary files, such as captured frames, are not text that somebody wrote.
        if foreign || name.ends_with("lint/phrases.rs") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for fault in faults_of(line, above.as_deref()) {
                faults.push(format!("{name}:{}: {fault}", number + 1));
            }
        }
    }
    Ok(faults)
}

fn faults_of(line: &str, above: Option<&str>) -> Vec<String> {
    let folders = FOLDERS
        .iter()
        .copied()
        .chain(above)
        .filter(|folder| line.contains(folder));
    let mut faults: Vec<_> = folders
        .map(|folder| format!("names a folder of one machine: {folder}"))
        .collect();
    for rest in line.split("://").skip(1) {
        let host: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
            .collect();
        // A placeholder in a format string has no host in it.
        if host.contains('.') && !HOSTS.contains(&host.as_str()) {
            faults.push(format!(
                "refers to {host}, which lint/phrases.rs does not list"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_somebodys_machine_is_found() {
        assert_eq!(faults_of("see /home/me/notes", None).len(), 1);
        assert_eq!(faults_of("see /build/clone/x", Some("/build/")).len(), 1);
        assert_eq!(
            faults_of("see /sys/fs/bpf and /var/run", Some("/build/")),
            [""; 0]
        );
    }

    #[test]
    fn a_host_is_allowed_only_if_it_is_listed() {
        assert_eq!(
            faults_of("see https://github.com/ovn-org/ovn", None),
            [""; 0]
        );
        assert_eq!(
            faults_of("from https://packages.example.net/x", None).len(),
            1
        );
        assert_eq!(faults_of("format!(\"tcp://{address}\")", None), [""; 0]);
    }
}
