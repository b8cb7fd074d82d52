//! Resolves the names in a view's query when the view is created. The result never changes;
//! `sources/recorded.rs` reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_ast::{Node, Tree};
use tidemark_catalog::{RecordKind, View, ViewSource};
use tidemark_storage::{Change, Snapshot};
use tidemark_types::{EngineResult, identifier};

use crate::BindContext;
use crate::binder::Binder;
use crate::binder::clauses::query::Clauses;
use crate::binder::sources::recorded::table_source;

/// Binds views created by an older version to the objects that their names currently refer to, and
/// returns the changes to commit. The first call may only assign IDs to views, so commit and call
/// again until no changes are returned.
pub(crate) fn settle_views(
    snapshot: &Arc<Snapshot>,
    context: &BindContext,
) -> EngineResult<Vec<Change>> {
    let records = snapshot.records(RecordKind::View.name());
    let views: Vec<View> =
        records.filter_map(|(_, bytes)| serde_json::from_slice(bytes).ok()).collect();
    let nameless: Vec<&View> = views.iter().filter(|view| view.id.is_empty()).collect();
    if !nameless.is_empty() {
        let id = new_id(snapshot, context.now_micros);
        return nameless
            .iter()
            .map(|view| View { id: id.clone(), ..(*view).clone() }.put())
            .collect();
    }
    let mut changes = Vec::new();
    for view in views.into_iter().filter(|view| view.sources.is_none()) {
        // A tree written by another version may be unreadable. The view reports this when it is
        // used.
        let Ok(tree) = serde_json::from_str::<Tree>(&view.tree) else { continue };
        let sources = Binder::new(&tree, snapshot, context, &Clauses).sources_of(&tree);
        changes.push(View { sources: Some(sources), ..view }.put()?);
    }
    Ok(changes)
}

/// An ID that differs from the IDs of other views with the same name.
pub(crate) fn new_id(snapshot: &Snapshot, now_micros: i64) -> String {
    format!("{:x}.{now_micros:x}", snapshot.lsn())
}

impl Binder<'_> {
    /// The objects to which the table and view names in a tree currently refer.
    pub(crate) fn sources_of(&mut self, tree: &Tree) -> BTreeMap<u32, ViewSource> {
        let mut sources = BTreeMap::new();
        for (number, node) in tree.numbered() {
            let Node::Table { name, .. } = node else { continue };
            if identifier::is_reserved_table_name(&name.text) {
                continue;
            }
            if let Some(table) = self.snapshot.table(&name.text) {
                sources.insert(number, table_source(&table));
            } else if let Some(view) = self.view(&name.text) {
                let columns = self.view_state(&view).columns.ok();
                let columns = columns.map(|all| all.into_iter().map(|one| one.name).collect());
                sources.insert(number, ViewSource::View { name: view.name, id: view.id, columns });
            }
        }
        sources
    }
}
