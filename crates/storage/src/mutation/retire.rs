//! Removes and restores partitions: DROP, DETACH, ATTACH, and expiry by time to live. No partition
//! file is opened for this, so a damaged partition can be dropped.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_types::calendar::add_months;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::mutation::convert::PartitionFormat;
use crate::snapshot::{Snapshot, no_such_table, put_table, table_of};
use crate::state::context::ApplyContext;
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::schema::{TableId, TableSchema};

const HOUR_MICROS: i64 = 3_600_000_000;

/// Action on partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionAction {
    /// Removes the rows.
    Drop,
    /// Keeps the rows, but makes them invisible.
    Detach,
    /// Makes detached rows visible again.
    Attach,
    /// Removes detached rows.
    DropDetached,
}

impl PartitionAction {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Drop => 1,
            Self::Detach => 2,
            Self::Attach => 3,
            Self::DropDetached => 4,
        }
    }

    pub(crate) fn from_code(code: u8) -> EngineResult<Self> {
        let all = [Self::Drop, Self::Detach, Self::Attach, Self::DropDetached];
        let found = all.into_iter().find(|action| action.code() == code);
        found.ok_or_else(|| EngineError::internal(format!("unknown partition action {code}")))
    }
}

/// A step that drops, detaches or attaches partitions of a table.
#[derive(Debug)]
pub(crate) struct PartitionsOp {
    pub(crate) table: TableId,
    pub(crate) action: PartitionAction,
    /// Start timestamps of the partitions.
    pub(crate) floors: Vec<i64>,
}

/// Refuses partitions that are not in the state required by the action.
pub(crate) fn resolve_partitions(
    snapshot: &Snapshot,
    op: PartitionsOp,
) -> EngineResult<PartitionsOp> {
    let table = snapshot.table_by_id(op.table).ok_or_else(|| no_such_table(op.table))?;
    for floor in &op.floors {
        let attached = table.partition(*floor).is_some();
        let detached = table.detached.contains_key(floor);
        let problem = match op.action {
            PartitionAction::Drop if !attached => "does not exist",
            PartitionAction::Detach if !attached => "does not exist",
            PartitionAction::Detach if detached => "is already detached",
            PartitionAction::Attach if !detached => "is not detached",
            PartitionAction::Attach if attached => "exists",
            PartitionAction::DropDetached if !detached => "is not detached",
            _ => continue,
        };
        let schema = table.schema();
        let (name, table) = (schema.partition_name(*floor), &schema.name);
        return Err(EngineError::new(
            ErrorCode::InvalidValue,
            format!("partition '{name}' {problem} [table={table}]"),
        ));
    }
    Ok(op)
}

pub(crate) fn apply_partitions(
    snapshot: &mut Snapshot,
    op: &PartitionsOp,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, op.table)?;
    let lost = || EngineError::internal("no such partition");
    for &floor in &op.floors {
        match op.action {
            PartitionAction::Drop | PartitionAction::Detach => {
                let partition = take_attached(&mut table, floor).ok_or_else(lost)?;
                table.rows -= partition.rows();
                if op.action == PartitionAction::Detach {
                    Arc::make_mut(&mut table.detached).insert(floor, partition);
                } else {
                    context.removed.extend(partition.files());
                }
            }
            PartitionAction::Attach => {
                let detached = Arc::make_mut(&mut table.detached);
                let partition = detached.remove(&floor).ok_or_else(lost)?;
                table.rows += partition.rows();
                table.hot.insert(floor, partition);
            }
            PartitionAction::DropDetached => {
                let detached = Arc::make_mut(&mut table.detached);
                let partition = detached.remove(&floor).ok_or_else(lost)?;
                context.removed.extend(partition.files());
            }
        }
    }
    put_table(snapshot, table);
    Ok(())
}

pub(crate) fn take_attached(table: &mut TableSnapshot, floor: i64) -> Option<Arc<Partition>> {
    let cold = if table.cold.contains_key(&floor) {
        Arc::make_mut(&mut table.cold).remove(&floor)
    } else {
        None
    };
    table.hot.remove(&floor).or(cold)
}

/// Returns the partitions that have expired under the time to live or the storage policy.
pub(crate) fn expired(table: &TableSnapshot, by_clock: bool) -> Vec<i64> {
    let schema = table.schema();
    let policy = schema.policy.as_ref().filter(|policy| !policy.is_disabled);
    match (schema.ttl_hours_or_months, policy) {
        (0, Some(policy)) => ended(table, policy.drop_local, by_clock),
        (ttl, _) => ended(table, ttl, by_clock),
    }
}

/// Returns the partitions that the storage policy converts to Parquet now; never includes the last
/// partition.
pub(crate) fn due_for_parquet(table: &TableSnapshot, by_clock: bool) -> Vec<i64> {
    let policy = table.schema().policy.as_ref().filter(|policy| !policy.is_disabled);
    let Some(policy) = policy else { return Vec::new() };
    let mut floors = ended(table, policy.to_parquet, by_clock);
    let last = table.partitions().last().map(|(floor, _)| *floor);
    let is_native = |partition: &Arc<Partition>| !PartitionFormat::Parquet.is_that_of(partition);
    floors.retain(|floor| Some(*floor) != last && table.partition(*floor).is_some_and(is_native));
    floors
}

/// Returns the partitions that end at least this long before the newest row. With `by_clock`, the
/// current time is used instead of the newest row if the current time is earlier.
fn ended(table: &TableSnapshot, hours_or_months: i64, by_clock: bool) -> Vec<i64> {
    let schema = table.schema();
    if hours_or_months == 0 || schema.timestamp.is_none() {
        return Vec::new();
    }
    let last = [table.hot.last_key_value(), table.cold.last_key_value()];
    let newest = last.into_iter().flatten().filter_map(|(_, p)| p.bounds()).map(|b| b.1).max();
    let Some(newest) = newest else { return Vec::new() };
    let mut reference = micros(schema, newest);
    if by_clock {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros());
        reference = reference.min(i64::try_from(now).unwrap_or(i64::MAX));
    }
    let over = |floor: &&i64| {
        let end = micros(schema, schema.partition_ceil(**floor));
        let until = match hours_or_months {
            hours if hours > 0 => end.saturating_add(hours.saturating_mul(HOUR_MICROS)),
            months => add_months(end, -months),
        };
        **floor != i64::MIN && until <= reference
    };
    let mut floors: Vec<i64> = table.cold.keys().take_while(over).copied().collect();
    floors.extend(table.hot.keys().take_while(over));
    floors.sort_unstable();
    floors.dedup();
    floors
}

fn micros(schema: &TableSchema, at: i64) -> i64 {
    match schema.timestamp_column().map(|column| column.sql_type) {
        Some(SqlType::TimestampNs) => at.div_euclid(1_000),
        _ => at,
    }
}
