//! Linux and macOS.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::FileVersion;
use crate::Space;
use crate::machine::FileSystem;

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

pub(crate) fn write_all_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(data, offset)
}

/// Allocates disk space for the first `len` bytes, and extends the file if it is shorter.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn allocate(file: &File, len: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
        Ok(()) => Ok(()),
        // If the file system cannot allocate space, the write itself reports a full disk.
        Err(rustix::io::Errno::OPNOTSUPP) => extend(file, len),
        Err(errno) => Err(errno.into()),
    }
}

/// As above. The system allocates the space after the end of the file.
#[cfg(target_vendor = "apple")]
pub(crate) fn allocate(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let missing = len.saturating_sub(file.metadata()?.len());
    let Ok(missing) = libc::off_t::try_from(missing) else {
        return Err(io::ErrorKind::FileTooLarge.into());
    };
    if missing == 0 {
        return Ok(());
    }
    let mut request = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: missing,
        fst_bytesalloc: 0,
    };
    // SAFETY: the descriptor is open, and the pointer is to a valid request during the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut request) } == -1 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENOTSUP) {
            return Err(error);
        }
    }
    extend(file, len)
}

fn extend(file: &File, len: u64) -> io::Result<()> {
    if file.metadata()?.len() < len { file.set_len(len) } else { Ok(()) }
}

/// Drops the cached pages of a synced file. It is only advice, and ignoring it does no harm.
pub(crate) fn drop_cached(file: &File) {
    #[cfg(not(target_vendor = "apple"))]
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    // macOS has no such call.
    #[cfg(target_vendor = "apple")]
    let _ = file;
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(crate) fn space(root: &Path) -> io::Result<Space> {
    let stat = rustix::fs::statvfs(root)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(Space { free: bytes(stat.f_bavail), total: bytes(stat.f_blocks) })
}

#[cfg(not(target_vendor = "apple"))]
pub(crate) fn file_system(root: &Path) -> io::Result<FileSystem> {
    let stat = rustix::fs::statfs(root)?;
    #[allow(clippy::unnecessary_cast, reason = "the type differs between machines")]
    Ok(crate::machine::by_number(stat.f_type as u64))
}

#[cfg(target_vendor = "apple")]
pub(crate) fn file_system(root: &Path) -> io::Result<FileSystem> {
    let stat = rustix::fs::statfs(root)?;
    let name = stat.f_fstypename.iter().take_while(|&&byte| byte != 0);
    let name: Vec<u8> = name.map(|&byte| byte.cast_unsigned()).collect();
    Ok(match name.as_slice() {
        b"nfs" => FileSystem::Network("NFS"),
        b"smbfs" => FileSystem::Network("SMB"),
        b"afpfs" => FileSystem::Network("AFP"),
        b"webdav" => FileSystem::Network("WebDAV"),
        b"macfuse" | b"osxfuse" => FileSystem::Layered("FUSE"),
        _ => FileSystem::Local,
    })
}

/// Returns the limit on open files, after raising the soft limit as far as possible.
pub(crate) fn open_files() -> u64 {
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a valid `rlimit` for the duration of the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut files) } != 0 {
        return u64::MAX;
    }
    if files.rlim_cur < files.rlim_max {
        let raised = libc::rlimit { rlim_cur: files.rlim_max, ..files };
        // SAFETY: as above; raising the soft limit up to the hard one is always allowed.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            files = raised;
        }
    }
    files.rlim_cur
}

impl FileVersion {
    /// Returns the version of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from_metadata(&file.metadata()?))
    }

    /// Returns the version of the file at a path.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::from_metadata(&std::fs::metadata(path)?))
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            number: metadata.ino(),
            bytes: metadata.len(),
            changed_ns: i128::from(metadata.mtime()) * 1_000_000_000
                + i128::from(metadata.mtime_nsec()),
        }
    }
}
