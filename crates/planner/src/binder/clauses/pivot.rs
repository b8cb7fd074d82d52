//! PIVOT: a column's values become separate aggregate columns.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, and};
use hashbrown::HashSet;
use tidemark_ast::{BinaryOperator, Node, NodeId, PivotNode, SelectItem, Span};
use tidemark_functions::CastMode;
use tidemark_optimizer::any_of;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::Access;
use crate::binder::clauses::stage::{Exprs, collect_aggregates};
use crate::binder::expressions::expression::has_aggregate;
use crate::binder::expressions::{constant, predicate};
use crate::binder::names;
use crate::binder::names::NameSet;
use crate::binder::state::binder::ALL_COLUMNS;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope};
use crate::binder::{Binder, Typed, error};
use crate::visibility::denied;

/// Maximum number of values that a query supplies to PIVOT; each needs at least one column.
const MAX_QUERIED_VALUES: usize = 5_000;

/// Maximum number of result columns.
const MAX_COLUMNS: usize = 5_000;

/// One combination of values, with one value per axis.
#[derive(Clone)]
struct Cell {
    name: String,
    /// The condition for rows that belong to this combination; `None` before the first axis.
    test: Option<Expr>,
}

impl Binder<'_> {
    /// Computes the aggregates of `source` for each combination of values, with one row per group.
    pub(crate) fn pivoted(
        &mut self,
        source: Relation,
        pivot: &PivotNode,
    ) -> EngineResult<Relation> {
        let PivotNode { aggregates: written, axes, group_by } = pivot;
        let mut aggregates = Vec::with_capacity(written.len());
        for item in written {
            aggregates.push((self.pivot_aggregate(item, &source)?, item));
        }
        let mut cells = vec![Cell { name: String::new(), test: None }];
        let mut retained = Vec::with_capacity(axes.len());
        for (axis, values) in axes {
            let tests = self.axis_tests(*axis, values, &source)?;
            let any = any_of(tests.iter().map(|(_, test)| test.clone()));
            retained.extend(any.map(|test| Typed::computed(test, SqlType::Boolean)));
            let columns = cells.len() * tests.len() * aggregates.len();
            if columns > MAX_COLUMNS {
                return Err(too_many_columns(columns, self.tree.span(*axis)));
            }
            cells = cells.iter().flat_map(|cell| crossed(cell, &tests)).collect();
        }
        let mut keys = Vec::with_capacity(group_by.len());
        for id in group_by {
            let key = self.expression(*id, &Scope::rows(&source))?;
            keys.push((names::generated(self.tree, *id), key));
        }
        let mut outputs = Vec::with_capacity(cells.len() * aggregates.len());
        let plain = aggregates.len() == 1 && written[0].alias.is_none();
        for cell in &cells {
            for (value, item) in &aggregates {
                let name = match &item.alias {
                    _ if plain => cell.name.clone(),
                    Some(alias) => format!("{}_{}", cell.name, alias.text),
                    None => {
                        let own = names::generated(self.tree, item.expression);
                        format!("{}_{own}", cell.name)
                    }
                };
                let expr = restricted(&value.expr, cell.test.as_ref())?;
                outputs.push((name, Typed::computed(expr, value.sql_type)));
            }
        }
        let plan = relation::filter(source.plan.clone(), predicate::all(retained).expr)?;
        self.pivot_rows(&source.with_plan(plan), keys, outputs)
    }

    /// Binds an aggregate in the PIVOT list, not yet restricted to a combination of values.
    fn pivot_aggregate(&mut self, item: &SelectItem, source: &Relation) -> EngineResult<Typed> {
        let scope = Scope { aggregates: true, ..Scope::rows(source) };
        let value = self.expression(item.expression, &scope)?;
        if has_aggregate(&value.expr) {
            return Ok(value);
        }
        let name = names::generated(self.tree, item.expression);
        Err(error::at(
            ErrorCode::NotSupported,
            format!("expected aggregate function [col={name}]"),
            self.tree.span(item.expression),
        ))
    }

    /// Returns each value's name, and the condition that a row's axis has this value.
    fn axis_tests(
        &mut self,
        axis: NodeId,
        values: &[SelectItem],
        source: &Relation,
    ) -> EngineResult<Vec<(String, Expr)>> {
        let mut tests = Vec::with_capacity(values.len());
        for item in values {
            let position = self.tree.span(item.expression);
            let node = self.node(item.expression)?;
            if let Node::Query { .. } | Node::Select(_) = node {
                tests.extend(self.queried_tests(axis, item.expression, source)?);
                continue;
            }
            let left = self.expression(axis, &Scope::rows(source))?;
            let right = self.expression(item.expression, &Scope::empty())?;
            let test = self.operator(BinaryOperator::Equal, left, right, position)?;
            let name = match (&item.alias, node) {
                (Some(alias), _) => alias.text.clone(),
                (None, Node::String { value }) => value.clone(),
                (None, _) => names::generated(self.tree, item.expression),
            };
            tests.push((name, test.expr));
        }
        Ok(tests)
    }

    /// Checks permissions for everything read so far, because a query executed during binding runs
    /// before the statement's own permission check. Requests permissions that are not yet known.
    fn must_read_all(&self, position: Span) -> EngineResult<()> {
        if self.visibility().is_none() {
            return Ok(());
        }
        let Some(answers) = self.context.answers.as_ref() else {
            let what = "PIVOT values from a query are";
            return Err(error::not_supported(what, position).with_hint("list the values"));
        };
        let reads = self.read_so_far().into_iter().flat_map(Access::by_column);
        let (mut unknown, mut refused) = (Vec::new(), None);
        for access in reads {
            match answers.get(&access.key()) {
                Some(true) => {}
                Some(false) => {
                    refused.get_or_insert(access);
                }
                None => unknown.push(access),
            }
        }
        match refused {
            Some(access) => Err(refusal(&access).at(error::span(position))),
            None if unknown.is_empty() => Ok(()),
            None => {
                self.context.request_permissions(unknown);
                Err(error::not_supported("an unanswered permission check is", position))
            }
        }
    }

    /// Conditions for the values that a query returns. The query runs during binding, because its
    /// values determine the columns.
    fn queried_tests(
        &mut self,
        axis: NodeId,
        query: NodeId,
        source: &Relation,
    ) -> EngineResult<Vec<(String, Expr)>> {
        let position = self.tree.span(query);
        let Some(external) = self.context.external() else {
            return Err(error::not_supported("a sub-query for PIVOT values is", position));
        };
        let relation = self.query(query)?;
        let [column] = relation.columns.as_slice() else {
            let message = "query must return one column";
            return Err(error::at(ErrorCode::TypeMismatch, message, position));
        };
        let sql_type = if column.sql_type.is_text() { SqlType::Varchar } else { column.sql_type };
        let value = Typed::computed(column.expr(), column.sql_type);
        let value = self.cast(value, sql_type, CastMode::Implicit, position)?;
        let plan = relation::project(relation.plan.clone(), vec![value.expr.alias("value")])?;
        self.must_read_all(position)?;
        let mut values = external.values(&plan, MAX_QUERIED_VALUES + 1)?;
        let mut seen = HashSet::new();
        values.retain(|value| seen.insert(value.clone()));
        // Sort the values, because the columns must be the same each time the statement is bound.
        if !has_order(&relation.plan) {
            values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        }
        if values.is_empty() || values.len() > MAX_QUERIED_VALUES {
            let found = if values.is_empty() { "no" } else { "too many" };
            let message = format!("the query for PIVOT values returns {found} values");
            return Err(error::at(ErrorCode::InvalidValue, message, position));
        }
        let mut tests = Vec::with_capacity(values.len());
        for value in values {
            let left = self.expression(axis, &Scope::rows(source))?;
            let right = Typed::literal(value, sql_type);
            let text = self.cast(right.clone(), SqlType::Varchar, CastMode::Explicit, position)?;
            let name = text.constant.as_ref().and_then(constant::as_text).unwrap_or("null");
            let name = name.to_owned();
            let test = self.operator(BinaryOperator::Equal, left, right, position)?;
            tests.push((name, test.expr));
        }
        Ok(tests)
    }

    fn pivot_rows(
        &mut self,
        source: &Relation,
        keys: Vec<(String, Typed)>,
        outputs: Vec<(String, Typed)>,
    ) -> EngineResult<Relation> {
        let grouped: Vec<_> =
            keys.iter().map(|(_, key)| (key.expr.clone(), key.sql_type)).collect();
        let mut aggregates = Exprs::default();
        for (_, output) in &outputs {
            collect_aggregates(&output.expr, &mut aggregates);
        }
        let (plan, replaced) = self.grouped_plan(source, &grouped, &aggregates)?;
        let mut used = NameSet::default();
        let mut exprs = Vec::with_capacity(keys.len() + outputs.len());
        let mut columns = Vec::with_capacity(keys.len() + outputs.len());
        for (name, value) in keys.into_iter().chain(outputs) {
            let name = used.number(&name);
            exprs.push(replaced.apply(value.expr)?.alias(&name));
            columns.push(relation::output_column(&name, value.sql_type));
        }
        let plan = relation::project(plan, exprs)?;
        Ok(Relation::of(plan, columns))
    }
}

/// The error for a missing permission.
fn refusal(Access { table, columns, permission, view, .. }: &Access) -> EngineError {
    let object = match (view, columns.first().map(String::as_str)) {
        (Some(view), _) => format!("{view}, whose owner lacks a required permission"),
        (None, None | Some(ALL_COLUMNS)) => table.clone(),
        (None, Some(column)) => format!("{table}({column})"),
    };
    denied(*permission, &object)
}

/// Whether the plan's rows always have the same order, from ORDER BY or a VALUES list.
fn has_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Union(_) => plan.inputs().into_iter().all(has_order),
        _ => false,
    }
}

fn too_many_columns(columns: usize, at: Span) -> EngineError {
    let message = format!("PIVOT creates {columns} columns [max={MAX_COLUMNS}]");
    error::at(ErrorCode::StatementTooComplex, message, at)
}

fn crossed(cell: &Cell, tests: &[(String, Expr)]) -> Vec<Cell> {
    let with = |(name, test): &(String, Expr)| match &cell.test {
        None => Cell { name: name.clone(), test: Some(test.clone()) },
        Some(before) => Cell {
            name: format!("{}_{name}", cell.name),
            test: Some(and(before.clone(), test.clone())),
        },
    };
    tests.iter().map(with).collect()
}

/// Restricts the aggregates in an expression to rows that satisfy the condition.
fn restricted(expr: &Expr, test: Option<&Expr>) -> EngineResult<Expr> {
    let Some(test) = test else { return Ok(expr.clone()) };
    let narrowed = expr.clone().transform(|node| match node {
        Expr::AggregateFunction(mut call) => {
            let test = match call.params.filter.take() {
                Some(before) => and(*before, test.clone()),
                None => test.clone(),
            };
            call.params.filter = Some(Box::new(test));
            Ok(Transformed::yes(Expr::AggregateFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    });
    narrowed.map(|narrowed| narrowed.data).map_err(error::plan)
}
