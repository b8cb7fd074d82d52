//! One SELECT block. Clauses apply in this order: FROM, WHERE, LATEST ON, GROUP BY or SAMPLE BY,
//! the select list, window functions, ORDER BY, DISTINCT.

use datafusion::logical_expr::Expr;
use tidemark_ast::{
    JoinKind, LogicalOperator, Node, NodeId, OrderItem, PivotNode, SelectItem, SelectNode,
};
use tidemark_optimizer::has_subquery;
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::clauses::stage::{Item, Stage, aliases_of};
use crate::binder::expressions::expression::{has_aggregate, has_window};
use crate::binder::expressions::joining::joining;
use crate::binder::expressions::{predicate, time_range};
use crate::binder::names;
use crate::binder::names::NameSet;
use crate::binder::state::binder::BlockTime;
use crate::binder::state::conditions::{Conjunct, Where};
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::relation;
use crate::binder::state::scope::{Alias, Relation, Scope};
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds a SELECT block with its ORDER BY.
    pub(crate) fn select(
        &mut self,
        select: &SelectNode,
        order_by: &[OrderItem],
    ) -> EngineResult<Relation> {
        let entered = self.named_windows.enter(&select.windows);
        let of_output = std::mem::take(&mut self.time_is_read);
        let of_sources = of_output || self.depends_on_time(select);
        let around = std::mem::replace(&mut self.block_time, BlockTime { of_sources, of_output });
        let output = entered.and_then(|()| self.select_block(select, order_by));
        self.block_time = around;
        self.named_windows.leave();
        output
    }

    /// Whether a clause or join in the block depends on its rows' designated timestamp.
    fn depends_on_time(&self, select: &SelectNode) -> bool {
        let mut pending: Vec<NodeId> = select.from.into_iter().collect();
        let mut joins = false;
        while let Some(id) = pending.pop() {
            if let Some(Node::Join { join, left, right, .. }) = self.tree.get(id) {
                joins |= join.is_by_time();
                pending.extend([*left, *right]);
            }
        }
        joins || select.sample_by.is_some()
    }

    fn select_block(
        &mut self,
        select: &SelectNode,
        order_by: &[OrderItem],
    ) -> EngineResult<Relation> {
        // Destructured exhaustively, so a new clause does not compile until it is handled here.
        let SelectNode {
            distinct: _,
            distinct_on: _,
            items,
            from,
            filter,
            latest_on,
            sample_by,
            group_by,
            group_by_all,
            having,
            // `select` has already put the named windows in scope.
            windows: _,
            qualify: _,
            pivot,
            // Hints target another database's optimizer.
            hint: _,
        } = select;
        let source_node = from.map(|from| self.node(from)).transpose()?;
        match (*from, source_node) {
            (Some(id), Some(Node::Join { join: JoinKind::Window { .. }, .. })) => {
                return self.window_select(id, select, order_by);
            }
            (Some(id), Some(Node::Join { join: JoinKind::Horizon { .. }, .. })) => {
                return self.horizon_select(id, select, order_by);
            }
            _ => {}
        }
        let source = match from {
            Some(from) => self.source(*from)?,
            None => relation::one_row(),
        };
        let (source, items, rows) = self.listed(source, (items, *filter, pivot.as_deref()))?;
        let source = match latest_on {
            Some(latest_on) => self.latest_on(source, latest_on)?,
            None => source,
        };
        let grouped = sample_by.is_some()
            || !group_by.is_empty()
            || *group_by_all
            || having.is_some()
            || items.iter().any(|item| has_aggregate(&item.value.expr));
        let aliases = aliases_of(&items);
        // The select list first expands values into rows; the resulting rows are then grouped.
        let (source, rows) =
            if grouped { (rows.over(source)?, ListRows::default()) } else { (source, rows) };
        let extras =
            if grouped { self.extras(&source, &aliases, select, order_by)? } else { Vec::new() };
        let stage = match sample_by {
            None if grouped => self.aggregate(source, items, group_by, &extras)?,
            None => Stage { rows, ..Self::ungrouped(source, items) },
            Some(_) if !group_by.iter().all(|id| self.is_grouping_clause(*id)) => {
                return Err(error::at(
                    ErrorCode::NotSupported,
                    "SELECT query must not contain both GROUP BY and SAMPLE BY",
                    self.tree.span(group_by[0]),
                ));
            }
            Some(sample_by) => self.sample_by(source, items, sample_by, group_by, &extras)?,
        };
        self.finished(stage, &aliases, select, order_by)
    }

    /// Binds the select list, and applies WHERE. Also returns the values that the list expands into
    /// rows.
    fn listed(
        &mut self,
        source: Relation,
        (items, filter, pivot): (&[SelectItem], Option<NodeId>, Option<&PivotNode>),
    ) -> EngineResult<(Relation, Vec<Item>, ListRows)> {
        if let Some(pivot) = pivot {
            self.report_deferred()?;
            let source = self.filtered_if(source, filter)?;
            let source = self.pivoted(source, pivot)?;
            let items = self.items(items, &source)?;
            return Ok((source, items, ListRows::default()));
        }
        // The select list is bound before WHERE: if both contain an unknown name, the error reports
        // the name in the list.
        let around = self.list_rows.replace(ListRows::default());
        let items = self.items(items, &source)?;
        let rows = std::mem::replace(&mut self.list_rows, around).unwrap_or_default();
        self.report_deferred()?;
        Ok((self.filtered_if(source, filter)?, items, rows))
    }

    /// Applies the clauses after grouping: HAVING, window functions, sub-queries in the select
    /// list, ORDER BY, DISTINCT.
    pub(crate) fn finished(
        &mut self,
        stage: Stage,
        aliases: &[Alias],
        select: &SelectNode,
        order_by: &[OrderItem],
    ) -> EngineResult<Relation> {
        let SelectNode { distinct, distinct_on, having, qualify, .. } = select;
        let mut stage = match *having {
            Some(having) => self.having(stage, aliases, having)?,
            None => stage,
        };
        for item in &stage.items {
            if let Some(id) = item.node {
                self.check_grouped(&stage, &item.value.expr, id)?;
            }
        }
        let mut windows = self.windows_of_order(&stage, aliases, order_by)?;
        let qualify = match *qualify {
            Some(qualify) => Some(self.qualify(&stage, aliases, qualify)?),
            None => None,
        };
        windows.extend(qualify.clone());
        // Window functions are computed before the select list expands values into rows, unless
        // they read the expanded elements.
        if stage.window_reads_elements(&windows) {
            stage.expand()?;
        }
        stage.plan_windows(&windows)?;
        if distinct_on.is_empty() || qualify.is_some() {
            stage.expand()?;
        }
        if let Some(test) = qualify {
            let test = stage.replaced.apply(test)?;
            stage.plan = relation::filter(stage.plan, test)?;
        }
        stage.plan_subqueries(!order_by.is_empty())?;
        if !distinct_on.is_empty() {
            stage = self.first_of_each(stage, aliases, distinct_on, order_by)?;
            stage.expand()?;
        }
        self.projected(stage, aliases, order_by, *distinct && distinct_on.is_empty())
    }

    /// Binds the expressions in HAVING, QUALIFY and ORDER BY to find their aggregates.
    pub(crate) fn extras(
        &mut self,
        source: &Relation,
        aliases: &[Alias],
        select: &SelectNode,
        order_by: &[OrderItem],
    ) -> EngineResult<Vec<Typed>> {
        let scope = Scope {
            aliases,
            aliases_first: true,
            aggregates: true,
            windows: true,
            ..Scope::rows(source)
        };
        let mut extras = Vec::new();
        for test in select.having.into_iter().chain(select.qualify) {
            extras.push(self.predicate(test, &scope, false)?);
        }
        for item in order_by {
            if let Node::Call(_) | Node::Binary { .. } = self.node(item.expression)? {
                extras.push(self.expression(item.expression, &scope)?);
            }
        }
        Ok(extras)
    }

    /// Filters groups by HAVING.
    fn having(
        &mut self,
        mut stage: Stage,
        aliases: &[Alias],
        having: NodeId,
    ) -> EngineResult<Stage> {
        let source = Scope::rows(&stage.source);
        let scope =
            Scope { aliases, aliases_first: true, aggregates: true, windows: true, ..source };
        let test = self.predicate(having, &scope, false)?;
        if has_window(&test.expr) {
            return Err(error::at(
                ErrorCode::NotSupported,
                "window functions are not allowed in HAVING",
                self.tree.span(having),
            ));
        }
        let test = stage.replaced.apply(test.expr)?;
        self.check_grouped(&stage, &test, having)?;
        stage.plan = relation::filter(stage.plan, test)?;
        Ok(stage)
    }

    /// The QUALIFY condition, which may use window functions and names from the select list.
    fn qualify(&mut self, stage: &Stage, aliases: &[Alias], id: NodeId) -> EngineResult<Expr> {
        let rows = Scope::rows(&stage.source);
        let scope = Scope { aliases, aliases_first: true, aggregates: true, windows: true, ..rows };
        let test = self.predicate(id, &scope, false)?;
        let test = stage.replaced.apply(test.expr)?;
        self.check_grouped(stage, &test, id)?;
        Ok(test)
    }

    pub(crate) fn filtered_if(
        &mut self,
        source: Relation,
        filter: Option<NodeId>,
    ) -> EngineResult<Relation> {
        match filter {
            Some(filter) => self.filtered(source, filter),
            None => Ok(source),
        }
    }

    /// Applies WHERE: time ranges are pushed into the scan, and the remaining conditions become a
    /// filter.
    pub(crate) fn filtered(&mut self, source: Relation, id: NodeId) -> EngineResult<Relation> {
        let mut ids = Vec::new();
        self.conjuncts(id, &mut ids);
        let mut ranges: Option<time_range::Ranges> = None;
        let mut conjuncts = Vec::with_capacity(ids.len());
        let (before, mut uses_in_time) = (self.parameter_uses.total, 0);
        for id in ids {
            let met = self.parameter_uses.total;
            let found = match source.base {
                Some(_) => self.time_ranges(id, &source)?,
                None => None,
            };
            conjuncts.push(Conjunct { id, is_in_time: found.is_some() });
            if let Some(found) = found {
                if let Some(column) = source.timestamp_column() {
                    column.origin.note();
                }
                uses_in_time += self.parameter_uses.total - met;
                ranges = Some(time_range::both(ranges, found));
            }
        }
        let mut plan = match &ranges {
            Some(ranges) => relation::within(&source.plan, ranges.clone())?,
            None => source.plan.clone(),
        };
        let scope = Scope::rows(&source);
        let others = conjuncts.iter().filter(|conjunct| !conjunct.is_in_time);
        let tests = others.map(|conjunct| {
            let test = self.predicate(conjunct.id, &scope, false)?;
            Ok(joining(test, &source))
        });
        let test = predicate::all(tests.collect::<EngineResult<_>>()?);
        if source.base.is_some() {
            let uses_in_others = self.parameter_uses.total - before - uses_in_time;
            let found =
                Where { conjuncts, uses_in_time, uses_in_other_conditions: uses_in_others, ranges };
            self.parameter_uses.note(found, &source, &self.variables);
        }
        if test.as_truth() == Some(true) {
            return Ok(source.with_plan(plan));
        }
        let joins = has_subquery(&test.expr);
        plan = relation::filter(plan, test.expr)?;
        // A sub-query becomes a join, which does not preserve the order.
        if let Some(column) = source.ascending_time().filter(|_| joins) {
            plan = relation::sort_by_time(plan, column.expr())?;
        }
        Ok(source.with_plan(plan))
    }

    fn conjuncts(&self, id: NodeId, into: &mut Vec<NodeId>) {
        match self.tree.get(id) {
            Some(Node::Logical { operator: LogicalOperator::And, operands }) => {
                for operand in operands {
                    self.conjuncts(*operand, into);
                }
            }
            _ => into.push(id),
        }
    }

    /// Binds the select list and determines its column names.
    pub(crate) fn items(
        &mut self,
        items: &[SelectItem],
        source: &Relation,
    ) -> EngineResult<Vec<Item>> {
        let mut bound: Vec<Item> = Vec::with_capacity(items.len());
        let mut names = NameSet::default();
        let mut aliases: Vec<Alias> = Vec::new();
        for SelectItem { expression, alias } in items {
            if let Node::Star { .. } = self.node(*expression)? {
                self.star(*expression, source, &mut names, &mut bound)?;
                if let Some(alias) = alias {
                    let message = "'*' cannot have an alias: list its columns";
                    return Err(error::at(ErrorCode::Syntax, message, alias.span));
                }
                continue;
            }
            let scope = Scope {
                relation: Some(source),
                aliases: &aliases,
                aliases_first: false,
                aggregates: true,
                windows: true,
            };
            let value = self.expression(*expression, &scope)?;
            let value = self.settled(value, SqlType::Varchar)?;
            let name = match alias {
                Some(alias) => {
                    if !names.take(&alias.text) {
                        return Err(error::at(
                            ErrorCode::DuplicateColumn,
                            format!("Duplicate column [name={}]", alias.text),
                            alias.span,
                        ));
                    }
                    aliases.push(Alias { name: alias.text.clone(), value: value.clone() });
                    alias.text.clone()
                }
                None => names.number(&names::generated(self.tree, *expression)),
            };
            bound.push(Item { name, value, node: Some(*expression) });
        }
        Ok(bound)
    }
}
