//! Gives up damaged segments, as a step of a transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult};

use crate::snapshot::{Snapshot, no_such_table, put_table, table_of};
use crate::state::context::ApplyContext;
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::records::LOST_RECORDS;
use crate::table::schema::TableId;

/// Segments removed from a table, in their logged form.
#[derive(Debug)]
pub(crate) struct SkipOp {
    pub(crate) table: TableId,
    /// File names in the table's directory.
    pub(crate) segments: Vec<String>,
}

/// Names of the table's segments that are known to be damaged.
pub(crate) fn damaged_segments(table: &TableSnapshot) -> BTreeSet<String> {
    let partitions = table.all_partitions();
    let segments = partitions.iter().flat_map(|partition| &partition.segments);
    let bad = segments.filter(|segment| segment.known_damage().is_some());
    bad.map(|segment| segment.meta.name.clone()).collect()
}

pub(crate) fn apply_skip(
    snapshot: &mut Snapshot,
    op: &SkipOp,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, op.table)?;
    let removed = |name: &str| op.segments.iter().any(|segment| segment == name);
    let mut without = |partition: &Partition| {
        let (out, retained): (Vec<_>, Vec<_>) =
            partition.segments.iter().cloned().partition(|segment| removed(&segment.meta.name));
        context.removed.extend(out.iter().map(|segment| Arc::clone(&segment.file)));
        (!out.is_empty()).then(|| Partition::new(retained, partition.runs.clone(), context.lsn))
    };
    let attached: Vec<_> =
        table.partitions().iter().map(|(floor, old)| (*floor, Arc::clone(old))).collect();
    for (floor, old) in attached {
        let Some(new) = without(&old) else { continue };
        table.rows = table.rows - old.rows() + new.rows();
        if new.sources().is_empty() {
            table.hot.remove(&floor);
            Arc::make_mut(&mut table.cold).remove(&floor);
        } else {
            table.hot.insert(floor, Arc::new(new));
        }
    }
    let detached = Arc::make_mut(&mut table.detached);
    let retained: Vec<_> = detached.iter().map(|(floor, old)| (*floor, Arc::clone(old))).collect();
    for (floor, old) in retained {
        let Some(new) = without(&old) else { continue };
        if new.sources().is_empty() {
            detached.remove(&floor);
        } else {
            detached.insert(floor, Arc::new(new));
        }
    }
    put_table(snapshot, table);
    snapshot.delete_record(LOST_RECORDS, &op.table.to_string());
    Ok(())
}

/// Refuses to give up files that the table does not have.
pub(crate) fn resolve_skip(snapshot: &Snapshot, op: SkipOp) -> EngineResult<SkipOp> {
    let found = snapshot.table_by_id(op.table).ok_or_else(|| no_such_table(op.table))?;
    let damaged = damaged_segments(&found);
    match op.segments.iter().find(|name| !damaged.contains(*name)) {
        None => Ok(op),
        Some(name) => Err(EngineError::internal(format!("segment {name} is not damaged"))),
    }
}
