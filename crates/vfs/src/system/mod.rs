//! System calls that differ between platforms. Everything else in this crate is portable, except
//! for `bus`, `allocator`, `ahead` and `descriptor`, which have no effect on some platforms.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
pub(crate) mod platform;

use std::fs::File;
use std::io;

/// Identity, length and modification time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    /// Number of the file system.
    pub device: u64,
    /// Number of the file in its file system.
    pub number: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Modification time in nanoseconds since 1970.
    pub changed_ns: i128,
}

/// Reads exactly `buffer.len()` bytes at an offset. Fails at the end of the file.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    if read_full_at(file, buffer, offset)? == buffer.len() {
        return Ok(());
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Reads up to `buffer.len()` bytes at an offset; fewer only at the end of the file.
pub(crate) fn read_full_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match platform::read_at(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_version_of_a_file_is_the_same_by_path_and_when_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"hello").unwrap();
        let version = FileVersion::of(&file).unwrap();
        assert_eq!(version.bytes, 5);
        assert!(version.changed_ns > 1_600_000_000_000_000_000);
        assert_eq!(FileVersion::at(&path).unwrap(), version);
        let other = directory.path().join("b");
        File::create(&other).unwrap();
        assert_ne!(FileVersion::at(&other).unwrap().number, version.number);
    }

    #[test]
    fn exact_reads_fail_at_the_end_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, b"hello").unwrap();
        let file = File::open(&path).unwrap();
        let mut buffer = [0; 4];
        read_exact_at(&file, &mut buffer, 1).unwrap();
        assert_eq!(&buffer, b"ello");
        let error = read_exact_at(&file, &mut buffer, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
