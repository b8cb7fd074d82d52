//! Opening a root: create it, or bring back everything that was committed. Automatic, and the
//! same however often it is interrupted: no step destroys what a later attempt needs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{DirEntry, OpenMode, Vfs};

use crate::file::{StoredFile, read_whole, sync_dir, write_whole};
use crate::layout::{
    CURRENT, CURRENT_TMP, DB, FORMAT, FORMAT_TMP, FORMAT_VERSION, LOG, LOG_BLOCK, STAGE, TABLES,
    TRASH, damaged, file_number, log_file, log_number, manifest, manifest_number, table_dir,
};
use crate::log::{FileHeader, read_group};
use crate::manifest::{Manifested, SymbolFiles, load};
use crate::options::{PlantedFault, StorageOptions};
use crate::record::decode_ops;
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use crate::state::{ApplyContext, Op, apply};
use crate::symbol_file::load_symbols;

/// Everything the storage starts with.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) manifested: Manifested,
    pub(crate) snapshot: Snapshot,
    /// Files that the manifest names and the log removed.
    pub(crate) removed: Vec<Arc<StoredFile>>,
    pub(crate) next_log: u64,
    pub(crate) next_file: u64,
    /// Log files that may be used again.
    pub(crate) spare_logs: Vec<u64>,
}

pub(crate) fn recover(vfs: &Arc<dyn Vfs>, options: &StorageOptions) -> EngineResult<Recovered> {
    for directory in [DB, LOG, TABLES, STAGE, TRASH] {
        vfs.create_dir(directory).map_err(|error| EngineError::io(directory, &error))?;
    }
    if create_if_missing(&**vfs)? {
        let empty = Snapshot { next_table: 1, ..Snapshot::default() };
        let none = Manifested::fresh();
        none.write_next(&**vfs, empty, &SymbolFiles::new(), (1, 1))?.switch(&**vfs)?;
    }
    check_format(&**vfs)?;
    let manifested = load(vfs)?;
    // A process that was killed may have renamed the pointer without syncing it.
    sync_dir(&**vfs, DB)?;
    sync_dir(&**vfs, "")?;
    let listings = table_listings(&**vfs)?;
    check_references(&manifested.snapshot, &listings)?;
    for table in manifested.snapshot.tables() {
        for dictionary in table.head.symbols.values() {
            load_symbols(&**vfs, dictionary.store())?;
        }
    }
    let mut replay = Replay {
        vfs,
        options,
        listings: &listings,
        snapshot: manifested.snapshot.clone(),
        removed: Vec::new(),
        unsynced: Vec::new(),
        claimed_lsn: 0,
        stopped: None,
    };
    let logs = list_logs(&**vfs)?;
    let first_log = match options.planted {
        Some(PlantedFault::ReplayAllLogs) => 0,
        _ => manifested.first_log,
    };
    replay.run(&logs, first_log)?;
    replay.refuse_holes()?;
    replay.make_names_durable()?;
    let Replay { snapshot, removed, .. } = replay;
    let next_file = match options.planted {
        Some(PlantedFault::ForgetFileNumbers) => manifested.next_file,
        _ => highest_file(&listings).max(manifested.next_file - 1) + 1,
    };
    let named = if options.planted == Some(PlantedFault::RemoveManifestFiles) {
        names([&snapshot], &[])
    } else {
        names([&snapshot, &manifested.snapshot], &removed)
    };
    clean_up(&**vfs, &manifested.chain, &named, &listings)?;
    Ok(Recovered {
        next_log: logs.last().copied().unwrap_or(0).max(manifested.first_log) + 1,
        next_file,
        spare_logs: logs.iter().copied().filter(|&n| n < manifested.first_log).collect(),
        manifested,
        snapshot,
        removed,
    })
}

fn list(vfs: &dyn Vfs, path: &str) -> EngineResult<Vec<DirEntry>> {
    vfs.list(path).map_err(|error| EngineError::io(path, &error))
}

/// Writes `FORMAT` into a new root. Returns whether a first manifest is needed.
fn create_if_missing(vfs: &dyn Vfs) -> EngineResult<bool> {
    let entries = list(vfs, DB)?;
    let named = |name: &str| entries.iter().any(|entry| format!("{DB}/{}", entry.name) == name);
    if named(CURRENT) {
        return Ok(false);
    }
    // Without a pointer only an interrupted creation can be here: one manifest at most, no table.
    let later = |entry: &DirEntry| manifest_number(&entry.name).is_some_and(|n| n > 1);
    if entries.iter().any(later) || !list(vfs, TABLES)?.is_empty() {
        return Err(damaged(CURRENT, "it is missing"));
    }
    let (major, minor) = FORMAT_VERSION;
    write_whole(vfs, FORMAT_TMP, format!("tidemark {major}.{minor}\n").as_bytes())?;
    vfs.rename(FORMAT_TMP, FORMAT).map_err(|error| EngineError::io(FORMAT, &error))?;
    sync_dir(vfs, DB)?;
    sync_dir(vfs, "")?;
    Ok(true)
}

fn check_format(vfs: &dyn Vfs) -> EngineResult<()> {
    let bytes = read_whole(vfs, FORMAT).map_err(|error| damaged(FORMAT, error))?;
    let parsed = || {
        let text = std::str::from_utf8(&bytes).ok()?.strip_suffix('\n')?;
        let (major, minor) = text.strip_prefix("tidemark ")?.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let found = parsed().ok_or_else(|| damaged(FORMAT, "it names no format version"))?;
    if found.0 != FORMAT_VERSION.0 || found.1 > FORMAT_VERSION.1 {
        return Err(EngineError::new(
            ErrorCode::NotSupported,
            format!(
                "the root has format {}.{}, this version reads up to {}.{}",
                found.0, found.1, FORMAT_VERSION.0, FORMAT_VERSION.1
            ),
        ));
    }
    Ok(())
}

/// Names and lengths of the files of each table directory.
type Listings = HashMap<String, HashMap<String, u64>>;

fn table_listings(vfs: &dyn Vfs) -> EngineResult<Listings> {
    let mut listings = Listings::new();
    for entry in list(vfs, TABLES)?.into_iter().filter(|entry| entry.is_dir) {
        let path = format!("{TABLES}/{}", entry.name);
        let files = list(vfs, &path)?.into_iter().map(|entry| (entry.name, entry.len));
        listings.insert(path, files.collect());
    }
    Ok(listings)
}

fn highest_file(listings: &Listings) -> u64 {
    let names = listings.values().flat_map(HashMap::keys);
    names.filter_map(|name| file_number(name)).max().unwrap_or(0)
}

/// Existence and length of everything the manifest names; checksums wait for the first touch.
fn check_references(snapshot: &Snapshot, listings: &Listings) -> EngineResult<()> {
    for table in snapshot.tables() {
        for partition in table.kept_partitions() {
            for segment in &partition.segments {
                check_file(listings, segment.file.path(), segment.meta.file_len)?;
            }
        }
        for dictionary in table.head.symbols.values() {
            for file in dictionary.store().symbol_files() {
                check_file(listings, file.file.path(), file.file_len)?;
            }
        }
    }
    Ok(())
}

fn check_file(listings: &Listings, path: &str, len: u64) -> EngineResult<()> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match listings.get(directory).and_then(|files| files.get(name)) {
        Some(&found) if found == len => Ok(()),
        Some(found) => Err(damaged(path, format!("it has {found} bytes, {len} expected"))),
        None => Err(damaged(path, "it is missing")),
    }
}

fn list_logs(vfs: &dyn Vfs) -> EngineResult<Vec<u64>> {
    let mut numbers: Vec<u64> =
        list(vfs, LOG)?.iter().filter_map(|entry| log_number(&entry.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

struct Replay<'a> {
    vfs: &'a Arc<dyn Vfs>,
    options: &'a StorageOptions,
    listings: &'a Listings,
    snapshot: Snapshot,
    removed: Vec<Arc<StoredFile>>,
    unsynced: Vec<Arc<Segment>>,
    /// The last transaction that any group says was durable.
    claimed_lsn: u64,
    /// The transaction whose unsynced segments did not survive: nothing from it on exists.
    stopped: Option<u64>,
}

impl Replay<'_> {
    /// What is replayed may be in the page cache only, or, after a failed sync, there and never
    /// on the disk. New commits build on it, so it is made durable before it is read.
    fn trusts_cache(&self) -> bool {
        self.options.planted == Some(PlantedFault::NoResyncAfterReplay)
    }

    /// Applies all that follows the manifest.
    fn run(&mut self, logs: &[u64], first_log: u64) -> EngineResult<()> {
        let mut files = Vec::new();
        for &number in logs.iter().filter(|&&number| number >= first_log) {
            let mut head = vec![0; LOG_BLOCK as usize];
            let path = log_file(number);
            let failed = |error: std::io::Error| EngineError::io(&path, &error);
            if !self.trusts_cache() {
                self.vfs.settle(&path).map_err(failed)?;
            }
            let file = self.vfs.open(&path, OpenMode::Read).map_err(failed)?;
            let count = file.read_at(&mut head, 0).map_err(failed)?;
            // A file without a header was never synced, so nothing in it was acknowledged.
            let header = FileHeader::decode(&head[..count]);
            files.extend(header.filter(|header| header.number == number));
        }
        for (index, header) in files.iter().enumerate() {
            let void = files[index + 1..].iter().map(|later| later.first_lsn).min();
            let void = void.filter(|_| self.options.planted != Some(PlantedFault::IgnoreVoid));
            self.file(*header, void.unwrap_or(u64::MAX))?;
        }
        Ok(())
    }

    /// Applies one file's groups below `void`, where a later file takes over.
    fn file(&mut self, header: FileHeader, void: u64) -> EngineResult<()> {
        let path = log_file(header.number);
        let bytes = read_whole(&**self.vfs, &path)?;
        let planted = self.options.planted;
        let mut reading = true;
        let mut offset = LOG_BLOCK as usize;
        while offset < bytes.len() {
            let Some(group) = read_group(&bytes, offset, header.salt, planted) else {
                // Past a torn group only claims count: was something lost that was durable?
                reading = false;
                offset += LOG_BLOCK as usize;
                continue;
            };
            self.claimed_lsn = self.claimed_lsn.max(group.synced_lsn);
            let lenient = planted == Some(PlantedFault::IgnoreLogSequence);
            reading = reading || lenient;
            for (lsn, record) in (group.first_lsn..).zip(&group.records) {
                let expected = self.snapshot.lsn + 1;
                let lsn = if lenient && lsn > expected { expected } else { lsn };
                let next = lsn == expected && lsn < void && self.stopped.is_none();
                if reading && next {
                    let ops = decode_ops(&bytes[record.clone()]);
                    let ops = ops.map_err(|error| damaged(&path, error.message))?;
                    self.transaction(&ops).map_err(|error| damaged(&path, error.message))?;
                }
            }
            offset = group.end;
        }
        Ok(())
    }

    fn transaction(&mut self, ops: &[Op]) -> EngineResult<()> {
        let lsn = self.snapshot.lsn + 1;
        if !self.adopted_files_hold(ops)? {
            self.stopped = Some(lsn);
            return Ok(());
        }
        let mut context = ApplyContext {
            vfs: self.vfs,
            lsn,
            frozen_lsn: 0,
            run_rows: self.options.run_rows,
            removed: &mut self.removed,
            unsynced: &mut self.unsynced,
        };
        for op in ops {
            apply(&mut self.snapshot, op, &mut context)?;
        }
        self.snapshot.lsn = lsn;
        Ok(())
    }

    /// Whether segments a transaction adopts are there. Those it synced must be; those it did
    /// not are read whole, and the log ends before the first that did not survive.
    fn adopted_files_hold(&self, ops: &[Op]) -> EngineResult<bool> {
        for op in ops {
            let Op::Adopt(adopt) = op else { continue };
            let directory = table_dir(adopt.table);
            for (_, meta) in &adopt.segments {
                let path = format!("{directory}/{}", meta.name);
                let there = check_file(self.listings, &path, meta.file_len);
                if adopt.synced {
                    there?;
                    continue;
                }
                let trusted = self.options.planted == Some(PlantedFault::TrustAdoptedSegments);
                if there.is_ok() && !self.trusts_cache() {
                    self.vfs.settle(&path).map_err(|error| EngineError::io(&path, &error))?;
                }
                let segment = Segment::new(self.vfs, &directory, meta.clone());
                if there.is_err() || (!trusted && segment.verify().is_err()) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// A torn tail is normal; a hole below something known durable is damage.
    fn refuse_holes(&self) -> EngineResult<()> {
        let lenient = self.options.planted.is_some();
        if self.claimed_lsn > self.snapshot.lsn && self.stopped.is_none() && !lenient {
            return Err(damaged(
                LOG,
                format!("transaction {} was durable and cannot be read", self.snapshot.lsn + 1),
            ));
        }
        Ok(())
    }

    /// The names of what was replayed, as durable as its content.
    fn make_names_durable(&self) -> EngineResult<()> {
        if self.trusts_cache() {
            return Ok(());
        }
        let paths = self.unsynced.iter().map(|segment| segment.file.path());
        let directories: HashSet<_> = paths.filter_map(|path| path.rsplit_once('/')).collect();
        for (directory, _) in &directories {
            sync_dir(&**self.vfs, directory)?;
        }
        sync_dir(&**self.vfs, TABLES)?;
        sync_dir(&**self.vfs, LOG)
    }
}

/// Paths of all files that tables of these snapshots, or the removed, name.
fn names<const N: usize>(
    snapshots: [&Snapshot; N],
    removed: &[Arc<StoredFile>],
) -> HashSet<String> {
    let mut files = removed.to_vec();
    for table in snapshots.into_iter().flat_map(Snapshot::tables) {
        table.collect_segment_files(&mut files);
        for dictionary in table.head.symbols.values() {
            files.extend(dictionary.store().files());
        }
    }
    files.iter().map(|file| file.path().to_owned()).collect()
}

/// Removes what an interrupted run left. Nothing that the manifest or the log names.
fn clean_up(
    vfs: &dyn Vfs,
    chain: &[u64],
    named: &HashSet<String>,
    listings: &Listings,
) -> EngineResult<()> {
    for entry in list(vfs, STAGE)? {
        remove_tree(vfs, &format!("{STAGE}/{}", entry.name));
    }
    for entry in list(vfs, DB)? {
        let stale = manifest_number(&entry.name).filter(|n| !chain.contains(n));
        if let Some(number) = stale {
            let _ = vfs.unlink(&manifest(number));
        }
    }
    let _ = vfs.unlink(CURRENT_TMP);
    for (directory, files) in listings {
        let mut left = files.len();
        for name in files.keys() {
            let path = format!("{directory}/{name}");
            if !named.contains(&path) {
                // Kept until the next checkpoint, in case somebody wants to look at it.
                let table = directory.rsplit('/').next().unwrap_or_default();
                let _ = vfs.rename(&path, &format!("{TRASH}/{table}.{name}"));
                left -= 1;
            }
        }
        if left == 0 {
            let _ = vfs.remove_dir(directory);
        }
    }
    Ok(())
}

/// Removes a directory with the files in it. What cannot be removed stays for the next start.
pub(crate) fn remove_tree(vfs: &dyn Vfs, path: &str) {
    if let Ok(entries) = vfs.list(path) {
        for entry in entries {
            let _ = vfs.unlink(&format!("{path}/{}", entry.name));
        }
    }
    let _ = vfs.remove_dir(path);
}
