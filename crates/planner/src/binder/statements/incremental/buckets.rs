//! Queries that a materialized view can keep current: a bucket's rows depend only on the base rows
//! in that bucket. Such a query reads the base once, row by row. Its only aggregation groups rows
//! into buckets of the designated timestamp. Alternatively, it returns the base rows unchanged;
//! each timestamp is then a bucket.
//!
//! With LATEST ON, any row may depend on any other row, so all rows are recomputed. The base is
//! read backwards until the row of every key is found.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    Expr, JoinType, LogicalPlan, TableScan, UserDefinedLogicalNodeCore,
};
use tidemark_ast::Tree;
use tidemark_operators::{Bucket, BucketSpec, LogicalNode, SnapshotTable, StepUnit};
use tidemark_storage::{TableId, TimeRange};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::error;
use crate::binder::statements::incremental::ViewShape;

/// The buckets of a materialized view's query.
#[derive(Debug, Clone)]
pub struct Buckets {
    /// The bucket size and alignment.
    pub spec: BucketSpec,
    /// Whether a bucket's rows depend on other buckets.
    pub crosses_buckets: bool,
    time: Time,
}

/// The columns that hold a query's time.
#[derive(Debug, Clone)]
enum Time {
    /// The bucket time: column names in the aggregation.
    Buckets(Vec<String>),
    /// The designated timestamp of the rows of this base table.
    Rows(TableId),
}

fn refused(why: &str) -> EngineError {
    EngineError::new(
        ErrorCode::NotSupported,
        format!("query is not supported for materialized views: {why}"),
    )
}

/// Whether the plan contains volatile expressions.
pub(crate) fn is_random(plan: &LogicalPlan) -> EngineResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.expressions().iter().any(Expr::is_volatile);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .map_err(error::plan)?;
    Ok(found)
}

/// Restricts the plan's scan of one table to time ranges.
pub(crate) fn restricted(
    plan: LogicalPlan,
    table: TableId,
    ranges: &[TimeRange],
) -> EngineResult<LogicalPlan> {
    use datafusion::common::tree_node::Transformed;
    use datafusion::datasource::provider_as_source;
    let narrowed = plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        if scanned(scan) != Some(table) {
            return Ok(Transformed::no(node));
        }
        let provider = source_as_provider(&scan.source)?;
        let Some(known) = provider.downcast_ref::<SnapshotTable>() else {
            return Ok(Transformed::no(node));
        };
        let source = provider_as_source(std::sync::Arc::new(known.narrowed(ranges)));
        let scan = TableScan { source, ..scan.clone() };
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    });
    Ok(narrowed.map_err(error::plan)?.data)
}

/// The table that a scan reads.
fn scanned(scan: &TableScan) -> Option<TableId> {
    let provider = source_as_provider(&scan.source).ok()?;
    Some(provider.downcast_ref::<SnapshotTable>()?.table().schema().id)
}

impl ViewShape for Buckets {
    fn of(plan: &LogicalPlan, base: TableId, _: &Tree) -> EngineResult<Self> {
        let mut scans = 0;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                scans += usize::from(scanned(scan) == Some(base));
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(error::plan)?;
        if scans != 1 {
            return Err(refused("it reads the base table more than once"));
        }
        let is_whole = has_latest_of(plan, base).map_err(error::plan)?;
        let (mut shape, unit) = match Aggregation::of(plan) {
            Ok(found) => {
                let shape = Self::of_aggregation(&found)?;
                (shape, Self::check_input(&found, base)?)
            }
            // The query returns base rows unchanged.
            Err(failure) => {
                let columns = columns_of(plan);
                let times = columns.iter().filter_map(|column| follow(plan, column, base).ok());
                let unit = times.reduce(|first, _| first).ok_or(failure)?;
                let step = match unit {
                    SqlType::TimestampNs => StepUnit::Nanosecond,
                    _ => StepUnit::Microsecond,
                };
                let (spec, time) = (BucketSpec::new(1, step), Time::Rows(base));
                (Self { spec, crosses_buckets: is_whole, time }, unit)
            }
        };
        shape.spec.nanoseconds = unit == SqlType::TimestampNs;
        shape.crosses_buckets = is_whole;
        Ok(shape)
    }

    /// Every type fits, because values are converted to the view column's type.
    fn fits(_: SqlType, _: SqlType) -> bool {
        true
    }
}

impl Buckets {
    /// Whether the query returns base rows instead of buckets.
    pub(crate) fn is_of_rows(&self) -> bool {
        matches!(self.time, Time::Rows(_))
    }

    fn of_aggregation(found: &Aggregation<'_>) -> EngineResult<Self> {
        if let Some(bucket) = found.bucket {
            let time = Time::Buckets(vec![found.name(0)]);
            return Ok(Self { spec: bucket.spec, crosses_buckets: false, time });
        }
        let mut shape: Option<(BucketSpec, Vec<String>)> = None;
        for (index, key) in found.keys.iter().enumerate() {
            let Some((spec, _)) = floored(key) else { continue };
            match &mut shape {
                None => shape = Some((spec, vec![found.name(index)])),
                Some((known, names)) if *known == spec => names.push(found.name(index)),
                // Each group lies within one bucket of every bucket key, so the first bucket key is
                // sufficient.
                Some(_) => {}
            }
        }
        let (spec, names) = shape.ok_or_else(needs_buckets)?;
        Ok(Self { spec, crosses_buckets: false, time: Time::Buckets(names) })
    }

    /// Checks that the aggregation's input has one row per row of the base table, and that the
    /// bucketed timestamp is the base table's designated timestamp. Returns the timestamp's type.
    fn check_input(found: &Aggregation<'_>, base: TableId) -> EngineResult<SqlType> {
        let time = match found.bucket {
            Some(bucket) => column_of(&bucket.timestamp),
            None => found.keys.iter().find_map(floored).map(|(_, column)| column),
        };
        let time =
            time.ok_or_else(|| refused("its buckets are not based on a timestamp column"))?;
        follow(found.input, &time, base)
    }

    /// Indices of the query's columns that hold the bucket time.
    pub(crate) fn bucket_columns(&self, plan: &LogicalPlan) -> Vec<usize> {
        let is_time = |column: &Column| match &self.time {
            Time::Buckets(names) => is_bucket(names, plan, column),
            Time::Rows(base) => follow(plan, column, *base).is_ok(),
        };
        let columns = columns_of(plan).into_iter().enumerate();
        columns.filter(|(_, column)| is_time(column)).map(|(index, _)| index).collect()
    }
}

/// Whether the plan has a LATEST ON node above a table's scan.
fn has_latest_of(plan: &LogicalPlan, table: TableId) -> Result<bool> {
    let reads = |plan: &LogicalPlan| {
        plan.exists(|node| {
            Ok(matches!(node, LogicalPlan::TableScan(scan) if scanned(scan) == Some(table)))
        })
    };
    plan.exists(|node| match LogicalNode::of_plan(node) {
        Some(LogicalNode::LatestOn(_)) => reads(node),
        _ => Ok(false),
    })
}

fn columns_of(plan: &LogicalPlan) -> Vec<Column> {
    plan.schema().columns()
}

/// If a plan only projects, filters, renames or sorts rows, returns the input column whose values
/// `column` passes on. Fails if `column` is computed; `None` for other plans.
fn below<'a>(
    plan: &'a LogicalPlan,
    column: &Column,
) -> Option<EngineResult<(&'a LogicalPlan, Column)>> {
    let found = match plan {
        LogicalPlan::Projection(projection) => {
            let index = projection.schema.maybe_index_of_column(column);
            let inner = index.and_then(|index| column_of(&projection.expr[index]));
            inner.map(|inner| (projection.input.as_ref(), inner))
        }
        LogicalPlan::Filter(filter) => Some((filter.input.as_ref(), column.clone())),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            Some((sort.input.as_ref(), column.clone()))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            alias.schema.maybe_index_of_column(column).map(|index| {
                let (qualifier, field) = alias.input.schema().qualified_field(index);
                (alias.input.as_ref(), Column::new(qualifier.cloned(), field.name().clone()))
            })
        }
        _ => return None,
    };
    Some(found.ok_or_else(|| refused("its timestamp is computed")))
}

/// Whether a column in a plan above the aggregation is the bucket time.
fn is_bucket(names: &[String], plan: &LogicalPlan, column: &Column) -> bool {
    match (below(plan, column), plan) {
        (Some(Ok((input, inner))), _) => is_bucket(names, input, &inner),
        (None, LogicalPlan::Extension(_) | LogicalPlan::Aggregate(_)) => {
            names.contains(&column.name)
        }
        _ => false,
    }
}

/// The only aggregation in a query, whatever operator computes it.
struct Aggregation<'a> {
    bucket: Option<&'a Bucket>,
    keys: &'a [Expr],
    input: &'a LogicalPlan,
    schema: &'a DFSchema,
}

impl<'a> Aggregation<'a> {
    /// An output column's name.
    fn name(&self, index: usize) -> String {
        self.schema.field(index).name().clone()
    }

    /// Finds the aggregation below plan nodes that pass its rows on unchanged.
    fn of(plan: &'a LogicalPlan) -> EngineResult<Self> {
        match plan {
            LogicalPlan::Projection(projection) => {
                if projection.expr.iter().any(has_subquery) {
                    return Err(refused("it has a sub-query outside its aggregates"));
                }
                Self::of(&projection.input)
            }
            LogicalPlan::Filter(filter) if !has_subquery(&filter.predicate) => {
                Self::of(&filter.input)
            }
            LogicalPlan::Filter(_) => Err(refused("it has a sub-query outside its aggregates")),
            LogicalPlan::SubqueryAlias(alias) => Self::of(&alias.input),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => Self::of(&sort.input),
            LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => Err(refused("it has a LIMIT")),
            LogicalPlan::Union(_) => Err(refused("it combines several queries with UNION")),
            LogicalPlan::Distinct(_) => Err(refused("it has DISTINCT")),
            LogicalPlan::Window(_) => Err(refused("it has window functions")),
            LogicalPlan::Aggregate(found) => Ok(Self {
                bucket: None,
                keys: &found.group_expr,
                input: &found.input,
                schema: &found.schema,
            }),
            LogicalPlan::Extension(extension) => {
                let Some(LogicalNode::SampleBy(found)) = LogicalNode::of(extension.node.as_ref())
                else {
                    return Err(needs_buckets());
                };
                Ok(Self {
                    bucket: found.bucket(),
                    keys: found.keys(),
                    input: found.input(),
                    schema: UserDefinedLogicalNodeCore::schema(found),
                })
            }
            _ => Err(needs_buckets()),
        }
    }
}

fn needs_buckets() -> EngineError {
    refused(
        "it requires SAMPLE BY, GROUP BY timestamp_floor(…) on the base timestamp, or the base \
         table's rows with their timestamp",
    )
}

/// Traces the timestamp through plan nodes that preserve the base's rows, down to the base's scan.
fn follow(plan: &LogicalPlan, time: &Column, base: TableId) -> EngineResult<SqlType> {
    if let Some(below) = below(plan, time) {
        let (input, inner) = below?;
        return follow(input, &inner, base);
    }
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).map_err(error::plan)?;
            let table = provider.downcast_ref::<SnapshotTable>().map(SnapshotTable::table);
            let schema = table.map(|table| table.schema());
            let is_base = schema.is_some_and(|schema| schema.id == base);
            let designated = schema.and_then(|schema| schema.timestamp_column());
            let designated = designated.filter(|column| is_base && column.name == time.name);
            designated.map(|column| column.sql_type).ok_or_else(|| {
                refused("its buckets are not based on the designated timestamp of the base table")
            })
        }
        LogicalPlan::Join(join) => {
            let is_left = join.left.schema().maybe_index_of_column(time).is_some();
            let side = if is_left { &join.left } else { &join.right };
            let keeps = match join.join_type {
                JoinType::Inner => true,
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                    is_left
                }
                JoinType::Right
                | JoinType::RightSemi
                | JoinType::RightAnti
                | JoinType::RightMark => !is_left,
                JoinType::Full => false,
            };
            if !keeps {
                return Err(refused(
                    "a join returns rows without a matching row in the base table",
                ));
            }
            follow(side, time, base)
        }
        LogicalPlan::Extension(extension) => {
            let is_paired = matches!(
                LogicalNode::of(extension.node.as_ref()),
                Some(LogicalNode::Asof(_) | LogicalNode::WindowJoin(_) | LogicalNode::LatestOn(_))
            );
            let left = extension.node.inputs().first().copied().filter(|_| is_paired);
            match left.filter(|left| left.schema().maybe_index_of_column(time).is_some()) {
                Some(left) => follow(left, time, base),
                None => Err(refused("it reads rows outside its bucket")),
            }
        }
        _ => Err(refused("it reads rows outside its bucket")),
    }
}

/// The column that an expression consists of, ignoring aliases.
pub(crate) fn column_of(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Column(column) => Some(column.clone()),
        Expr::Alias(alias) => column_of(&alias.expr),
        _ => None,
    }
}

/// Whether an expression contains a sub-query or an outer column.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|inner| {
        Ok(matches!(
            inner,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::OuterReferenceColumn(..)
        ))
    })
    .unwrap_or(true)
}

/// The bucket definition and the column in a call such as `timestamp_floor('5m', ts)` or
/// `date_trunc('hour', ts)`.
pub(crate) fn floored(key: &Expr) -> Option<(BucketSpec, Column)> {
    let mut key = key;
    while let Expr::Alias(alias) = key {
        key = &alias.expr;
    }
    let Expr::ScalarFunction(call) = key else { return None };
    let is_floor = matches!(call.func.name(), "timestamp_floor" | "date_trunc");
    let [unit, time] = call.args.as_slice() else { return None };
    if !is_floor {
        return None;
    }
    let Expr::Literal(unit, _) = unit else { return None };
    let (ScalarValue::Utf8(Some(unit)) | ScalarValue::Utf8View(Some(unit))) = unit else {
        return None;
    };
    Some((BucketSpec::of_floor(unit)?, column_of(time)?))
}
