//! Interfaces that are called otherwise than when their program was attached.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use super::{
    error::RenameError,
    links, owners,
    pins::{self, Pins},
};

/// Gives the pins of an interface its new name: the link goes on, and so do the counters. Whether there
/// were any. What is left there of an interface that is gone gives way.
///
/// # Errors
/// Where they cannot be moved, for example since the link of an interface that lives has the new name.
pub fn rename(bpffs: &Path, from: &str, to: &str) -> Result<bool, RenameError> {
    let _lock = lock(bpffs);
    put(&Pins::new(bpffs, from), &Pins::new(bpffs, to))
}

/// Keeps other threads and processes from moving pins until the file is closed: a list of them would be
/// out of date. Whoever cannot open bpffs moves nothing either.
pub(super) fn lock(bpffs: &Path) -> Option<File> {
    let directory = File::open(bpffs).ok()?;
    directory.lock().ok()?;
    Some(directory)
}

/// Moves pins to the names that their interfaces have now: left alone, a program would go on beside the
/// next one, with other settings. What could not be moved is the answer.
///
/// # Errors
/// Where pins cannot be listed.
pub(super) fn follow(bpffs: &Path) -> Result<Vec<RenameError>, RenameError> {
    let _lock = lock(bpffs);
    let version = pins::own_version();
    let found = owners::survey(bpffs, &version).map_err(|reason| RenameError::List {
        path: bpffs.to_owned(),
        reason,
    })?;
    let in_place = |it: &owners::Found| !it.is_aside && it.on.as_ref() == Some(&it.name);
    let (settled, others): (Vec<_>, Vec<_>) = found.into_iter().partition(in_place);
    let mut has_pins: Vec<_> = settled.into_iter().map(|it| it.name).collect();
    let (mut moves, mut failed) = (Vec::new(), Vec::new());
    for it in others {
        let Some(interface) = it.on else { continue };
        tracing::info!(%interface, former = it.name, "a program is attached under a former name");
        if has_pins.contains(&interface) {
            // Its program runs beside the one of the pins that were first.
            failed.extend(remove(&it.pins).err());
            continue;
        }
        has_pins.push(interface.clone());
        moves.push(Move {
            to: Pins::new(bpffs, &interface),
            aside: Pins::aside(bpffs, &version, &it.name),
            from: it.pins,
        });
    }
    while let Some(next) = take_next(&mut moves, &mut failed) {
        failed.extend(put(&next.from, &next.to).err());
    }
    Ok(failed)
}

/// Pins on their way.
struct Move {
    from: Pins,
    to: Pins,
    /// Where they can wait.
    aside: Pins,
}

/// A move to where no other begins. Names that go round have none: there one makes way first.
fn take_next(moves: &mut Vec<Move>, failed: &mut Vec<RenameError>) -> Option<Move> {
    let from = |directory: &Path| moves.iter().any(|it| it.from.directory() == directory);
    if let Some(at) = moves.iter().position(|it| !from(it.to.directory())) {
        return Some(moves.remove(at));
    }
    let mut first = moves.pop()?;
    match put(&first.from, &first.aside) {
        // Its place is free now, and so it comes last.
        Ok(_) => {
            first.from = first.aside.clone();
            moves.push(first);
        }
        Err(error) => failed.push(error),
    }
    take_next(moves, failed)
}

fn put(from: &Pins, to: &Pins) -> Result<bool, RenameError> {
    let (from, directory) = (from.directory(), to.directory());
    if from.exists() && directory.exists() && !lives(to) {
        remove(to)?;
    }
    match fs::rename(from, directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(reason) => Err(RenameError::Move {
            from: from.to_owned(),
            to: directory.to_owned(),
            reason,
        }),
    }
}

fn remove(pins: &Pins) -> Result<(), RenameError> {
    let removed = pins.remove_all();
    removed.map_err(|(path, reason)| RenameError::Remove {
        directory: pins.directory().to_owned(),
        path,
        reason,
    })?;
    Ok(())
}

/// Whether the link is attached to anything.
fn lives(pins: &Pins) -> bool {
    let link = links::open(&pins.link()).ok().flatten();
    link.is_some_and(|link| link.interface_index.is_some())
}
