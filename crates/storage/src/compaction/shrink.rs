//! Rewrites files with invisible data. Such data consists of the cells of dropped columns, and of
//! deleted rows that a checkpoint lacked the disk space to remove. The background thread rewrites
//! the partitions one at a time, as CONVERT PARTITION does.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::mutation::convert::PartitionFormat;
use crate::segment::Segment;
use crate::storage::Storage;
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::schema::TableId;

/// A partition is rewritten if its invisible bytes are at least its file size divided by this
/// number.
const INVISIBLE_BYTES_DIVISOR: u64 = 32;
/// Maximum number of partitions examined per call of `examine`.
const MAX_EXAMINED: usize = 256;
/// Delay before a failed rewrite is retried. A rewrite fails if disk space is low or the table has
/// a writer.
const LATER: Duration = Duration::from_millis(500);

/// Queue of partitions to be examined. States: idle → examining (partitions in the queue) → idle. A
/// partition that could not be written is examined again later.
#[derive(Debug, Default)]
pub(crate) struct Shrink {
    queue: VecDeque<(TableId, i64)>,
    again: BTreeSet<TableId>,
    not_before: Option<Instant>,
}

/// Whether the table's files may contain dropped columns.
fn has_lost_columns(table: &TableSnapshot) -> bool {
    (table.schema().columns.len() as u32 + 1) < table.head.next_column
}

fn has_dead_rows(partition: &Partition) -> bool {
    partition.segments.iter().any(|segment| segment.dead().is_some())
}

impl Shrink {
    /// Whether partitions are due for examination now.
    pub(crate) fn is_busy(&self) -> bool {
        !self.queue.is_empty() && self.not_before.is_none_or(|at| Instant::now() >= at)
    }

    /// Examines a few partitions. `changed` lists tables whose definition changed since the last
    /// call or whose files still contain deleted rows.
    pub(crate) fn examine(&mut self, storage: &Arc<Storage>, changed: BTreeSet<TableId>) {
        self.again.extend(changed);
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.not_before = None;
        for table in std::mem::take(&mut self.again) {
            self.enqueue(storage, table);
        }
        for _ in 0..MAX_EXAMINED {
            let Some((table, floor)) = self.queue.pop_front() else { return };
            match storage.shrink(table, floor) {
                Ok(false) => {}
                Ok(true) => return,
                // A damaged partition is left unchanged.
                Err(error) if error.code == ErrorCode::Damaged => {}
                Err(_) => {
                    self.queue.push_front((table, floor));
                    self.not_before = Some(Instant::now() + LATER);
                    return;
                }
            }
        }
    }

    fn enqueue(&mut self, storage: &Storage, table: TableId) {
        let Some(found) = storage.snapshot().table_by_id(table) else { return };
        let lost = has_lost_columns(&found);
        self.queue.retain(|(other, _)| *other != table);
        let partitions = found.partitions();
        let worth = partitions.iter().filter(|(_, partition)| lost || has_dead_rows(partition));
        self.queue.extend(worth.map(|(floor, _)| (table, *floor)));
    }
}

impl Storage {
    /// Returns the tables whose files may contain invisible data.
    pub(crate) fn tables_to_shrink(&self) -> BTreeSet<TableId> {
        let snapshot = self.snapshot();
        let tables = snapshot.tables().filter(|table| {
            let mut partitions = table.cold.values();
            has_lost_columns(table) || partitions.any(|partition| has_dead_rows(partition))
        });
        tables.map(|table| table.schema().id).collect()
    }

    /// Rewrites a partition if that is worthwhile, and returns whether it was rewritten.
    fn shrink(self: &Arc<Self>, table: TableId, floor: i64) -> EngineResult<bool> {
        let Some(found) = self.snapshot().table_by_id(table) else { return Ok(false) };
        let Some(partition) = found.partition(floor) else { return Ok(false) };
        let (mut bytes, mut unseen) = (0, 0);
        for segment in &partition.segments {
            bytes += segment.meta.file_len;
            unseen += unseen_bytes(segment, &found)?;
        }
        if unseen == 0 || unseen * INVISIBLE_BYTES_DIVISOR < bytes {
            return Ok(false);
        }
        self.check_free_space(bytes)?;
        if self.write_locks().is_locked(table) {
            return Err(EngineError::new(ErrorCode::Busy, "the table is being modified"));
        }
        let parquet = partition.segments.iter().any(|segment| segment.is_parquet());
        let to = if parquet { PartitionFormat::Parquet } else { PartitionFormat::Native };
        self.rewrite_partition(table, floor, to).map(|()| true)
    }
}

/// Returns the number of bytes in a file that are invisible in its table.
fn unseen_bytes(segment: &Arc<Segment>, table: &TableSnapshot) -> EngineResult<u64> {
    let beside = segment.bytes_beside(&table.schema().columns)?;
    let dead = segment.dead().map_or(0, |dead| dead.count() as u64);
    let of_rows = (segment.meta.file_len - beside) / segment.meta.rows.max(1) * dead;
    Ok(beside + of_rows)
}
