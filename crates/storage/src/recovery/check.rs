//! The integrity check: reads all data and verifies every checksum, without changing anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::Vfs;

use crate::disk::Disk;
use crate::disk::layout::{CURRENT, FORMAT, LOG, damaged, log_file};
use crate::log::reader::LogFile;
use crate::manifest::{load_chain, manifest_numbers, read_current};
use crate::options::{StorageOptions, Verify};
use crate::recovery::listing::{list_logs, table_listings};
use crate::recovery::read_format;
use crate::recovery::replay::Replay;
use crate::segment::Segment;
use crate::segment::symbol_file::{load_symbols, read_symbols};
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::table::TableSnapshot;
use crate::table::damage::Damage;
use crate::table::schema::TableId;

/// Findings so far.
#[derive(Debug, Default)]
struct Findings {
    damages: Vec<Damage>,
    /// Table files that were read.
    read_files: BTreeSet<String>,
}

impl Findings {
    fn root(&mut self, error: &EngineError) {
        let what = error.reason().to_owned();
        self.damages.push(Damage { table_id: 0, table: String::new(), what });
    }

    /// Records damage as a finding; any other error ends the check.
    fn take<T>(&mut self, found: EngineResult<T>) -> EngineResult<Option<T>> {
        match found {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code == ErrorCode::Damaged => {
                self.root(&error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads every file of a table again, even if it was read before.
    fn table(&mut self, vfs: &Arc<Disk>, table: &TableSnapshot) -> EngineResult<()> {
        let schema = table.schema();
        let mut found = Vec::new();
        for dictionary in table.head.symbols.values() {
            for file in dictionary.store().symbol_files() {
                if self.read_files.insert(file.file.path().to_owned())
                    && let Err(error) = read_symbols(vfs.system(), &file)
                {
                    dictionary.store().condemn(error.clone());
                    found.push(error);
                }
            }
        }
        for partition in table.all_partitions() {
            for segment in &partition.segments {
                let path = segment.file.path();
                if !self.read_files.insert(path.to_owned()) {
                    continue;
                }
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                let fresh = Segment::new(vfs, directory, segment.meta.clone());
                let bad = fresh.verify().err().or_else(|| fresh.known_damage());
                if let Some(error) = bad {
                    segment.mark_damaged(error.clone());
                    found.push(error);
                }
            }
        }
        for error in found {
            if error.code != ErrorCode::Damaged {
                return Err(error);
            }
            let (table, what) = (schema.name.clone(), error.reason().to_owned());
            self.damages.push(Damage { table_id: schema.id, table, what });
        }
        Ok(())
    }

    fn tables(&mut self, vfs: &Arc<Disk>, snapshot: &Snapshot) -> EngineResult<()> {
        let mut tables: Vec<_> = snapshot.tables().collect();
        tables.sort_by_key(|table| table.schema().id);
        for table in tables {
            self.table(vfs, table)?;
        }
        Ok(())
    }

    /// Checks transactions `from..=to` of the log.
    fn log(&mut self, vfs: &dyn Vfs, first_log: u64, from: u64, to: u64) -> EngineResult<()> {
        let mut files = Vec::new();
        for number in list_logs(vfs)?.into_iter().filter(|number| *number >= first_log) {
            files.extend(LogFile::scan(vfs, number, from - 1, None)?);
        }
        let mut next = from;
        for (index, file) in files.iter().enumerate() {
            let void = files[index + 1..].iter().map(|later| later.first_lsn).min();
            let end = void.unwrap_or(u64::MAX).min(to.saturating_add(1));
            for group in &file.groups {
                let (first, after) = (group.header.first_lsn, group.header.end_lsn());
                if after <= next || first >= end {
                    continue;
                }
                if first > next {
                    self.lost(next, first - 1);
                }
                let (_, records) = file.read(group)?;
                let bad = records.iter().filter(|record| record.bytes.is_none()).count();
                if records.is_empty() || bad > 0 {
                    let path = log_file(file.number);
                    let what = format!("{} of transactions {first} to {}", bad.max(1), after - 1);
                    self.root(&damaged(&path, format!("{what} cannot be read")));
                }
                next = after;
            }
        }
        if next <= to {
            self.lost(next, to);
        }
        Ok(())
    }

    fn lost(&mut self, first: u64, last: u64) {
        self.root(&damaged(LOG, format!("transactions {first} to {last} cannot be read")));
    }
}

impl Storage {
    /// Reads every file of a table, or of the whole root, and verifies every checksum. Commits and
    /// queries continue. A table in which damage is found is marked as damaged from then on.
    pub fn check(&self, table: Option<TableId>) -> EngineResult<Vec<Damage>> {
        let mut findings = Findings::default();
        let vfs = self.vfs();
        if let Some(id) = table {
            let snapshot = self.snapshot();
            if let Some(found) = snapshot.table_by_id(id) {
                findings.table(vfs, &found)?;
                let known = snapshot.damage(&found).filter(|_| findings.damages.is_empty());
                findings.damages.extend(known);
            }
            return Ok(findings.damages);
        }
        // Prevents checkpoints from changing the files during the check.
        self.with_generations(|generations| {
            let snapshot = self.snapshot();
            if read_format(vfs.system())?.is_none() {
                findings.root(&damaged(FORMAT, "it does not contain a format version"));
            }
            findings.take(read_current(vfs.system()))?;
            for number in generations.newest() {
                findings.take(load_chain(vfs, number))?;
            }
            let current = &generations.current;
            let from = current.snapshot.lsn + 1;
            findings.log(vfs.system(), current.first_log, from, snapshot.lsn)?;
            findings.tables(vfs, &snapshot)?;
            findings.tables(vfs, &current.snapshot)
        })?;
        let snapshot = self.snapshot();
        let known =
            |damage: &Damage| findings.damages.iter().any(|d| d.table_id == damage.table_id);
        let others: Vec<_> = snapshot.damages().into_iter().filter(|d| !known(d)).collect();
        findings.damages.extend(others);
        Ok(findings.damages)
    }
}

/// Checks a root that is not in use, including everything that opening it would not read. Writes
/// nothing. Fails if there is no root, or if its version is unknown.
pub fn check_root(vfs: &Arc<dyn Vfs>) -> EngineResult<Vec<Damage>> {
    let vfs = &Disk::new(Arc::clone(vfs), Verify::First);
    let mut findings = Findings::default();
    if read_format(vfs.system())?.is_none() {
        findings.root(&damaged(FORMAT, "it does not contain a format version"));
    }
    let mut loaded = None;
    if let Some(number) = findings.take(read_current(vfs.system()))? {
        loaded = findings.take(load_chain(vfs, number))?;
    }
    if loaded.is_none() {
        for number in manifest_numbers(vfs.system())?.into_iter().rev() {
            loaded = loaded.or(load_chain(vfs, number).ok());
        }
    }
    let Some((current, previous)) = loaded else {
        findings.root(&damaged(CURRENT, "no manifest can be read"));
        return Ok(findings.damages);
    };
    let manifests = manifest_numbers(vfs.system())?;
    let previous = previous.filter(|previous| previous.is_there(&manifests));
    if let Some(number) = previous.and_then(|previous| previous.chain.last().copied())
        && let Some((previous, _)) = findings.take(load_chain(vfs, number))?
    {
        findings.tables(vfs, &previous.snapshot)?;
    }
    for table in current.snapshot.tables() {
        for dictionary in table.head.symbols.values() {
            load_symbols(vfs.system(), dictionary.store())?;
        }
    }
    let listings = table_listings(vfs.system())?;
    let options = StorageOptions::default();
    let mut replay = Replay::new(vfs, &options, &listings, current.snapshot.clone()).read_only();
    replay.run(&list_logs(vfs.system())?, current.first_log)?;
    for what in std::mem::take(&mut replay.lost) {
        findings.damages.push(Damage { table_id: 0, table: String::new(), what });
    }
    findings.tables(vfs, &current.snapshot)?;
    findings.tables(vfs, &replay.snapshot)?;
    let known = |damage: &Damage| findings.damages.iter().any(|d| d.table_id == damage.table_id);
    let others: Vec<_> = replay.snapshot.damages().into_iter().filter(|d| !known(d)).collect();
    findings.damages.extend(others);
    Ok(findings.damages)
}
