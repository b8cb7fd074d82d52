//! Damage: a table's known defects, and the operations that remain possible.
//!
//! A damaged table refuses every change except those that remove the damage. The owner of a file
//! (segment, dictionary) records the file's damage, and finds it again whenever the file is read.
//! The content of a lost log record exists nowhere else, so the loss is stored as a durable record
//! until the table is dropped.

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::disk::suspicion::is_suspect;
use crate::snapshot::Snapshot;
use crate::table::TableSnapshot;
use crate::table::records::LOST_RECORDS;
use crate::table::schema::TableId;

/// Data that differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Table identifier; 0 if no table is affected.
    pub table_id: TableId,
    /// Table name; the table's number if its definition is lost; empty if no table is affected.
    pub table: String,
    /// The file and its damage.
    pub what: String,
}

impl TableSnapshot {
    /// First known damage to the table's files.
    fn damaged_file(&self) -> Option<EngineError> {
        if !is_suspect() {
            return None;
        }
        let mut symbols = self.head.symbols.values();
        let symbols = symbols.find_map(|dictionary| dictionary.store().damage());
        symbols.or_else(|| {
            let partitions = self.all_partitions();
            let mut segments = partitions.iter().flat_map(|partition| &partition.segments);
            segments.find_map(|segment| segment.known_damage())
        })
    }
}

impl Snapshot {
    /// Known damage to a table; `None` for an intact table. A table counts as intact until damaged
    /// data is read. A full check reads all data.
    pub fn damage(&self, table: &TableSnapshot) -> Option<Damage> {
        let schema = table.schema();
        let lost = self.record(LOST_RECORDS, &schema.id.to_string());
        let what = match lost {
            Some(lost) => String::from_utf8_lossy(lost).into_owned(),
            None => table.damaged_file()?.message,
        };
        Some(Damage { table_id: schema.id, table: schema.name.clone(), what })
    }

    /// All known damage, by table.
    pub fn damages(&self) -> Vec<Damage> {
        let mut found: Vec<Damage> = self.tables().filter_map(|t| self.damage(t)).collect();
        for (key, what) in self.records(LOST_RECORDS) {
            let Ok(table_id) = key.parse() else { continue };
            if self.table_by_id(table_id).is_none() {
                let what = String::from_utf8_lossy(what).into_owned();
                found.push(Damage { table_id, table: format!("number {key}"), what });
            }
        }
        found.sort_by_key(|damage| damage.table_id);
        found
    }

    /// Records the loss of a transaction that changed the table. An existing record is retained.
    pub(crate) fn note_lost(&mut self, table: TableId, what: &str) {
        let key = table.to_string();
        if self.record(LOST_RECORDS, &key).is_none() {
            self.put_record(LOST_RECORDS, &key, what.as_bytes().into());
        }
    }

    /// Whether a transaction that changed the table is lost.
    pub(crate) fn is_missing_records(&self, table: TableId) -> bool {
        self.record(LOST_RECORDS, &table.to_string()).is_some()
    }

    /// Refuses to write to a damaged table.
    pub(crate) fn refuse_damaged(&self, table: TableId) -> EngineResult<()> {
        let Some(found) = self.table_by_id(table) else { return Ok(()) };
        let Some(damage) = self.damage(&found) else { return Ok(()) };
        let message = format!("table '{}' is damaged and cannot be modified", damage.table);
        Err(EngineError::new(ErrorCode::Damaged, message)
            .with_detail(damage.what)
            .with_hint("run RECOVER TABLE to list what can be recovered, or restore a backup"))
    }
}
