//! Tables that a query fills. Nothing else changes their rows, and each change to a table's rows is
//! committed together with the record of the table's state.

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::mutation::change::Change;
use crate::mutation::prepare::Prepared;
use crate::snapshot::Snapshot;
use crate::table::records::{LIVE_RECORDS, MATERIALIZED_RECORDS, MATERIALIZED_STATES};
use crate::table::schema::TableId;

/// Refuses a transaction that changes a materialized view's rows without a record of the view's
/// state.
pub(crate) fn refuse_foreign_rows(snapshot: &Snapshot, work: &[Prepared]) -> EngineResult<()> {
    if snapshot.records(MATERIALIZED_RECORDS).next().is_none() {
        return Ok(());
    }
    for table in work.iter().filter_map(rows_of) {
        let key = table.to_string();
        let is_view = snapshot.record(MATERIALIZED_RECORDS, &key).is_some();
        let is_state = |change: &Prepared| {
            matches!(change, Prepared::Other(Change::PutRecord { kind, key: other, .. })
                if kind == MATERIALIZED_STATES && *other == key)
        };
        if is_view && !work.iter().any(is_state) {
            let name = snapshot.table_by_id(table).map(|table| table.schema().name.clone());
            let name = name.unwrap_or_default();
            let is_live = snapshot.record(LIVE_RECORDS, &key).is_some();
            let kind = if is_live { "live" } else { "materialized" };
            let message = format!("cannot modify {kind} view [view={name}]");
            return Err(EngineError::new(ErrorCode::NotSupported, message));
        }
    }
    Ok(())
}

/// Returns the table whose row content a change modifies. Dropping partitions and converting their
/// files do not modify the remaining rows.
fn rows_of(change: &Prepared) -> Option<TableId> {
    match change {
        Prepared::Append { table, .. } => Some(*table),
        Prepared::Adopt(staged) => Some(staged.table),
        Prepared::Other(change) => match change {
            Change::Truncate(table) | Change::Clear { table, .. } => Some(*table),
            Change::Update(update) => Some(update.base.schema().id),
            Change::Delete(delete) => Some(delete.base.schema().id),
            _ => None,
        },
        Prepared::Convert(_) | Prepared::Skip(_) => None,
    }
}
