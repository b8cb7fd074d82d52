//! SAMPLE BY: time buckets, grouping keys, and gap filling.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, ident};
use hashbrown::HashMap;
use tidemark_ast::{Fill, Name, Node, NodeId, SampleAlign, SampleBy, Span};
use tidemark_functions::CastMode;
use tidemark_operators::{
    Alignment, Bucket, BucketSpec, FillNode, FillValue, SampleByNode, StepUnit, Zone,
};
use tidemark_types::calendar::MICROS_PER_SECOND;
use tidemark_types::timestamp::parse_fields;
use tidemark_types::zone::parse_shift;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, TimestampUnit, identifier};

use crate::binder::clauses::aggregate::refuse_order;
use crate::binder::clauses::stage::{Exprs, collect_aggregates, collect_plain_columns};
use crate::binder::clauses::stage::{Item, is_column};
use crate::binder::clauses::stage::{Replaced, Stage};
use crate::binder::expressions::constant;
use crate::binder::expressions::expression::{has_aggregate, has_window};
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope, ScopeColumn, TimeOrder};
use crate::binder::{Binder, Typed, error};

/// Keys and aggregates of a SAMPLE BY query, in order of appearance.
struct Sampled {
    keys: Vec<Expr>,
    aggregates: Vec<Expr>,
}

impl Binder<'_> {
    /// Groups rows by buckets of the designated timestamp.
    pub(crate) fn sample_by(
        &mut self,
        source: Relation,
        items: Vec<Item>,
        sample_by: &SampleBy,
        group_by: &[NodeId],
        extras: &[Typed],
    ) -> EngineResult<Stage> {
        let timestamp = source.timestamp_column().cloned().ok_or_else(no_timestamp)?;
        let source = match source.order {
            TimeOrder::Ascending => source,
            TimeOrder::Descending => return Err(no_timestamp()),
            TimeOrder::Shuffled | TimeOrder::Unknown => {
                let plan = relation::sort_by_time(source.plan.clone(), timestamp.expr())?;
                Relation { order: TimeOrder::Ascending, ..source.with_plan(plan) }
            }
        };
        timestamp.origin.note();
        self.refuse_star(&items)?;
        let spec = self.bucket_spec(sample_by, &timestamp)?;
        let sampled = sampled(&items, extras, &timestamp.expr());
        if sampled.aggregates.is_empty() {
            return Err(error::at(
                ErrorCode::NotSupported,
                "at least one aggregation function must be present in 'select' clause",
                self.tree.span(sample_by.interval),
            ));
        }
        if !group_by.is_empty() {
            return self.sampled_levels(source, items, sample_by, group_by, (spec, sampled));
        }
        let (mut plan, replaced) = sampled_plan(&source, &timestamp, spec, &sampled)?;
        if sample_by.fill.iter().any(|fill| !matches!(fill, Fill::None { .. })) {
            plan = self.filled(plan, spec, &sampled, &items, sample_by)?;
        }
        let mut rewritten = Vec::with_capacity(items.len());
        for item in items {
            let expr = replaced.apply(item.value.expr.clone())?;
            rewritten.push(Item { value: Typed { expr, ..item.value }, ..item });
        }
        Ok(Stage {
            source,
            plan,
            items: rewritten,
            replaced,
            timestamp: Some(timestamp.expr()),
            order: TimeOrder::Ascending,
            rows: ListRows::default(),
        })
    }

    /// Binds SAMPLE BY with ROLLUP, CUBE or GROUPING SETS: every grouping set has all time buckets.
    fn sampled_levels(
        &mut self,
        source: Relation,
        items: Vec<Item>,
        sample_by: &SampleBy,
        group_by: &[NodeId],
        (spec, sampled): (BucketSpec, Sampled),
    ) -> EngineResult<Stage> {
        if sample_by.fill.iter().any(|fill| !matches!(fill, Fill::None { .. })) {
            return Err(error::not_supported("FILL with grouping sets is", sample_by.span));
        }
        let timestamp = source.timestamp_column().cloned().ok_or_else(no_timestamp)?;
        let levels = self.levels(group_by, &source, &items)?;
        let known = |key: &Expr| levels.keys.iter().any(|(expr, _)| expr == key);
        if let Some(missing) = sampled.keys.iter().find(|key| !known(key)) {
            let item = items.iter().find(|item| item.value.expr == *missing);
            return Err(error::at(
                ErrorCode::ColumnNotFound,
                "column must appear in GROUP BY clause or aggregate function",
                item.and_then(|item| item.node).map(|id| self.tree.span(id)).unwrap_or_default(),
            ));
        }
        let own = [timestamp.expr()];
        let (plan, replaced) =
            self.levels_plan(&levels, &sampled.aggregates, &own, |_, keys, aggregates| {
                let keys = keys.iter().map(|(key, _)| key.clone()).collect();
                let level = Sampled { keys, aggregates: aggregates.to_vec() };
                sampled_plan(&source, &timestamp, spec, &level)
            })?;
        let bucket = replaced.apply(timestamp.expr())?;
        let plan = relation::sort_by_time(plan, bucket.clone())?;
        let mut rewritten = Vec::with_capacity(items.len());
        for item in items {
            let expr = replaced.apply(item.value.expr.clone())?;
            rewritten.push(Item { value: Typed { expr, ..item.value }, ..item });
        }
        let timestamp = Some(bucket);
        let order = TimeOrder::Ascending;
        let rows = ListRows::default();
        Ok(Stage { source, plan, items: rewritten, replaced, timestamp, order, rows })
    }

    fn refuse_star(&self, items: &[Item]) -> EngineResult<()> {
        if items.iter().all(|item| item.node.is_some()) {
            return Ok(());
        }
        let star = self
            .tree
            .nodes
            .iter()
            .position(|node| matches!(node, Node::Star { .. }))
            .map(|index| self.tree.span(index as NodeId));
        Err(error::at(
            ErrorCode::NotSupported,
            "wildcard column select is not allowed in sample-by queries",
            star.unwrap_or_default(),
        ))
    }

    fn bucket_spec(
        &mut self,
        sample_by: &SampleBy,
        timestamp: &ScopeColumn,
    ) -> EngineResult<BucketSpec> {
        let SampleBy { interval, from: first, to: last, fill: _, align, span } = sample_by;
        let (count, unit) = self.step(*interval)?;
        let alignment = match align {
            Some(SampleAlign::FirstObservation) => Alignment::FirstObservation,
            Some(SampleAlign::Calendar { time_zone, offset }) => Alignment::Calendar {
                zone: time_zone.map(|id| self.zone(id)).transpose()?,
                offset_micros: match offset {
                    Some(offset) => self.offset(*offset)?,
                    None => 0,
                },
            },
            None => Alignment::Calendar { zone: None, offset_micros: 0 },
        };
        let zone = match alignment {
            Alignment::Calendar { zone, .. } => zone,
            Alignment::FirstObservation => None,
        };
        let from = self.bound(*first, timestamp.sql_type, zone)?;
        let to = self.bound(*last, timestamp.sql_type, zone)?;
        if (from.is_some() || to.is_some()) && alignment == Alignment::FirstObservation {
            let at = first.or(*last).map(|id| self.tree.span(id));
            return Err(error::at(
                ErrorCode::NotSupported,
                "FROM-TO intervals are not supported for FIRST OBSERVATION",
                at.unwrap_or(*span),
            ));
        }
        let nanoseconds = timestamp.sql_type == SqlType::TimestampNs;
        Ok(BucketSpec { count, unit, alignment, from, to, nanoseconds })
    }

    /// Converts a FROM or TO bound to a timestamp. A string without a UTC offset is interpreted in
    /// `zone`.
    fn bound(
        &mut self,
        id: Option<NodeId>,
        unit: SqlType,
        zone: Option<Zone>,
    ) -> EngineResult<Option<i64>> {
        let Some(id) = id else { return Ok(None) };
        let value = self.demanded(id, SqlType::Varchar, ScalarValue::Utf8View(None))?;
        if value.constant.is_none() {
            let at = self.tree.span(id);
            return Err(error::at(ErrorCode::InvalidValue, "constant expected", at));
        }
        let Some(at) = self.timestamp(id, unit, "Invalid date")? else { return Ok(None) };
        let Some(zone) = zone else { return Ok(Some(at)) };
        let value = self.expression(id, &Scope::empty())?;
        let text = value.constant.as_ref().and_then(constant::as_text);
        let is_local = text.and_then(parse_fields).is_some_and(|parsed| !parsed.zoned);
        let of =
            if unit == SqlType::TimestampNs { TimestampUnit::Nanos } else { TimestampUnit::Micros };
        Ok(Some(if is_local { zone.to_utc(at, of.per_second()) } else { at }))
    }

    /// The bucket size, as a count and a unit.
    pub(crate) fn step(&mut self, id: NodeId) -> EngineResult<(u32, StepUnit)> {
        let (count, unit) = self.duration(id)?;
        let count = u32::try_from(count).map_err(|_| {
            let at = self.tree.span(id);
            error::at(ErrorCode::InvalidValue, "the step is out of range", at)
        })?;
        Ok((count, unit))
    }

    fn text_of(&mut self, id: NodeId, stand_in: &str, message: &str) -> EngineResult<String> {
        let stand_in = ScalarValue::Utf8View(Some(stand_in.to_owned()));
        let value = self.demanded(id, SqlType::Varchar, stand_in)?;
        let value = self.cast(value, SqlType::Varchar, CastMode::Implicit, self.tree.span(id))?;
        match value.constant.as_ref().and_then(constant::as_text) {
            Some(text) => Ok(text.to_owned()),
            None => Err(error::at(ErrorCode::InvalidValue, message, self.tree.span(id))),
        }
    }

    fn zone(&mut self, id: NodeId) -> EngineResult<Zone> {
        let text = self.text_of(id, "UTC", "invalid timezone")?;
        Zone::parse(&text).ok_or_else(|| {
            error::at(
                ErrorCode::InvalidValue,
                format!("invalid timezone: {text}"),
                self.tree.span(id),
            )
        })
    }

    fn offset(&mut self, id: NodeId) -> EngineResult<i64> {
        let text = self.text_of(id, "00:00", "invalid offset")?;
        parse_shift(&text).map(|seconds| seconds * MICROS_PER_SECOND).ok_or_else(|| {
            error::at(
                ErrorCode::InvalidValue,
                format!("invalid offset: {text}"),
                self.tree.span(id),
            )
        })
    }

    /// Applies FILL to the sampled rows.
    fn filled(
        &mut self,
        plan: LogicalPlan,
        spec: BucketSpec,
        sampled: &Sampled,
        items: &[Item],
        sample_by: &SampleBy,
    ) -> EngineResult<LogicalPlan> {
        let fills = &sample_by.fill;
        let single = fills.len() == 1;
        let mut values = Vec::with_capacity(sampled.aggregates.len());
        let types: HashMap<&Expr, SqlType> = items.iter().rev().map(type_of_item).collect();
        for (index, aggregate) in sampled.aggregates.iter().enumerate() {
            let constant_alone = single && index > 0 && matches!(fills[0], Fill::Constant { .. });
            let fill = match fills.get(if single { 0 } else { index }) {
                Some(fill) if !constant_alone => fill,
                _ => {
                    let last = fills.last().map(|fill| self.fill_span(fill));
                    return Err(error::at(
                        ErrorCode::InvalidValue,
                        "not enough fill values",
                        last.unwrap_or(sample_by.span),
                    ));
                }
            };
            // The type of the select item that is exactly this aggregate; DOUBLE if there is no
            // such item.
            let sql_type = types.get(aggregate).copied().unwrap_or(SqlType::Double);
            self.refuse_computed_fill(fill, aggregate)?;
            values.push(match fill {
                Fill::Prev { of: Some(of), .. } if single && sampled.aggregates.len() > 1 => {
                    return Err(error::at(
                        ErrorCode::NotSupported,
                        "PREV of one column cannot fill several aggregates",
                        of.span,
                    ));
                }
                Fill::Prev { of: Some(of), .. } => {
                    let other = previous_of(of, sql_type, sampled, items)?;
                    FillValue::PrevOf(1 + sampled.keys.len() + other)
                }
                fill => self.fill_value(fill, sql_type)?,
            });
        }
        let keys: Vec<usize> = (1..=sampled.keys.len()).collect();
        // A missing bound must not add buckets. If FROM is missing, TO is also used as the start,
        // because no bucket starts after TO. If TO is missing, the minimum timestamp is used as the
        // end, because no bucket ends before it.
        let range = match (spec.from, spec.to) {
            (Some(from), Some(to)) => Some((from, to)),
            (Some(from), None) => Some((from, i64::MIN)),
            (None, Some(to)) => Some((to, to)),
            (None, None) => None,
        };
        let node = FillNode::try_new(plan, 0, keys, values, spec, range).map_err(error::plan)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    pub(crate) fn fill_span(&self, fill: &Fill) -> Span {
        match fill {
            Fill::None { span }
            | Fill::Null { span }
            | Fill::Linear { span }
            | Fill::Prev { span, .. } => *span,
            Fill::Constant { value } => self.tree.span(*value),
        }
    }

    /// Rejects interpolated and constant FILL values for `array_agg` and `sparkline`, because their
    /// results are arrays and charts.
    fn refuse_computed_fill(&self, fill: &Fill, aggregate: &Expr) -> EngineResult<()> {
        if !matches!(fill, Fill::Linear { .. } | Fill::Constant { .. }) {
            return Ok(());
        }
        let Expr::AggregateFunction(call) = aggregate else { return Ok(()) };
        let name = call.func.name();
        if matches!(name, "array_agg" | "sparkline") {
            let message = format!("{name} can only be filled with NULL, NONE or PREV");
            return Err(error::at(ErrorCode::NotSupported, message, self.fill_span(fill)));
        }
        Ok(())
    }

    fn fill_value(&mut self, fill: &Fill, sql_type: SqlType) -> EngineResult<FillValue> {
        Ok(match fill {
            Fill::None { span } => {
                return Err(error::at(
                    ErrorCode::NotSupported,
                    "NONE cannot be mixed with other fill values",
                    *span,
                ));
            }
            Fill::Null { .. } => FillValue::Null,
            Fill::Prev { .. } => FillValue::Prev,
            Fill::Linear { span } => {
                let numeric = sql_type.is_integer() || sql_type.is_floating();
                if !numeric && !sql_type.is_timestamp() && sql_type != SqlType::Date {
                    return Err(error::at(
                        ErrorCode::TypeMismatch,
                        format!(
                            "support for LINEAR fill is not yet implemented [type={}]",
                            sql_type.name()
                        ),
                        *span,
                    ));
                }
                FillValue::Linear
            }
            Fill::Constant { value } => {
                let nothing = ScalarValue::try_from(&sql_type.arrow_type()).map_err(error::plan)?;
                let typed = self.demanded(*value, sql_type, nothing)?;
                FillValue::Constant(self.fill_constant(typed, sql_type)?)
            }
        })
    }

    fn fill_constant(&mut self, typed: Typed, sql_type: SqlType) -> EngineResult<ScalarValue> {
        let shown = typed.constant.clone();
        let (from, to) = (typed.sql_type.name(), sql_type.name());
        let nowhere = Span::default();
        let cast = self.cast(typed, sql_type, CastMode::Insert, nowhere)?;
        if let Some(value) = cast.constant {
            Ok(value)
        } else {
            let text = shown.map(|value| shown_text(&value)).unwrap_or_default();
            Err(error::at(
                ErrorCode::InvalidValue,
                format!("inconvertible value: {text} [{from} -> {to}]"),
                nowhere,
            ))
        }
    }
}

fn shown_text(value: &ScalarValue) -> String {
    match value {
        ScalarValue::UInt16(Some(unit)) => {
            char::from_u32(u32::from(*unit)).map(String::from).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

fn no_timestamp() -> EngineError {
    error::at(
        ErrorCode::NotSupported,
        "base query does not provide designated TIMESTAMP column",
        Span::default(),
    )
    .with_hint("specify the timestamp column: (…) TIMESTAMP(column)")
}

/// Collects the keys and aggregates of SAMPLE BY. All items other than the timestamp and the
/// aggregates are keys. In the select list, the timestamp refers to the bucket.
fn sampled(items: &[Item], extras: &[Typed], timestamp: &Expr) -> Sampled {
    let mut keys = Exprs::default();
    let mut aggregates = Exprs::default();
    for item in items {
        let expr = &item.value.expr;
        collect_aggregates(expr, &mut aggregates);
        let mut columns = Exprs::default();
        collect_plain_columns(expr, &mut columns);
        let reads_time = columns.contains(timestamp);
        let computed = has_aggregate(expr) || has_window(expr);
        if !computed && !reads_time && !columns.is_empty() {
            keys.push(expr);
            continue;
        }
        for column in columns.iter().filter(|column| *column != timestamp) {
            keys.push(column);
        }
    }
    for extra in extras {
        collect_aggregates(&extra.expr, &mut aggregates);
    }
    Sampled { keys: keys.into_vec(), aggregates: aggregates.into_vec() }
}

fn sampled_plan(
    source: &Relation,
    timestamp: &ScopeColumn,
    spec: BucketSpec,
    sampled: &Sampled,
) -> EngineResult<(LogicalPlan, Replaced)> {
    let mut replaced = Replaced::default();
    let mut keys = Vec::with_capacity(sampled.keys.len());
    // Generated names must differ from the timestamp's name, which the bucket column also uses.
    let beside_time = |prefix: &str, number: usize| {
        let name = format!("{prefix}{number}");
        if name == timestamp.column.name { format!("{name}_") } else { name }
    };
    for (number, key) in sampled.keys.iter().enumerate() {
        let name = beside_time("k", number);
        keys.push(key.clone().alias(&name));
        replaced.insert(key.clone(), ident(name));
    }
    let mut aggregates = Vec::with_capacity(sampled.aggregates.len());
    for (number, aggregate) in sampled.aggregates.iter().enumerate() {
        refuse_order(aggregate, "SAMPLE BY")?;
        let name = beside_time("a", number);
        aggregates.push(aggregate.clone().alias(&name));
        replaced.insert(aggregate.clone(), ident(name));
    }
    let bucket = Bucket { timestamp: timestamp.expr(), spec };
    let node = SampleByNode::try_new(source.plan.clone(), Some(bucket), keys, aggregates)
        .map_err(error::plan)?;
    Ok((LogicalPlan::Extension(Extension { node: Arc::new(node) }), replaced))
}

/// The aggregate that `PREV(name)` refers to. It must be a select item of the same type.
fn previous_of(
    of: &Name,
    sql_type: SqlType,
    sampled: &Sampled,
    items: &[Item],
) -> EngineResult<usize> {
    let named = |item: &&Item| identifier::same(&item.name, &of.text);
    let item = items.iter().find(named).ok_or_else(|| error::invalid_column(&of.text, of.span))?;
    let refused = |message: String| error::at(ErrorCode::TypeMismatch, message, of.span);
    let position = sampled.aggregates.iter().position(|own| is_column(&item.value.expr, own));
    let Some(position) = position else {
        return Err(refused(format!("PREV expects an aggregate, found '{}'", of.text)));
    };
    let found = item.value.sql_type;
    if found != sql_type || found == SqlType::Symbol {
        return Err(refused(format!(
            "PREV of '{}' cannot fill another column [from={}, to={}]",
            of.text,
            found.name(),
            sql_type.name()
        )));
    }
    Ok(position)
}

fn type_of_item(item: &Item) -> (&Expr, SqlType) {
    let mut expr = &item.value.expr;
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    (expr, item.value.sql_type)
}
