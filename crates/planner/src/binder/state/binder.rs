//! One statement's binding in progress: what is in scope, what was met, what it took. The shelves
//! above add methods that bind; this file knows none of them, and a shelf calls none of a shelf
//! above it but by [`Queries`].

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
use crate::binder::state::views::{BoundView, ViewPlace, ViewSources};
use crate::binder::state::work::Work;
use crate::visibility::{Visibility, denied};
use crate::{Access, BindContext};

/// Represents all columns of a table where it is read as a whole; no column has this name.
pub(crate) const WHOLE: &str = "*";

/// Queries, for what is in them: expressions, sources and views bind sub-queries by this alone. The
/// clauses implement it.
pub(crate) trait Queries {
    /// Binds a query: its rows, with the names and types of its columns.
    fn query(&self, binder: &mut Binder<'_>, id: NodeId) -> EngineResult<Relation>;

    /// The common table expression with this name, and those it can see itself.
    fn common_table(&self, binder: &mut Binder<'_>, name: &Name) -> Option<EngineResult<Relation>>;
}

/// Who goes by the time of the rows of a SELECT block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockTime {
    /// The block itself: its sources keep their designated timestamps, selected or not.
    pub(crate) of_sources: bool,
    /// The block around it: its list keeps the designated timestamp, selected or not.
    pub(crate) of_output: bool,
}

/// The expression a variable is replaced by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VariableValue {
    pub(crate) node: NodeId,
    /// How many of the scopes of DECLARE its own variables are looked up in.
    pub(crate) scopes: usize,
}

/// One statement's binding in progress.
pub(crate) struct Binder<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) context: &'a BindContext,
    queries: &'a dyn Queries,
    pub(crate) parameters: Parameters,
    pub(crate) parameter_uses: ParameterUses,
    pub(crate) accesses: Accesses,
    /// Common table expressions in scope, innermost last.
    pub(crate) common_tables: Vec<CommonTable>,
    /// Values of `@name` in the scopes of DECLARE, innermost last.
    pub(crate) variables: Vec<HashMap<String, NodeId>>,
    /// Windows that SELECT blocks name.
    pub(crate) named_windows: NamedWindows,
    /// Rows around the sub-query that is being bound, innermost last.
    pub(crate) outer: Vec<OuterRows>,
    /// Names of the aggregates met whose result depends on the order of rows.
    pub(crate) ordered_aggregates: HashSet<String>,
    /// What random functions draw their numbers from, once `long_sequence` gave seeds.
    pub(crate) seed: Option<u64>,
    /// Whether the statement is explained, not run.
    pub(crate) explaining: bool,
    /// An error of a source that gives way to errors of the select list.
    pub(crate) deferred: Option<EngineError>,
    /// Views whose queries are being bound, the innermost last, by their folded names.
    pub(crate) views: Vec<String>,
    /// Whether a view's query is being bound: its names are not the user's.
    pub(crate) beneath_view: bool,
    /// The materialized view whose rows are read as they are stored: its policy is being bound.
    pub(crate) expiring: Option<TableId>,
    /// Where each of those views is read, the innermost last.
    pub(crate) view_places: Vec<ViewPlace>,
    /// What the names of that query mean; without it they mean what has the name now.
    pub(crate) view_sources: Option<ViewSources>,
    /// What the statement asks for and has no effect here.
    pub(crate) notices: Vec<&'static str>,
    /// Who goes by the time of the block that is being bound.
    pub(crate) block_time: BlockTime,
    /// Whether the block around it goes by the time of the query that is bound next.
    pub(crate) time_is_read: bool,
    /// What the select list that is being bound takes apart.
    pub(crate) list_rows: Option<ListRows>,
    /// Where the tree goes on after the last DEFAULT that was kept.
    pub(crate) after_default: NodeId,
    /// Relations named so far; plans refer to each by a name of its own.
    relations: usize,
    /// Sources bound so far, without those of views.
    pub(crate) sources: usize,
    /// What binding took so far.
    pub(crate) work: Work,
    /// Views bound so far, as they are for statements that override none of their variables.
    pub(crate) bound_views: HashMap<String, BoundView>,
}

impl<'a> Binder<'a> {
    /// Nothing of the statement bound yet.
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
            view_places: Vec::new(),
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

    /// Binds a query: its rows, with the names and types of its columns.
    pub(crate) fn query(&mut self, id: NodeId) -> EngineResult<Relation> {
        self.queries.query(self, id)
    }

    /// The common table expression with this name, and those it can see itself.
    pub(crate) fn common_table(&mut self, name: &Name) -> Option<EngineResult<Relation>> {
        self.queries.common_table(self, name)
    }

    /// Binds a query whose rows are a source of the block that is being bound.
    pub(crate) fn source_query(&mut self, id: NodeId) -> EngineResult<Relation> {
        self.time_is_read = self.block_time.of_sources;
        self.query(id)
    }

    /// A name no other relation of this statement has.
    pub(crate) fn relation_name(&mut self) -> String {
        self.relations += 1;
        format!("r{}", self.relations)
    }

    /// A node that must be there.
    pub(crate) fn node(&self, id: NodeId) -> EngineResult<&'a Node> {
        self.tree.get(id).ok_or_else(|| EngineError::internal(format!("no node {id} in the tree")))
    }

    /// Works on another tree, as a part of this statement.
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
            view_places: std::mem::take(&mut self.view_places),
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
        self.view_places = inner.view_places;
        self.relations = inner.relations;
        self.work = inner.work;
        self.bound_views = inner.bound_views;
        outcome
    }

    /// The tree of one node.
    pub(crate) fn part(&self, root: NodeId) -> Tree {
        self.part_from(self.tree.first, root)
    }

    /// The same, without the nodes before `first`, none of which it has.
    pub(crate) fn part_from(&self, first: NodeId, root: NodeId) -> Tree {
        // Children come before their parents.
        let skipped = first.saturating_sub(self.tree.first) as usize;
        let count = root.saturating_sub(first) as usize + 1;
        Tree {
            nodes: self.tree.nodes.iter().skip(skipped).take(count).cloned().collect(),
            spans: self.tree.spans.iter().skip(skipped).take(count).copied().collect(),
            root,
            first,
        }
    }

    /// The value of a variable; nothing when it was not declared. A value that is nothing
    /// but another variable is that one's.
    pub(crate) fn variable_value(&self, name: &Name) -> Option<VariableValue> {
        self.variable_value_in(name, self.variables.len())
    }

    /// The same among the outermost `scopes` scopes of DECLARE.
    pub(crate) fn variable_value_in(&self, name: &Name, scopes: usize) -> Option<VariableValue> {
        let (mut name, mut scopes) = (name, scopes);
        let mut pending = self.variables.iter().take(scopes).map(HashMap::len).sum::<usize>();
        loop {
            let key = identifier::fold(&name.text);
            let mut declared = self.variables.iter().take(scopes).enumerate().rev();
            let (at, node) = declared.find_map(|(at, scope)| Some((at, *scope.get(&key)?)))?;
            scopes = at + 1;
            match self.tree.get(node) {
                // A scope reads what is declared before it: there is no cycle.
                Some(Node::Variable { name: next }) if pending > 0 => name = next,
                _ => return Some(VariableValue { node, scopes }),
            }
            pending -= 1;
        }
    }

    /// Binds the value of a variable among the scopes of its declaration: what is declared further
    /// in has another meaning there, and must not become its own value.
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

    /// Fails if a source had an error.
    pub(crate) fn report_deferred(&mut self) -> EngineResult<()> {
        self.deferred.take().map_or(Ok(()), Err)
    }

    /// Counts something that is bound.
    pub(crate) fn count_step(&mut self, id: NodeId) -> EngineResult<()> {
        self.work.count_step(self.tree.span(id))
    }

    /// Binds an expression within the bounds.
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

    /// What of the catalog the user sees; `None`: everything.
    pub(crate) fn visibility(&self) -> Option<&'a Visibility> {
        self.context.visibility.as_ref()
    }

    /// Whether the user may read some column of a table.
    pub(crate) fn reads_some(&self, table: &str) -> bool {
        self.visibility().is_none_or(|visibility| visibility.reads(table, &[], None))
    }

    /// Whether the user may read all of a table or view.
    pub(crate) fn reads_whole(&self, name: &str) -> bool {
        self.visibility().is_none_or(|visibility| visibility.reads_whole(name))
    }

    /// Everything that the statement reads so far, as its accesses will have it.
    pub(crate) fn read_so_far(&self) -> Vec<Access> {
        let mut reads = self.accesses.list();
        for ViewPlace { before, view, owner } in self.view_places.iter().rev() {
            let inner = std::mem::replace(&mut reads, before.list()).into_iter();
            reads.extend(inner.map(|access| access.through(view, owner)));
        }
        reads
    }

    /// Refuses a name on which the user has no right, be it there or not.
    pub(crate) fn must_see(&self, name: &Name, permission: Permission) -> EngineResult<()> {
        let sees = self.visibility().is_none_or(|visibility| visibility.sees(&name.text));
        if sees || self.beneath_view {
            return Ok(());
        }
        Err(denied(permission, &name.text).at(error::span(name.span)))
    }

    /// Notes that all of a table or view is read, whatever columns it has.
    pub(crate) fn note_whole(&mut self, table: &str) {
        self.note_read(table, vec![WHOLE.to_owned()]);
    }

    /// Notes that a table is read.
    pub(crate) fn note_read(&mut self, table: &str, columns: Vec<String>) {
        self.accesses.note(Access { columns, ..Access::new(table, Permission::Select) });
    }
}
