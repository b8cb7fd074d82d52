//! Content of a simulated disk: the durable content of each file and later writes, and the durable
//! names in each directory and later changes.
//!
//! A power loss keeps any subset of the unsynced data: any 64-byte sectors of each write, and any
//! of the name changes. A file has the length that it had after any one of the writes; bytes in
//! between are zeros or junk. This deliberately loses more than real file systems do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Number of bytes that a disk writes completely or not at all.
const SECTOR: usize = 64;

pub(crate) type Inode = u64;

/// A file's content.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimFile {
    /// Content that the process sees.
    pub(crate) current: Arc<Vec<u8>>,
    /// Minimum content after a power loss.
    durable: Arc<Vec<u8>>,
    /// Writes made since the durable content, in order.
    unsynced: Vec<(usize, Arc<[u8]>)>,
    /// Bytes allocated for the file.
    pub(crate) allocated: u64,
}

/// A directory change that is not yet durable.
#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Link {
        name: String,
        inode: Inode,
    },
    Unlink {
        name: String,
    },
    /// Atomic within one directory: both names change or neither does.
    Rename {
        from: String,
        to: String,
        inode: Inode,
    },
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, Inode>) {
        match self {
            Self::Link { name, inode } => {
                names.insert(name.clone(), *inode);
            }
            Self::Unlink { name } => {
                names.remove(name);
            }
            Self::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

/// Files in a directory. The directories themselves are listed in [`SimDisk`].
#[derive(Debug, Clone, Default)]
pub(crate) struct SimDirectory {
    pub(crate) current: BTreeMap<String, Inode>,
    durable: BTreeMap<String, Inode>,
    unsynced: Vec<NameChange>,
}

impl SimDirectory {
    pub(crate) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.current);
        self.unsynced.push(change);
    }

    pub(crate) fn sync(&mut self) {
        self.durable.clone_from(&self.current);
        self.unsynced.clear();
    }

    fn crash(&self, rng: &mut ChaCha8Rng, keep: f64) -> Self {
        let mut names = self.durable.clone();
        for change in &self.unsynced {
            if rng.random_bool(keep) {
                change.apply(&mut names);
            }
        }
        Self { current: names.clone(), durable: names, unsynced: Vec::new() }
    }
}

impl SimFile {
    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        let current = Arc::make_mut(&mut self.current);
        if current.len() < offset + data.len() {
            current.resize(offset + data.len(), 0);
        }
        current[offset..offset + data.len()].copy_from_slice(data);
        self.unsynced.push((offset, data.into()));
    }

    pub(crate) fn flip(&mut self, offset: usize, mask: u8) {
        for content in [&mut self.current, &mut self.durable] {
            if let Some(byte) = Arc::make_mut(content).get_mut(offset) {
                *byte ^= mask;
            }
        }
    }

    pub(crate) fn truncate(&mut self) {
        // The only durable files that are ever emptied are temporary files. Emptying a file is
        // modelled as immediately durable, which loses more data than necessary.
        *self = Self::default();
    }

    /// Writes all changes since the last sync to the disk, except pages that a failed sync dropped,
    /// because the kernel treats those as clean.
    pub(crate) fn sync(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        for (offset, data) in self.unsynced.drain(..) {
            let end = offset + data.len();
            if durable.len() < end {
                durable.resize(end, 0);
            }
            durable[offset..end].copy_from_slice(&data);
        }
    }

    /// Simulates a failed sync: the process still sees its writes, but only some of them reach the
    /// disk.
    pub(crate) fn drop_unsynced(&mut self, rng: &mut ChaCha8Rng) {
        self.unsynced.retain(|_| rng.random());
        self.sync();
    }

    /// Drops the cache, so that reads return the disk's content. Writes that will never reach the
    /// disk are lost.
    pub(crate) fn forget_cache(&mut self) {
        if self.unsynced.is_empty() {
            self.current = Arc::clone(&self.durable);
        }
    }

    fn crash(&self, rng: &mut ChaCha8Rng, keep: f64, junk: bool) -> Self {
        let mut content = Vec::clone(&self.durable);
        // The file may have the length that it had at any time since the last sync.
        let mut lengths = vec![content.len()];
        for (offset, data) in &self.unsynced {
            let end = (offset + data.len()).max(lengths[lengths.len() - 1]);
            lengths.push(end);
        }
        let len = if rng.random_bool(keep) {
            lengths[lengths.len() - 1]
        } else {
            lengths.choose(rng).copied().unwrap_or(0)
        };
        let old_len = content.len();
        content.resize(len, 0);
        if junk && len > old_len && rng.random_bool(0.3) {
            rng.fill(&mut content[old_len..]);
        }
        for (offset, data) in &self.unsynced {
            persist(&mut content, *offset, data, rng, keep, junk);
        }
        let content = Arc::new(content);
        Self { current: Arc::clone(&content), durable: content, unsynced: Vec::new(), allocated: 0 }
    }
}

/// Writes some sectors of `data`; a lost sector may contain junk.
fn persist(
    content: &mut [u8],
    offset: usize,
    data: &[u8],
    rng: &mut ChaCha8Rng,
    keep: f64,
    junk: bool,
) {
    // Most writes survive or are lost as a whole; tearing every write would hide the rare cases.
    let fate: f64 = rng.random();
    let torn = rng.random_bool(0.3);
    let mut at = 0;
    while at < data.len() {
        let sector_end = (offset + at) / SECTOR * SECTOR + SECTOR;
        let end = (sector_end - offset).min(data.len());
        let (from, to) = (offset + at, (offset + end).min(content.len()));
        if from < to {
            let retained = if torn { rng.random_bool(keep) } else { fate < keep };
            if retained {
                content[from..to].copy_from_slice(&data[at..at + (to - from)]);
            } else if junk && torn && rng.random_bool(0.05) {
                rng.fill(&mut content[from..to]);
            }
        }
        at = end;
    }
}

/// All files and directories.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimDisk {
    pub(crate) files: BTreeMap<Inode, SimFile>,
    pub(crate) directories: BTreeMap<String, SimDirectory>,
    /// Directories whose own names are durable.
    durable_directories: BTreeSet<String>,
    /// Directory renames that are not yet durable: old and new path.
    moved: Vec<(String, String)>,
    pub(crate) next_inode: Inode,
}

impl SimDisk {
    pub(crate) fn new() -> Self {
        let mut disk = Self { next_inode: 1, ..Self::default() };
        disk.directories.insert(String::new(), SimDirectory::default());
        disk.durable_directories.insert(String::new());
        disk
    }

    pub(crate) fn sync_directory(&mut self, path: &str) {
        if let Some(directory) = self.directories.get_mut(path) {
            directory.sync();
        }
        let children: Vec<String> =
            self.directories.keys().filter(|child| parent(child) == path).cloned().collect();
        self.durable_directories
            .retain(|child| child.is_empty() || parent(child) != path || children.contains(child));
        self.durable_directories.extend(children);
        self.moved.retain(|(_, to)| parent(to) != path);
    }

    /// Renames a directory with everything below it.
    pub(crate) fn move_directory(&mut self, from: &str, to: &str) {
        let moved = |path: &String| {
            let rest = path.strip_prefix(from)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
        };
        let old: Vec<String> =
            self.directories.keys().filter(|path| moved(path).is_some()).cloned().collect();
        for path in old {
            let Some(new) = moved(&path) else { continue };
            if let Some(directory) = self.directories.remove(&path) {
                self.directories.insert(new.clone(), directory);
            }
            if self.durable_directories.remove(&path) {
                self.durable_directories.insert(new);
            }
        }
        self.moved.push((from.to_owned(), to.to_owned()));
    }

    /// Removes a directory. The removal is immediately durable, which loses more than necessary.
    pub(crate) fn remove_directory(&mut self, path: &str) {
        self.directories.remove(path);
        self.durable_directories.remove(path);
    }

    /// Total size of all files in bytes, for the full-disk fault.
    pub(crate) fn bytes(&self) -> u64 {
        let named: BTreeSet<Inode> =
            self.directories.values().flat_map(|d| d.current.values().copied()).collect();
        let files = named.iter().filter_map(|inode| self.files.get(inode));
        files.map(|file| file.allocated.max(file.current.len() as u64)).sum()
    }

    /// Returns a disk state that a power loss may leave.
    pub(crate) fn crash(&self, rng: &mut ChaCha8Rng) -> Self {
        // Each state loses little, half, or nearly everything.
        let keep = *[0.05, 0.5, 0.9, 1.0].choose(rng).unwrap_or(&0.5);
        let junk = rng.random_bool(0.5);
        let before;
        let found = if self.moved.is_empty() {
            self
        } else {
            before = self.with_moves_undone(rng, keep);
            &before
        };
        let mut disk = Self { next_inode: self.next_inode, ..Self::new() };
        for (path, directory) in &found.directories {
            let durable = found.durable_directories.contains(path);
            if !durable && !rng.random_bool(keep) {
                continue;
            }
            if !path.is_empty() && !disk.directories.contains_key(parent(path)) {
                continue;
            }
            disk.directories.insert(path.clone(), directory.crash(rng, keep));
            disk.durable_directories.insert(path.clone());
        }
        let named: BTreeSet<Inode> =
            disk.directories.values().flat_map(|d| d.current.values().copied()).collect();
        for inode in named {
            if let Some(file) = self.files.get(&inode) {
                disk.files.insert(inode, file.crash(rng, keep, junk));
            }
        }
        disk
    }

    /// Undoes some directory renames, which never reached the disk.
    fn with_moves_undone(&self, rng: &mut ChaCha8Rng, keep: f64) -> Self {
        let mut disk = self.clone();
        for (from, to) in std::mem::take(&mut disk.moved).iter().rev() {
            let used = disk.directories.contains_key(from);
            if !used && disk.directories.contains_key(to) && !rng.random_bool(keep) {
                disk.move_directory(to, from);
            }
        }
        disk.moved.clear();
        disk
    }
}

/// Directory of `path`.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Name of `path` within its directory.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
