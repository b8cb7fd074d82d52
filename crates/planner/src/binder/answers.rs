//! Query rewrite: materialized views answer aggregations over their base tables.
//!
//! A SAMPLE BY or GROUP BY over a base table is computed from a view over that table if three
//! conditions hold. The view has finer buckets, it contains all columns that the query's keys and
//! filter read, and its aggregates can be combined (sums of sums, minima of minima). Rows that the
//! view does not contain at the query's snapshot are read from the base table in the same buckets.
//! These are rows added since the last refresh, buckets cut by a time range, and partitions removed
//! from the base table. The result is the same as without the view, except that floating-point sums
//! are added in a different order. Changing the number of workers has the same effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, SubqueryAlias, TableScan, TableScanBuilder, Union, ident,
};
use tidemark_catalog::IncrementalState;
use tidemark_functions::{Argument, resolve_aggregate};
use tidemark_operators::{
    Alignment, Bucket, BucketSpec, LogicalNode, SampleByNode, SnapshotTable, StepUnit,
};
use tidemark_storage::{TableSchema, TableSnapshot, TimeRange, Touched};
use tidemark_types::EngineResult;

use crate::BindContext;
use crate::answering::{AnsweringView, Shown, ViewsOfBases};
use crate::binder::state::relation;
use crate::binder::statements::incremental::buckets::{Buckets, column_of, floored, has_subquery};
use crate::binder::statements::incremental::{self, IncrementalRows};
use crate::binder::{Binder, error};

/// Minimum ratio of base table rows to view rows. A view with a lower ratio is not used.
const FEWER: u64 = 4;
/// Maximum number of ranges read from the view or from the base.
const MAX_RANGES: usize = 64;

/// An aggregation over a base table that a view may answer.
struct BaseAggregation<'a> {
    node: &'a SampleByNode,
    filter: Option<&'a Expr>,
    scan: &'a TableScan,
    base: Arc<TableSnapshot>,
    /// Time ranges that the query reads from the base table; empty for the whole table.
    ranges: Vec<TimeRange>,
}

/// A view as of the query's snapshot.
struct Source<'a> {
    known: &'a AnsweringView,
    table: Arc<TableSnapshot>,
}

/// An aggregation rewritten to read from a view.
struct Answer<'a> {
    shown: &'a Shown,
    /// Base columns that the keys and the filter read.
    keys: BTreeSet<String>,
    aggregates: Vec<CombinedAggregate>,
    /// Time ranges to read from the view (`covered`) and from the base (`uncovered`).
    covered: Vec<TimeRange>,
    uncovered: Vec<TimeRange>,
}

/// The view column that stores an aggregate, and the aggregate that combines its values.
struct CombinedAggregate {
    /// Index into the view's aggregates.
    index: usize,
    /// The aggregate to compute over the view's rows.
    combined: Expr,
}

impl Binder<'_> {
    /// Rewrites the aggregations that views can answer, and returns whether any was rewritten.
    pub(crate) fn answered(&mut self, plan: LogicalPlan) -> EngineResult<(LogicalPlan, bool)> {
        let Some(answering) = &self.context.answering else { return Ok((plan, false)) };
        let views = answering.of(self.snapshot);
        if views.is_empty() {
            return Ok((plan, false));
        }
        let mut failure = None;
        let found = plan.transform_down(|node| {
            let answered = match LogicalNode::of_plan(&node) {
                Some(LogicalNode::SampleBy(aggregation)) => self.answer(aggregation, &views),
                _ => Ok(None),
            };
            Ok(match answered {
                Ok(Some(answer)) => Transformed::new(answer, true, TreeNodeRecursion::Jump),
                Ok(None) => Transformed::no(node),
                Err(error) => {
                    failure = Some(error);
                    Transformed::new(node, false, TreeNodeRecursion::Stop)
                }
            })
        });
        let found = found.map_err(error::plan)?;
        match failure {
            Some(failure) => Err(failure),
            None => Ok((found.data, found.transformed)),
        }
    }

    fn answer(
        &mut self,
        node: &SampleByNode,
        views: &ViewsOfBases,
    ) -> EngineResult<Option<LogicalPlan>> {
        let Some(aggregation) = BaseAggregation::of(node) else { return Ok(None) };
        let base = aggregation.base.schema().id;
        let views = views.over(base);
        if views.is_empty() {
            return Ok(None);
        }
        let base_rows = aggregation.base.row_count()?;
        let mut worth: Vec<(u64, Source<'_>)> = Vec::with_capacity(views.len());
        for known in views {
            let Some(table) = self.visible_table(known) else { continue };
            let rows = table.row_count()?;
            if rows.saturating_mul(FEWER) <= base_rows {
                worth.push((rows, Source { known, table }));
            }
        }
        // Prefer the view with the fewest rows.
        worth.sort_by_key(|(rows, source)| (*rows, source.known.view.table));
        let mut touched = None;
        for (_, source) in worth {
            let Some(shown) = self.shown(&aggregation, &source) else { continue };
            let Some((keys, combined)) = aggregation.match_columns(&shown, &source.table) else {
                continue;
            };
            if touched.is_none() {
                touched = self.snapshot.touched(base);
            }
            let Some(touched) = &touched else { return Ok(None) };
            let Some((covered, rest)) = self.divided(&aggregation, &source, &shown, touched) else {
                continue;
            };
            let answer =
                Answer { shown: &shown, keys, aggregates: combined, covered, uncovered: rest };
            if let Some(plan) = self.answer_from(&aggregation, &source.table, &answer)? {
                return Ok(Some(plan));
            }
        }
        Ok(None)
    }

    /// A view's table, if it is visible to the user and has no TTL.
    fn visible_table(&self, known: &AnsweringView) -> Option<Arc<TableSnapshot>> {
        let table = self.snapshot.table_by_id(known.view.table)?;
        let schema = table.schema();
        let is_seen = self.visibility().is_none_or(|visibility| visibility.sees(&schema.name));
        (is_seen && schema.ttl_hours_or_months == 0).then_some(table)
    }

    /// Returns the view's bound query, which does not depend on the user.
    fn shown(&self, aggregation: &BaseAggregation<'_>, source: &Source<'_>) -> Option<Arc<Shown>> {
        let versions = (aggregation.base.schema().version, source.table.schema().version);
        source.known.shown(versions, |view| {
            let table_defaults = self.context.table_defaults;
            let context = BindContext { table_defaults, ..BindContext::default() };
            let rows = incremental::rows::<Buckets>(view, self.snapshot, &context, false).ok()?;
            if rows.shape.crosses_buckets { None } else { Shown::of(&rows, &source.table) }
        })
    }

    /// Splits the query's time ranges into ranges that the view covers at this snapshot and ranges
    /// that are read from the base. Returns `None` if the view covers nothing or either list is too
    /// long.
    fn divided(
        &self,
        aggregation: &BaseAggregation<'_>,
        source: &Source<'_>,
        shown: &Shown,
        touched: &Touched,
    ) -> Option<(Vec<TimeRange>, Vec<TimeRange>)> {
        let state = IncrementalState::of(self.snapshot, source.known.view.table);
        if state.invalid.is_some() {
            return None;
        }
        let mut missing = touched.after(state.position?)?;
        missing.extend(touched.removed());
        let until = state.shown_until.unwrap_or(i64::MAX);
        let (covered, rest) = aggregation.divided(&shown.buckets, &missing, until);
        let is_worth_it =
            !covered.is_empty() && covered.len() <= MAX_RANGES && rest.len() <= MAX_RANGES;
        is_worth_it.then_some((covered, rest))
    }

    fn answer_from(
        &mut self,
        aggregation: &BaseAggregation<'_>,
        table: &Arc<TableSnapshot>,
        answer: &Answer<'_>,
    ) -> EngineResult<Option<LogicalPlan>> {
        let (from_view, from_base) =
            (self.view_plan(aggregation, table, answer)?, aggregation.base_plan(answer)?);
        let types = |plan: &LogicalPlan| -> Vec<_> {
            plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
        };
        if types(&from_view) != types(&from_base) {
            return Ok(None);
        }
        let time = ident(aggregation.time());
        let inner = if answer.uncovered.is_empty() {
            from_view
        } else {
            let inputs = vec![Arc::new(from_view), Arc::new(from_base)];
            let union = Union::try_new_with_loose_types(inputs).map_err(error::plan)?;
            relation::sort_by_time(LogicalPlan::Union(union), time)?
        };
        aggregation.combined(inner, &answer.aggregates).map(Some)
    }

    /// Plans a scan of the view's rows, under the base's column names.
    fn view_plan(
        &mut self,
        aggregation: &BaseAggregation<'_>,
        table: &Arc<TableSnapshot>,
        Answer { shown, keys, aggregates: combined, covered, .. }: &Answer<'_>,
    ) -> EngineResult<LogicalPlan> {
        let reference = self.relation_name();
        let schema = table.schema();
        let own = |index: usize| {
            Expr::Column(Column::new(Some(reference.as_str()), &schema.columns[index].name))
        };
        let table = SnapshotTable::new(Arc::clone(table)).within(covered.clone());
        let source = provider_as_source(Arc::new(table));
        let scan = TableScanBuilder::new(reference.as_str(), source).build();
        let mut plan = LogicalPlan::TableScan(scan.map_err(error::plan)?);
        if let Some(filter) = aggregation.filter {
            let filter = renamed(filter.clone(), |name| shown.keys.get(name).map(|key| own(*key)))?;
            plan = relation::filter(plan, filter)?;
        }
        let time = schema.timestamp.map_or_else(|| ident(aggregation.time()), own);
        let mut exprs = vec![time.alias(aggregation.time())];
        exprs.extend(keys.iter().map(|key| own(shown.keys[key]).alias(key)));
        let of_part = |(number, aggregate): (usize, &CombinedAggregate)| {
            own(shown.aggregates[aggregate.index].1).alias(aggregate_name(number))
        };
        exprs.extend(combined.iter().enumerate().map(of_part));
        relation::project(plan, exprs)
    }
}

impl<'a> BaseAggregation<'a> {
    fn of(node: &'a SampleByNode) -> Option<Self> {
        let (filter, below) = match node.input() {
            LogicalPlan::Filter(filter) => (Some(&filter.predicate), filter.input.as_ref()),
            other => (None, other),
        };
        let LogicalPlan::TableScan(scan) = below else { return None };
        let provider = source_as_provider(&scan.source).ok()?;
        let known = provider.downcast_ref::<SnapshotTable>()?;
        let (base, ranges) = (Arc::clone(known.table()), known.ranges().to_vec());
        base.schema().timestamp?;
        Some(Self { node, filter, scan, base, ranges })
    }

    /// Name of the base table's designated timestamp.
    fn time(&self) -> &str {
        self.base.schema().timestamp_column().map_or("", |column| column.name.as_str())
    }

    /// Returns the base columns that the keys and the filter read, and the view's column for each
    /// aggregate. Returns `None` if the view lacks any of these columns.
    fn match_columns(
        &self,
        shown: &Shown,
        table: &TableSnapshot,
    ) -> Option<(BTreeSet<String>, Vec<CombinedAggregate>)> {
        let time = self.time();
        let mut keys = BTreeSet::new();
        let mut plain = BTreeSet::new();
        for key in self.node.keys() {
            if let Some((spec, _)) = floored(key).filter(|(_, column)| column.name == time) {
                if !divides(&shown.spec, &spec) {
                    return None;
                }
                continue;
            }
            plain.extend(column_of(key).map(|column| column.name));
            keys.extend(columns_of(key)?);
        }
        keys.extend(self.filter.map_or_else(|| Some(Vec::new()), columns_of)?);
        if let Some(bucket) = self.node.bucket() {
            let is_own = column_of(&bucket.timestamp).is_some_and(|column| column.name == time);
            if !is_own || !divides(&shown.spec, &bucket.spec) {
                return None;
            }
        } else if self.node.keys().is_empty() {
            return None;
        }
        if !keys.iter().all(|key| shown.keys.contains_key(key)) {
            return None;
        }
        // If the query groups by all of the view's keys, each group has at most one row per view
        // bucket. Then `first` and `last` over the view's rows give the same result as over the
        // base rows.
        let is_one = shown.keys.keys().all(|key| plain.contains(key));
        let reference = &self.scan.table_name;
        let aggregate = |(number, requested): (usize, &Expr)| {
            shown.combine(requested, table.schema(), (number, is_one), reference)
        };
        let aggregates: Option<Vec<CombinedAggregate>> =
            self.node.aggregates().iter().enumerate().map(aggregate).collect();
        Some((keys, aggregates?))
    }

    /// Splits the query's time ranges into whole buckets that the view covers and the ranges that
    /// remain for the base. Both lists are ascending and disjoint.
    fn divided(
        &self,
        buckets: &BucketSpec,
        missing: &[(i64, i64)],
        until: i64,
    ) -> (Vec<TimeRange>, Vec<TimeRange>) {
        let Some((first, last)) = self.base.time_bounds() else {
            return (Vec::new(), self.ranges.clone());
        };
        let all = TimeRange { lo: first, hi: last.saturating_add(1) };
        let required = match self.ranges.as_slice() {
            [] => vec![all],
            ranges => TimeRange::intersection(ranges, &[all]),
        };
        let whole_ends = |range: &TimeRange| {
            // No rows exist before `first` or after `last`, so a range bound outside this span can
            // be moved to a bucket boundary.
            let lo = if range.lo <= first { buckets.around(first, first).0 } else { range.lo };
            let hi = if range.hi > last { buckets.around(last, last).1 } else { range.hi };
            TimeRange { lo, hi: hi.min(until) }
        };
        let covered: Vec<TimeRange> = required.iter().map(whole_ends).collect();
        let missing = missing.iter().map(|(from, to)| {
            let (lo, hi) = buckets.around((*from).clamp(first, last), (*to).clamp(first, last));
            TimeRange { lo, hi }
        });
        let missing = TimeRange::union(missing.collect());
        let covered = TimeRange::difference(&TimeRange::union(covered), &missing);
        let whole = |range: &TimeRange| {
            let (start, next) = buckets.around(range.lo, range.lo);
            let lo = if start == range.lo { start } else { next };
            let hi = buckets.around(range.hi, range.hi).0;
            (lo < hi).then_some(TimeRange { lo, hi })
        };
        let covered: Vec<TimeRange> = covered.iter().filter_map(whole).collect();
        let rest = TimeRange::difference(&required, &covered);
        (covered, rest)
    }

    /// Plans an aggregation of the base's remaining rows, with the view's buckets and column names.
    fn base_plan(
        &self,
        Answer { shown, keys, aggregates: parts, uncovered: rest, .. }: &Answer<'_>,
    ) -> EngineResult<LogicalPlan> {
        let reference = &self.scan.table_name;
        let own = |name: &str| Expr::Column(Column::new(Some(reference.clone()), name));
        let narrowed = SnapshotTable::new(Arc::clone(&self.base)).narrowed(rest);
        let source = provider_as_source(Arc::new(narrowed));
        let mut plan = LogicalPlan::TableScan(TableScan { source, ..self.scan.clone() });
        if let Some(filter) = self.filter {
            plan = relation::filter(plan, filter.clone())?;
        }
        let bucket = Bucket { timestamp: own(self.time()), spec: shown.spec };
        let groups = keys.iter().map(|key| own(key).alias(key)).collect();
        let mut aggregates = Vec::with_capacity(parts.len());
        for (number, combined) in parts.iter().enumerate() {
            let aggregate = Expr::AggregateFunction(shown.aggregates[combined.index].0.clone());
            let aggregate = renamed(aggregate, |name| Some(own(name)))?;
            aggregates.push(aggregate.alias(aggregate_name(number)));
        }
        let node = SampleByNode::try_new(plan, Some(bucket), groups, aggregates);
        let node = Arc::new(node.map_err(error::plan)?);
        let mut exprs = vec![own(self.time()).alias(self.time())];
        exprs.extend(keys.iter().map(ident));
        exprs.extend((0..parts.len()).map(|number| ident(aggregate_name(number))));
        relation::project(LogicalPlan::Extension(Extension { node }), exprs)
    }

    /// Plans the original aggregation over the view's partial aggregates.
    fn combined(
        &self,
        inner: LogicalPlan,
        combined: &[CombinedAggregate],
    ) -> EngineResult<LogicalPlan> {
        let alias = SubqueryAlias::try_new(Arc::new(inner), self.scan.table_name.clone());
        let input = LogicalPlan::SubqueryAlias(alias.map_err(error::plan)?);
        let requested = self.node.aggregates().iter().zip(combined);
        let aggregates = requested.map(|(original, aggregate)| {
            aggregate.combined.clone().alias(original.schema_name().to_string())
        });
        let (bucket, keys) = (self.node.bucket().cloned(), self.node.keys().to_vec());
        let node = SampleByNode::try_new(input, bucket, keys, aggregates.collect());
        let node = Arc::new(node.map_err(error::plan)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }
}

impl Shown {
    /// Describes a view whose query selects the outputs of a single aggregation unchanged; `None`
    /// for other queries.
    fn of(rows: &IncrementalRows<Buckets>, table: &TableSnapshot) -> Option<Self> {
        let (node, indices) = aggregation(&rows.plan)?;
        let LogicalPlan::TableScan(scan) = node.input() else { return None };
        let provider = source_as_provider(&scan.source).ok()?;
        // Conditions on time are part of the scan.
        if !provider.downcast_ref::<SnapshotTable>()?.ranges().is_empty() {
            return None;
        }
        let spec = node.bucket()?.spec;
        let index = |output: usize| indices.iter().position(|index| *index == Some(output));
        // The view's designated timestamp must be the bucket's timestamp.
        if index(0)? != table.schema().timestamp? {
            return None;
        }
        let mut keys = BTreeMap::new();
        for (number, key) in node.keys().iter().enumerate() {
            // If a key were not selected, one group would have several view rows.
            keys.insert(column_of(key)?.name, index(1 + number)?);
        }
        let first = 1 + node.keys().len();
        let known = node.aggregates().iter().enumerate().filter_map(|(number, aggregate)| {
            Some((plain_aggregate(aggregate)?.clone(), index(first + number)?))
        });
        let aggregates = known.collect();
        Some(Self { spec, buckets: rows.shape.spec, keys, aggregates })
    }

    /// The view's column for an aggregate, if such a column exists and its values can be combined.
    fn combine(
        &self,
        requested: &Expr,
        schema: &TableSchema,
        (number, is_one): (usize, bool),
        reference: &TableReference,
    ) -> Option<CombinedAggregate> {
        let requested = plain_aggregate(requested)?;
        let is_same = |known: &AggregateFunction| {
            known.func == requested.func
                && known.params.args.len() == requested.params.args.len()
                && known.params.args.iter().zip(&requested.params.args).all(|(a, b)| match (a, b) {
                    (Expr::Column(a), Expr::Column(b)) => a.name == b.name,
                    (Expr::Literal(a, _), Expr::Literal(b, _)) => a == b,
                    _ => false,
                })
                && known.params.null_treatment == requested.params.null_treatment
        };
        let position = self.aggregates.iter().position(|(known, _)| is_same(known))?;
        let column = Expr::Column(Column::new(Some(reference.clone()), aggregate_name(number)));
        let of_type = schema.columns[self.aggregates[position].1].sql_type;
        let name = requested.func.name();
        let combined = match name {
            "min" | "max" => name,
            "sum" | "count" => "sum",
            "first" | "last" if is_one => name,
            _ => return None,
        };
        let argument = [Argument::column(of_type)];
        let resolved = resolve_aggregate(combined, false, &argument).ok()?;
        if resolved.argument_types != [of_type] || resolved.return_type != of_type {
            return None;
        }
        let combined = AggregateFunction::new_udf(
            resolved.udaf,
            vec![column],
            false,
            None,
            Vec::new(),
            requested.params.null_treatment,
        );
        Some(CombinedAggregate { index: position, combined: Expr::AggregateFunction(combined) })
    }
}

/// Returns the aggregate if it has no DISTINCT, FILTER or ORDER BY.
fn plain_aggregate(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::Alias(alias) => plain_aggregate(&alias.expr),
        Expr::AggregateFunction(call) => {
            let AggregateFunctionParams { distinct, filter, order_by, .. } = &call.params;
            (!distinct && filter.is_none() && order_by.is_empty()).then_some(call)
        }
        _ => None,
    }
}

/// Finds the aggregation whose outputs a plan selects. Also returns, for each plan column, the
/// index of the output that the column selects.
fn aggregation(plan: &LogicalPlan) -> Option<(&SampleByNode, Vec<Option<usize>>)> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let (node, below) = aggregation(&projection.input)?;
            let schema = projection.input.schema();
            let position = |expr: &Expr| {
                let index = schema.maybe_index_of_column(&column_of(expr)?)?;
                below.get(index).copied().flatten()
            };
            Some((node, projection.expr.iter().map(position).collect()))
        }
        LogicalPlan::SubqueryAlias(alias) => aggregation(&alias.input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => aggregation(&sort.input),
        _ => match LogicalNode::of_plan(plan)? {
            LogicalNode::SampleBy(node) => {
                let outputs = plan.schema().fields().len();
                Some((node, (0..outputs).map(Some).collect()))
            }
            _ => None,
        },
    }
}

/// Names of the columns that an expression reads; `None` if it contains a sub-query or is volatile.
fn columns_of(expr: &Expr) -> Option<Vec<String>> {
    let is_plain = !has_subquery(expr) && !expr.is_volatile();
    is_plain.then(|| expr.column_refs().into_iter().map(|column| column.name.clone()).collect())
}

/// Replaces the columns for which `to` returns an expression.
fn renamed(expr: Expr, to: impl Fn(&str) -> Option<Expr>) -> EngineResult<Expr> {
    let renamed = expr.transform(|node| {
        let Expr::Column(column) = &node else { return Ok(Transformed::no(node)) };
        Ok(to(&column.name).map_or_else(|| Transformed::no(node.clone()), Transformed::yes))
    });
    Ok(renamed.map_err(error::plan)?.data)
}

fn aggregate_name(number: usize) -> String {
    format!("\u{1}part{number}")
}

/// Whether each bucket of `coarse` consists of whole buckets of `fine`.
fn divides(fine: &BucketSpec, coarse: &BucketSpec) -> bool {
    let is_open = |spec: &BucketSpec| spec.from.is_none() && spec.to.is_none();
    if !is_open(fine) || !is_open(coarse) || fine.nanoseconds != coarse.nanoseconds {
        return false;
    }
    if fine == coarse {
        return fine.alignment != Alignment::FirstObservation;
    }
    let utc = Alignment::Calendar { zone: None, offset_micros: 0 };
    if fine.alignment != utc || coarse.alignment != utc {
        return false;
    }
    let Some(step) = micros(fine).filter(|step| *step > 0) else { return false };
    let day = micros(&BucketSpec::new(1, StepUnit::Day)).unwrap_or(i64::MAX);
    match micros(coarse) {
        Some(whole) => whole % step == 0,
        None => day % step == 0,
    }
}

/// The step in microseconds; `None` if the unit varies in length or is not aligned to 1970.
fn micros(spec: &BucketSpec) -> Option<i64> {
    let unit: i64 = match spec.unit {
        StepUnit::Microsecond => 1,
        StepUnit::Millisecond => 1_000,
        StepUnit::Second => 1_000_000,
        StepUnit::Minute => 60_000_000,
        StepUnit::Hour => 3_600_000_000,
        StepUnit::Day => 86_400_000_000,
        StepUnit::Nanosecond | StepUnit::Week | StepUnit::Month | StepUnit::Year => return None,
    };
    unit.checked_mul(i64::from(spec.count))
}
