//! Partial aggregation results, one per worker, and how they are merged into the result.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{
    Array, ArrayRef, RecordBatch, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_array::{RecordBatchOptions, UInt32Array, new_empty_array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::compute::{cast, take_record_batch};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use tidemark_kernels::run_end;
use tidemark_types::{EngineError, ErrorCode};

use super::accumulator::{Accumulate, BatchGroups, Merging, RowGroups, count_rows, values_of};
use super::fallback::state_of;
use super::group_cache::{GroupCache, GroupStates};
use super::groups::GroupIndex;
use super::plan::SampleByPlan;
use crate::bucket::BucketSpec;
use crate::error::engine_error;
use crate::grid::Grid;

/// Groups and states for the rows processed so far.
pub(crate) struct Partial {
    plan: Arc<SampleByPlan>,
    grid: Option<Grid>,
    groups: GroupIndex,
    /// Number of rows per group.
    counts: Vec<i64>,
    states: Vec<Box<dyn Accumulate>>,
}

impl Partial {
    pub(crate) fn new(plan: &Arc<SampleByPlan>) -> Result<Self> {
        let states = plan.aggregates.iter().map(|aggregate| {
            let argument =
                aggregate.arguments.first().map(|argument| argument.data_type(&plan.input_schema));
            let filtered = aggregate.filter.is_some();
            let argument = argument.transpose()?;
            state_of(&aggregate.function, argument.as_ref(), filtered, aggregate.symbols)
        });
        let states = states.collect::<Result<Vec<_>>>()?;
        let groups = GroupIndex::new(&plan.key_plan)?;
        Ok(Self { plan: Arc::clone(plan), grid: None, groups, counts: vec![], states })
    }

    /// Creates a partial result that resumes from cached groups.
    pub(crate) fn resumed(plan: &Arc<SampleByPlan>, groups: GroupStates) -> Result<Self> {
        let mut partial = Self::new(plan)?;
        if groups.labels.is_empty() {
            return Ok(partial);
        }
        let keys = groups.key_columns(&plan.key_plan)?;
        let mut runs: Vec<(Range<usize>, i64)> = vec![];
        for (group, &label) in groups.labels.iter().enumerate() {
            match runs.last_mut() {
                Some((rows, last)) if *last == label => rows.end = group + 1,
                _ => runs.push((group..group + 1, label)),
            }
        }
        partial.groups.assign(&runs, &keys)?;
        if partial.groups.len() != groups.labels.len() {
            return internal_err!("cached groups are not distinct");
        }
        (partial.counts, partial.states) = (groups.counts, groups.states);
        Ok(partial)
    }

    /// Stores the groups of open buckets for the next execution.
    pub(crate) fn store_open_groups(&self, cache: &GroupCache) {
        let labels = self.groups.group_labels();
        let from = cache.from();
        let open = (0..labels.len() as u32).filter(|&group| labels[group as usize] >= from);
        let open: Vec<u32> = open.collect();
        // This assumes that all groups use about the same amount of memory.
        let bytes = self.size().checked_div(labels.len()).unwrap_or(0).saturating_mul(open.len());
        cache.store(bytes, || {
            let states = self.states.iter().map(|state| state.copy(&open));
            Some(GroupStates {
                keys: self.groups.symbols_of(&open)?,
                states: states.collect::<Option<_>>()?,
                counts: values_of(&self.counts, &open),
                labels: values_of(&labels, &open),
            })
        });
    }

    /// Adds the next batch in time order.
    pub(crate) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let mut batch = batch.clone();
        let mut runs = vec![(0..batch.num_rows(), 0)];
        if let Some(bucket) = &plan.bucket {
            let times = timestamps(&bucket.timestamp, &batch)?;
            let range = inside(&times, &bucket.spec);
            batch = batch.slice(range.start, range.len());
            runs = self.cut(&times[range], &bucket.spec);
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let rows = batch.num_rows();
        let evaluate = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&batch)?.into_array(rows);
        let keys = plan.keys.iter().map(evaluate).collect::<Result<Vec<_>>>()?;
        let (rows, new_rows) = self.groups.assign(&runs, &keys)?;
        let total = self.groups.len();
        let groups = BatchGroups { rows, new_rows, counts: &self.counts, total };
        for (aggregate, state) in plan.aggregates.iter().zip(&mut self.states) {
            let arguments = aggregate.arguments.iter().chain(&aggregate.filter);
            let values = arguments.map(evaluate).collect::<Result<Vec<_>>>()?;
            state.update(&values, &groups)?;
        }
        let rows = groups.rows;
        count_rows(&mut self.counts, &rows, total);
        Ok(())
    }

    /// Divides sorted timestamps into runs that each lie in a single bucket.
    fn cut(&mut self, times: &[i64], spec: &BucketSpec) -> Vec<(Range<usize>, i64)> {
        let Some(&first) = times.first() else { return vec![] };
        let grid = self.grid.get_or_insert_with(|| Grid::new(spec, first));
        let mut runs = vec![];
        let mut start = 0;
        while start < times.len() {
            let run = grid.run(times[start]);
            let end = run_end(times, start, run.end).max(start + 1);
            runs.push((start..end, run.label));
            start = end;
        }
        runs
    }

    /// Merges a later partial result.
    pub(crate) fn absorb(&mut self, later: Self) -> Result<()> {
        let mapping = self.groups.absorb(later.groups)?;
        let total = self.groups.len();
        let merging =
            Merging { mapping: &mapping, counts: &self.counts, later_counts: &later.counts, total };
        for (state, later) in self.states.iter_mut().zip(later.states) {
            state.merge(later, &merging)?;
        }
        self.counts.resize(total, 0);
        for (&group, count) in mapping.iter().zip(&later.counts) {
            self.counts[group as usize] += count;
        }
        Ok(())
    }

    /// Whether the result is final, so that further rows cannot change it.
    pub(crate) fn is_complete(&self) -> bool {
        self.plan.max_groups == Some(self.groups.len())
    }

    /// Memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        let states: usize = self.states.iter().map(|state| state.size()).sum();
        states + self.counts.capacity() * 8 + self.groups.size()
    }

    /// Returns all groups, ordered by bucket and then by first appearance.
    pub(crate) fn finish(mut self) -> Result<RecordBatch> {
        let plan = Arc::clone(&self.plan);
        if plan.is_global() && self.groups.len() == 0 {
            self.aggregate_nothing()?;
        }
        // DataFusion's group accumulators cannot determine their type if there are no groups.
        if self.groups.len() == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&plan.output_schema)));
        }
        let labels = self.groups.group_labels();
        let mut columns = vec![];
        if let Some(bucket) = &plan.bucket {
            columns.push(label_column(&labels, &bucket.spec));
        }
        columns.extend(self.groups.key_columns()?);
        for state in self.states {
            columns.push(state.finish(&self.counts)?);
        }
        let batch = shape(&plan.output_schema, columns, labels.len())?;
        if labels.is_sorted() {
            return Ok(batch);
        }
        let mut order: Vec<u32> = (0..labels.len() as u32).collect();
        order.sort_by_key(|&group| labels[group as usize]);
        Ok(take_record_batch(&batch, &UInt32Array::from(order))?)
    }

    /// For an aggregate without keys, produces the single result row of an empty input.
    fn aggregate_nothing(&mut self) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        self.groups.ensure_one();
        let rows = RowGroups::Runs(vec![]);
        let groups = BatchGroups { rows, new_rows: vec![], counts: &[], total: 1 };
        for (aggregate, state) in plan.aggregates.iter().zip(&mut self.states) {
            let arguments = aggregate.arguments.iter().chain(&aggregate.filter);
            let empty = arguments
                .map(|argument| Ok(new_empty_array(&argument.data_type(&plan.input_schema)?)));
            state.update(&empty.collect::<Result<Vec<_>>>()?, &groups)?;
        }
        self.counts = vec![0];
        Ok(())
    }
}

/// Returns the rows between FROM and TO.
fn inside(times: &[i64], spec: &BucketSpec) -> Range<usize> {
    let start = spec.from.map_or(0, |from| times.partition_point(|&ts| ts < from));
    let end = spec.to.map_or(times.len(), |to| times.partition_point(|&ts| ts < to));
    start..end.max(start)
}

/// Returns a batch's timestamps as integers.
pub(crate) fn timestamps(
    expr: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
) -> Result<ScalarBuffer<i64>> {
    let array = expr.evaluate(batch)?.into_array(batch.num_rows())?;
    if array.null_count() > 0 {
        let message = "the designated timestamp contains a null";
        return Err(engine_error(EngineError::new(ErrorCode::InvalidValue, message)));
    }
    if let Some(micros) = array.as_primitive_opt::<TimestampMicrosecondType>() {
        return Ok(micros.values().clone());
    }
    if let Some(nanos) = array.as_primitive_opt::<TimestampNanosecondType>() {
        return Ok(nanos.values().clone());
    }
    internal_err!("expected a timestamp, found {}", array.data_type())
}

/// Returns bucket labels as a timestamp column.
pub(crate) fn label_column(labels: &[i64], spec: &BucketSpec) -> ArrayRef {
    if spec.nanoseconds {
        Arc::new(TimestampNanosecondArray::from(labels.to_vec()))
    } else {
        Arc::new(TimestampMicrosecondArray::from(labels.to_vec()))
    }
}

/// Returns these columns as a batch. A column is cast if its type differs from the schema's type
/// only in its representation.
fn shape(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let fits = |(column, field): (ArrayRef, &Arc<arrow_schema::Field>)| -> Result<ArrayRef> {
        let expected: &DataType = field.data_type();
        if column.data_type() == expected {
            return Ok(column);
        }
        Ok(cast(&column, expected)?)
    };
    let columns = columns.into_iter().zip(schema.fields()).map(fits).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
