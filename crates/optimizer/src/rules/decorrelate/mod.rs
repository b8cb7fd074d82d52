//! Converts sub-queries into joins. A correlated sub-query runs once for all outer rows. It is
//! computed for its *domain*: the distinct values that it reads, which each of its clauses carries
//! along ([`domain::Domain::spread`]). Its result is then joined to the outer rows on these values.
//! If it only tests whether rows with equal values exist, its rows are joined directly
//! ([`by_keys`]). Null is an ordinary value.
//!
//! The binder leaves sub-queries as `DataFusion` expressions, and LATERAL as a join with a
//! `Subquery` on the right. `outer_ref_columns` lists the values that are read: each is an
//! expression over the outer rows, under the name of the column to which the sub-query's own plan
//! refers.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Distinct, Expr, Filter, Join, Limit, LogicalPlan, Projection, Subquery, SubqueryAlias, lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

use by_keys::Keyed;
use domain::Domain;
use rewrite::rewritten;
use subquery::{narrowed, outer_values, subquery_of};

use crate::conditions::all_of;
use crate::size::{self, MAX_PLAN_NODES, too_many_nodes};
use tidemark_operators::{LogicalNode, OrderedJoinNode, check_stop, not_supported};

mod by_keys;
mod domain;
mod ends;
mod relational;
mod rewrite;
mod single_row;
pub(crate) mod subquery;

pub use subquery::{captured, captured_mut, has_subquery};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Decorrelate;

impl AnalyzerRule for Decorrelate {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut joins = Joins::default();
        let plan = joins.plan(plan)?;
        if joins.made > 0 {
            size::check(&plan)?;
        }
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "decorrelate"
    }
}

/// If a correlated sub-query has a clause that cannot be evaluated for all outer values at once,
/// returns that clause's SQL name.
pub fn uncorrelated_clause(plan: &LogicalPlan) -> Option<&'static str> {
    let reads_outer = |plan: &LogicalPlan| {
        plan.exists(|node| Ok(node.contains_outer_reference())).unwrap_or(false)
    };
    let mut found = None;
    let _ = plan.apply(|node| {
        let clause = match LogicalNode::of_plan(node) {
            Some(LogicalNode::Fill(_)) => Some("FILL"),
            Some(LogicalNode::LastRows(_)) => Some("LIMIT from the end"),
            Some(LogicalNode::Horizon(_)) => Some("HORIZON JOIN"),
            Some(LogicalNode::WindowJoin(_)) => Some("WINDOW JOIN"),
            Some(LogicalNode::Splice(_)) => Some("SPLICE JOIN"),
            Some(LogicalNode::Asof(join)) if reads_outer(join.right()) => {
                Some("the right side of ASOF and LT JOIN")
            }
            Some(
                LogicalNode::Asof(_)
                | LogicalNode::SampleBy(_)
                | LogicalNode::LatestOn(_)
                | LogicalNode::Windows(_)
                | LogicalNode::Unnest(_)
                | LogicalNode::OrderedJoin(_)
                | LogicalNode::SharedRows(_),
            )
            | None => None,
        };
        found = clause.filter(|_| reads_outer(node));
        let found = found.is_some();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// A test for whether a sub-query has rows, or whether one of its rows equals the operand.
struct Member<'e> {
    subquery: &'e Subquery,
    operand: Option<&'e Expr>,
    negated: bool,
}

impl<'e> Member<'e> {
    fn of(expr: &'e Expr) -> Option<Self> {
        match expr {
            Expr::Not(inner) => {
                Self::of(inner).map(|member| Self { negated: !member.negated, ..member })
            }
            Expr::Exists(exists) => {
                let (subquery, negated) = (&exists.subquery, exists.negated);
                Some(Self { subquery, operand: None, negated })
            }
            Expr::InSubquery(within) => {
                let (subquery, negated) = (&within.subquery, within.negated);
                Some(Self { subquery, operand: Some(&within.expr), negated })
            }
            _ => None,
        }
    }
}

/// A sub-query as the right side of a join.
struct Inner {
    plan: LogicalPlan,
    name: String,
    /// Outer expressions, and the columns of `plan` that equal them.
    on: Vec<(Expr, Expr)>,
}

impl Inner {
    fn column(&self, name: &str) -> Expr {
        Expr::Column(Column::new(Some(self.name.as_str()), name))
    }

    /// Qualifies an expression's own columns with the sub-query's name.
    fn named(&self, expr: Expr, is_own: impl Fn(&str) -> bool) -> Result<Expr> {
        rewritten(expr, &mut |node| match node {
            Expr::Column(column) if is_own(&column.name) => Ok(Some(self.column(&column.name))),
            _ => Ok(None),
        })
    }
}

/// State of the joins built so far; each has a unique name.
#[derive(Default)]
struct Joins {
    made: usize,
    /// Number of plan nodes copied for domains.
    copied: usize,
    /// Uncorrelated sub-queries that are fully rewritten. Their values are computed before the
    /// outer rows are read.
    settled: HashMap<*const LogicalPlan, Arc<LogicalPlan>>,
}

impl Joins {
    fn plan(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        plan.transform_down(|node| self.node(node)).data()
    }

    fn node(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        check_stop()?;
        if let LogicalPlan::Join(join) = &plan
            && let LogicalPlan::Subquery(subquery) = join.right.as_ref()
        {
            return self.lateral(join, subquery).map(Transformed::yes);
        }
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= self.is_open(expr);
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter),
            other => self.values(&other),
        }
        .map(Transformed::yes)
    }

    /// Whether an expression contains a sub-query that has not been rewritten yet.
    fn is_open(&self, expr: &Expr) -> bool {
        let is_open = |node: &Expr| match subquery_of(node) {
            Some(subquery) => !self.settled.contains_key(&Arc::as_ptr(&subquery.subquery)),
            None => false,
        };
        expr.exists(|node| Ok(is_open(node))).unwrap_or(false)
    }

    /// Rewrites an uncorrelated sub-query as a value.
    fn settle(&mut self, mut subquery: Subquery) -> Result<Expr> {
        let plan = self.plan(Arc::unwrap_or_clone(subquery.subquery))?;
        let plan = Arc::new(single_row::or_null(plan)?);
        self.settled.insert(Arc::as_ptr(&plan), Arc::clone(&plan));
        self.made += 1;
        subquery.subquery = plan;
        Ok(Expr::ScalarSubquery(subquery))
    }

    /// `left JOIN LATERAL (query)`.
    fn lateral(&mut self, join: &Join, subquery: &Subquery) -> Result<LogicalPlan> {
        let schema = Arc::clone(&join.schema);
        let mut on = join.on.clone();
        let domain = self.domain(subquery, source_of(&join.left, &subquery.outer_ref_columns))?;
        let mut right = subquery.subquery.as_ref().clone();
        if let Some(domain) = domain {
            right = domain.spread(right)?;
            let columns = domain.columns(&right)?;
            on.extend(outer_values(subquery).zip(columns));
        }
        let joined = Join::try_new(
            Arc::clone(&join.left),
            Arc::new(right),
            on,
            join.filter.clone(),
            join.join_type,
            JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?;
        narrowed(LogicalPlan::Join(joined), schema.columns())
    }

    /// WHERE: conditions that must hold become semi-joins or anti-joins.
    fn filter(&mut self, filter: Filter) -> Result<LogicalPlan> {
        let columns = filter.input.schema().columns();
        let mut input = Arc::unwrap_or_clone(filter.input);
        let mut tests = Vec::new();
        let (with, without): (Vec<Expr>, Vec<Expr>) =
            split_conjunction_owned(filter.predicate).into_iter().partition(has_subquery);
        if let Some(test) = all_of(without) {
            input = LogicalPlan::Filter(Filter::try_new(test, Arc::new(input))?);
        }
        let outer = input.clone();
        for test in with {
            if let Some(member) = Member::of(&test).filter(|m| m.operand.is_none_or(is_plain)) {
                let kind = if member.negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
                input = self.tested(input, &outer, &member, kind)?.0;
            } else {
                tests.push(self.replaced(test, &outer, &mut input)?);
            }
        }
        let plan = match all_of(tests) {
            Some(test) => LogicalPlan::Filter(Filter::try_new(test, Arc::new(input))?),
            None => input,
        };
        narrowed(plan, columns)
    }

    /// Any other node: sub-query values become columns of its input.
    fn values(&mut self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let inputs = plan.inputs();
        let [input] = inputs.as_slice() else {
            return not_supported("a sub-query in the condition of a join");
        };
        let outer = *input;
        let mut input = LogicalPlan::clone(outer);
        let mut exprs = Vec::new();
        for expr in plan.expressions() {
            let named = matches!(expr, Expr::Alias(_) | Expr::Column(_));
            let name = expr.schema_name().to_string();
            let replaced = self.replaced(expr, outer, &mut input)?;
            let is_output = matches!(plan, LogicalPlan::Projection(_));
            exprs.push(if is_output && !named { replaced.alias(name) } else { replaced });
        }
        let rewritten = plan.with_new_exprs(exprs, vec![input])?;
        narrowed(rewritten, plan.schema().columns())
    }

    /// Replaces the sub-queries in an expression with columns added to `input`. Domains are built
    /// from `outer`, the rows before any columns were added. If they were built from `input`, each
    /// further sub-query would double the plan.
    fn replaced(
        &mut self,
        expr: Expr,
        outer: &LogicalPlan,
        input: &mut LogicalPlan,
    ) -> Result<Expr> {
        rewritten(expr, &mut |node| {
            if let Expr::ScalarSubquery(subquery) = node {
                return self.value(subquery, outer, input).map(Some);
            }
            let Some(member) = Member::of(node) else { return Ok(None) };
            let operand = match member.operand {
                Some(operand) => Some(self.replaced(operand.clone(), outer, input)?),
                None => None,
            };
            let member = Member { operand: operand.as_ref(), ..member };
            let used = std::mem::take(input);
            let (joined, name) = self.tested(used, outer, &member, JoinType::LeftMark)?;
            *input = joined;
            let mark = Expr::Column(Column::new(Some(name), "mark"));
            Ok(Some(if member.negated { Expr::Not(Box::new(mark)) } else { mark }))
        })
    }

    /// Builds a join that marks or retains the rows for which the test holds. Also returns the name
    /// of the join's right side.
    fn tested(
        &mut self,
        input: LogicalPlan,
        outer: &LogicalPlan,
        member: &Member<'_>,
        kind: JoinType,
    ) -> Result<(LogicalPlan, String)> {
        let domain = self.domain(member.subquery, outer)?;
        let keyed = match &domain {
            Some(domain) => domain.keyed(member.subquery, member.operand.is_some())?,
            None => None,
        };
        let (mut inner, filter) = match (keyed, domain) {
            (Some(Keyed { plan, on, filter }), Some(domain)) => {
                let inner = self.named(plan, on)?;
                let own = |filter| inner.named(filter, |name| domain.is_name(name));
                let filter = filter.map(own).transpose()?;
                (inner, filter)
            }
            (_, domain) => (self.inner(member.subquery, domain)?, None),
        };
        if let Some(operand) = member.operand {
            let value = inner.column(member.subquery.subquery.schema().field(0).name());
            inner.on.push((operand.clone(), value));
        }
        // Duplicates cannot change the result.
        inner.plan = if filter.is_some() {
            inner.plan
        } else if inner.on.is_empty() {
            let fetch = Some(Box::new(lit(1_i64)));
            LogicalPlan::Limit(Limit { skip: None, fetch, input: Arc::new(inner.plan) })
        } else {
            let keys = inner.on.iter().map(|(_, key)| key.clone()).collect();
            let keys = Projection::try_new(keys, Arc::new(inner.plan))?;
            let keys = Arc::new(LogicalPlan::Projection(keys));
            LogicalPlan::Distinct(Distinct::All(keys))
        };
        let name = inner.name.clone();
        Ok((joined(input, inner, filter, kind)?, name))
    }

    /// Adds a scalar sub-query's value to `input` and returns it. The value is null if the
    /// sub-query has no row.
    fn value(
        &mut self,
        subquery: &Subquery,
        outer: &LogicalPlan,
        input: &mut LogicalPlan,
    ) -> Result<Expr> {
        if self.settled.contains_key(&Arc::as_ptr(&subquery.subquery)) {
            return Ok(Expr::ScalarSubquery(subquery.clone()));
        }
        let mut subquery = subquery.clone();
        if !single_row::is_certain(&subquery.subquery) {
            let checked = single_row::checked(subquery.subquery.as_ref().clone())?;
            subquery.subquery = Arc::new(checked);
        }
        if subquery.outer_ref_columns.is_empty() {
            return self.settle(subquery);
        }
        let domain = self.domain(&subquery, outer)?;
        let inner = self.inner(&subquery, domain)?;
        let value = inner.column(subquery.subquery.schema().field(0).name());
        *input = widened(std::mem::take(input), inner)?;
        Ok(value)
    }

    /// Computes a sub-query for its domain.
    fn inner(&mut self, subquery: &Subquery, domain: Option<Domain>) -> Result<Inner> {
        let plan = subquery.subquery.as_ref().clone();
        let Some(domain) = domain else { return self.named(plan, vec![]) };
        let on = outer_values(subquery).zip(domain.names().cloned()).collect();
        self.named(domain.spread(plan)?, on)
    }

    /// Builds the right side of a join in which outer expressions must equal columns of a plan.
    fn named(&mut self, plan: LogicalPlan, on: Vec<(Expr, String)>) -> Result<Inner> {
        self.made += 1;
        let name = format!("s{}", self.made);
        let column = |own| Expr::Column(Column::new(Some(name.as_str()), own));
        let on = on.into_iter().map(|(outer, own)| (outer, column(own))).collect();
        let alias = SubqueryAlias::try_new(Arc::new(plan), name.as_str())?;
        Ok(Inner { plan: LogicalPlan::SubqueryAlias(alias), name, on })
    }

    fn domain(&mut self, subquery: &Subquery, outer: &LogicalPlan) -> Result<Option<Domain>> {
        if subquery.outer_ref_columns.is_empty() {
            return Ok(None);
        }
        self.made += 1;
        while is_named(outer, self.made)? || is_named(&subquery.subquery, self.made)? {
            self.made += 1;
        }
        // Nested sub-queries copy these plan nodes again, so all copies are counted.
        self.copied += size::check(outer)?.nodes;
        if self.copied > MAX_PLAN_NODES {
            return Err(DataFusionError::External(Box::new(too_many_nodes())));
        }
        Domain::try_new(&subquery.outer_ref_columns, outer.clone(), self.made).map(Some)
    }
}

/// Whether any column in the plan uses the name prefix of the domain with this number.
fn is_named(plan: &LogicalPlan, number: usize) -> Result<bool> {
    let prefix = domain::prefix(number);
    plan.exists(|node| Ok(node.schema().iter().any(|(_, own)| own.name().starts_with(&prefix))))
}

/// Of the joins around a LATERAL, returns the lowest left input that has all columns read by the
/// LATERAL. That input contains every value found in the joined rows. Using the joined rows instead
/// would double the plan for each LATERAL in a sequence.
fn source_of<'p>(rows: &'p LogicalPlan, read: &[Expr]) -> &'p LogicalPlan {
    let LogicalPlan::Join(join) = rows else { return rows };
    let has_all = |side: &LogicalPlan| {
        let columns = read.iter().flat_map(Expr::column_refs);
        columns.into_iter().all(|column| side.schema().has_column(column))
    };
    let keeps_left = matches!(join.join_type, JoinType::Inner | JoinType::Left);
    if keeps_left && has_all(&join.left) { source_of(&join.left, read) } else { rows }
}

fn is_plain(expr: &Expr) -> bool {
    !has_subquery(expr)
}

fn joined(
    left: LogicalPlan,
    right: Inner,
    filter: Option<Expr>,
    kind: JoinType,
) -> Result<LogicalPlan> {
    Join::try_new(
        Arc::new(left),
        Arc::new(right.plan),
        right.on,
        filter,
        kind,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )
    .map(LogicalPlan::Join)
}

/// Returns all rows of `outer`, in their order, with their matches in `inner`.
fn widened(outer: LogicalPlan, inner: Inner) -> Result<LogicalPlan> {
    let join = Join::try_new(
        Arc::new(inner.plan),
        Arc::new(outer),
        inner.on.into_iter().map(|(outer, inner)| (inner, outer)).collect(),
        None,
        JoinType::Right,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    OrderedJoinNode::plan(LogicalPlan::Join(join))
}
