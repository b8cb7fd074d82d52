//! Files of the operating system.
//!
//! Writes use `pwrite`, so a full disk causes an error and never a signal. Maps are read-only,
//! refer to files that no longer change, and cover exactly the length in a commit record or a
//! manifest.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;
use memmap2::Mmap;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::bus::Watched;
use crate::system::{platform, read_full_at};
use crate::{DirEntry, OpenMode, Space, Vfs, VfsFile, VfsLock};

/// Files below a real directory.
#[derive(Debug)]
pub struct RealVfs {
    root: PathBuf,
}

#[derive(Debug)]
struct RealFile {
    file: File,
}

#[derive(Debug)]
struct RealLock {
    /// Holds the kernel's lock; closing the file releases it, even if the process dies.
    file: File,
}

impl Drop for RealLock {
    /// Closing the file is not enough, because a child process that is being started also has it
    /// open.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl VfsLock for RealLock {}

/// A map whose faults are counted. The field order is the drop order, so that watching ends before
/// the map is removed.
#[derive(Debug)]
struct WatchedMap {
    _watched: Watched,
    _map: Mmap,
}

impl RealVfs {
    /// A file system below `root`, which is created if it does not exist.
    pub fn new(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        std::fs::create_dir_all(&root)?;
        Ok(Self { root })
    }

    /// The root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

impl VfsFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        read_full_at(&self.file, buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        platform::write_all_at(&self.file, data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        platform::allocate(&self.file, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

impl RealVfs {
    fn locked(&self, path: &str) -> EngineResult<RealLock> {
        let full = self.path(path);
        let failed = |error: &io::Error| EngineError::io(format!("{}", full.display()), error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&full)
            .map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&full).unwrap_or_default();
                let holder = match holder.trim() {
                    "" => String::new(),
                    process => format!(" [pid={process}]"),
                };
                return Err(EngineError::new(
                    ErrorCode::RootLocked,
                    format!("{} is in use by another process{holder}", self.root.display()),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        // The content is only informative, because the kernel's lock decides. A full disk must not
        // prevent startup, so an error is ignored.
        let holder = format!("{}\n", std::process::id());
        let _ = file.set_len(0).and_then(|()| platform::write_all_at(&file, holder.as_bytes(), 0));
        Ok(RealLock { file })
    }
}

impl Vfs for RealVfs {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut options = OpenOptions::new();
        match mode {
            OpenMode::Read => options.read(true),
            OpenMode::Write => options.read(true).write(true),
            OpenMode::CreateNew => options.read(true).write(true).create_new(true),
            OpenMode::Replace => options.read(true).write(true).create(true).truncate(true),
        };
        Ok(Arc::new(RealFile { file: options.open(self.path(path))? }))
    }

    fn map(&self, path: &str, len: u64) -> io::Result<Buffer> {
        let file = File::open(self.path(path))?;
        let found = file.metadata()?.len();
        if found != len {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("expected {len} bytes, found {found}"),
            ));
        }
        if len == 0 {
            return Ok(Buffer::from_vec(Vec::<u8>::new()));
        }
        // SAFETY: the file is immutable from here on: segments and dictionaries are never written,
        // truncated or replaced after they are named, only unlinked, and an unlinked map stays
        // readable. The length was just compared with the file's. If another process cuts it
        // anyway, `bus` keeps the process alive.
        let map = unsafe { Mmap::map(&file)? };
        let start = NonNull::new(map.as_ptr().cast_mut())
            .ok_or_else(|| io::Error::other("the memory map has no address"))?;
        let len = map.len();
        let watched = Watched::new(start.as_ptr() as usize, len);
        let map = Arc::new(WatchedMap { _watched: watched, _map: map });
        // SAFETY: `start..start + len` is the map, which `map`, owned by the buffer, keeps alive;
        // the buffer is never handed out mutably because its deallocation is a custom one.
        Ok(unsafe { Buffer::from_custom_allocation(start, len, map) })
    }

    fn settle(&self, path: &str) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(path))?;
        file.sync_data()?;
        // All cached pages are now clean, so this call drops them.
        platform::drop_cached(&file);
        Ok(())
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        platform::sync_directory(&self.path(path))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        std::fs::create_dir_all(self.path(path))
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        std::fs::remove_dir(self.path(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(path))
    }

    fn list(&self, path: &str) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.path(path))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let metadata = entry.metadata()?;
            let is_dir = metadata.is_dir();
            entries.push(DirEntry { name, len: if is_dir { 0 } else { metadata.len() }, is_dir });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn lock(&self, path: &str) -> EngineResult<Box<dyn VfsLock>> {
        Ok(Box::new(self.locked(path)?))
    }

    fn entropy(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        // std seeds this from the operating system, which suffices for salts and names.
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(from), self.path(to));
        if std::fs::hard_link(&from, &to).is_ok() {
            return Ok(());
        }
        std::fs::copy(&from, &to)?;
        OpenOptions::new().write(true).open(&to)?.sync_all()
    }

    fn space(&self) -> io::Result<Space> {
        platform::space(&self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_fails_if_the_file_is_shorter_than_expected() {
        let directory = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new(directory.path()).unwrap();
        let file = vfs.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(b"hello", 0).unwrap();
        assert_eq!(vfs.map("a", 5).unwrap().as_slice(), b"hello");
        assert!(vfs.map("a", 6).is_err());
        let map = vfs.map("a", 5).unwrap();
        vfs.unlink("a").unwrap();
        assert_eq!(map.as_slice(), b"hello");
    }

    #[test]
    fn a_second_lock_of_the_same_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new(directory.path()).unwrap();
        let lock = vfs.lock("lock").unwrap();
        assert_eq!(vfs.lock("lock").unwrap_err().code, ErrorCode::RootLocked);
        drop(lock);
        vfs.lock("lock").unwrap();
    }

    #[test]
    fn a_duplicated_descriptor_does_not_keep_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new(directory.path()).unwrap();
        let lock = vfs.locked("lock").unwrap();
        // Simulates a child process between fork and exec.
        let copy = lock.file.try_clone().unwrap();
        drop(lock);
        vfs.lock("lock").unwrap();
        drop(copy);
    }
}
