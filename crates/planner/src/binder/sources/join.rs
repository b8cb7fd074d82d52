//! Joins and their conditions. `DataFusion` executes relational joins; `time_join` contains all
//! other joins. Null keys match each other.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, JoinConstraint, JoinType, NullEquality};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, when};
use tidemark_ast::{
    AsofTolerance, BinaryOperator, JoinKind, JoinOn, LogicalOperator, Name, Node, NodeId, Span,
};
use tidemark_functions::{CastMode, wide_time};
use tidemark_operators::{AsofKind, OrderedJoinNode};
use tidemark_optimizer::has_subquery;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::catalog::pg_catalog::function_number;
use crate::binder::catalog::pg_catalog::is_catalog;
use crate::binder::expressions::{predicate, unify};
use crate::binder::state::accesses::Origin;
use crate::binder::state::relation;
use crate::binder::state::scope::{DroppedColumn, Relation, Scope, ScopeColumn};
use crate::binder::{Binder, Typed, error};

/// Maximum number of tables in a chain of joins: planning time is quadratic in their number.
const MAX_JOINED_TABLES: usize = 100;

/// A join condition's components.
#[derive(Default)]
pub(crate) struct Condition {
    /// Pairs of left and right expressions that must be equal.
    pub(crate) keys: Vec<(Expr, Expr)>,
    /// All other conditions.
    pub(crate) residual: Vec<Typed>,
    /// Position of a pair of integer keys with different widths, which time-based joins reject.
    widened: Option<Span>,
    /// Columns in USING or NATURAL.
    using: Vec<Using>,
}

/// A column that USING merges from both sides.
struct Using {
    name: String,
    /// The left-side and right-side values, cast to one type.
    values: (Expr, Expr),
    sql_type: SqlType,
}

impl Condition {
    /// A condition that consists only of equal keys.
    pub(crate) fn of_keys(keys: Vec<(Expr, Expr)>) -> Self {
        Self { keys, ..Self::default() }
    }

    /// Rejects keys with different types.
    pub(crate) fn refuse_widened(&self) -> EngineResult<()> {
        self.widened.map_or(Ok(()), |at| Err(mismatch(at)))
    }
}

/// The join sides that an expression reads.
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
        let Node::Join { join, left, right, on, tolerance, keyword_span } = self.node(id)? else {
            return Err(EngineError::internal("expected a join node"));
        };
        if self.joined_tables(id) > MAX_JOINED_TABLES {
            let message = format!("too many joined tables [limit={MAX_JOINED_TABLES}]");
            return Err(error::at(ErrorCode::StatementTooComplex, message, *keyword_span));
        }
        refuse_tolerance(join, tolerance.as_ref())?;
        let left = self.source(*left)?;
        let right_id = *right;
        if self.is_unconditional_unnest(join, on.as_ref(), right_id)? {
            return self.unnested(&left, right_id, matches!(join, JoinKind::Left));
        }
        let is_lateral = matches!(self.node(right_id)?, Node::Derived { lateral: true, .. });
        let (right, captured) = match self.node(right_id)? {
            // A function may read columns from the sources on its left.
            Node::TableFunction { .. } | Node::Derived { lateral: true, .. } => {
                self.beside_rows(left.clone(), |binder| binder.source(right_id))?
            }
            _ => (self.source(right_id)?, Vec::new()),
        };
        let is_lateral = is_lateral || !captured.is_empty() || self.unnest_of(right_id).is_some();
        let merged = merged_by(on.as_ref(), join, &left, &right);
        let joined = if is_lateral {
            self.lateral_join(id, left, (right, captured))?
        } else {
            self.join_sources(id, left, right, right_id)?
        };
        let Some(Merged { merged, listed }) = merged else { return Ok(joined) };
        Ok(Relation { merged, listed, ..joined })
    }

    /// Whether the right side is UNNEST and the join has no condition. In this case, UNNEST adds
    /// the elements to the left rows directly, without a join.
    fn is_unconditional_unnest(
        &self,
        join: &JoinKind,
        on: Option<&JoinOn>,
        right: NodeId,
    ) -> EngineResult<bool> {
        let asks_nothing = match on {
            None => true,
            Some(JoinOn::Columns { .. } | JoinOn::Using { .. }) => false,
            Some(JoinOn::Expression { condition }) => {
                matches!(self.node(*condition)?, Node::Boolean { value: true })
            }
        };
        let keeps_left =
            matches!(join, JoinKind::Inner | JoinKind::Left | JoinKind::Cross | JoinKind::Comma);
        Ok(asks_nothing && keeps_left && self.unnest_of(right).is_some())
    }

    /// Joins two sources according to the join's kind.
    pub(crate) fn join_sources(
        &mut self,
        id: NodeId,
        left: Relation,
        right: Relation,
        right_id: NodeId,
    ) -> EngineResult<Relation> {
        let Node::Join { join, on, tolerance, keyword_span, .. } = self.node(id)? else {
            return Err(EngineError::internal("expected a join node"));
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
            // A SELECT block binds such a join itself if it is the block's last join.
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

    /// Number of consecutive joins up to and including this one.
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

    /// Splits a join condition into keys and residual conditions.
    pub(crate) fn condition(
        &mut self,
        on: &JoinOn,
        left: &Relation,
        right: &Relation,
    ) -> EngineResult<Condition> {
        let mut condition = Condition::default();
        match on {
            JoinOn::Using { columns } => {
                let is_natural = columns.is_empty();
                if is_natural && let Some(dropped) = dropped_common_column(left, right) {
                    return Err(dropped.error(Span::default()));
                }
                for name in using_names(columns, left, right).iter() {
                    // Fails if the name is ambiguous, because preceding USING joins must have
                    // merged the columns with this name.
                    left.resolve(std::slice::from_ref(name))?;
                    let (left, right) = self.common_column(name, left, right, &mut condition)?;
                    condition.using.push(self.using(name, left, right)?);
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
    ) -> EngineResult<(Typed, Typed)> {
        let path = std::slice::from_ref(name);
        let left = &left.columns[first_named(left, path)?];
        let right = &right.columns[right.resolve(path)?];
        let typed = |column: &ScopeColumn| Typed::computed(column.expr(), column.sql_type);
        let (left, right) = (typed(left), typed(right));
        self.key_pair(left.clone(), right.clone(), name.span, into)?;
        Ok((left, right))
    }

    /// The merged USING column.
    fn using(&mut self, name: &Name, left: Typed, right: Typed) -> EngineResult<Using> {
        let at = name.span;
        let sql_type =
            unify::branches(left.sql_type, right.sql_type).ok_or_else(|| mismatch(at))?;
        let left = self.cast(left, sql_type, CastMode::Explicit, at)?;
        let right = self.cast(right, sql_type, CastMode::Explicit, at)?;
        Ok(Using { name: name.text.clone(), values: (left.expr, right.expr), sql_type })
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
            // `ON a`: a column that exists on both sides.
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
                    _ => into.residual.push(self.predicate(id, &scope, false)?),
                }
            }
            _ => into.residual.push(self.predicate(id, &scope, false)?),
        }
        Ok(())
    }

    /// Casts two keys to one type. All string types are compatible with each other, and so are
    /// integers and floating-point numbers.
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
            | (SqlType::TimestampNs, SqlType::Timestamp) => {
                let wide = |key: Typed| wide_time(key.expr, key.sql_type);
                into.keys.push((wide(left), wide(right)));
                return Ok(());
            }
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

/// Rejects TOLERANCE in a join that is not time-based.
pub(crate) fn refuse_tolerance(
    join: &JoinKind,
    tolerance: Option<&AsofTolerance>,
) -> EngineResult<()> {
    match tolerance {
        Some(AsofTolerance { interval: _, span })
            if !matches!(join, JoinKind::Asof | JoinKind::Lt) =>
        {
            let message = "TOLERANCE is only supported with ASOF and LT joins";
            Err(error::at(ErrorCode::NotSupported, message, *span))
        }
        _ => Ok(()),
    }
}

fn mismatch(at: Span) -> EngineError {
    error::at(ErrorCode::TypeMismatch, "join column type mismatch", at)
}

/// The pairs of rows that satisfy all conditions. Equalities between columns of both sides become
/// join keys.
pub(crate) fn filtered_product(
    binder: &mut Binder<'_>,
    left: Relation,
    right: Relation,
    terms: &[NodeId],
) -> EngineResult<Relation> {
    let both = combined(&left, &right);
    let mut condition = Condition::default();
    for &term in terms {
        // A bare column is a condition here, not a column name common to both sides.
        if let Node::Column { .. } = binder.node(term)? {
            condition.residual.push(binder.predicate(term, &Scope::rows(&both), false)?);
        } else {
            binder.condition_term(term, &left, &right, &both, &mut condition)?;
        }
    }
    relational(left, right, condition, JoinType::Inner, Span::default())
}

/// A dropped column whose name may have been common to both sides.
fn dropped_common_column<'r>(left: &'r Relation, right: &'r Relation) -> Option<&'r DroppedColumn> {
    let had = |side: &Relation, name: &str| {
        let there = side.columns.iter().map(|column| &column.name);
        let mut names = there.chain(side.dropped.iter().map(|dropped| &dropped.name));
        names.any(|known| identifier::same(known, name))
    };
    let of_left = left.dropped.iter().find(|dropped| had(right, &dropped.name));
    of_left.or_else(|| right.dropped.iter().find(|dropped| had(left, &dropped.name)))
}

/// A join's columns, in the format of [`Relation`].
struct Merged {
    merged: Vec<Vec<usize>>,
    listed: Option<Vec<usize>>,
}

/// Returns the columns that USING, NATURAL and `ON (a, b)` merge, and the columns of `*` after
/// merging; `None` if nothing changes. Merged columns have equal values unless one side has no row.
/// In a FULL JOIN, either side may have no row, so an additional last column holds the value from
/// the other side. As in `QuestDB`, time-based joins merge no columns.
fn merged_by(
    on: Option<&JoinOn>,
    join: &JoinKind,
    left: &Relation,
    right: &Relation,
) -> Option<Merged> {
    let (names, is_using) = match on? {
        JoinOn::Using { columns } => (using_names(columns, left, right), true),
        JoinOn::Columns { columns } => (Cow::Borrowed(columns.as_slice()), false),
        JoinOn::Expression { condition: _ } => return None,
    };
    // After FULL JOIN … ON (a), neither column has the values of both sides.
    if join.is_by_time() || (!is_using && matches!(join, JoinKind::Full)) {
        return None;
    }
    let Relation { mut merged, listed, .. } = combined(left, right);
    let width = left.columns.len() + right.columns.len();
    let mut first_listed = Vec::new();
    let mut hidden = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let path = std::slice::from_ref(name);
        let (Ok(first), Ok(second)) = (first_named(left, path), right.resolve(path)) else {
            continue;
        };
        let second = second + left.columns.len();
        let position = merged.iter().position(|group| group.contains(&first));
        let mut group = position.map_or_else(|| vec![first], |known| merged.swap_remove(known));
        match join {
            JoinKind::Full => {
                group.insert(0, width + number);
                group.push(second);
            }
            JoinKind::Right => group.insert(0, second),
            _ => group.push(second),
        }
        first_listed.push(group[0]);
        hidden.extend(group.iter().copied());
        merged.push(group);
    }
    if !is_using {
        return Some(Merged { merged, listed });
    }
    let others = listed.unwrap_or_else(|| (0..width).collect());
    first_listed.extend(others.into_iter().filter(|index| !hidden.contains(index)));
    Some(Merged { merged, listed: Some(first_listed) })
}

/// The USING columns. For NATURAL JOIN, whose list is empty, all common column names.
fn using_names<'n>(columns: &'n [Name], left: &Relation, right: &Relation) -> Cow<'n, [Name]> {
    if columns.is_empty() { Cow::Owned(common_names(left, right)) } else { Cow::Borrowed(columns) }
}

/// Column names common to both sides, in left-side order.
fn common_names(left: &Relation, right: &Relation) -> Vec<Name> {
    let named = |column: &ScopeColumn| Name {
        text: column.name.clone(),
        quoted: true,
        span: Span::default(),
    };
    let shared = |name: &Name| right.columns.iter().any(|c| identifier::same(&c.name, &name.text));
    left.columns.iter().map(named).filter(shared).collect()
}

/// Both sides' columns; the left side's columns come first.
pub(crate) fn combined(left: &Relation, right: &Relation) -> Relation {
    let columns = left.columns.iter().chain(&right.columns).cloned().collect();
    let dropped = left.dropped.iter().chain(&right.dropped).cloned().collect();
    let mut merged = left.merged.clone();
    let width = left.columns.len();
    let moved = |group: &Vec<usize>| group.iter().map(|index| index + width).collect();
    merged.extend(right.merged.iter().map(moved));
    let all = width + right.columns.len();
    let listed = (left.listed.is_some() || right.listed.is_some()).then(|| {
        let mut listed = left.listed.clone().unwrap_or_else(|| (0..width).collect());
        match &right.listed {
            Some(right) => listed.extend(right.iter().map(|index| index + width)),
            None => listed.extend(width..all),
        }
        listed
    });
    Relation { merged, listed, dropped, ..Relation::of(left.plan.clone(), columns) }
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
        condition.residual.into_iter().partition(|test| has_subquery(&test.expr));
    if kind != JoinType::Inner {
        for (number, test) in late.drain(..).enumerate() {
            rest.push(computed_before(&mut left, &mut right, test, number, at)?);
        }
    }
    let filter = (!rest.is_empty()).then(|| predicate::all(rest).expr);
    let width = left.columns.len();
    if matches!(kind, JoinType::Inner | JoinType::Left) {
        // Each row has its left row's timestamp, but the join does not guarantee the order.
        joined.copy_timestamp(&left, left.order.shuffled());
    }
    // Clients expect catalog rows in catalog order; the timestamp orders all other rows.
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
    if kind == JoinType::Full {
        plan = with_either_side(plan, &mut joined, condition.using)?;
    }
    joined.plan = match kind {
        JoinType::Left => filled_in(plan, &joined, |index| index >= width)?,
        JoinType::Right => filled_in(plan, &joined, |index| index < width)?,
        JoinType::Full => filled_in(plan, &joined, |_| true)?,
        // In an inner join, ON is equivalent to WHERE.
        _ if !late.is_empty() => relation::filter(plan, predicate::all(late).expr)?,
        _ => plan,
    };
    Ok(joined)
}

/// Adds the merged USING columns after all others, for joins in which either side may have no row.
fn with_either_side(
    plan: LogicalPlan,
    joined: &mut Relation,
    using: Vec<Using>,
) -> EngineResult<LogicalPlan> {
    if using.is_empty() {
        return Ok(plan);
    }
    let mut exprs: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    for Using { name, values: (left, right), sql_type } in using {
        let own = relation::fresh(&name, &plan);
        let either =
            when(left.clone().is_not_null(), left).otherwise(right).map_err(error::plan)?;
        exprs.push(either.alias(&own));
        let column = Column::new_unqualified(own);
        joined.columns.push(ScopeColumn {
            qualifier: None,
            name,
            sql_type,
            column,
            origin: Origin::NONE,
        });
    }
    relation::project(plan, exprs)
}

/// Index of the column with this name. If preceding joins made several such columns equal, the
/// first one is used.
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

/// Computes a condition with a sub-query before the join, as a column on the side that the
/// condition reads. An outer join must test this column itself, because unmatched rows can no
/// longer be determined after the join. If the condition reads both sides, each of its sub-queries
/// becomes a column.
fn computed_before(
    left: &mut Relation,
    right: &mut Relation,
    test: Typed,
    number: usize,
    at: Span,
) -> EngineResult<Typed> {
    // No other condition in the statement starts at this position, so the name is unique.
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
        let what =
            "a sub-query in the ON clause of an outer join that reads columns from both sides is";
        return Err(error::not_supported(what, at));
    }
    Ok(Typed::computed(computed, test.sql_type))
}

/// Adds an expression as a column to the only side that the expression and its sub-queries read;
/// `None` if they read both sides.
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
    // Keep all of the plan's columns, including previously computed ones.
    let mut exprs: Vec<Expr> =
        relation.plan.schema().columns().into_iter().map(Expr::Column).collect();
    exprs.push(expr.clone().alias(name));
    relation.plan = relation::project(relation.plan.clone(), exprs)?;
    relation.base = None;
    Ok(Some(Expr::Column(Column::new_unqualified(name))))
}

/// The sides that the sub-queries in an expression read.
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

/// In unmatched rows, replaces null with false or 0 for types without a null.
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

/// The sides that an expression reads.
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
