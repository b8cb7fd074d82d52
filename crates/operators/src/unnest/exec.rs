//! Executes UNNEST: repeats a row for each of its elements, in batches of limited size.

use std::fmt;
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::take;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use tidemark_types::account;

use super::elements::{ElementRange, Elements};
use super::node::{UnnestItem, UnnestNode};
use crate::bounded::cell_bytes;
use crate::error::engine_error;
use crate::lowering::{Inputs, Lower, Lowering, schema_of};
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::properties::properties;

/// Returns one row per element.
#[derive(Debug)]
pub(crate) struct UnnestPlan {
    pub(crate) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) items: Vec<UnnestItem>,
    /// Indexes of the repeated input columns.
    pub(crate) repeated: Vec<usize>,
    pub(crate) retains_empty: bool,
    pub(crate) schema: SchemaRef,
}

/// Maximum number of rows in an output batch.
const MAX_BATCH_ROWS: usize = 16 * 1024;

/// Maximum size of a batch in bytes, unless a single row is larger.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// Approximate size of a fixed-length cell, in bytes.
const CELL_BYTES: usize = 16;

/// An input batch's rows, converted to output batches one after another.
struct Rows {
    plan: Arc<UnnestPlan>,
    /// The repeated columns.
    repeated: RecordBatch,
    /// Whether these columns have variable-length cells.
    varies: bool,
    elements: Vec<Elements>,
    /// The current row, its remaining elements, and the size of an output row in bytes.
    row: usize,
    left: Range<usize>,
    width: usize,
    /// The next row.
    next: usize,
}

impl Rows {
    fn new(batch: &RecordBatch, plan: &Arc<UnnestPlan>) -> Result<Self> {
        let mut elements = Vec::with_capacity(plan.items.len());
        for (argument, item) in plan.arguments.iter().zip(&plan.items) {
            let values = argument.evaluate(batch)?.into_array(batch.num_rows())?;
            elements.push(Elements::new(values, item)?);
        }
        let repeated = batch.project(&plan.repeated)?;
        let (varies, plan) = (cell_bytes(&repeated) > 0, Arc::clone(plan));
        Ok(Self { plan, repeated, varies, elements, row: 0, left: 0..0, width: 0, next: 0 })
    }

    /// Moves to a row with remaining elements, if any.
    fn seek(&mut self) -> Result<bool> {
        while self.left.is_empty() {
            if self.next == self.repeated.num_rows() {
                return Ok(false);
            }
            self.row = self.next;
            self.next += 1;
            self.left = 0..usize::from(self.plan.retains_empty);
            self.width = CELL_BYTES * self.plan.schema.fields().len();
            for elements in &mut self.elements {
                let (length, bytes) = elements.size(self.row)?;
                self.left.end = self.left.end.max(length);
                self.width += bytes;
            }
            if self.varies && !self.left.is_empty() {
                self.width += cell_bytes(&self.repeated.slice(self.row, 1));
            }
        }
        Ok(true)
    }

    /// Returns the elements of the next output batch.
    fn next_elements(&mut self) -> Result<Vec<ElementRange>> {
        let mut ranges = Vec::new();
        let (mut rows, mut bytes) = (MAX_BATCH_ROWS, MAX_BATCH_BYTES);
        while rows > 0 && self.seek()? {
            let fit = (bytes / self.width).max(usize::from(ranges.is_empty()));
            let count = fit.min(rows).min(self.left.len());
            if count == 0 {
                break;
            }
            let start = self.left.start;
            self.left.start += count;
            ranges.push(ElementRange { row: self.row, elements: start..self.left.start });
            rows -= count;
            bytes = bytes.saturating_sub(count * self.width);
        }
        account::check_allocation(MAX_BATCH_BYTES.max(self.width)).map_err(engine_error)?;
        Ok(ranges)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let ranges = self.next_elements()?;
        if ranges.is_empty() {
            return Ok(None);
        }
        let rows = ranges.iter().flat_map(|range| repeat_n(range.row as u64, range.elements.len()));
        let rows = UInt64Array::from_iter_values(rows);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.plan.schema.fields().len());
        for column in self.repeated.columns() {
            columns.push(take(column, &rows, None)?);
        }
        for elements in &mut self.elements {
            columns.extend(elements.columns(&ranges)?);
        }
        let numbers = ranges.iter().flat_map(|range| range.elements.clone());
        let numbers = Int64Array::from_iter_values(numbers.map(|index| index as i64 + 1));
        columns.push(Arc::new(numbers));
        debug_assert!(columns.iter().all(|column| column.len() == rows.len()));
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.plan.schema), columns)?))
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl fmt::Display for UnnestPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<String> = self.arguments.iter().map(ToString::to_string).collect();
        write!(f, "{}", arguments.join(", "))
    }
}

impl Operator for UnnestPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "UnnestElementsExec",
            memory: None,
            preserves: PreservedOrder { partitions: true, ..PreservedOrder::NOTHING },
            // The arrays determine the number of elements.
            work: Work::Cells,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let partitions = inputs[0].output_partitioning().partition_count();
        properties(schema, [], partitions, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.arguments.iter().collect()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None]
    }

    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        // Without statistics, assumes that lists are short.
        Some(rows.first().copied().flatten()?.saturating_mul(4))
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let rows = run.rows(0, run.partition)?;
        let batches = rows.map(move |batch| -> Result<_> {
            Ok(futures::stream::iter(Rows::new(&batch?, &self)?))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(run.schema, batches.try_flatten())))
    }
}

impl Lower for UnnestNode {
    fn lower(
        &self,
        inputs: &Inputs<'_>,
        lowering: &Lowering<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (schema, input) = inputs.get(0)?;
        let arguments = self.arguments().iter();
        let arguments = arguments.map(|argument| lowering.expr(argument, schema));
        let plan = UnnestPlan {
            arguments: arguments.collect::<Result<_>>()?,
            items: self.items().to_vec(),
            repeated: self.repeated().to_vec(),
            retains_empty: self.retains_empty(),
            schema: schema_of(self),
        };
        let output = Arc::clone(&plan.schema);
        Ok(OperatorExec::plan(plan, vec![input], &output))
    }

    fn times(&self) -> Vec<&Expr> {
        vec![]
    }
}
