//! The file layer: the engine accesses disks only through [`Vfs`].
//!
//! [`RealVfs`] writes with `pwrite`, syncs with `fdatasync` and maps immutable files read-only.
//! [`SimVfs`] keeps files in memory, tracks unsynced data, and builds every disk state that a power
//! loss may legally leave. [`CheckedKeys`] converts integers from a map to dictionary arrays and
//! checks them only once.
//!
//! Only this crate and `kernels` contain `unsafe`. This crate contains no table logic.

#![warn(missing_docs)]

mod ahead;
mod allocator;
#[cfg_attr(windows, path = "bus_windows.rs")]
mod bus;
mod checked;
mod descriptor;
mod machine;
mod real;
mod sim;
mod sim_disk;
mod system;
mod texts;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use arrow_buffer::Buffer;
use tidemark_types::EngineResult;

pub use ahead::read_ahead;
pub use allocator::{CountingAllocator, release_memory, retain_main_heap};
pub use bus::{faults, is_faulted};
pub use checked::{CheckedKeys, KeyOutOfRange};
pub use descriptor::duplicate_socket;
pub use machine::{FileSystem, Limits, limits};
pub use real::RealVfs;
pub use sim::{SimFault, SimVfs};
pub use system::{FileVersion, read_exact_at};
pub use texts::{
    ByteRange, INLINE_BYTES, STRINGS_PER_CHUNK, are_ascii, ascii_byte_range, byte_range,
    column as text_column,
};

/// File open mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Write,
    /// For reading and writing; it must not exist yet.
    CreateNew,
    /// For reading and writing; an existing file is emptied.
    Replace,
}

/// A directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Name, without the directory.
    pub name: String,
    /// Length in bytes; 0 for directories.
    pub len: u64,
    /// Whether the entry is a directory.
    pub is_dir: bool,
}

/// An open file. Reads and writes specify an offset, so threads can share the file freely.
pub trait VfsFile: Send + Sync + Debug {
    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `data`, and extends the file if necessary.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the content and the length durable. Never retried after a failure.
    fn sync(&self) -> io::Result<()>;
    /// Allocates disk space for the first `len` bytes, so that a full disk is reported immediately.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// The file's length.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// File system space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can still be written.
    pub free: u64,
    /// Total bytes.
    pub total: u64,
}

/// A lock that is released when this value is dropped.
pub trait VfsLock: Send + Sync + Debug {}

/// A file system below one root directory. Paths are relative, separated by `/`.
pub trait Vfs: Send + Sync + Debug {
    /// Opens a file.
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>>;
    /// Maps the first `len` bytes of an immutable file, which must have exactly that length. The
    /// buffer starts at a page boundary and keeps the map alive.
    fn map(&self, path: &str, len: u64) -> io::Result<Buffer>;
    /// Makes a file's content durable, and makes later reads return the disk's content. If a sync
    /// by another process failed, the page cache may hold bytes that never reached the disk, and
    /// that no later sync writes.
    fn settle(&self, path: &str) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
    /// Creates a directory and its parents, if they do not exist.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    /// Renames a file, replacing the target if it exists, or renames a directory with its content.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file's name. Existing maps of the file remain readable.
    fn unlink(&self, path: &str) -> io::Result<()>;
    /// Returns a directory's entries, sorted by name.
    fn list(&self, path: &str) -> io::Result<Vec<DirEntry>>;
    /// Acquires the exclusive lock on a file, creating the file if necessary. Fails with
    /// `RootLocked` if another process holds the lock.
    fn lock(&self, path: &str) -> EngineResult<Box<dyn VfsLock>>;
    /// Returns an unguessable number, for salts and temporary names. Reproducible in the
    /// simulation.
    fn entropy(&self) -> u64;
    /// Creates a hard link to an immutable file, or a copy if the file system has no links. The
    /// name becomes durable when the directory is synced. A copy is synced here.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;
    /// Space on the root's file system.
    fn space(&self) -> io::Result<Space>;
}
