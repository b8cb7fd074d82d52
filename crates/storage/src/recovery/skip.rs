//! Gives up the damaged data of a table, so that the remaining data can be written again.
//!
//! Segments are given up as a whole: their rows are lost, and rows that they had replaced by DEDUP
//! keys may reappear. A lost symbol keeps its key and gets a placeholder string, so that rows with
//! equal symbols stay equal. Lost transactions are not recovered, but the table no longer refuses
//! writes because of them. Finally, a checkpoint without a fallback generation is written, because
//! the previous generation still references the damaged files.

use std::fmt;
use std::sync::Arc;

use tidemark_types::EngineResult;

use crate::disk::layout::damaged;
use crate::mutation::prepare::Prepared;
use crate::mutation::skip::{SkipOp, damaged_segments};
use crate::snapshot::{Snapshot, no_such_table};
use crate::storage::Storage;
use crate::table::TableSnapshot;
use crate::table::records::LOST_RECORDS;
use crate::table::schema::TableId;

/// Damaged data in a table, which [`Storage::skip_damage`] gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostData {
    /// Partition name; empty if the damage affects the whole table.
    pub partition: String,
    /// Number of lost rows; 0 if unknown.
    pub rows: u64,
    /// First and last timestamp of these rows, in the table's unit. Both are zero without a
    /// designated timestamp.
    pub bounds: (i64, i64),
    /// The file and its damage.
    pub what: String,
}

impl fmt::Display for LostData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.partition.is_empty() {
            return f.write_str(&self.what);
        }
        let (rows, (first, last)) = (self.rows, self.bounds);
        write!(f, "partition '{}': {rows} rows from {first} to {last}", self.partition)?;
        write!(f, " ({})", self.what)
    }
}

impl Storage {
    /// Reads the whole table and returns its damage. Changes nothing.
    pub fn lost_data(&self, table: TableId) -> EngineResult<Vec<LostData>> {
        self.check(Some(table))?;
        let snapshot = self.snapshot();
        let found = snapshot.table_by_id(table).ok_or_else(|| no_such_table(table))?;
        Ok(lost_data(&snapshot, &found))
    }

    /// Gives up the damaged data of a table and returns a description of it. Afterwards, the table
    /// is intact and accepts writes again. During the call, commits to the table wait, but readers
    /// do not.
    pub fn skip_damage(self: &Arc<Self>, table: TableId) -> EngineResult<Vec<LostData>> {
        let _hold = self.lock_writes(table);
        let lost = self.lost_data(table)?;
        if lost.is_empty() {
            return Ok(lost);
        }
        // Prevents checkpoints from replacing the segments in the meantime.
        self.with_generations(|_| {
            let found = self.snapshot().table_by_id(table).ok_or_else(|| no_such_table(table))?;
            let segments = damaged_segments(&found).into_iter().collect();
            self.commit_now(vec![Prepared::Skip(SkipOp { table, segments })])
        })?;
        let found = self.snapshot().table_by_id(table).ok_or_else(|| no_such_table(table))?;
        for dictionary in found.head.symbols.values() {
            dictionary.store().accept_losses();
        }
        self.checkpoint_alone()?;
        Ok(lost)
    }
}

/// Functions with which the crash tests create damage and have it given up.
#[doc(hidden)]
impl Storage {
    /// Names of a table's segments.
    pub fn segment_names(&self, table: TableId) -> Vec<String> {
        let found = self.snapshot().table_by_id(table);
        let partitions = found.map(|found| found.all_partitions()).unwrap_or_default();
        let segments = partitions.iter().flat_map(|partition| &partition.segments);
        segments.map(|segment| segment.meta.name.clone()).collect()
    }

    /// Treats an intact segment as damaged until the next start. Returns whether a segment with
    /// this name exists.
    pub fn condemn(&self, table: TableId, name: &str) -> bool {
        let found = self.snapshot().table_by_id(table);
        let partitions = found.map(|found| found.all_partitions()).unwrap_or_default();
        let mut segments = partitions.iter().flat_map(|partition| &partition.segments);
        let segment = segments.find(|segment| segment.meta.name == name);
        if let Some(segment) = segment {
            segment.mark_damaged(damaged(segment.file.path(), "a test says so"));
        }
        segment.is_some()
    }
}

fn lost_data(snapshot: &Snapshot, table: &TableSnapshot) -> Vec<LostData> {
    let whole = |what: String| LostData { partition: String::new(), rows: 0, bounds: (0, 0), what };
    let mut lost = Vec::new();
    if let Some(what) = snapshot.record(LOST_RECORDS, &table.schema().id.to_string()) {
        lost.push(whole(String::from_utf8_lossy(what).into_owned()));
    }
    let symbols = table.schema().columns.iter().filter_map(|column| {
        let store = table.head.symbols.get(&column.id)?.store();
        let what = store.damage()?.message;
        let (name, removed) = (&column.name, store.lost_texts());
        Some(whole(format!("column '{name}': {removed} symbols are lost ({what})")))
    });
    lost.extend(symbols);
    let partitions = table.partitions();
    let attached = partitions.iter().map(|(floor, partition)| (*floor, partition));
    let detached = table.detached.iter().map(|(floor, partition)| (*floor, partition));
    for (floor, partition) in attached.chain(detached) {
        for segment in &partition.segments {
            if let Some(error) = segment.known_damage() {
                lost.push(LostData {
                    partition: table.schema().partition_name(floor),
                    rows: segment.living_rows() as u64,
                    bounds: segment.bounds(),
                    what: error.reason().to_owned(),
                });
            }
        }
    }
    lost
}
