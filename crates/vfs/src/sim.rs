//! An in-memory file system for the crash tests. It implements the same trait as the real file
//! system and returns the same errors, but its disk can fail at any operation.

use std::io;
use std::sync::Arc;

use arrow_buffer::Buffer;
use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::sim_disk::{Inode, NameChange, SimDisk, name, parent};
use crate::{DirEntry, OpenMode, Space, Vfs, VfsFile, VfsLock};

/// Faults, each with the operation from which it applies. Only operations that change something are
/// counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimFault {
    /// The power fails at operation `at`. This operation and all later ones return an error, but
    /// operation `at` may nevertheless have reached the disk.
    PowerLoss {
        /// Operation number.
        at: u64,
    },
    /// The first sync of a path that contains `path`, after operation `at`, fails. Some of the
    /// unsynced data is on disk, and the remainder never reaches it.
    FailSync {
        /// Substring of the path.
        path: String,
        /// Operation number.
        at: u64,
    },
    /// The next map of a path that contains `path` fails due to a lack of memory.
    FailMap {
        /// Substring of the path.
        path: String,
    },
    /// Injected fault: syncs of files whose path contains `path` do nothing.
    SkipSync {
        /// Substring of the path.
        path: String,
    },
    /// Injected fault: syncs of a directory do nothing.
    SkipDirSync {
        /// The directory; with a trailing `/`, all directories below it instead.
        path: String,
    },
    /// Injected fault: writes to one path go directly to another, and the rename that should
    /// replace it does nothing.
    InPlace {
        /// The written path.
        from: String,
        /// The path to be replaced.
        to: String,
    },
    /// The disk has space for this many bytes.
    Full {
        /// Space in bytes.
        bytes: u64,
    },
}

#[derive(Debug)]
struct State {
    disk: SimDisk,
    rng: ChaCha8Rng,
    operations: u64,
    faults: Vec<SimFault>,
    sync_failed: bool,
    lost: bool,
    locked: bool,
}

/// In-memory files.
#[derive(Debug, Clone)]
pub struct SimVfs {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct SimHandle {
    state: Arc<Mutex<State>>,
    inode: Inode,
    path: String,
}

#[derive(Debug)]
struct SimLock {
    state: Arc<Mutex<State>>,
}

impl VfsLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.state.lock().locked = false;
    }
}

fn power_lost() -> io::Error {
    io::Error::other("the power is off")
}

impl State {
    /// Counts an operation that changes something. Returns `Err` if the power is off, and
    /// `Ok(true)` if the power fails with this operation, which may still reach the disk.
    fn step(&mut self) -> io::Result<bool> {
        if self.lost {
            return Err(power_lost());
        }
        self.operations += 1;
        let now = self.operations;
        let fails = |fault: &SimFault| matches!(fault, SimFault::PowerLoss { at } if *at <= now);
        self.lost = self.faults.iter().any(fails);
        Ok(self.lost)
    }

    fn finish(&self) -> io::Result<()> {
        if self.lost { Err(power_lost()) } else { Ok(()) }
    }

    fn skips_sync(&self, path: &str) -> bool {
        let skips = |f: &SimFault| matches!(f, SimFault::SkipSync { path: p } if path.contains(p));
        self.faults.iter().any(skips)
    }

    /// A path's actual target under an `InPlace` fault.
    fn target<'a>(&'a self, path: &'a str) -> &'a str {
        let target = self.faults.iter().find_map(|fault| match fault {
            SimFault::InPlace { from, to } if from == path => Some(to.as_str()),
            _ => None,
        });
        target.unwrap_or(path)
    }

    fn skips_dir_sync(&self, path: &str) -> bool {
        let skips = |p: &String| if p.ends_with('/') { path.starts_with(p) } else { path == p };
        let hit = |f: &SimFault| matches!(f, SimFault::SkipDirSync { path } if skips(path));
        self.faults.iter().any(hit)
    }

    fn fails_sync(&mut self, path: &str) -> bool {
        let now = self.operations;
        let hit = self.faults.iter().position(
            |f| matches!(f, SimFault::FailSync { path: p, at } if path.contains(p) && *at <= now),
        );
        hit.map(|index| self.faults.remove(index)).is_some()
    }

    fn refuse_when_full(&self, more: u64) -> io::Result<()> {
        for fault in &self.faults {
            if let SimFault::Full { bytes } = fault
                && more > 0
                && self.disk.bytes() + more > *bytes
            {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        Ok(())
    }

    fn lookup(&self, path: &str) -> io::Result<Inode> {
        let directory = self.disk.directories.get(parent(path));
        let inode = directory.and_then(|directory| directory.current.get(name(path)));
        inode.copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, directory: &str, change: NameChange) -> io::Result<()> {
        let directory = self.disk.directories.get_mut(directory);
        directory.ok_or(io::ErrorKind::NotFound)?.change(change);
        Ok(())
    }
}

impl SimVfs {
    /// An empty disk. All randomness derives from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_disk(SimDisk::new(), seed, Vec::new())
    }

    fn with_disk(disk: SimDisk, seed: u64, faults: Vec<SimFault>) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let state = State {
            disk,
            rng,
            operations: 0,
            faults,
            sync_failed: false,
            lost: false,
            locked: false,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Adds a fault.
    pub fn plant(&self, fault: SimFault) {
        self.state.lock().faults.push(fault);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// Whether an injected power loss has occurred.
    #[must_use]
    pub fn power_is_off(&self) -> bool {
        self.state.lock().lost
    }

    /// Flips bits in one byte of a file in place, as a bad disk does.
    pub fn flip(&self, path: &str, offset: usize, mask: u8) -> io::Result<()> {
        let mut state = self.state.lock();
        let inode = state.lookup(path)?;
        let file = state.disk.files.get_mut(&inode).ok_or(io::ErrorKind::NotFound)?;
        file.flip(offset, mask);
        Ok(())
    }

    /// Whether an injected sync failure has occurred.
    #[must_use]
    pub fn sync_has_failed(&self) -> bool {
        self.state.lock().sync_failed
    }

    /// Number of operations so far that changed something.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Returns a disk state that a power loss at this point may leave. `seed` selects the state.
    /// Injected sync skips remain in effect; this file system is unchanged.
    #[must_use]
    pub fn power_loss(&self, seed: u64) -> Self {
        let state = self.state.lock();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = state.disk.crash(&mut rng);
        Self::with_disk(disk, rng.random(), lasting(&state.faults))
    }

    /// Paths of all files, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let state = self.state.lock();
        let mut paths = Vec::new();
        for (directory, content) in &state.disk.directories {
            let below = if directory.is_empty() { String::new() } else { format!("{directory}/") };
            paths.extend(content.current.keys().map(|name| format!("{below}{name}")));
        }
        paths
    }

    /// Changes a file's durable content without the database's knowledge, as a failing disk does.
    pub fn corrupt(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut state = self.state.lock();
        let inode = state.lookup(path)?;
        let file = state.disk.files.get_mut(&inode).ok_or(io::ErrorKind::NotFound)?;
        change(Arc::make_mut(&mut file.current));
        file.sync();
        Ok(())
    }

    /// Returns the disk as it is after the process is killed, with all writes, synced or not.
    #[must_use]
    pub fn kill(&self, seed: u64) -> Self {
        let state = self.state.lock();
        Self::with_disk(state.disk.clone(), seed, lasting(&state.faults))
    }
}

/// Returns the faults that represent errors in the protocol under test. These faults survive a
/// restart.
fn lasting(faults: &[SimFault]) -> Vec<SimFault> {
    let lasts = |fault: &&SimFault| {
        use SimFault::{InPlace, SkipDirSync, SkipSync};
        matches!(fault, SkipSync { .. } | SkipDirSync { .. } | InPlace { .. })
    };
    faults.iter().filter(lasts).cloned().collect()
}

impl VfsFile for SimHandle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state.lock();
        let content = state.disk.files.get(&self.inode).ok_or(io::ErrorKind::NotFound)?;
        let rest = content.current.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.step()?;
        if let Some(file) = state.disk.files.get(&self.inode) {
            let bytes = file.allocated.max(file.current.len() as u64);
            state.refuse_when_full((offset + data.len() as u64).saturating_sub(bytes))?;
        }
        let file = state.disk.files.get_mut(&self.inode).ok_or(io::ErrorKind::NotFound)?;
        file.write(offset as usize, data);
        state.finish()
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        // A sync during which the power fails has no effect.
        if state.step()? {
            return Err(power_lost());
        }
        if state.fails_sync(&self.path) {
            let State { disk, rng, .. } = &mut *state;
            if let Some(file) = disk.files.get_mut(&self.inode) {
                file.drop_unsynced(rng);
            }
            state.sync_failed = true;
            return Err(io::Error::other("input/output error"));
        }
        if !state.skips_sync(&self.path)
            && let Some(file) = state.disk.files.get_mut(&self.inode)
        {
            file.sync();
        }
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.disk.files.get(&self.inode).ok_or(io::ErrorKind::NotFound)?;
        let bytes = file.allocated.max(file.current.len() as u64);
        state.refuse_when_full(len.saturating_sub(bytes))?;
        let file = state.disk.files.get_mut(&self.inode).ok_or(io::ErrorKind::NotFound)?;
        file.allocated = file.allocated.max(len);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.state.lock();
        let file = state.disk.files.get(&self.inode).ok_or(io::ErrorKind::NotFound)?;
        Ok(file.current.len() as u64)
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut state = self.state.lock();
        let path = state.target(path).to_owned();
        let path = path.as_str();
        let found = state.lookup(path);
        let inode = match (mode, found) {
            (OpenMode::Read | OpenMode::Write, found) => found?,
            (OpenMode::CreateNew, Ok(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (OpenMode::Replace, Ok(inode)) => {
                state.step()?;
                if let Some(file) = state.disk.files.get_mut(&inode) {
                    file.truncate();
                }
                state.finish()?;
                inode
            }
            (OpenMode::CreateNew | OpenMode::Replace, Err(_)) => {
                state.step()?;
                let inode = state.disk.next_inode;
                state.disk.next_inode += 1;
                let name = name(path).to_owned();
                state.change(parent(path), NameChange::Link { name, inode })?;
                state.disk.files.insert(inode, crate::sim_disk::SimFile::default());
                state.finish()?;
                inode
            }
        };
        Ok(Arc::new(SimHandle { state: Arc::clone(&self.state), inode, path: path.to_owned() }))
    }

    fn map(&self, path: &str, len: u64) -> io::Result<Buffer> {
        let mut state = self.state.lock();
        let fails = |f: &SimFault| matches!(f, SimFault::FailMap { path: p } if path.contains(p));
        if let Some(at) = state.faults.iter().position(fails) {
            state.faults.remove(at);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let inode = state.lookup(path)?;
        let file = state.disk.files.get(&inode).ok_or(io::ErrorKind::NotFound)?;
        if file.current.len() as u64 != len {
            let message = format!("the file is {} bytes long, expected {len}", file.current.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Buffer::from(file.current.as_slice()))
    }

    fn settle(&self, path: &str) -> io::Result<()> {
        self.open(path, OpenMode::Write)?.sync()?;
        let mut state = self.state.lock();
        let inode = state.lookup(path)?;
        if let Some(file) = state.disk.files.get_mut(&inode) {
            file.forget_cache();
        }
        Ok(())
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.step()? {
            return Err(power_lost());
        }
        if !state.disk.directories.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !state.skips_dir_sync(path) {
            state.disk.sync_directory(path);
        }
        Ok(())
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.disk.directories.contains_key(path) {
            return Ok(());
        }
        state.step()?;
        let mut at = String::new();
        for component in path.split('/') {
            if !at.is_empty() {
                at.push('/');
            }
            at.push_str(component);
            state.disk.directories.entry(at.clone()).or_default();
        }
        state.finish()
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let directory = state.disk.directories.get(path).ok_or(io::ErrorKind::NotFound)?;
        if !directory.current.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.step()?;
        state.disk.remove_directory(path);
        state.finish()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.target(from) == to {
            return Ok(());
        }
        if state.disk.directories.contains_key(from) {
            if state.disk.directories.contains_key(to) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            state.step()?;
            state.disk.move_directory(from, to);
            return state.finish();
        }
        let inode = state.lookup(from)?;
        state.step()?;
        let (old, new) = (name(from).to_owned(), name(to).to_owned());
        if parent(from) == parent(to) {
            state.change(parent(from), NameChange::Rename { from: old, to: new, inode })?;
        } else {
            state.change(parent(to), NameChange::Link { name: new, inode })?;
            state.change(parent(from), NameChange::Unlink { name: old })?;
        }
        state.finish()
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.lookup(path)?;
        state.step()?;
        state.change(parent(path), NameChange::Unlink { name: name(path).to_owned() })?;
        state.finish()
    }

    fn list(&self, path: &str) -> io::Result<Vec<DirEntry>> {
        let state = self.state.lock();
        let directory = state.disk.directories.get(path).ok_or(io::ErrorKind::NotFound)?;
        let len =
            |inode: &Inode| state.disk.files.get(inode).map_or(0, |file| file.current.len() as u64);
        let files = directory.current.iter().map(|(name, inode)| DirEntry {
            name: name.clone(),
            len: len(inode),
            is_dir: false,
        });
        let children = state.disk.directories.keys();
        let children = children.filter(|child| !child.is_empty() && parent(child) == path);
        let children =
            children.map(|c| DirEntry { name: name(c).to_owned(), len: 0, is_dir: true });
        let mut entries: Vec<DirEntry> = files.chain(children).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn lock(&self, _path: &str) -> EngineResult<Box<dyn VfsLock>> {
        let mut state = self.state.lock();
        if state.locked {
            return Err(EngineError::new(ErrorCode::RootLocked, "the root is in use"));
        }
        state.locked = true;
        Ok(Box::new(SimLock { state: Arc::clone(&self.state) }))
    }

    fn entropy(&self) -> u64 {
        self.state.lock().rng.random()
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let inode = state.lookup(from)?;
        state.step()?;
        state.change(parent(to), NameChange::Link { name: name(to).to_owned(), inode })?;
        state.finish()
    }

    fn space(&self) -> io::Result<Space> {
        let state = self.state.lock();
        let limit = state.faults.iter().find_map(|fault| match fault {
            SimFault::Full { bytes } => Some(*bytes),
            _ => None,
        });
        let Some(total) = limit else {
            return Ok(Space { free: u64::MAX, total: u64::MAX });
        };
        Ok(Space { free: total.saturating_sub(state.disk.bytes()), total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synced_bytes_and_names_survive_every_power_loss() {
        for seed in 0..200 {
            let vfs = SimVfs::new(seed);
            vfs.create_dir("d").unwrap();
            vfs.sync_dir("").unwrap();
            let file = vfs.open("d/a", OpenMode::CreateNew).unwrap();
            file.write_at(&[7; 300], 0).unwrap();
            file.sync().unwrap();
            vfs.sync_dir("d").unwrap();
            file.write_at(&[9; 300], 300).unwrap();
            let after = vfs.power_loss(seed);
            let file = after.open("d/a", OpenMode::Read).unwrap();
            let mut bytes = [0; 300];
            assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 300);
            assert_eq!(bytes, [7; 300]);
        }
    }

    #[test]
    fn unsynced_names_may_be_lost() {
        let vanished = (0..50).filter(|&seed| {
            let vfs = SimVfs::new(seed);
            let file = vfs.open("a", OpenMode::CreateNew).unwrap();
            file.write_at(b"x", 0).unwrap();
            file.sync().unwrap();
            vfs.power_loss(seed).open("a", OpenMode::Read).is_err()
        });
        assert!((5..45).contains(&vanished.count()));
    }
}
