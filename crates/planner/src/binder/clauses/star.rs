//! Expands `*` and `t.*` in a select list. EXCLUDE removes columns, and REPLACE replaces their
//! values.

use hashbrown::{HashMap, HashSet};
use tidemark_ast::{Name, Node, NodeId, SelectItem};
use tidemark_types::{EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::clauses::stage::Item;
use crate::binder::names::NameSet;
use crate::binder::state::scope::{DroppedColumn, Relation, Scope, ScopeColumn, has_qualifier};
use crate::binder::{Binder, Typed, error};

/// A change to one of the columns in `*`.
enum Change {
    Exclude,
    Replace(Typed, NodeId),
}

/// The columns in EXCLUDE and REPLACE, keyed by case-folded name.
#[derive(Default)]
struct Changes<'i> {
    of: HashMap<String, (&'i Name, Change)>,
}

impl<'i> Changes<'i> {
    fn add(&mut self, name: &'i Name, change: Change) -> EngineResult<()> {
        let known = self.of.insert(identifier::fold(&name.text), (name, change));
        if known.is_some() {
            let message = format!("Duplicate column [name={}]", name.text);
            return Err(error::at(ErrorCode::DuplicateColumn, message, name.span));
        }
        Ok(())
    }

    /// Rejects the first name in EXCLUDE or REPLACE that is not among `columns`.
    fn check<'n>(&self, columns: impl Iterator<Item = &'n str>) -> EngineResult<()> {
        if self.of.is_empty() {
            return Ok(());
        }
        let columns: HashSet<String> = columns.map(identifier::fold).collect();
        let unknown = self.of.iter().filter(|(folded, _)| !columns.contains(*folded));
        match unknown.map(|(_, (name, _))| *name).min_by_key(|name| name.span.start) {
            Some(name) => Err(error::invalid_column(&name.text, name.span)),
            None => Ok(()),
        }
    }

    fn find(&self, column: &str) -> Option<&Change> {
        if self.of.is_empty() {
            return None;
        }
        self.of.get(&identifier::fold(column)).map(|(_, change)| change)
    }
}

impl Binder<'_> {
    /// Adds the columns of a `Star` node.
    pub(crate) fn star(
        &mut self,
        id: NodeId,
        source: &Relation,
        names: &mut NameSet,
        into: &mut Vec<Item>,
    ) -> EngineResult<()> {
        let Node::Star { qualifier, exclude, replace } = self.node(id)? else { return Ok(()) };
        let (qualifier, position) = (qualifier.as_ref(), self.tree.span(id));
        if let Some(qualifier) = qualifier
            && !source.has_source(&qualifier.text)
        {
            return Err(error::at(ErrorCode::TableNotFound, "invalid table alias", qualifier.span));
        }
        if source.columns.is_empty() {
            return Err(error::at(ErrorCode::Syntax, "'from' expected", position));
        }
        let is_meant = |dropped: &&DroppedColumn| {
            qualifier.is_none_or(|qualifier| dropped.is_of(&qualifier.text))
        };
        if let Some(dropped) = source.dropped.iter().find(is_meant) {
            return Err(dropped.error(position));
        }
        let changes = self.changes(exclude, replace, source)?;
        let of_source = |column: &&ScopeColumn| {
            qualifier.is_none_or(|qualifier| has_qualifier(column, &qualifier.text))
        };
        let listed = source.listed.as_deref().filter(|_| qualifier.is_none());
        let columns = || {
            let all = 0..listed.map_or(source.columns.len(), <[usize]>::len);
            let at = move |index: usize| listed.map_or(index, |listed| listed[index]);
            all.map(move |index| &source.columns[at(index)]).filter(of_source)
        };
        changes.check(columns().map(|column| column.name.as_str()))?;
        let before = into.len();
        // A short `*` expands to all of a table's columns, so each of them counts towards the
        // limit.
        self.work.count_columns(columns().count(), position)?;
        for column in columns() {
            // Excluded columns also count as read, because naming a column reveals that it exists.
            column.origin.note();
            let (value, node) = match changes.find(&column.name) {
                Some(Change::Exclude) => continue,
                Some(Change::Replace(value, node)) => (value.clone(), Some(*node)),
                None => (Typed::computed(column.expr(), column.sql_type), None),
            };
            into.push(Item { name: names.number_star(&column.name), value, node });
        }
        if into.len() == before {
            let message = "EXCLUDE removes all columns of '*'";
            return Err(error::at(ErrorCode::InvalidValue, message, position));
        }
        Ok(())
    }

    fn changes<'i>(
        &mut self,
        exclude: &'i [Name],
        replace: &'i [SelectItem],
        source: &Relation,
    ) -> EngineResult<Changes<'i>> {
        let mut changes = Changes::default();
        for name in exclude {
            changes.add(name, Change::Exclude)?;
        }
        let scope = Scope { windows: true, ..Scope::rows(source) };
        for SelectItem { expression, alias } in replace {
            let Some(name) = alias else { continue };
            let value = self.expression(*expression, &scope)?;
            let value = self.settled(value, SqlType::Varchar)?;
            changes.add(name, Change::Replace(value, *expression))?;
        }
        Ok(changes)
    }
}
