//! Invalidates materialized and live views when tables they read change.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_ast::Tree;
use tidemark_catalog::{IncrementalState, IncrementalView, ViewSource};
use tidemark_storage::{Change, PartitionAction, TableId, TableSchema};
use tidemark_types::{EngineResult, identifier};

use crate::binder::Binder;
use crate::binder::clauses::query::Clauses;
use crate::{BindContext, BoundSchemaChange};

/// The views that a change to a table affects.
enum AffectedViews {
    /// Views whose base is this table.
    Followers,
    /// All views that read this table.
    Readers,
    /// Views that read any of these columns, which are identified by ID.
    Columns(Vec<u32>),
}

/// The view events caused by a new table definition.
fn schema_events(
    old: &TableSchema,
    new: &TableSchema,
) -> Vec<(TableId, AffectedViews, &'static str)> {
    let mut events = Vec::new();
    if !identifier::same(&old.name, &new.name) {
        events.push((old.id, AffectedViews::Readers, "rename table operation"));
    }
    let (mut dropped, mut renamed) = (Vec::new(), Vec::new());
    for column in &old.columns {
        let identity = column.identity();
        match new.columns.iter().find(|other| other.identity() == identity) {
            None => dropped.push(identity),
            Some(other) if other.name != column.name => renamed.push(identity),
            Some(_) => {}
        }
    }
    // A change of a column's type causes no event. Materialized views follow it as a change of the
    // column's values, and live views check the types themselves.
    for (columns, reason) in
        [(dropped, "drop column operation"), (renamed, "rename column operation")]
    {
        if !columns.is_empty() {
            events.push((old.id, AffectedViews::Columns(columns), reason));
        }
    }
    events
}

impl Binder<'_> {
    /// Marks views as invalid if they can no longer follow their base after this change.
    pub(crate) fn invalidate_followers(&self, change: &mut BoundSchemaChange) -> EngineResult<()> {
        if IncrementalView::all(self.snapshot).next().is_none() {
            return Ok(());
        }
        let mut events: Vec<(TableId, AffectedViews, &str)> = Vec::new();
        for table in &change.drop {
            events.push((table.schema().id, AffectedViews::Readers, "drop table operation"));
        }
        for table in &change.truncate {
            events.push((table.schema().id, AffectedViews::Followers, "truncate operation"));
        }
        for partition in
            change.partitions.iter().filter(|partition| partition.action == PartitionAction::Drop)
        {
            let id = partition.table.schema().id;
            events.push((id, AffectedViews::Followers, "drop partition operation"));
        }
        for new in &change.replace {
            let Some(old) = self.snapshot.table_by_id(new.id) else { continue };
            events.extend(schema_events(old.schema(), new));
        }
        let is_dropped = |id: TableId| change.drop.iter().any(|table| table.schema().id == id);
        let mut records: BTreeMap<TableId, Change> = BTreeMap::new();
        for (table, reach, reason) in events {
            for view in IncrementalView::all(self.snapshot) {
                let state = IncrementalState::of(self.snapshot, view.table);
                let is_settled = state.invalid.is_some() || is_dropped(view.table);
                if is_settled
                    || records.contains_key(&view.table)
                    || !self.reaches(&view, table, &reach)
                {
                    continue;
                }
                let invalid = Some(reason.to_owned());
                let state = IncrementalState { invalid, request: None, ..state };
                records.insert(view.table, state.put(view.table)?);
            }
        }
        change.records.extend(records.into_values());
        for table in &change.drop {
            let Some(view) = IncrementalView::of(self.snapshot, table.schema().id) else {
                continue;
            };
            let is_last = IncrementalView::all(self.snapshot)
                .all(|other| other.base != view.base || is_dropped(other.table));
            if is_last && !is_dropped(view.base) {
                change.records.push(Change::unwatch(view.base));
            }
        }
        Ok(())
    }

    fn reaches(&self, view: &IncrementalView, table: TableId, reach: &AffectedViews) -> bool {
        let reads = view
            .sources
            .values()
            .any(|source| matches!(source, ViewSource::Table { id, .. } if *id == table));
        match reach {
            // Truncating the base or dropping its partitions does not change a live view's rows.
            AffectedViews::Followers => view.base == table && view.live.is_none(),
            AffectedViews::Readers => reads,
            AffectedViews::Columns(columns) => {
                let known = self.snapshot.table_by_id(table);
                reads && known.is_none_or(|known| self.reads_columns(view, known.schema(), columns))
            }
        }
    }

    /// Whether a view's query reads any of these table columns.
    fn reads_columns(&self, view: &IncrementalView, table: &TableSchema, columns: &[u32]) -> bool {
        let context = BindContext { external: None, ..BindContext::default() };
        let Ok(tree) = serde_json::from_str::<Tree>(&view.tree) else { return true };
        let mut binder = Binder::new(&tree, self.snapshot, &context, &Clauses);
        binder.beneath_view = true;
        binder.view_sources = Some(Arc::new(view.sources.clone()));
        if binder.query(tree.root).is_err() {
            return true;
        }
        let name_of = |id: &u32| table.columns.iter().find(|column| column.identity() == *id);
        let names: Vec<&str> =
            columns.iter().filter_map(name_of).map(|column| column.name.as_str()).collect();
        binder.accesses.list().iter().any(|access| {
            identifier::same(&access.table, &table.name)
                && access.columns.iter().any(|column| names.contains(&column.as_str()))
        })
    }
}
