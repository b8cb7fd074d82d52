//! Computes row numbers and ranks by numbers and symbols, for rows that stay in their original
//! order. Only keys are sorted; each row is given the rank of its sorted position.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, SchemaRef, SortOptions};
use datafusion::common::Result;
use datafusion::physical_expr::{
    Distribution, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tidemark_kernels::unpack;

use super::exec::is_copied_by_rows;
use super::function::Place;
use super::keys::{is_number, is_symbol};
use super::order::{Order, row_bytes};
use crate::materialize::{Materialized, Read, RemainingInput, begin, pause};
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
    order_of_first,
};
use crate::plan_node::{Ranking, ranking, with_first_input};
use crate::properties::properties;

/// Adds ranks to rows.
pub struct RankRows {
    /// The `DataFusion` operator that produces the same result from sorted rows.
    window: Arc<dyn ExecutionPlan>,
    functions: Vec<Place>,
    /// The PARTITION BY keys, followed by the ORDER BY keys.
    keys: LexOrdering,
    partition_by: usize,
}

impl RankRows {
    /// Returns the replacement for a window operator that computes only ranks, if its input is in a
    /// different order.
    pub fn try_replace(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(Ranking { functions, partition_by, order_by, input }) = ranking(plan) else {
            return Ok(None);
        };
        let schema = input.schema();
        let key = |key: &Arc<dyn PhysicalExpr>| {
            PhysicalSortExpr::new(Arc::clone(key), SortOptions::default())
        };
        let keys = partition_by.iter().map(key).chain(order_by.iter().cloned());
        let (partition_by, all) = (partition_by.len(), partition_by.len() + order_by.len());
        let Some(keys) = LexOrdering::new(keys) else { return Ok(None) };
        // `LexOrdering` keeps only the first of duplicate keys.
        let suits = keys.len() == all
            && partition_by < all
            && keys[..partition_by].iter().all(|key| is_symbol(key, &schema))
            && keys.iter().all(|key| is_number(key, &schema))
            && is_copied_by_rows(&schema);
        if !suits || input.equivalence_properties().ordering_satisfy(keys.clone())? {
            return Ok(None);
        }
        let operator = Self { window: Arc::clone(plan), functions, keys, partition_by };
        Ok(Some(OperatorExec::plan(operator, vec![Arc::clone(input)], &plan.schema())))
    }

    async fn ranked(self: Arc<Self>, run: &Run) -> Result<Ranked> {
        let keys: Vec<PhysicalSortExpr> = self.keys.iter().cloned().collect();
        // The PARTITION BY keys form groups, so no sort key is stored for them.
        let row_bytes =
            row_bytes(keys.len() - self.partition_by) + size_of::<u64>() * self.functions.len();
        let materialized = match Materialized::with_keys(run, &keys, row_bytes).await? {
            Read::All(materialized) => materialized,
            Read::Partial(materialized, rest) => return self.spilling(materialized, rest, run),
        };
        let order = Order::new(materialized, &keys, self.partition_by).await?;
        let workers = run.context.session_config().target_partitions().max(1);
        let max = order.ranges().map(|range| order.rows_of(range)).max().unwrap_or(0);
        let fits = order.materialized.grow(2 * size_of::<u128>() * max * workers);
        if order.leading() < self.partition_by || !fits {
            return self.spilling(order.materialized, vec![], run);
        }
        let of_batches = |_: &Place| {
            let batches = order.materialized.partitions().flatten();
            let cells = |rows: usize| (0..rows).map(|_| AtomicU64::new(0)).collect();
            batches.map(|batch| cells(batch.rows.num_rows())).collect()
        };
        let ranks = self.functions.iter().map(of_batches).collect();
        let materialized =
            Arc::new(InMemoryRanks { functions: self.functions.clone(), order, ranks });
        materialized.fill(workers).await?;
        Ok(Ranked::InMemory(materialized))
    }

    /// Computes the ranks using operators that can spill, with the rows in their original order.
    fn spilling(
        &self,
        materialized: Materialized,
        rest: RemainingInput,
        run: &Run,
    ) -> Result<Ranked> {
        let sorted = materialized.spilling(rest, &run.inputs[0].schema(), &self.keys);
        let mut plan = with_first_input(Arc::clone(&self.window), |_| Ok(sorted))?;
        if let Some(order) = order_of_first(&run.inputs).and_then(LexOrdering::new) {
            plan = Arc::new(SortExec::new(order, plan));
        }
        Ok(Ranked::Spilled(Mutex::new(Some(plan.execute(0, Arc::clone(&run.context))?))))
    }
}

/// Rows with their ranks; each partition is read separately.
enum Ranked {
    InMemory(Arc<InMemoryRanks>),
    /// All rows, which the first partition returns.
    Spilled(Mutex<Option<SendableRecordBatchStream>>),
}

struct InMemoryRanks {
    functions: Vec<Place>,
    order: Order,
    /// The ranks returned by each function, by batch.
    ranks: Vec<Vec<Vec<AtomicU64>>>,
}

/// Number of a partition's rows, and of its distinct keys, before a range.
#[derive(Clone, Copy, Default)]
struct Before {
    rows: u64,
    keys: u64,
}

impl InMemoryRanks {
    /// Writes each row's rank.
    async fn fill(self: &Arc<Self>, workers: usize) -> Result<()> {
        let keys = if self.functions.contains(&Place::DenseRank) {
            let of_range = |materialized: &Self, range| {
                let ties = |one: &u128, other: &u128| materialized.order.is_tie(*one, *other);
                Ok(materialized.order.sorted(range)?.chunk_by(ties).count() as u64)
            };
            self.for_each_range(workers, of_range).await?
        } else {
            vec![]
        };
        let mut before = vec![Before::default(); self.order.ranges().len()];
        for group in 0..self.order.groups() {
            let mut sum = Before::default();
            for range in self.order.of_group(group) {
                before[range] = sum;
                sum.rows += self.order.rows_of(range) as u64;
                sum.keys += keys.get(range).copied().unwrap_or(0);
            }
        }
        self.for_each_range(workers, move |materialized, range| {
            materialized.rank(range, before[range])
        })
        .await?;
        Ok(())
    }

    /// Runs `work` for each range using several workers, and returns the results.
    async fn for_each_range<T: Send + 'static>(
        self: &Arc<Self>,
        workers: usize,
        work: impl Fn(&Self, usize) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        let work = Arc::new(work);
        let ranges = self.order.batch_ranges(self.order.ranges());
        let is_only = ranges.len() == 1;
        let done = futures::stream::iter(ranges).map(|range: Range<usize>| {
            let (materialized, work) = (Arc::clone(self), Arc::clone(&work));
            begin(is_only, async move {
                let mut done = Vec::with_capacity(range.len());
                for range in range {
                    pause().await?;
                    done.push(work(&materialized, range)?);
                }
                Ok(done)
            })
        });
        done.buffered(workers).try_concat().await
    }

    fn rank(&self, range: usize, before: Before) -> Result<()> {
        let entries = self.order.sorted(range)?;
        let (mut row, mut key) = (before.rows, before.keys);
        for ties in entries.chunk_by(|one, other| self.order.is_tie(*one, *other)) {
            key += 1;
            let first = row + 1;
            for &entry in ties {
                row += 1;
                let (batch, position) = unpack(entry as u64);
                for (function, ranks) in self.functions.iter().zip(&self.ranks) {
                    let rank = match function {
                        Place::RowNumber => row,
                        Place::Rank => first,
                        Place::DenseRank => key,
                    };
                    // Each row is written once, and read only after all rows have been written.
                    ranks[batch][position].store(rank, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Returns a partition's batch with its ranks.
    fn batch(
        &self,
        partition: usize,
        number: usize,
        schema: &SchemaRef,
    ) -> Result<Option<RecordBatch>> {
        let mut partitions = self.order.materialized.partitions();
        let before: usize = partitions.by_ref().take(partition).map(<[_]>::len).sum();
        let Some(batch) = partitions.next().and_then(|part| part.get(number)) else {
            return Ok(None);
        };
        let mut columns = batch.rows.columns().to_vec();
        columns.extend(self.ranks.iter().map(|ranks| {
            let ranks = ranks[before + number].iter();
            let ranks = ranks.map(|rank| rank.load(Ordering::Relaxed));
            Arc::new(UInt64Array::from_iter_values(ranks)) as ArrayRef
        }));
        Ok(Some(RecordBatch::try_new(Arc::clone(schema), columns)?))
    }
}

impl fmt::Display for RankRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |keys: &[PhysicalSortExpr]| {
            keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (partition_by, order_by) = self.keys.split_at(self.partition_by);
        let by: Vec<String> = partition_by.iter().map(|key| key.expr.to_string()).collect();
        write!(f, "{:?} by=[{}] order=[{}]", self.functions, by.join(", "), show(order_by))
    }
}

impl Operator for RankRows {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "RankRowsExec",
            memory: Some("RankRows"),
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
        properties(schema, order_of_first(inputs), partitions, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.keys.iter().map(|key| &key.expr).collect()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None]
    }

    /// Spilled rows have keys from different dictionaries.
    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        let schema = inputs[0].schema();
        let is_symbol =
            matches!(schema.fields().get(column)?.data_type(), DataType::Dictionary(..));
        if is_symbol { None } else { of_first(column, inputs) }
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (schema, partition) = (Arc::clone(&run.schema), run.partition);
        Ok(Run::stream(Arc::clone(&schema), async move {
            let ranked = run.shared(self.ranked(&run)).await?;
            if let Ranked::Spilled(rows) = ranked.as_ref() {
                let rows = if partition == 0 { rows.lock().take() } else { None };
                return Ok(futures::stream::iter(rows).flatten().left_stream());
            }
            let batches = futures::stream::try_unfold(0, move |number| {
                let batch = match ranked.as_ref() {
                    Ranked::InMemory(materialized) => {
                        materialized.batch(partition, number, &schema)
                    }
                    Ranked::Spilled(_) => Ok(None),
                };
                futures::future::ready(batch.map(|batch| batch.map(|batch| (batch, number + 1))))
            });
            Ok(batches.right_stream())
        }))
    }
}
