//! Converts conditions on the designated timestamp to time ranges, so a scan opens only the data in
//! these ranges.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::lit;
use hashbrown::HashSet;
use tidemark_ast::{BinaryOperator, LogicalOperator, Node, NodeId, Span, UnaryOperator};
use tidemark_functions::CastMode;
use tidemark_storage::TimeRange;
use tidemark_types::{EngineResult, ErrorCode, SqlType, TimestampUnit};

use crate::binder::expressions::parameter::is_epoch;
use crate::binder::expressions::typing::is_comparison;
use crate::binder::expressions::{constant, predicate as logic};
use crate::binder::state::scope::{Relation, Scope};
use crate::binder::{Binder, Typed, error};

/// Sorted, disjoint, half-open ranges in the column's unit.
pub(crate) type Ranges = Vec<TimeRange>;

/// A timestamp as a literal of its column's type.
pub(crate) fn timestamp_literal(value: Option<i64>, unit: SqlType) -> ScalarValue {
    match unit {
        SqlType::TimestampNs => ScalarValue::TimestampNanosecond(value, None),
        _ => ScalarValue::TimestampMicrosecond(value, None),
    }
}

/// Number of expression nodes per range in [`predicate`].
pub(crate) const NODES_OF_RANGE: usize = 8;

/// Returns an expression that tests whether `operand` is in one of the ranges.
pub(crate) fn predicate(operand: &Typed, ranges: &[TimeRange]) -> Typed {
    let bound = |value: i64| lit(timestamp_literal(Some(value), operand.sql_type));
    let tests = ranges
        .iter()
        .map(|range| {
            let column = operand.expr.clone();
            let test = column
                .clone()
                .is_not_null()
                .and(column.clone().gt_eq(bound(range.lo)))
                .and(column.lt(bound(range.hi)));
            Typed::computed(test, SqlType::Boolean)
        })
        .collect();
    logic::any(tests)
}

/// The range of an INTERVAL value, which includes its upper end.
pub(crate) fn of_interval(value: &ScalarValue, unit: SqlType) -> Ranges {
    let ScalarValue::Struct(fields) = value else { return Vec::new() };
    let field = |index: usize| {
        let array = fields.columns().get(index)?;
        ScalarValue::try_from_array(array, 0).ok().and_then(|value| constant::as_i64(&value))
    };
    let scale = if unit == SqlType::TimestampNs { 1_000 } else { 1 };
    match (field(0), field(1)) {
        (Some(lo), Some(hi)) if lo <= hi => vec![TimeRange {
            lo: lo.saturating_mul(scale),
            hi: hi.saturating_add(1).saturating_mul(scale),
        }],
        _ => Vec::new(),
    }
}

/// Intersects the ranges found so far with the new ranges.
pub(crate) fn both(so_far: Option<Ranges>, found: Ranges) -> Ranges {
    match so_far {
        Some(so_far) => TimeRange::intersection(&so_far, &found),
        None => found,
    }
}

fn unit_of(sql_type: SqlType) -> TimestampUnit {
    match sql_type {
        SqlType::Date => TimestampUnit::Millis,
        SqlType::TimestampNs => TimestampUnit::Nanos,
        _ => TimestampUnit::Micros,
    }
}

/// Converts a timestamp to another unit; saturates if it is out of range.
fn saturating_convert(at: i64, from: SqlType, to: SqlType) -> i64 {
    let beyond = if at < 0 { i64::MIN } else { i64::MAX };
    unit_of(from).convert(at, unit_of(to)).unwrap_or(beyond)
}

fn complement(ranges: &[TimeRange]) -> Ranges {
    TimeRange::difference(&[TimeRange::EVER], ranges)
}

impl Binder<'_> {
    /// Converts a condition to time ranges, if it involves only the designated timestamp.
    pub(crate) fn time_ranges(
        &mut self,
        id: NodeId,
        relation: &Relation,
    ) -> EngineResult<Option<Ranges>> {
        match self.node(id)? {
            Node::Unary { operator: UnaryOperator::Not, operand } => {
                let inner = self.time_ranges(*operand, relation)?;
                Ok(inner.map(|ranges| complement(&ranges)))
            }
            Node::Logical { operator, operands } => {
                let mut total: Option<Ranges> = None;
                for operand in operands {
                    let Some(ranges) = self.time_ranges(*operand, relation)? else {
                        return Ok(None);
                    };
                    total = Some(match (total, operator) {
                        (None, _) => ranges,
                        (Some(so_far), LogicalOperator::And) => {
                            TimeRange::intersection(&so_far, &ranges)
                        }
                        (Some(mut so_far), LogicalOperator::Or) => {
                            so_far.extend(ranges);
                            TimeRange::union(so_far)
                        }
                    });
                }
                Ok(total)
            }
            Node::Binary { operator, left, right, .. } => {
                self.comparison_ranges(*operator, *left, *right, relation)
            }
            Node::Between { operand, low, high, negated, .. } => {
                let Some(unit) = self.designated(*operand, relation) else { return Ok(None) };
                let Some(low) = self.timestamp(*low, unit, "Invalid date")? else {
                    return Ok(None);
                };
                let Some(high) = self.timestamp(*high, unit, "Invalid date")? else {
                    return Ok(None);
                };
                let range = TimeRange { lo: low.min(high), hi: low.max(high).saturating_add(1) };
                Ok(Some(if *negated { complement(&[range]) } else { vec![range] }))
            }
            Node::InList { operand, items, negated, .. } => {
                let Some(unit) = self.designated(*operand, relation) else { return Ok(None) };
                let ranges = match self.interval_item(items, unit)? {
                    Some(ranges) => ranges,
                    None => match self.points(items, unit)? {
                        Some(points) => points,
                        None => return Ok(None),
                    },
                };
                let ranges = TimeRange::union(ranges);
                Ok(Some(if *negated { complement(&ranges) } else { ranges }))
            }
            _ => Ok(None),
        }
    }

    fn comparison_ranges(
        &mut self,
        operator: BinaryOperator,
        left: NodeId,
        right: NodeId,
        relation: &Relation,
    ) -> EngineResult<Option<Ranges>> {
        if self.is_quantified(right) {
            return Ok(None);
        }
        let (operator, value, unit) = match self.designated(left, relation) {
            Some(unit) => (operator, right, unit),
            None => match self.designated(right, relation) {
                Some(unit) => (mirrored(operator), left, unit),
                None => return Ok(None),
            },
        };
        let message = match operator {
            BinaryOperator::Equal | BinaryOperator::NotEqual => "invalid timestamp",
            _ => "Invalid date",
        };
        if !is_comparison(operator) {
            return Ok(None);
        }
        let Some(at) = self.timestamp(value, unit, message)? else { return Ok(None) };
        let after = at.saturating_add(1);
        let range = |lo, hi| vec![TimeRange { lo, hi }];
        Ok(Some(match operator {
            BinaryOperator::Equal => range(at, after),
            BinaryOperator::NotEqual => complement(&range(at, after)),
            BinaryOperator::Less => range(i64::MIN, at),
            BinaryOperator::LessOrEqual => range(i64::MIN, after),
            BinaryOperator::Greater => range(after, i64::MAX),
            _ => range(at, i64::MAX),
        }))
    }

    /// The type of the designated timestamp, if the node refers to it.
    fn designated(&self, id: NodeId, relation: &Relation) -> Option<SqlType> {
        let Some(Node::Column { path }) = self.tree.get(id) else { return None };
        let index = relation.resolve(path).ok()?;
        (Some(index) == relation.timestamp).then(|| relation.columns[index].sql_type)
    }

    fn points(&mut self, items: &[NodeId], unit: SqlType) -> EngineResult<Option<Ranges>> {
        let mut points = Vec::with_capacity(items.len());
        for item in items {
            if self.is_array_parameter(*item)? {
                return Ok(None);
            }
            let Some(at) = self.timestamp(*item, unit, "Invalid date")? else { return Ok(None) };
            points.push(TimeRange { lo: at, hi: at.saturating_add(1) });
        }
        Ok(Some(points))
    }

    /// A constant's timestamp, in `unit`; `None` if the value is not constant or is null.
    pub(crate) fn timestamp(
        &mut self,
        id: NodeId,
        unit: SqlType,
        message: &str,
    ) -> EngineResult<Option<i64>> {
        if !self.is_constant(id) {
            return Ok(None);
        }
        let position = self.tree.span(id);
        let value = self.expression(id, &Scope::empty())?;
        let is_open = value.parameter.is_some();
        let value = self.settled(value, SqlType::Varchar)?;
        let value = if is_open && is_epoch(&value, unit) {
            self.cast(value, SqlType::Long, CastMode::Explicit, position)?
        } else {
            value
        };
        match value.sql_type {
            SqlType::Int | SqlType::Long | SqlType::Short | SqlType::Byte => {
                Ok(value.constant.as_ref().and_then(constant::as_i64))
            }
            SqlType::Char | SqlType::String | SqlType::Varchar | SqlType::Symbol => {
                if value.is_null_constant() {
                    return Ok(None);
                }
                let mut instant = |of: SqlType| {
                    let cast = self.cast(value.clone(), of, CastMode::Explicit, position);
                    let cast = cast.ok().and_then(|cast| cast.constant);
                    cast.as_ref()
                        .and_then(constant::as_i64)
                        .map(|at| saturating_convert(at, of, unit))
                };
                // Nanosecond timestamps cover a smaller range than microsecond timestamps, so
                // microseconds are tried next.
                match instant(unit).or_else(|| instant(SqlType::Timestamp)) {
                    Some(instant) => Ok(Some(instant)),
                    None => Err(error::at(ErrorCode::InvalidValue, message, position)),
                }
            }
            SqlType::Date | SqlType::Timestamp => {
                let at = value.constant.as_ref().and_then(constant::as_i64);
                Ok(at.map(|at| saturating_convert(at, value.sql_type, unit)))
            }
            SqlType::TimestampNs => {
                let Some(nanos) = value.constant.as_ref().and_then(constant::as_i64) else {
                    return Ok(None);
                };
                Ok(match unit {
                    SqlType::TimestampNs => Some(nanos),
                    // A constant that is more precise than the column's unit yields no range; the
                    // filter handles it.
                    _ => (nanos % 1_000 == 0).then_some(nanos / 1_000),
                })
            }
            _ => Ok(None),
        }
    }

    /// Whether the node's value does not depend on any row.
    pub(crate) fn is_constant(&self, id: NodeId) -> bool {
        // Variables that reference each other repeatedly expand to a huge number of nodes, so each
        // is visited only once.
        let mut seen = HashSet::new();
        let mut pending = vec![(id, self.variables.len())];
        while let Some((id, scopes)) = pending.pop() {
            if !seen.insert((id, scopes)) {
                continue;
            }
            let is_constant = match self.tree.get(id) {
                Some(
                    Node::Null
                    | Node::Boolean { .. }
                    | Node::Integer { .. }
                    | Node::Float { .. }
                    | Node::String { .. }
                    | Node::TypedString { .. },
                ) => true,
                Some(Node::Parameter { .. }) => self.context.parameter_values.is_some(),
                Some(Node::Variable { name }) => {
                    let value = self.variable_value_in(name, scopes);
                    pending.extend(value.map(|value| (value.node, value.scopes)));
                    value.is_some()
                }
                Some(Node::Unary { operand, .. } | Node::Cast { operand, .. }) => {
                    pending.push((*operand, scopes));
                    true
                }
                Some(Node::Binary { left, right, .. }) => {
                    pending.extend([(*left, scopes), (*right, scopes)]);
                    true
                }
                Some(Node::Call(call)) => {
                    pending.extend(call.arguments.iter().map(|argument| (*argument, scopes)));
                    call.over.is_none()
                }
                _ => false,
            };
            if !is_constant {
                return false;
            }
        }
        true
    }

    /// An interval string's ranges: `2024-01`, `2024-01-01;1h`, `$today`, ….
    pub(crate) fn interval_text(
        &mut self,
        text: &str,
        unit: SqlType,
        position: Span,
    ) -> EngineResult<Ranges> {
        // Only date variables need the current time.
        let now = if text.contains('$') { self.context.now() } else { 0 };
        let ranges = tidemark_types::interval::parse_interval(text, unit_of(unit), now)
            .map_err(|failure| error::at(ErrorCode::InvalidValue, failure.message, position))?;
        Ok(ranges.into_iter().map(|(lo, hi)| TimeRange { lo, hi }).collect())
    }
}

fn mirrored(operator: BinaryOperator) -> BinaryOperator {
    match operator {
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessOrEqual => BinaryOperator::GreaterOrEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterOrEqual => BinaryOperator::LessOrEqual,
        other => other,
    }
}
