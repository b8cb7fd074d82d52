//! Checks whether a live view still matches its base.

use tidemark_catalog::IncrementalView;
use tidemark_storage::{Snapshot, TableId};
use tidemark_types::identifier;

/// Why a view does not match its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// An object that the view reads does not exist.
    Missing,
    /// A different object now has the name that the view reads.
    Differs(String),
}

/// The reason why a stopped view still does not match its base table; `None` if the view matches.
#[must_use]
pub(crate) fn misfit(view: &IncrementalView, snapshot: &Snapshot) -> Option<Misfit> {
    let name = &view.base_name;
    let Some(base) = snapshot.table_by_id(view.base) else {
        let is_taken = snapshot.table(name).is_some();
        return Some(if is_taken {
            Misfit::Differs(format!("a different table has the base table's name [table={name}]"))
        } else {
            Misfit::Missing
        });
    };
    let schema = base.schema();
    if !identifier::same(&schema.name, name) {
        let differs = || {
            format!(
                "the base table was renamed, and a different table now has its name [table={name}]"
            )
        };
        let is_other = another(snapshot, name, view.base);
        return Some(if is_other { Misfit::Differs(differs()) } else { Misfit::Missing });
    }
    let mut found = None;
    for used in view.live.iter().flat_map(|live| &live.columns) {
        let column =
            schema.columns.iter().find(|column| identifier::same(&column.name, &used.name));
        let Some(column) = column else { return Some(Misfit::Missing) };
        let (now, then) = (column.sql_type.name(), &used.type_name);
        if now != *then && found.is_none() {
            found = Some(Misfit::Differs(format!(
                "column has a different type [column={}, type={now}, expected={then}]",
                used.name
            )));
        }
    }
    found
}

fn another(snapshot: &Snapshot, name: &str, than: TableId) -> bool {
    snapshot.table(name).is_some_and(|table| table.schema().id != than)
}
