//! Objects from manifests in files, for nodes without an API server and for labs.

mod look;
mod parse;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{task::spawn_blocking, time::sleep};

use super::{NodeSource, SourceError, feed::Publisher};
use crate::nodes::manifest::Kind;
use look::{Look, Looker};
use watch::Watch;

/// A file counts once it has not changed for so long: whoever writes it may not be done.
const SETTLE: Duration = Duration::from_millis(100);
/// What a watch does not tell (the target of a link elsewhere, a network's file system) is seen after
/// so long.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// So many looks in a row may find files that are being written; then the others no longer wait.
const RESTLESS_LOOKS: u32 = 50;

const KINDS: [Kind; 2] = [Kind::Node, Kind::UplinkState];

/// A file or directory of manifests.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    look_again: Duration,
}

impl Files {
    /// Takes a path where nothing needs to be yet.
    pub(super) fn new(path: PathBuf) -> Result<Self, SourceError> {
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() && !found.is_dir() => {
                Err(SourceError::NeitherFileNorDirectory { path })
            }
            // The loop says what is wrong, and goes on when it no longer is.
            Ok(_) | Err(_) => Ok(Self {
                path,
                look_again: LOOK_AGAIN,
            }),
        }
    }
}

impl NodeSource for Files {
    fn name(&self) -> String {
        format!("manifests in {}", self.path.display())
    }

    async fn run(self, publisher: Publisher) {
        let mut watch = Watch::new();
        let mut looker = Looker::new(self.path.clone());
        let mut restless = 0;
        let mut differs = true;
        loop {
            // First the watch, then the look: what changes in between is seen by one of them.
            watch.aim(directory(&self.path));
            let looked = spawn_blocking(move || {
                let look = looker.look();
                (looker, look)
            });
            let Ok((returned, look)) = looked.await else {
                tracing::error!("the look at the manifests has ended early");
                return;
            };
            looker = returned;
            differs |= !matches!(look, Ok(Look::AtRest));
            if matches!(look, Ok(Look::Restless)) && restless < RESTLESS_LOOKS {
                restless += 1;
                sleep(SETTLE).await;
                continue;
            }
            restless = 0;
            match look {
                Err(error) => {
                    let path = self.path.display();
                    publisher.failed(&KINDS, format!("{path}: {error} (what is known is kept)"));
                }
                Ok(_) if std::mem::take(&mut differs) => publish(&looker, &publisher),
                Ok(_) => {}
            }
            tokio::select! {
                () = watch.changed() => {}
                () = sleep(self.look_again) => {}
            }
        }
    }
}

fn publish(looker: &Looker, publisher: &Publisher) {
    let whole = looker.whole();
    for kind in KINDS {
        publisher.count(kind, |status| status.lists = status.lists.saturating_add(1));
    }
    for (kind, error) in whole.refused {
        publisher.refused(kind, error);
    }
    let mut errors = whole.errors;
    if (whole.is_complete || publisher.is_synced())
        && let Err(error) = publisher.replace(whole.inventory)
    {
        errors.push(format!("{}: {error}", looker.path().display()));
    }
    match errors.split_first() {
        None => KINDS
            .map(|kind| publisher.current(kind))
            .into_iter()
            .collect(),
        Some((error, [])) => publisher.failed(&KINDS, error.clone()),
        Some((error, others)) => {
            let others = others.len();
            publisher.failed(&KINDS, format!("{error}, and {others} more"));
        }
    }
}

/// What to watch: a file is replaced in its directory.
fn directory(path: &Path) -> &Path {
    if path.is_dir() {
        return path;
    }
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}
