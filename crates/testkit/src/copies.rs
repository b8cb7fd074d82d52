//! Copies of tables that are refreshed like materialized views. One commit clears the changed
//! ranges, fills them again, and records the base transaction that the copy reflects. After each
//! refresh, a copy must contain exactly the rows of its base.

use tidemark_storage::{Change, PartitionAction, Snapshot, TableId, TableSchema, TimeRange};
use tidemark_types::EngineResult;

use crate::model::{Model, ModelTable, Row, copy_of};
use crate::workload::{Client, batch, lost};

const VIEW: &str = "materialized_view";
const STATE: &str = "materialized_state";

fn record(kind: &str, table: TableId, value: u64) -> Change {
    let value = value.to_le_bytes().to_vec();
    Change::PutRecord { kind: kind.to_owned(), key: table.to_string(), value }
}

fn number(snapshot: &Snapshot, kind: &str, table: TableId) -> Option<u64> {
    let bytes = snapshot.record(kind, &table.to_string())?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

impl Client<'_> {
    /// Creates a copy of a table, or refreshes it.
    pub(crate) fn refresh(&mut self) -> EngineResult<()> {
        let Some(name) = self.some_table()? else { return Ok(()) };
        let next = Model::clone(&self.history.model);
        let base = next.tables.get(&name).ok_or_else(|| lost(&name))?.clone();
        if !base.timed || base.ttl_hours != 0 || !base.detached.is_empty() {
            return Ok(());
        }
        let snapshot = self.storage.snapshot();
        let table = snapshot.table(&name).ok_or_else(|| lost(&name))?;
        match snapshot.table(&copy_of(&name)) {
            None => self.make_copy(next, &name, table.schema()),
            Some(copy) => {
                let copy = copy.schema().as_ref().clone();
                self.follow(next, (&name, &base), table.schema().id, &copy, &snapshot)
            }
        }
    }

    fn make_copy(&mut self, mut next: Model, name: &str, base: &TableSchema) -> EngineResult<()> {
        let id = self.storage.reserve_table_id();
        let columns = base.columns[..5].to_vec();
        let schema = TableSchema {
            id,
            timestamp: Some(0),
            partition_by: base.partition_by,
            ..TableSchema::new(copy_of(name), columns)
        };
        next.tables.insert(schema.name.clone(), ModelTable::of(&schema));
        let changes = vec![
            Change::CreateTable(schema),
            record(VIEW, id, base.id),
            record(STATE, id, 0),
            Change::Watch { table: base.id, through: 0 },
        ];
        self.commit(next, changes)
    }

    fn follow(
        &mut self,
        mut next: Model,
        (name, base): (&str, &ModelTable),
        id: TableId,
        copy: &TableSchema,
        snapshot: &Snapshot,
    ) -> EngineResult<()> {
        let is_another = number(snapshot, VIEW, copy.id) != Some(id);
        let is_retyped = copy.columns[3].sql_type.name() != base.note_type;
        if is_another || is_retyped {
            next.tables.remove(&copy.name);
            return self.commit(next, vec![Change::DropTable(copy.id)]);
        }
        let position = number(snapshot, STATE, copy.id).unwrap_or(0);
        let touched = snapshot.touched(id).and_then(|touched| touched.after(position));
        let shown = base.in_order().rows;
        let value = snapshot.record(STATE, &copy.id.to_string()).map(<[u8]>::to_vec);
        let mut changes =
            vec![Change::Expect { kind: STATE.to_owned(), key: copy.id.to_string(), value }];
        let rows: Vec<Row> = match touched {
            None => {
                changes.push(Change::Truncate(copy.id));
                shown.clone()
            }
            Some(spans) => {
                let range =
                    |(first, last): (i64, i64)| TimeRange { lo: first, hi: last.saturating_add(1) };
                let ranges: Vec<TimeRange> = spans.into_iter().map(range).collect();
                let is_touched =
                    |row: &&Row| ranges.iter().any(|range| range.lo <= row.0 && row.0 < range.hi);
                let rows = shown.iter().filter(is_touched).cloned().collect();
                changes.push(Change::Clear { table: copy.id, ranges });
                rows
            }
        };
        let lsn = snapshot.lsn();
        changes.push(record(STATE, copy.id, lsn));
        changes.push(Change::Watch { table: id, through: lsn });
        if !rows.is_empty() {
            let (table, schema_version) = (copy.id, copy.version);
            let batch = batch(copy, &rows)?;
            changes.push(Change::Append { table, schema_version, batch });
        }
        next.tables.entry(copy_of(name)).or_default().rows = shown;
        self.commit(next, changes)
    }
}

/// Whether a partition change removes rows from the base but not from its copy.
pub(crate) fn ends_rows(changes: &[Change]) -> bool {
    let ends = |change: &Change| match change {
        Change::Partitions { action, .. } => *action != PartitionAction::Attach,
        Change::ReplaceSchema(schema) => schema.ttl_hours_or_months != 0,
        _ => false,
    };
    changes.iter().any(ends)
}
