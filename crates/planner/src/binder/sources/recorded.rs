//! Resolves the names in a view's query as recorded when the view was created.
//!
//! Tables and columns are recorded by identity. After a rename, they are still found under the name
//! in the query. If a table or column was dropped, the view is invalid, even if a new object has
//! the same name. Columns added later are not visible to the view.

use std::sync::Arc;

use tidemark_ast::Name;
use tidemark_catalog::{ViewColumn, ViewSource};
use tidemark_storage::{TableId, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, identifier};

use crate::binder::state::scope::{DroppedColumn, Relation, ScopeColumn, TimeOrder};
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// The relation that a name refers to in a view's query.
    pub(crate) fn recorded_source(
        &mut self,
        source: &ViewSource,
        name: &Name,
        qualifier: &str,
    ) -> EngineResult<Relation> {
        match source {
            ViewSource::Table { id, identity, columns } => {
                let table = self.recorded_table(*id, *identity, name);
                let table = table.ok_or_else(|| error::no_table(name))?;
                self.note_read(&table.schema().name, Vec::new());
                let is_same = table.schema().id == *id;
                let rows = self.table_rows(&table, qualifier)?;
                Ok(as_recorded(rows, columns, qualifier, |index, column| {
                    let own = &table.schema().columns[index];
                    if is_same {
                        own.identity() == column.identity
                    } else {
                        identifier::same(&own.name, &column.name)
                    }
                }))
            }
            ViewSource::View { name: known, id, columns } => {
                let view = self.view(known).filter(|view| view.id == *id);
                let view = view.ok_or_else(|| error::no_table(name))?;
                self.note_all_columns(&view.name);
                let rows = self.view_rows(&view, name)?;
                let reference = self.relation_name();
                let rows = rows.aliased(Some(qualifier), &reference)?;
                let Some(columns) = columns else { return Ok(rows) };
                let column = |name: &String| ViewColumn { identity: 0, name: name.clone() };
                let columns: Vec<ViewColumn> = columns.iter().map(column).collect();
                let names: Vec<String> = rows.columns.iter().map(|one| one.name.clone()).collect();
                Ok(as_recorded(rows, &columns, qualifier, |index, column| {
                    identifier::same(&names[index], &column.name)
                }))
            }
        }
    }

    /// The recorded table, or the table that replaced it in an import.
    fn recorded_table(
        &self,
        id: TableId,
        identity: TableId,
        name: &Name,
    ) -> Option<Arc<TableSnapshot>> {
        let is_meant = |table: &Arc<TableSnapshot>| table.schema().identity() == identity;
        let table = self.snapshot.table_by_id(id);
        table
            .or_else(|| self.snapshot.table(&name.text).filter(is_meant))
            .or_else(|| self.snapshot.tables().find(|table| is_meant(table)).map(Arc::clone))
    }
}

/// The rows with the recorded columns, in their recorded order and with their recorded names.
fn as_recorded(
    mut rows: Relation,
    columns: &[ViewColumn],
    qualifier: &str,
    is_meant: impl Fn(usize, &ViewColumn) -> bool,
) -> Relation {
    let mut retained: Vec<(usize, ScopeColumn)> = Vec::with_capacity(columns.len());
    for column in columns {
        let name = column.name.clone();
        match (0..rows.columns.len()).find(|index| is_meant(*index, column)) {
            Some(index) => {
                retained.push((index, ScopeColumn { name, ..rows.columns[index].clone() }));
            }
            None => rows.dropped.push(DroppedColumn { qualifier: Arc::from(qualifier), name }),
        }
    }
    rows.merged.clear();
    rows.listed = None;
    let timestamp = rows.timestamp;
    rows.timestamp = retained.iter().position(|(index, _)| Some(*index) == timestamp);
    if rows.timestamp.is_none() {
        rows.order = TimeOrder::Unknown;
    }
    rows.columns = retained.into_iter().map(|(_, column)| column).collect();
    rows
}

/// The error for a name in a view's query that was not bound to an object when the view was
/// created.
pub(crate) fn unbound(name: &Name) -> EngineError {
    error::no_table(name).with_hint("run ALTER VIEW with the query shown by views()")
}

/// The stored record for a table that a view's query references.
pub(crate) fn table_source(table: &TableSnapshot) -> ViewSource {
    let schema = table.schema();
    let column = |column: &tidemark_storage::ColumnSchema| ViewColumn {
        identity: column.identity(),
        name: column.name.clone(),
    };
    ViewSource::Table {
        id: schema.id,
        identity: schema.identity(),
        columns: schema.columns.iter().map(column).collect(),
    }
}
