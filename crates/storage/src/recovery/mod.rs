//! Opens a root: creates it, or recovers everything that was committed. Recovery is automatic. Its
//! result does not depend on how often it is interrupted, because no step destroys data that a
//! later attempt needs.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod listing;
pub(crate) mod replay;
pub(crate) mod skip;

use std::collections::HashSet;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{DirEntry, Vfs};

use crate::disk::Disk;
use crate::disk::file::{StoredFile, read_known, sync_dir, write_new};
use crate::disk::layout::{
    CURRENT, CURRENT_TMP, DB, FORMAT, FORMAT_TMP, FORMAT_VERSION, LOG, STAGE, TABLES, TRASH,
    damaged, manifest, manifest_number,
};
use crate::log::reader::LogFile;
use crate::manifest::{Generations, Loaded, SymbolFiles, load};
use crate::options::{PlantedFault, StorageOptions};
use crate::recovery::listing::{
    Listings, check_file, highest_file, list, list_logs, remove_tree, table_listings,
};
use crate::recovery::replay::Replay;
use crate::segment::Segment;
use crate::segment::symbol_file::load_symbols;
use crate::snapshot::Snapshot;
use crate::state::context::PendingRewrites;
use crate::state::recent::RecentCommits;

/// Recovered state that the storage starts from.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Commits found in the log that changed followed tables.
    pub(crate) recent: RecentCommits,
    pub(crate) generations: Generations,
    pub(crate) snapshot: Snapshot,
    /// Files that the manifest lists but later transactions in the log removed.
    pub(crate) removed: Vec<Arc<StoredFile>>,
    /// Files that only the previous generation needs.
    pub(crate) retained_files: Vec<Arc<StoredFile>>,
    pub(crate) next_log: u64,
    pub(crate) next_file: u64,
    /// Log files that are no longer needed.
    pub(crate) obsolete_logs: Vec<u64>,
    /// Number of log files that were replayed. Every start replays them until the next checkpoint.
    pub(crate) replayed_logs: usize,
    /// Data that the next checkpoint must rewrite.
    pub(crate) pending_rewrites: PendingRewrites,
    /// Whether there are files in the trash, or files that only the previous generation needs.
    pub(crate) has_older_files: bool,
    /// Problems that were found and either repaired or recorded on the affected tables.
    pub(crate) repairs: Vec<String>,
}

pub(crate) fn recover(vfs: &Arc<Disk>, options: &StorageOptions) -> EngineResult<Recovered> {
    let format = read_format(vfs.system())?;
    for directory in [DB, LOG, TABLES, STAGE, TRASH] {
        vfs.create_dir(directory).map_err(|error| EngineError::io(directory, &error))?;
    }
    let created = create_if_missing(vfs.system(), options)?;
    let listings = table_listings(vfs.system())?;
    let complete = |snapshot: &Snapshot| missing_files(snapshot, &listings).is_empty();
    let loaded = load(vfs, options.keep_generations, complete);
    let Loaded { generations, fallen_back } =
        loaded.or_else(|error| start_over(vfs, options, error))?;
    // A killed process may have renamed the pointer without syncing the directory.
    sync_dir(vfs.system(), DB)?;
    sync_dir(vfs.system(), "")?;
    let mut repairs: Vec<_> = fallen_back.iter().map(|error| error.reason().to_owned()).collect();
    if format != Some(FORMAT_VERSION) && !created {
        if format.is_none() {
            repairs.push(damaged(FORMAT, "it does not contain a format version").message);
        }
        write_format(vfs.system())?;
    }
    let manifested = &generations.current;
    for (segment, error) in missing_files(&manifested.snapshot, &listings) {
        segment.mark_damaged(error);
    }
    for table in manifested.snapshot.tables() {
        for dictionary in table.head.symbols.values() {
            load_symbols(vfs.system(), dictionary.store())?;
        }
    }
    let mut replay = Replay::new(vfs, options, &listings, manifested.snapshot.clone());
    let logs = list_logs(vfs.system())?;
    let first_log = match options.planted {
        Some(PlantedFault::ReplayAllLogs) => 0,
        _ => manifested.first_log,
    };
    replay.run(&logs, first_log)?;
    let Replay { snapshot, removed, lost, pending_rewrites: rewrites, recent, .. } = replay;
    repairs.extend(lost);
    let next_file = match options.planted {
        Some(PlantedFault::ForgetFileNumbers) => manifested.next_file,
        _ => highest_file(&listings).max(manifested.next_file - 1) + 1,
    };
    let file = |name: &String| StoredFile::new(Arc::clone(vfs), format!("{TABLES}/{name}"));
    let retained: Vec<Arc<StoredFile>> = manifested.retained_files.iter().map(file).collect();
    let named = if options.planted == Some(PlantedFault::RemoveManifestFiles) {
        names([&snapshot], removed.iter().take(0))
    } else {
        names([&snapshot, &manifested.snapshot], removed.iter().chain(&retained))
    };
    clean_up(vfs.system(), &generations, &named, &listings)?;
    let first_log = generations.first_log();
    let is_older = |log: &u64| (first_log..manifested.first_log).contains(log);
    Ok(Recovered {
        recent,
        has_older_files: !retained.is_empty() || logs.iter().any(is_older) || has_trash(vfs)?,
        pending_rewrites: rewrites,
        next_log: logs.last().copied().unwrap_or(0).max(manifested.first_log) + 1,
        next_file,
        obsolete_logs: logs.iter().copied().filter(|&number| number < first_log).collect(),
        replayed_logs: logs.iter().filter(|&&number| number >= manifested.first_log).count(),
        generations,
        snapshot,
        removed,
        retained_files: retained,
        repairs,
    })
}

fn has_trash(vfs: &Arc<Disk>) -> EngineResult<bool> {
    Ok(!list(vfs.system(), TRASH)?.is_empty())
}

/// Creates the first manifest of a new root. Returns whether the root was new.
fn create_if_missing(vfs: &dyn Vfs, options: &StorageOptions) -> EngineResult<bool> {
    let entries = list(vfs, DB)?;
    let named = |name: &str| entries.iter().any(|entry| format!("{DB}/{}", entry.name) == name);
    // If neither a pointer nor tables exist, either the creation of the root was interrupted, or
    // the root has lost everything but its log.
    let later = |entry: &DirEntry| manifest_number(&entry.name).is_some_and(|n| n > 1);
    if named(CURRENT) || entries.iter().any(later) || !list(vfs, TABLES)?.is_empty() {
        return Ok(false);
    }
    write_format(vfs)?;
    write_first(vfs, options)?;
    Ok(true)
}

/// Writes the manifest for a database without tables. Its log starts with the first transaction.
fn write_first(vfs: &dyn Vfs, options: &StorageOptions) -> EngineResult<Generations> {
    let mut fresh = Generations::fresh(options.keep_generations);
    let empty = Snapshot { next_table: 1, ..Snapshot::default() };
    let next = fresh.write_next(vfs, empty, &SymbolFiles::new(), (1, 1), None)?;
    fresh.switch(vfs, next)?;
    Ok(fresh)
}

/// Before the first checkpoint the log contains everything, so losing the empty manifest does no
/// harm.
fn start_over(
    vfs: &Arc<Disk>,
    options: &StorageOptions,
    error: EngineError,
) -> EngineResult<Loaded> {
    let manifests = list(vfs.system(), DB)?;
    let mut manifests = manifests.iter().filter_map(|entry| manifest_number(&entry.name));
    if error.code != ErrorCode::Damaged || manifests.any(|number| number > 1) {
        return Err(error);
    }
    let mut first_lsn = None;
    for number in list_logs(vfs.system())? {
        let file = LogFile::scan(vfs.system(), number, 0, None)?;
        first_lsn = first_lsn.or(file.map(|file| file.first_lsn));
    }
    // If the log has never contained a transaction, the only files that can exist are those of an
    // interrupted bulk write.
    if first_lsn.is_some_and(|first| first > 1) {
        return Err(error);
    }
    Ok(Loaded { generations: write_first(vfs.system(), options)?, fallen_back: Some(error) })
}

fn write_format(vfs: &dyn Vfs) -> EngineResult<()> {
    let (major, minor) = FORMAT_VERSION;
    let version = format!("tidemark {major}.{minor}");
    let line = format!("{version} {:08x}\n", crc32c::crc32c(version.as_bytes()));
    write_new(vfs, FORMAT_TMP, line.as_bytes())?;
    vfs.rename(FORMAT_TMP, FORMAT).map_err(|error| EngineError::io(FORMAT, &error))?;
    sync_dir(vfs, DB)?;
    sync_dir(vfs, "")
}

/// Returns the root's format version; `None` if it is not readable. In that case, the manifest
/// decides whether this is a root at all. Changes nothing, and refuses unknown versions.
pub(crate) fn read_format(vfs: &dyn Vfs) -> EngineResult<Option<(u32, u32)>> {
    let bytes = match read_known(vfs, FORMAT) {
        Ok(bytes) => bytes,
        Err(error) if error.code == ErrorCode::Damaged => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(found) = parse_format(&bytes) else { return Ok(None) };
    if found.0 != FORMAT_VERSION.0 || found.1 > FORMAT_VERSION.1 {
        return Err(EngineError::new(
            ErrorCode::NotSupported,
            format!(
                "the root directory has format {}.{}, but this version supports at most {}.{}",
                found.0, found.1, FORMAT_VERSION.0, FORMAT_VERSION.1
            ),
        )
        .with_hint("start a version that supports this format; no file was changed"));
    }
    Ok(Some(found))
}

/// Parses `tidemark MAJOR.MINOR CRC`; format 1.0 has no checksum.
fn parse_format(bytes: &[u8]) -> Option<(u32, u32)> {
    const WITHOUT_CHECKSUM: (u32, u32) = (1, 0);
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (version, crc) = match text.rsplit_once(' ')? {
        ("tidemark", _) => (text, None),
        (version, crc) => (version, Some(u32::from_str_radix(crc, 16).ok()?)),
    };
    let (major, minor) = version.strip_prefix("tidemark ")?.split_once('.')?;
    let found = (major.parse().ok()?, minor.parse().ok()?);
    let sound = match crc {
        Some(crc) => crc32c::crc32c(version.as_bytes()) == crc,
        None => found == WITHOUT_CHECKSUM,
    };
    sound.then_some(found)
}

/// Returns segments whose files are missing or have the wrong length; their checksums are verified
/// on first access. Symbol files are read completely anyway.
fn missing_files(snapshot: &Snapshot, listings: &Listings) -> Vec<(Arc<Segment>, EngineError)> {
    let mut missing = Vec::new();
    for table in snapshot.tables() {
        for partition in table.all_partitions() {
            for segment in &partition.segments {
                let there = check_file(listings, segment.file.path(), segment.meta.file_len);
                missing.extend(there.err().map(|error| (Arc::clone(segment), error)));
            }
        }
    }
    missing
}

/// Returns the paths of `others` and of all files that the tables in these snapshots reference.
fn names<'a, const N: usize>(
    snapshots: [&Snapshot; N],
    others: impl Iterator<Item = &'a Arc<StoredFile>>,
) -> HashSet<String> {
    let mut files: Vec<Arc<StoredFile>> = others.cloned().collect();
    for table in snapshots.into_iter().flat_map(Snapshot::tables) {
        table.collect_segment_files(&mut files);
        for dictionary in table.head.symbols.values() {
            files.extend(dictionary.store().files());
        }
    }
    files.iter().map(|file| file.path().to_owned()).collect()
}

/// Removes leftovers from an interrupted run, but keeps every file that a manifest or the log
/// references.
fn clean_up(
    vfs: &dyn Vfs,
    generations: &Generations,
    named: &HashSet<String>,
    listings: &Listings,
) -> EngineResult<()> {
    for entry in list(vfs, STAGE)? {
        remove_tree(vfs, &format!("{STAGE}/{}", entry.name));
    }
    for entry in list(vfs, DB)? {
        let stale = manifest_number(&entry.name).filter(|number| !generations.needs(*number));
        if let Some(number) = stale {
            // A damaged manifest is retained for inspection until the next checkpoint.
            let _ = vfs.rename(&manifest(number), &format!("{TRASH}/{}", entry.name));
        }
    }
    let _ = vfs.unlink(CURRENT_TMP);
    // A manifest that was never current must not reappear. It may contain transactions that the log
    // has lost and that have been replaced with others.
    sync_dir(vfs, DB)?;
    for (directory, files) in listings {
        let mut left = files.len();
        for name in files.keys() {
            let path = format!("{directory}/{name}");
            if !named.contains(&path) {
                // Retained for inspection until the next checkpoint.
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
