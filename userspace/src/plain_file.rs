//! Small files in whose place somebody may have put something else.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use nix::fcntl::OFlag;

/// The whole file. Nobody is waited for: whoever opens a FIFO would wait for its writer, and a device may
/// never end.
///
/// # Errors
/// Where it cannot be read, is no ordinary file, or has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        _ => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        )),
    }
}

/// The same as text.
///
/// # Errors
/// As [`read`], and where it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    String::from_utf8(read(path, most)?).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    #[test]
    fn nothing_but_a_short_ordinary_file_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        for odd in [&*path, directory.path(), Path::new("/dev/zero")] {
            assert!(read(odd, 8).is_err(), "{odd:?}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(read_text(&path, 8).unwrap(), "12345678");
        assert!(read(&path, 7).is_err());
    }
}
