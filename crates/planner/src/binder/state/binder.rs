//! State for binding a single statement: names in scope, results so far, and work done.
//!
//! Higher modules add the binding methods; this file depends on none of them. A module calls the
//! modules above it only through [`Queries`].

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tidemark_ast::{Name, Node, NodeId, Tree};
use tidemark_border::Permission;
use tidemark_storage::{Snapshot, TableId};
use tidemark_types::{EngineError, EngineResult, identifier};

use crate::binder::error;
use crate::binder::state::accesses::Accesses;
use crate::binder::state::common_table::CommonTable;
use crate::binder::state::conditions::ParameterUses;
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::named_windows::NamedWindows;
use crate::binder::state::outer_rows::OuterRows;
use crate::binder::state::parameters::Parameters;
use crate::binder::state::scope::Relation;
use crate::binder::state::typed::Typed;
use crate::binder::state::views::{BoundView, ViewContext, ViewSources};
use crate::binder::state::work::Work;
use crate::visibility::{Visibility, denied};
use crate::{Access, BindContext};

/// Name that stands for all columns of a table that is read as a whole. No column has this name.
pub(crate) const ALL_COLUMNS: &str = "*";

/// Binds queries nested in expressions, sources and views. This is the only way to bind
/// sub-queries; the clauses implement it.
pub(crate) trait Queries {
    /// Binds a query and returns its rows, with named and typed columns.
    fn query(&self, binder: &mut Binder<'_>, id: NodeId) -> EngineResult<Relation>;

    /// The rows of the CTE with this name.
    fn common_table(&self, binder: &mut Binder<'_>, name: &Name) -> Option<EngineResult<Relation>>;
}

/// Whether a SELECT block's designated timestamp is needed by the block itself and by the outer
/// block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockTime {
    /// Whether the block itself needs the timestamp. If so, its sources keep their designated
    /// timestamps, whether or not these are selected.
    pub(crate) of_sources: bool,
    /// Whether the outer block needs the timestamp. If so, the select list keeps it, whether or not
    /// it is selected.
    pub(crate) of_output: bool,
}

/// The expression that replaces a variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VariableValue {
    pub(crate) node: NodeId,
    /// Number of DECLARE scopes in which variables inside this expression are resolved.
    pub(crate) scopes: usize,
}

/// State for binding a single statement.
pub(crate) struct Binder<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) context: &'a BindContext,
    queries: &'a dyn Queries,
    pub(crate) parameters: Parameters,
    pub(crate) parameter_uses: ParameterUses,
    pub(crate) accesses: Accesses,
    /// CTEs in scope, innermost last.
    pub(crate) common_tables: Vec<CommonTable>,
    /// Values of `@name` in each DECLARE scope, innermost last.
    pub(crate) variables: Vec<HashMap<String, NodeId>>,
    /// Named windows in the enclosing SELECT blocks.
    pub(crate) named_windows: NamedWindows,
    /// Outer rows of the sub-queries being bound, innermost last.
    pub(crate) outer: Vec<OuterRows>,
    /// Names of order-sensitive aggregates found so far.
    pub(crate) ordered_aggregates: HashSet<String>,
    /// The random functions' seed, if `long_sequence` sets one.
    pub(crate) seed: Option<u64>,
    /// Whether the statement is explained instead of run.
    pub(crate) explaining: bool,
    /// A source's error, reported only if the select list has no error.
    pub(crate) deferred: Option<EngineError>,
    /// Case-folded names of the views being bound, innermost last.
    pub(crate) views: Vec<String>,
    /// Whether a view's query is being bound. The names in it need not be visible to the user.
    pub(crate) beneath_view: bool,
    /// The materialized view whose stored rows are read because its expiry policy is being bound.
    pub(crate) expiring: Option<TableId>,
    /// The context in which each view in `views` is read; innermost last.
    pub(crate) view_contexts: Vec<ViewContext>,
    /// The objects that names in the view's query refer to; `None` if names are resolved in the
    /// snapshot.
    pub(crate) view_sources: Option<ViewSources>,
    /// Notices for requested features that have no effect.
    pub(crate) notices: Vec<&'static str>,
    /// Whether the designated timestamp of the block being bound is needed.
    pub(crate) block_time: BlockTime,
    /// Whether the outer block needs the designated timestamp of the next query to be bound.
    pub(crate) time_is_read: bool,
    /// Values that the current select list expands into rows; `None` outside a select list.
    pub(crate) list_rows: Option<ListRows>,
    /// ID of the first node after the last DEFAULT expression that was stored.
    pub(crate) after_default: NodeId,
    /// Number of unique relation names generated so far.
    relations: usize,
    /// Number of sources bound so far, excluding those in views.
    pub(crate) sources: usize,
    /// Work done by binding so far.
    pub(crate) work: Work,
    /// Views bound so far. A reference that overrides none of a view's variables reuses the bound
    /// view.
    pub(crate) bound_views: HashMap<String, BoundView>,
}

impl<'a> Binder<'a> {
    /// Creates the initial state for binding a statement.
    pub(crate) fn new(
        tree: &'a Tree,
        snapshot: &'a Arc<Snapshot>,
        context: &'a BindContext,
        queries: &'a dyn Queries,
    ) -> Self {
        Self {
            tree,
            snapshot,
            context,
            queries,
            parameters: Parameters::new(context),
            parameter_uses: ParameterUses::default(),
            accesses: Accesses::default(),
            common_tables: Vec::new(),
            variables: Vec::new(),
            named_windows: NamedWindows::default(),
            outer: Vec::new(),
            ordered_aggregates: HashSet::new(),
            seed: None,
            explaining: false,
            deferred: None,
            views: Vec::new(),
            beneath_view: false,
            expiring: None,
            view_contexts: Vec::new(),
            view_sources: None,
            notices: Vec::new(),
            block_time: BlockTime::default(),
            time_is_read: false,
            list_rows: None,
            after_default: 0,
            relations: 0,
            sources: 0,
            work: Work::default(),
            bound_views: HashMap::new(),
        }
    }

    /// Binds a query and returns its rows, with named and typed columns.
    pub(crate) fn query(&mut self, id: NodeId) -> EngineResult<Relation> {
        self.queries.query(self, id)
    }

    /// The rows of the CTE with this name.
    pub(crate) fn common_table(&mut self, name: &Name) -> Option<EngineResult<Relation>> {
        self.queries.common_table(self, name)
    }

    /// Binds a query that is a source of the current block.
    pub(crate) fn source_query(&mut self, id: NodeId) -> EngineResult<Relation> {
        self.time_is_read = self.block_time.of_sources;
        self.query(id)
    }

    /// A relation name that is unique in this statement.
    pub(crate) fn relation_name(&mut self) -> String {
        self.relations += 1;
        format!("r{}", self.relations)
    }

    /// Returns a node, or an error if the tree does not contain it.
    pub(crate) fn node(&self, id: NodeId) -> EngineResult<&'a Node> {
        self.tree.get(id).ok_or_else(|| EngineError::internal(format!("the tree has no node {id}")))
    }

    /// Binds a different tree as part of this statement.
    pub(crate) fn within<T>(
        &mut self,
        tree: &Tree,
        work: impl FnOnce(&mut Binder<'_>) -> EngineResult<T>,
    ) -> EngineResult<T> {
        let mut inner = Binder {
            parameters: std::mem::take(&mut self.parameters),
            accesses: std::mem::take(&mut self.accesses),
            ordered_aggregates: std::mem::take(&mut self.ordered_aggregates),
            explaining: self.explaining,
            views: std::mem::take(&mut self.views),
            view_contexts: std::mem::take(&mut self.view_contexts),
            relations: self.relations,
            work: self.work,
            bound_views: std::mem::take(&mut self.bound_views),
            ..Binder::new(tree, self.snapshot, self.context, self.queries)
        };
        let outcome = work(&mut inner);
        self.parameters = inner.parameters;
        self.accesses = inner.accesses;
        self.ordered_aggregates = inner.ordered_aggregates;
        self.views = inner.views;
        self.view_contexts = inner.view_contexts;
        self.relations = inner.relations;
        self.work = inner.work;
        self.bound_views = inner.bound_views;
        outcome
    }

    /// Copies the part of the tree up to a node, which becomes the root of the copy.
    pub(crate) fn subtree(&self, root: NodeId) -> Tree {
        self.subtree_from(self.tree.first, root)
    }

    /// Like [`Self::subtree`], but omits the nodes before `first`. The copied nodes must not
    /// reference the omitted nodes.
    pub(crate) fn subtree_from(&self, first: NodeId, root: NodeId) -> Tree {
        // Children precede their parents.
        let skipped = first.saturating_sub(self.tree.first) as usize;
        let count = root.saturating_sub(first) as usize + 1;
        Tree {
            nodes: self.tree.nodes.iter().skip(skipped).take(count).cloned().collect(),
            spans: self.tree.spans.iter().skip(skipped).take(count).copied().collect(),
            root,
            first,
        }
    }

    /// A variable's value; `None` if the variable is not declared. If the value is itself just a
    /// variable, that variable is resolved too.
    pub(crate) fn variable_value(&self, name: &Name) -> Option<VariableValue> {
        self.variable_value_in(name, self.variables.len())
    }

    /// Like [`Self::variable_value`], but only within the outermost `scopes` DECLARE scopes.
    pub(crate) fn variable_value_in(&self, name: &Name, scopes: usize) -> Option<VariableValue> {
        let (mut name, mut scopes) = (name, scopes);
        let mut pending = self.variables.iter().take(scopes).map(HashMap::len).sum::<usize>();
        loop {
            let key = identifier::fold(&name.text);
            let mut declared = self.variables.iter().take(scopes).enumerate().rev();
            let (at, node) = declared.find_map(|(at, scope)| Some((at, *scope.get(&key)?)))?;
            scopes = at + 1;
            match self.tree.get(node) {
                // A declaration can read only earlier declarations, so no cycle is possible.
                Some(Node::Variable { name: next }) if pending > 0 => name = next,
                _ => return Some(VariableValue { node, scopes }),
            }
            pending -= 1;
        }
    }

    /// Binds a variable's value in the scopes of its declaration, because declarations in inner
    /// scopes must not affect it.
    pub(crate) fn within_declaration<T>(
        &mut self,
        value: VariableValue,
        bind: impl FnOnce(&mut Self, NodeId) -> EngineResult<T>,
    ) -> EngineResult<T> {
        let inner = self.variables.split_off(value.scopes);
        let bound = bind(self, value.node);
        self.variables.extend(inner);
        bound
    }

    /// Fails with a source's deferred error, if there is one.
    pub(crate) fn report_deferred(&mut self) -> EngineResult<()> {
        self.deferred.take().map_or(Ok(()), Err)
    }

    /// Counts a binding step.
    pub(crate) fn count_step(&mut self, id: NodeId) -> EngineResult<()> {
        self.work.count_step(self.tree.span(id))
    }

    /// Binds an expression and enforces the limits.
    pub(crate) fn within_bounds(
        &mut self,
        id: NodeId,
        bind: impl FnOnce(&mut Self) -> EngineResult<Typed>,
    ) -> EngineResult<Typed> {
        self.count_step(id)?;
        self.work.begin_expression();
        let bound = bind(self);
        self.work.end_expression();
        let bound = bound?;
        self.work.count_nodes(&bound.expr, self.tree.span(id))?;
        Ok(bound)
    }

    /// The subset of the catalog that the user sees; `None` for the whole catalog.
    pub(crate) fn visibility(&self) -> Option<&'a Visibility> {
        self.context.visibility.as_ref()
    }

    /// Whether the user may read at least one column of a table.
    pub(crate) fn reads_some(&self, table: &str) -> bool {
        self.visibility().is_none_or(|visibility| visibility.reads(table, &[], None))
    }

    /// Whether the user may read all columns of a table or view.
    pub(crate) fn may_read_all(&self, name: &str) -> bool {
        self.visibility().is_none_or(|visibility| visibility.reads_all(name))
    }

    /// All reads so far, in the form in which the statement's accesses will list them.
    pub(crate) fn read_so_far(&self) -> Vec<Access> {
        let mut reads = self.accesses.list();
        for ViewContext { before, view, owner } in self.view_contexts.iter().rev() {
            let inner = std::mem::replace(&mut reads, before.list()).into_iter();
            reads.extend(inner.map(|access| access.through(view, owner)));
        }
        reads
    }

    /// Rejects a name for which the user has no permission, whether or not the name exists.
    pub(crate) fn must_see(&self, name: &Name, permission: Permission) -> EngineResult<()> {
        let sees = self.visibility().is_none_or(|visibility| visibility.sees(&name.text));
        if sees || self.beneath_view {
            return Ok(());
        }
        Err(denied(permission, &name.text).at(error::span(name.span)))
    }

    /// Records that a table or view is read as a whole.
    pub(crate) fn note_all_columns(&mut self, table: &str) {
        self.note_read(table, vec![ALL_COLUMNS.to_owned()]);
    }

    /// Records that a table is read.
    pub(crate) fn note_read(&mut self, table: &str, columns: Vec<String>) {
        self.accesses.note(Access { columns, ..Access::new(table, Permission::Select) });
    }
}
