//! Materialized views with expiring rows: reading such a view runs its policy's query.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_ast::{Node, Tree};
use tidemark_catalog::{ExpirePolicy, IncrementalView};
use tidemark_optimizer::fenced;
use tidemark_storage::{TableId, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::Binder;
use crate::binder::sources::recorded::table_source;
use crate::binder::state::relation;
use crate::binder::state::scope::Relation;

impl Binder<'_> {
    /// A table's rows as readers see them: for a materialized view, only the rows that have not
    /// expired.
    pub(crate) fn table_rows(
        &mut self,
        table: &Arc<TableSnapshot>,
        qualifier: &str,
    ) -> EngineResult<Relation> {
        let id = table.schema().id;
        let reference = self.relation_name();
        let rows = relation::of_table(Arc::clone(table), qualifier, reference, &self.accesses)?;
        if self.expiring == Some(id) || !IncrementalView::is(self.snapshot, id) {
            return Ok(rows);
        }
        let policy = IncrementalView::of(self.snapshot, id).and_then(|view| view.expire);
        let Some(policy) = policy else { return Ok(rows) };
        let mut shown = self.unexpired(table, id, &policy)?;
        if self.visibility().is_some() {
            shown.plan = fenced(shown.plan);
        }
        let reference = self.relation_name();
        let mut shown = shown.aliased(Some(qualifier), &reference)?;
        for (column, own) in shown.columns.iter_mut().zip(rows.columns) {
            column.origin = own.origin;
        }
        Ok(shown)
    }

    pub(crate) fn unexpired(
        &mut self,
        table: &TableSnapshot,
        id: TableId,
        policy: &ExpirePolicy,
    ) -> EngineResult<Relation> {
        let tree: Tree = serde_json::from_str(&policy.tree).map_err(|_| {
            let message =
                "EXPIRE ROWS was set by a different version: run ALTER … SET EXPIRE ROWS again";
            EngineError::new(ErrorCode::NotSupported, message)
        })?;
        let own_name = &table.schema().name;
        let is_own =
            |node: &Node| matches!(node, Node::Table { name, .. } if name.text == *own_name);
        let own = tree.numbered().filter(|(_, node)| is_own(node));
        let sources: BTreeMap<u32, _> =
            own.map(|(index, _)| (index, table_source(table))).collect();
        // Reads by the policy's query do not count as accesses by the view's reader.
        let accesses = self.accesses.clone();
        let shown = self.within(&tree, |inner| {
            inner.beneath_view = true;
            inner.view_sources = Some(Arc::new(sources));
            inner.expiring = Some(id);
            inner.query(tree.root)
        });
        self.accesses = accesses;
        shown.map_err(|failure| EngineError { span: None, ..failure })
    }
}
