//! Joins and their conditions. Relational ones run in `DataFusion`; `time_join` has the others.
//! Null keys match null keys.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, JoinConstraint, JoinType, NullEquality};
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use tidemark_ast::{BinaryOperator, JoinKind, JoinOn, LogicalOperator, Name, Node, NodeId, Span};
use tidemark_functions::CastMode;
use tidemark_operators::{AsofKind, OrderedJoinNode};
use tidemark_optimizer::has_subquery;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::catalog::pg_catalog::function_number;
use crate::binder::catalog::pg_catalog::is_catalog;
use crate::binder::expressions::{predicate, unify};
use crate::binder::state::relation;
use crate::binder::state::scope::{GoneColumn, Relation, Scope, ScopeColumn};
use crate::binder::{Binder, Typed, error};

/// Tables of one chain of joins: the time to plan it grows with the square of their number.
const MAX_JOINED_TABLES: usize = 100;

/// A join's condition, taken apart.
#[derive(Default)]
pub(crate) struct Condition {
    /// Equal values of a left and a right row.
    pub(crate) keys: Vec<(Expr, Expr)>,
    /// All other terms.
    pub(crate) rest: Vec<Typed>,
    /// Where keys are integers of different widths, of which joins by time want one.
    widened: Option<Span>,
}

impl Condition {
    /// Of equal values alone.
    pub(crate) fn of_keys(keys: Vec<(Expr, Expr)>) -> Self {
        Self { keys, ..Self::default() }
    }

    /// Refuses keys of different types.
    pub(crate) fn refuse_widened(&self) -> EngineResult<()> {
        self.widened.map_or(Ok(()), |at| Err(mismatch(at)))
    }
}

/// What an expression reads.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Left,
    Right,
    Both,
    Neither,
}

impl Binder<'_> {
    /// Binds a join and its sources.
    pub(crate) fn join(&mut self, id: NodeId) -> EngineResult<Relation> {
        let Node::Join { join, left, right, on, keyword_span, .. } = self.node(id)? else {
            return Err(EngineError::internal("a join without its node"));
        };
        if self.joined_tables(id) > MAX_JOINED_TABLES {
            let message = format!("too many joined tables [limit={MAX_JOINED_TABLES}]");
            return Err(error::at(ErrorCode::StatementTooComplex, message, *keyword_span));
        }
        let left = self.source(*left)?;
        if let Node::Derived { query, alias, lateral: true, .. } = self.node(*right)? {
            let sides = (left, *query, alias.as_ref());
            return self.lateral_join(join, sides, on.as_ref(), *keyword_span);
        }
        if self.unnest_of(*right).is_some() {
            return self.unnest_join(join, &left, *right, *keyword_span);
        }
        let right_id = *right;
        let right = self.source(right_id)?;
        let merged = merged_by(on.as_ref(), join, &left, &right);
        let joined = self.sides_joined(id, left, right, right_id)?;
        Ok(Relation { merged: merged.unwrap_or(joined.merged), ..joined })
    }

    /// A join of two sources by its kind.
    fn sides_joined(
        &mut self,
        id: NodeId,
        left: Relation,
        right: Relation,
        right_id: NodeId,
    ) -> EngineResult<Relation> {
        let Node::Join { join, on, tolerance, keyword_span, .. } = self.node(id)? else {
            return Err(EngineError::internal("a join without its node"));
        };
        let kind = match join {
            JoinKind::Asof => {
                let tolerance = tolerance.as_ref();
                return self.time_join(
                    AsofKind::Asof,
                    &left,
                    &right,
                    on.as_ref(),
                    tolerance,
                    *keyword_span,
                );
            }
            JoinKind::Lt => {
                let tolerance = tolerance.as_ref();
                return self.time_join(
                    AsofKind::Lt,
                    &left,
                    &right,
                    on.as_ref(),
                    tolerance,
                    *keyword_span,
                );
            }
            JoinKind::Inner | JoinKind::Cross | JoinKind::Comma => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
            JoinKind::Splice => {
                return self.splice_join(&left, &right, on.as_ref(), *keyword_span);
            }
            // Select blocks bind these themselves, where they stand last.
            JoinKind::Window { .. } => {
                return Err(not_combined("window", *keyword_span));
            }
            JoinKind::Horizon { .. } => {
                return Err(not_combined("horizon", *keyword_span));
            }
        };
        let condition = match on {
            Some(on) => self.condition(on, &left, &right)?,
            None if !matches!(join, JoinKind::Cross | JoinKind::Comma) => {
                let end = self.tree.span(right_id).end;
                let at = Span { start: end, end };
                return Err(error::at(ErrorCode::Syntax, "'on' expected", at));
            }
            None => Condition::default(),
        };
        relational(left, right, condition, kind, self.condition_span(on.as_ref(), *keyword_span))
    }

    /// Tables that follow each other in joins up to this one.
    fn joined_tables(&self, id: NodeId) -> usize {
        let left = |id: &NodeId| match self.tree.get(*id) {
            Some(Node::Join { left, .. }) => Some(*left),
            _ => None,
        };
        std::iter::successors(Some(id), left).count()
    }

    pub(crate) fn condition_span(&self, on: Option<&JoinOn>, keyword: Span) -> Span {
        match on {
            Some(JoinOn::Expression { condition }) => self.tree.span(*condition),
            _ => keyword,
        }
    }

    /// Takes a join's condition apart.
    pub(crate) fn condition(
        &mut self,
        on: &JoinOn,
        left: &Relation,
        right: &Relation,
    ) -> EngineResult<Condition> {
        let mut condition = Condition::default();
        match on {
            // NATURAL JOIN: every name that both sides have.
            JoinOn::Columns { columns } if columns.is_empty() => {
                if let Some(gone) = gone_in_common(left, right) {
                    return Err(gone.error(Span::default()));
                }
                for name in common_names(left, right) {
                    self.common_column(&name, left, right, &mut condition)?;
                }
            }
            JoinOn::Columns { columns } => {
                for name in columns {
                    self.common_column(name, left, right, &mut condition)?;
                }
            }
            JoinOn::Expression { condition: id } => {
                let both = combined(left, right);
                self.condition_term(*id, left, right, &both, &mut condition)?;
            }
        }
        Ok(condition)
    }

    fn common_column(
        &mut self,
        name: &Name,
        left: &Relation,
        right: &Relation,
        into: &mut Condition,
    ) -> EngineResult<()> {
        let path = std::slice::from_ref(name);
        let left = &left.columns[first_named(left, path)?];
        let right = &right.columns[right.resolve(path)?];
        let typed = |column: &ScopeColumn| Typed::computed(column.expr(), column.sql_type);
        self.key_pair(typed(left), typed(right), name.span, into)
    }

    fn condition_term(
        &mut self,
        id: NodeId,
        left: &Relation,
        right: &Relation,
        both: &Relation,
        into: &mut Condition,
    ) -> EngineResult<()> {
        let scope = Scope::rows(both);
        match self.node(id)? {
            Node::Logical { operator: LogicalOperator::And, operands } => {
                for operand in operands {
                    self.condition_term(*operand, left, right, both, into)?;
                }
            }
            // `ON a`: a column that both sides have.
            Node::Column { path } if path.len() == 1 => {
                self.common_column(&path[0], left, right, into)?;
            }
            Node::Binary { operator: BinaryOperator::Equal, left: a, right: b, .. }
                if !self.is_quantified(*b) =>
            {
                let first = self.expression(*a, &scope)?;
                let second = self.expression(*b, &scope)?;
                let at = self.tree.span(*b);
                match (side(&first.expr, left, right), side(&second.expr, left, right)) {
                    (Side::Left, Side::Right) => {
                        self.key_pair(first, second, at, into)?;
                    }
                    (Side::Right, Side::Left) => {
                        self.key_pair(second, first, at, into)?;
                    }
                    _ => into.rest.push(self.predicate(id, &scope, false)?),
                }
            }
            _ => into.rest.push(self.predicate(id, &scope, false)?),
        }
        Ok(())
    }

    /// Two keys in one type. Text of all kinds goes together, and so do numbers with integers.
    fn key_pair(
        &mut self,
        left: Typed,
        right: Typed,
        at: Span,
        into: &mut Condition,
    ) -> EngineResult<()> {
        let texty = |of: SqlType| of.is_text() || of == SqlType::Char;
        let (left, right) = match (left.sql_type.is_integer(), right.sql_type.is_integer()) {
            (false, true) => (function_number(&left, &right).unwrap_or(left), right),
            (true, false) => {
                let right = function_number(&right, &left).unwrap_or(right);
                (left, right)
            }
            _ => (left, right),
        };
        let common = match (left.sql_type, right.sql_type) {
            (one, other) if one == other => one,
            (one, other) if texty(one) && texty(other) => SqlType::Varchar,
            (SqlType::Timestamp, SqlType::TimestampNs)
            | (SqlType::TimestampNs, SqlType::Timestamp) => SqlType::TimestampNs,
            (one, other) if one.is_integer() && other.is_integer() => {
                into.widened = Some(at);
                unify::branches(one, other).ok_or_else(|| mismatch(at))?
            }
            (one, other)
                if one.is_integer() && other.is_floating()
                    || one.is_floating() && other.is_integer() =>
            {
                into.widened = Some(at);
                SqlType::Double
            }
            _ => return Err(mismatch(at)),
        };
        let left = self.cast(left, common, CastMode::Implicit, at)?;
        let right = self.cast(right, common, CastMode::Implicit, at)?;
        into.keys.push((left.expr, right.expr));
        Ok(())
    }
}

fn mismatch(at: Span) -> EngineError {
    error::at(ErrorCode::TypeMismatch, "join column type mismatch", at)
}

/// The pairs of rows for which all terms hold; equal columns of both sides are the join's keys.
pub(crate) fn filtered_product(
    binder: &mut Binder<'_>,
    left: Relation,
    right: Relation,
    terms: &[NodeId],
) -> EngineResult<Relation> {
    let both = combined(&left, &right);
    let mut condition = Condition::default();
    for &term in terms {
        // A bare column is a test here, not a column that both sides have.
        if let Node::Column { .. } = binder.node(term)? {
            condition.rest.push(binder.predicate(term, &Scope::rows(&both), false)?);
        } else {
            binder.condition_term(term, &left, &right, &both, &mut condition)?;
        }
    }
    relational(left, right, condition, JoinType::Inner, Span::default())
}

/// A column that is gone and may have been one of those that both sides had.
fn gone_in_common<'r>(left: &'r Relation, right: &'r Relation) -> Option<&'r GoneColumn> {
    let had = |side: &Relation, name: &str| {
        let there = side.columns.iter().map(|column| &column.name);
        let mut names = there.chain(side.gone.iter().map(|gone| &gone.name));
        names.any(|known| identifier::same(known, name))
    };
    let of_left = left.gone.iter().find(|gone| had(right, &gone.name));
    of_left.or_else(|| right.gone.iter().find(|gone| had(left, &gone.name)))
}

/// The columns that USING, NATURAL and `ON (a, b)` make one of, of both sides. Those of a row are
/// equal, or one side has none; of FULL JOIN either side may have none. Joins by time make none of
/// theirs one, as the peer has it. `None`: nothing changes.
fn merged_by(
    on: Option<&JoinOn>,
    join: &JoinKind,
    left: &Relation,
    right: &Relation,
) -> Option<Vec<Vec<usize>>> {
    let JoinOn::Columns { columns } = on? else { return None };
    if join.is_by_time() {
        return None;
    }
    let names = if columns.is_empty() { common_names(left, right) } else { columns.clone() };
    let mut merged = combined(left, right).merged;
    for name in names {
        let path = std::slice::from_ref(&name);
        let (Ok(first), Ok(second)) = (left.resolve(path), right.resolve(path)) else { continue };
        let second = second + left.columns.len();
        let known = merged.iter_mut().find(|group| group.contains(&first));
        match (join, known) {
            (JoinKind::Full, _) => {}
            (JoinKind::Right, Some(group)) => group.insert(0, second),
            (JoinKind::Right, None) => merged.push(vec![second, first]),
            (_, Some(group)) => group.push(second),
            (_, None) => merged.push(vec![first, second]),
        }
    }
    Some(merged)
}

/// Names that both sides have, in the left side's order.
fn common_names(left: &Relation, right: &Relation) -> Vec<Name> {
    let named = |column: &ScopeColumn| Name {
        text: column.name.clone(),
        quoted: true,
        span: Span::default(),
    };
    let shared = |name: &Name| right.columns.iter().any(|c| identifier::same(&c.name, &name.text));
    left.columns.iter().map(named).filter(shared).collect()
}

/// The columns of both sides, left first.
pub(crate) fn combined(left: &Relation, right: &Relation) -> Relation {
    let columns = left.columns.iter().chain(&right.columns).cloned().collect();
    let gone = left.gone.iter().chain(&right.gone).cloned().collect();
    let mut merged = left.merged.clone();
    let width = left.columns.len();
    let moved = |group: &Vec<usize>| group.iter().map(|index| index + width).collect();
    merged.extend(right.merged.iter().map(moved));
    Relation { merged, gone, ..Relation::of(left.plan.clone(), columns) }
}

pub(crate) fn relational(
    mut left: Relation,
    mut right: Relation,
    condition: Condition,
    kind: JoinType,
    at: Span,
) -> EngineResult<Relation> {
    let mut joined = combined(&left, &right);
    let (mut late, mut rest): (Vec<Typed>, Vec<Typed>) =
        condition.rest.into_iter().partition(|test| has_subquery(&test.expr));
    if kind != JoinType::Inner {
        for (number, test) in late.drain(..).enumerate() {
            rest.push(computed_before(&mut left, &mut right, test, number, at)?);
        }
    }
    let filter = (!rest.is_empty()).then(|| predicate::all(rest).expr);
    let width = left.columns.len();
    if matches!(kind, JoinType::Inner | JoinType::Left) {
        // Every row has the left one's time, though the join tells nothing of their order.
        joined.keep_time(&left, left.order.shuffled());
    }
    // Clients read what the catalog tells in its order; where rows have a time the order is theirs.
    let is_turned = kind == JoinType::Left && is_catalog(&left);
    let (sides, keys, turned) = if is_turned {
        let keys = condition.keys.into_iter().map(|(left, right)| (right, left)).collect();
        ((right.plan, left.plan), keys, JoinType::Right)
    } else {
        ((left.plan, right.plan), condition.keys, kind)
    };
    let join = Join::try_new(
        Arc::new(sides.0),
        Arc::new(sides.1),
        keys,
        filter,
        turned,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )
    .map_err(error::plan)?;
    let mut plan = LogicalPlan::Join(join);
    if is_turned {
        plan = OrderedJoinNode::plan(plan).map_err(error::plan)?;
    }
    joined.plan = match kind {
        JoinType::Left => filled_in(plan, &joined, |index| index >= width)?,
        JoinType::Right => filled_in(plan, &joined, |index| index < width)?,
        JoinType::Full => filled_in(plan, &joined, |_| true)?,
        // Of an inner join ON is WHERE.
        _ if !late.is_empty() => relation::filter(plan, predicate::all(late).expr)?,
        _ => plan,
    };
    Ok(joined)
}

/// The column of this name; of several that joins before made equal, the first.
fn first_named(rows: &Relation, path: &[Name]) -> EngineResult<usize> {
    rows.resolve(path).or_else(|failure| {
        let same = |column: &ScopeColumn| {
            path.last().is_some_and(|name| identifier::same(&column.name, &name.text))
        };
        let first = rows.columns.iter().position(same);
        let is_ambiguous = failure.code == ErrorCode::AmbiguousColumn;
        let first = first.filter(|_| is_ambiguous).ok_or(failure)?;
        rows.columns[first].origin.note();
        Ok(first)
    })
}

/// A test with a sub-query, as a column of the side that it reads: an outer join can test a
/// column, and its rows without a match cannot be known afterwards. Where the test reads both
/// sides, each of its sub-queries becomes a column.
fn computed_before(
    left: &mut Relation,
    right: &mut Relation,
    test: Typed,
    number: usize,
    at: Span,
) -> EngineResult<Typed> {
    // No other condition of the statement is at this position.
    let name = format!("on_{}_{number}", at.start);
    if let Some(column) = column_before(left, right, &test.expr, &name)? {
        return Ok(Typed::computed(column, test.sql_type));
    }
    let mut count = 0;
    let computed = test.expr.transform_up(|node| {
        if !matches!(node, Expr::ScalarSubquery(_)) {
            return Ok(Transformed::no(node));
        }
        count += 1;
        let column = column_before(left, right, &node, &format!("{name}_{count}"));
        let column = column.map_err(|cause| DataFusionError::External(Box::new(cause)))?;
        Ok(column.map_or_else(|| Transformed::no(node), Transformed::yes))
    });
    let computed = computed.map_err(error::plan)?.data;
    if has_subquery(&computed) {
        let what = "a sub-query in ON of an outer join that reads columns of both sides is";
        return Err(error::not_supported(what, at));
    }
    Ok(Typed::computed(computed, test.sql_type))
}

/// An expression as a column of the one side that it and its sub-queries read; `None` if they read
/// both.
fn column_before(
    left: &mut Relation,
    right: &mut Relation,
    expr: &Expr,
    name: &str,
) -> EngineResult<Option<Expr>> {
    let side = match (side(expr, left, right), captured_side(expr, left, right)) {
        (Side::Neither, one) | (one, Side::Neither) => one,
        (one, other) if one == other => one,
        _ => Side::Both,
    };
    let relation = match side {
        Side::Left => left,
        Side::Right | Side::Neither => right,
        Side::Both => return Ok(None),
    };
    // All of the plan's columns: what was computed before this one stays.
    let mut exprs: Vec<Expr> =
        relation.plan.schema().columns().into_iter().map(Expr::Column).collect();
    exprs.push(expr.clone().alias(name));
    relation.plan = relation::project(relation.plan.clone(), exprs)?;
    relation.base = None;
    Ok(Some(Expr::Column(Column::new_unqualified(name))))
}

/// Which side's columns the sub-queries of an expression read.
fn captured_side(expr: &Expr, left: &Relation, right: &Relation) -> Side {
    let mut found = Side::Neither;
    let _ = expr.apply(|node| {
        for outer in tidemark_optimizer::captured(node).into_iter().flatten() {
            found = match (found, side(outer, left, right)) {
                (Side::Neither, other) | (other, Side::Neither) => other,
                (one, other) if one == other => one,
                _ => Side::Both,
            };
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

fn not_combined(kind: &str, at: Span) -> EngineError {
    let message = format!("{kind} join cannot be combined with other joins");
    error::at(ErrorCode::NotSupported, message, at)
}

/// A row without a match has false and 0 where a type has no null.
pub(crate) fn filled_in(
    plan: LogicalPlan,
    rows: &Relation,
    may_miss: impl Fn(usize) -> bool,
) -> EngineResult<LogicalPlan> {
    let lacks =
        |(index, column): (usize, &ScopeColumn)| may_miss(index) && !column.sql_type.is_nullable();
    if !rows.columns.iter().enumerate().any(lacks) {
        return Ok(plan);
    }
    let values = rows.columns.iter().enumerate().map(|(index, column)| {
        if !lacks((index, column)) {
            return column.expr();
        }
        let value = Typed::computed(column.expr(), column.sql_type).never_null();
        value.expr.alias_qualified(column.column.relation.clone(), &column.column.name)
    });
    relation::project(plan, values.chain(rows.unselected()).collect())
}

/// Which side's columns an expression reads.
pub(crate) fn side(expr: &Expr, left: &Relation, right: &Relation) -> Side {
    let mut found = Side::Neither;
    let reads = |side: &Relation, node: &Expr| side.columns.iter().any(|c| c.expr() == *node);
    let _ = expr.apply(|node| {
        if let Expr::Column(_) = node {
            let here = match (reads(left, node), reads(right, node)) {
                (true, _) => Side::Left,
                (false, true) => Side::Right,
                _ => Side::Neither,
            };
            found = match found {
                Side::Neither => here,
                same if same == here => same,
                _ => Side::Both,
            };
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}
