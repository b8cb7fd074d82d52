//! A simulated disk on which one chosen call fails.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_buffer::Buffer;
use tidemark_types::{EngineError, EngineResult};
use tidemark_vfs::{DirEntry, OpenMode, SimFault, SimVfs, Space, Vfs, VfsFile, VfsLock};

/// A call failure as reported by the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An error number. The call has no effect.
    Errno(i32),
    /// A full disk: a write stores only half of its bytes, and other calls have no effect.
    ShortWrite,
}

impl Failure {
    /// Linux error numbers with their names.
    pub(crate) const ALL: [(Self, &str); 7] = [
        (Self::Errno(5), "EIO"),
        (Self::Errno(28), "ENOSPC"),
        (Self::Errno(122), "EDQUOT"),
        (Self::Errno(24), "EMFILE"),
        (Self::Errno(12), "ENOMEM"),
        (Self::Errno(4), "EINTR"),
        (Self::ShortWrite, "short write"),
    ];

    fn error(self) -> io::Error {
        match self {
            Self::Errno(number) => io::Error::from_raw_os_error(number),
            Self::ShortWrite => io::Error::from_raw_os_error(28),
        }
    }
}

#[derive(Debug)]
struct Plan {
    calls: AtomicU64,
    at: u64,
    failure: Failure,
    /// Whether all later calls also fail until the disk is healed.
    lasting: bool,
    healed: AtomicBool,
}

impl Plan {
    /// Counts a call; returns whether it must fail.
    fn hit(&self) -> bool {
        let now = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let hit = if self.lasting { now >= self.at } else { now == self.at };
        hit && !self.healed.load(Ordering::Relaxed)
    }

    fn pass(&self) -> io::Result<()> {
        if self.hit() { Err(self.failure.error()) } else { Ok(()) }
    }
}

/// A disk on which call number `at` fails.
#[derive(Debug, Clone)]
pub(crate) struct FaultyVfs {
    inner: SimVfs,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct FaultyFile {
    file: Arc<dyn VfsFile>,
    path: String,
    inner: SimVfs,
    plan: Arc<Plan>,
}

impl FaultyVfs {
    pub(crate) fn new(inner: SimVfs, at: u64, failure: Failure, lasting: bool) -> Self {
        let healed = AtomicBool::new(false);
        let plan = Plan { calls: AtomicU64::new(0), at, failure, lasting, healed };
        Self { inner, plan: Arc::new(plan) }
    }

    /// Returns the number of calls made so far.
    pub(crate) fn calls(&self) -> u64 {
        self.plan.calls.load(Ordering::Relaxed)
    }

    /// Ends the failure, so that all later calls succeed.
    pub(crate) fn heal(&self) {
        self.plan.healed.store(true, Ordering::Relaxed);
    }

    /// Whether the failure lasts until the disk is healed.
    pub(crate) fn lasts(&self) -> bool {
        self.plan.lasting
    }

    pub(crate) fn disk(&self) -> &SimVfs {
        &self.inner
    }
}

impl VfsFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.plan.pass()?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if self.plan.hit() {
            if self.plan.failure == Failure::ShortWrite {
                self.file.write_at(&data[..data.len() / 2], offset)?;
            }
            return Err(self.plan.failure.error());
        }
        self.file.write_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        if self.plan.hit() {
            // As in the kernel, a failed sync drops the unwritten pages and reports the error to
            // only one caller.
            self.inner.plant(SimFault::FailSync { path: self.path.clone(), at: 0 });
            let _ = self.file.sync();
            return Err(self.plan.failure.error());
        }
        self.file.sync()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.plan.pass()?;
        self.file.allocate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.plan.pass()?;
        self.file.len()
    }
}

impl Vfs for FaultyVfs {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        self.plan.pass()?;
        let file = self.inner.open(path, mode)?;
        let (inner, plan) = (self.inner.clone(), Arc::clone(&self.plan));
        Ok(Arc::new(FaultyFile { file, path: path.to_owned(), inner, plan }))
    }

    fn map(&self, path: &str, len: u64) -> io::Result<Buffer> {
        self.plan.pass()?;
        self.inner.map(path, len)
    }

    fn settle(&self, path: &str) -> io::Result<()> {
        self.plan.pass()?;
        self.inner.settle(path)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.plan.pass()?;
        self.inner.sync_dir(path)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.plan.pass()?;
        self.inner.create_dir(path)
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.plan.pass()?;
        self.inner.remove_dir(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.plan.pass()?;
        self.inner.rename(from, to)
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        self.plan.pass()?;
        self.inner.unlink(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<DirEntry>> {
        self.plan.pass()?;
        self.inner.list(path)
    }

    fn lock(&self, path: &str) -> EngineResult<Box<dyn VfsLock>> {
        self.plan.pass().map_err(|error| EngineError::io(path, &error))?;
        self.inner.lock(path)
    }

    fn entropy(&self) -> u64 {
        self.inner.entropy()
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.plan.pass()?;
        self.inner.link(from, to)
    }

    fn space(&self) -> io::Result<Space> {
        self.plan.pass()?;
        self.inner.space()
    }
}
