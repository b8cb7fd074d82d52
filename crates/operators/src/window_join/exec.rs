//! Executes WINDOW JOIN. The right side is read and sorted once, and each partition of the left
//! side has a worker.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{Fields, Schema, SchemaRef};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;

use super::index;
use super::node::{WindowBound, WindowJoinNode, pair_schema};
use super::plan::{BoundPlan, Computed, WindowAggregate, WindowPlan};
use super::side::WindowSide;
use super::stream::Worker;
use crate::asof::sides::{SidePlan, key_pairs, side};
use crate::lowering::{Inputs, Lower, Lowering, schema_of};
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
    order_of_first,
};
use crate::order::partitions_in_scan_order;
use crate::properties::{ascending_inputs, properties};
use crate::symbols::origin;

impl fmt::Display for WindowPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.left_timestamp, self.right_timestamp)?;
        for (left, right) in &self.keys {
            write!(f, ", {left} = {right}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, ", {filter}")?;
        }
        let aggregates = self.aggregates.iter().map(|aggregate| {
            let how = if aggregate.computed == Computed::Pairs { "pairs" } else { "index" };
            format!("{} ({how})", aggregate.plan.function.name())
        });
        write!(f, " aggregates=[{}]", aggregates.collect::<Vec<_>>().join(", "))?;
        if self.include_prevailing { write!(f, " prevailing") } else { Ok(()) }
    }
}

impl Operator for WindowPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "WindowJoinExec",
            memory: Some("WindowJoin"),
            preserves: PreservedOrder {
                rows: true,
                partitions: true,
                direction: false,
                every_row: true,
            },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let partitions = inputs[0].output_partitioning().partition_count();
        properties(schema, order_of_first(inputs), partitions, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let keys = self.keys.iter().flat_map(|(left, right)| [left, right]);
        let ends =
            [&self.left_timestamp, &self.right_timestamp, &self.low.distance, &self.high.distance];
        let arguments = self.aggregates.iter().flat_map(|one| &one.plan.arguments);
        ends.into_iter().chain(keys).chain(&self.filter).chain(arguments).collect()
    }

    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        partitions_in_scan_order(inputs)
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs([&self.left_timestamp, &self.right_timestamp])
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        of_first(column, inputs)
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (left, schema) = (run.rows(0, run.partition)?, Arc::clone(&run.schema));
        Ok(Run::stream(Arc::clone(&schema), async move {
            let side = run.shared(WindowSide::read(&run, &self)).await?;
            let worker = Worker::new(self, side, schema);
            let next = |(mut left, mut worker): (SendableRecordBatchStream, Worker)| async move {
                let Some(batch) = left.try_next().await? else { return Ok(None) };
                let joined = worker.join(&batch).await?;
                Ok(Some((joined, (left, worker))))
            };
            Ok(futures::stream::try_unfold((left, worker), next))
        }))
    }
}

impl Lower for WindowJoinNode {
    fn lower(
        &self,
        inputs: &Inputs<'_>,
        lowering: &Lowering<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (left_timestamp, right_timestamp) = self.timestamps();
        let left = side(inputs, 0, left_timestamp, lowering)?;
        let right = side(inputs, 1, right_timestamp, lowering)?;
        let (keys, key_kind) = key_pairs(self.keys(), (&left, &right), lowering)?;
        let pairs = pair_schema(inputs.logical[0], inputs.logical[1])?;
        let (left_schema, right_schema) = (left.plan.schema(), right.plan.schema());
        // In the pairs, columns that no expression reads are null.
        let fields = left_schema.fields().iter().chain(right_schema.fields());
        let fields: Fields =
            fields.map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let pair_schema = Arc::new(Schema::new(fields));
        let filter = self.filter().map(|filter| lowering.expr(filter, &pairs)).transpose()?;
        let sides = Sides { right: &right, pairs: &pairs, pair_schema: &pair_schema };
        let aggregates = self
            .aggregates()
            .iter()
            .map(|aggregate| window_aggregate(aggregate, &sides, filter.is_some(), lowering));
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        let pairwise = aggregates.iter().filter(|one| one.computed == Computed::Pairs);
        let read = pairwise.flat_map(|one| one.plan.arguments.iter().chain(&one.plan.filter));
        let paired: HashSet<usize> = read
            .chain(&filter)
            .flat_map(|expr| collect_columns(expr).into_iter().map(|column| column.index()))
            .collect();
        let range = self.range();
        let low = bound(&range.low, &left, lowering)?;
        let high = bound(&range.high, &left, lowering)?;
        let mut reach = reach(&left, &low, &high);
        if filter.is_some() && range.include_prevailing {
            // The newest row that satisfies the condition may be older than any window.
            reach = reach.map(|(_, newest)| (i64::MIN, newest));
        }
        let plan = WindowPlan {
            left_timestamp: left.timestamp,
            right_timestamp: right.timestamp,
            keys,
            key_kind,
            low,
            high,
            include_prevailing: range.include_prevailing,
            filter,
            aggregates,
            pair_schema,
            paired,
            reach,
        };
        Ok(OperatorExec::plan(plan, vec![left.plan, right.plan], &schema_of(self)))
    }

    fn times(&self) -> Vec<&Expr> {
        let (left, right) = self.timestamps();
        vec![left, right]
    }
}

fn bound(bound: &WindowBound, left: &SidePlan, lowering: &Lowering<'_>) -> Result<BoundPlan> {
    let distance = lowering.expr(&bound.distance, &left.schema)?;
    Ok(BoundPlan { distance, unit: bound.unit, following: bound.following })
}

/// Returns the range of timestamps that windows with constant distances can cover.
fn reach(left: &SidePlan, low: &BoundPlan, high: &BoundPlan) -> Option<(i64, i64)> {
    let (scan, output) = origin(&left.plan, &left.timestamp)?;
    let (first, last) = scan.time_bounds(output)?;
    let (low, high) = (low.constant()?, high.constant()?);
    Some((first.saturating_add(low), last.saturating_add(high)))
}

struct Sides<'a> {
    right: &'a SidePlan,
    pairs: &'a DFSchema,
    pair_schema: &'a SchemaRef,
}

/// Plans an aggregate. If it reads only the right side, it can have an index; otherwise, it is
/// computed over pairs of rows.
fn window_aggregate(
    aggregate: &Expr,
    sides: &Sides<'_>,
    filtered: bool,
    lowering: &Lowering<'_>,
) -> Result<WindowAggregate> {
    let right = sides.right;
    let separate = aggregate.column_refs().iter().all(|column| right.schema.has_column(column));
    if separate && !filtered {
        let schema = right.plan.schema();
        let plan = lowering.aggregate_over(aggregate, &right.schema, &schema)?;
        let argument = plan.arguments.first().map(|argument| argument.data_type(&schema));
        let kind = index::kind_of(&plan.function, argument.transpose()?.as_ref());
        if let (Some(kind), None) = (kind, &plan.filter) {
            return Ok(WindowAggregate { plan, computed: Computed::Indexed(kind) });
        }
    }
    let plan = lowering.aggregate_over(aggregate, sides.pairs, sides.pair_schema)?;
    Ok(WindowAggregate { plan, computed: Computed::Pairs })
}
