//! Executes semi-joins and derives their plan properties.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::filter;
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    EmptyRecordBatchStream, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

use super::files::Files;
use super::in_memory::{InnerKeys, OuterRows};
use super::plan::{MemorySide, SemiJoin};
use crate::equi_join::grace::numbers::numbered;
use crate::equi_join::join::{FIRST, Kind, OTHER, OutputColumn};
use crate::keys::numbers::KnownTexts;
use crate::keys::set::KeySet;
use crate::keys::values::comparable;
use crate::materialize::with_schema;
use crate::operator::{Facts, Input, Lineage, Operator, PreservedOrder, Run, Work};

/// State shared by all partitions.
enum Shared<T> {
    InMemory(Arc<T>),
    /// The rows do not fit in memory.
    Files(Files),
}

impl SemiJoin {
    /// Creates an empty set to which `tasks` tasks can add keys.
    pub(super) fn no_keys(&self, tasks: usize) -> Result<KeySet> {
        KeySet::new(Arc::clone(&self.key_schema), self.join.nulls, tasks, &self.hasher)
    }

    /// Evaluates the keys of the outer rows.
    pub(super) fn outer_keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let keys = self.join.keys.iter();
        keys.map(|(own, _)| own.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    /// Returns the keys in a partition of the inner side.
    pub(super) fn inner_keys(
        &self,
        run: &Run,
        partition: usize,
    ) -> Result<SendableRecordBatchStream> {
        Ok(self.keys_of(run.rows(OTHER, partition)?))
    }

    /// Replaces the inner side's rows with their keys.
    fn keys_of(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let (keys, schema) = (self.join.keys.clone(), Arc::clone(&self.key_schema));
        let rows = rows.map(move |batch| {
            let batch = batch?;
            let rows = batch.num_rows();
            let keys = keys.iter();
            let keys = keys.map(|(_, own)| comparable(&own.evaluate(&batch)?.into_array(rows)?));
            with_schema(&schema, keys.collect::<Result<_>>()?, rows)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.key_schema), rows))
    }

    /// Returns a partition's rows, with the inner side's keys in memory.
    async fn by_keys(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let run = Arc::new(run);
        let read = async {
            Ok(match InnerKeys::read_all(&self, &run).await? {
                Ok(keys) => Shared::InMemory(Arc::new(keys)),
                Err(rows) => Shared::Files(self.spread_keys(&run, rows, 0).await?),
            })
        };
        let (shared, outer) = (run.shared(read).await?, run.rows(FIRST, run.partition)?);
        match shared.as_ref() {
            Shared::InMemory(keys) => Ok(self.filter_by_keys(&run.schema, Arc::clone(keys), outer)),
            Shared::Files(inner) => {
                let outer = self.spread_rows(&run, numbered(outer), 0).await?;
                Ok(self.in_order(&run, inner.clone(), outer))
            }
        }
    }

    /// Filters outer rows by the keys held in memory.
    pub(super) fn filter_by_keys(
        self: &Arc<Self>,
        schema: &SchemaRef,
        keys: Arc<InnerKeys>,
        outer: SendableRecordBatchStream,
    ) -> SendableRecordBatchStream {
        if self.join.kind == Kind::Semi && keys.is_empty() {
            // Returns no rows and does not read the outer rows.
            return Box::pin(EmptyRecordBatchStream::new(Arc::clone(schema)));
        }
        let (own, rows_schema) = (Arc::clone(self), Arc::clone(schema));
        let mut known = KnownTexts::default();
        let rows = outer.map(move |batch| {
            let batch = batch?;
            let found = keys.has(&own, &batch, &mut known)?;
            own.output(&rows_schema, &batch, found)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows))
    }

    /// Returns a partition's rows, with the outer rows in memory. The partition that finishes last
    /// returns all rows.
    async fn by_rows(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (schema, run) = (Arc::clone(&run.schema), Arc::new(run));
        let read = async {
            let (outer, partitions) = (run.rows(FIRST, 0)?, self.partitions(&run.inputs));
            Ok(match OuterRows::read(&self, &run, outer, partitions).await? {
                Ok(keys) => Shared::InMemory(Arc::new(keys)),
                Err(rows) => Shared::Files(self.spread_rows(&run, numbered(rows), 0).await?),
            })
        };
        match run.shared(read).await?.as_ref() {
            Shared::InMemory(keys) => {
                let inner = self.inner_keys(&run, run.partition)?;
                self.found(&schema, Arc::clone(keys), inner).await
            }
            Shared::Files(_) if run.partition > 0 => {
                Ok(Box::pin(EmptyRecordBatchStream::new(schema)))
            }
            Shared::Files(outer) => {
                let all = CoalescePartitionsExec::new(Arc::clone(&run.inputs[OTHER]));
                let inner = self.keys_of(all.execute(0, Arc::clone(&run.context))?);
                let inner = self.spread_keys(&run, inner, 0).await?;
                Ok(self.in_order(&run, inner, outer.clone()))
            }
        }
    }

    /// If this partition is the last to finish, filters the in-memory rows by the inner side's
    /// keys.
    async fn found(
        self: &Arc<Self>,
        schema: &SchemaRef,
        outer_rows: Arc<OuterRows>,
        inner: SendableRecordBatchStream,
    ) -> Result<SendableRecordBatchStream> {
        let found = outer_rows.gather(self, inner).await?;
        let Some(sets) = outer_rows.end(found) else {
            return Ok(Box::pin(EmptyRecordBatchStream::new(Arc::clone(schema))));
        };
        let (own, rows_schema) = (Arc::clone(self), Arc::clone(schema));
        let rows = (0..outer_rows.batches.len()).map(move |at| {
            let batch = &outer_rows.batches[at];
            own.output(&rows_schema, batch, OuterRows::found(&own, batch, &sets)?)
        });
        let rows = futures::stream::iter(rows);
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows)))
    }

    /// Builds the output from outer rows. `found` marks the rows whose key is in the inner side.
    fn output(
        &self,
        schema: &SchemaRef,
        batch: &RecordBatch,
        found: BooleanBuffer,
    ) -> Result<RecordBatch> {
        let found = if self.join.kind == Kind::Anti { !&found } else { found };
        let found = BooleanArray::new(found, None);
        let is_all = self.join.kind == Kind::Mark || found.true_count() == batch.num_rows();
        let rows = if is_all { batch.num_rows() } else { found.true_count() };
        let columns = self.join.output.iter().map(|column| match *column {
            OutputColumn::First(at) if is_all => Ok(Arc::clone(batch.column(at))),
            OutputColumn::First(at) => Ok(filter(batch.column(at), &found)?),
            OutputColumn::Mark => Ok(Arc::new(found.clone()) as ArrayRef),
            OutputColumn::Other(_) => internal_err!("unexpected inner column in a semi-join"),
        });
        with_schema(schema, columns.collect::<Result<_>>()?, rows)
    }
}

impl Operator for SemiJoin {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "SemiJoinExec",
            memory: Some("SemiJoin"),
            preserves: PreservedOrder {
                rows: true,
                partitions: true,
                direction: true,
                every_row: self.join.kind.preserves_every_row(),
            },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let emission = match self.memory_side {
            MemorySide::InnerKeys => EmissionType::Incremental,
            MemorySide::OuterRows => EmissionType::Final,
        };
        self.join.properties(schema, inputs, self.partitions(inputs), emission)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.join.expressions()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        let outer = match self.memory_side {
            MemorySide::InnerKeys => Distribution::UnspecifiedDistribution,
            MemorySide::OuterRows => Distribution::SinglePartition,
        };
        vec![outer, Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None, None]
    }

    fn lineage(&self, column: usize, _: &[Input]) -> Option<Lineage> {
        self.join.lineage(column)
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows[FIRST]
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::stream(Arc::clone(&run.schema), async move {
            match self.memory_side {
                MemorySide::InnerKeys => self.by_keys(run).await,
                MemorySide::OuterRows => self.by_rows(run).await,
            }
        }))
    }
}
