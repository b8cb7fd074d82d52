//! The FILL logical node.

use std::cmp::Ordering;
use std::fmt;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::bucket::BucketSpec;

/// A column's value in a bucket without rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub enum FillValue {
    /// The type's null, or 0 or false for types without null.
    Null,
    /// The value from the previous bucket, even if it is null.
    Prev,
    /// The value of the input column with this index in the previous bucket that has rows.
    PrevOf(usize),
    /// Linear interpolation between the neighbouring known values; null if either is missing.
    Linear,
    /// This constant, which already has the column's type.
    Constant(ScalarValue),
}

/// Adds missing buckets to the SAMPLE BY output, for every key that occurs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FillNode {
    input: LogicalPlan,
    timestamp: usize,
    keys: Vec<usize>,
    values: Vec<FillValue>,
    spec: BucketSpec,
    range: Option<(i64, i64)>,
    schema: DFSchemaRef,
}

impl FillNode {
    /// Creates a node over `input`, which is sorted by column `timestamp`. `values` has one entry
    /// for each column that is neither the timestamp nor a key, in column order. `range` extends
    /// the buckets to `[from, to)`, in the timestamp's unit.
    pub fn try_new(
        input: LogicalPlan,
        timestamp: usize,
        keys: Vec<usize>,
        values: Vec<FillValue>,
        spec: BucketSpec,
        range: Option<(i64, i64)>,
    ) -> Result<Self> {
        let columns = input.schema().fields().len();
        if keys.iter().any(|&key| key >= columns || key == timestamp) || timestamp >= columns {
            return plan_err!("Fill refers to a column that its input does not have");
        }
        if values.len() + keys.len() + 1 != columns {
            let expected = columns.saturating_sub(keys.len() + 1);
            return plan_err!("expected {expected} fill values, found {}", values.len());
        }
        let missing = |value: &FillValue| matches!(value, FillValue::PrevOf(of) if *of >= columns);
        if values.iter().any(missing) {
            return plan_err!("Fill uses values of a column that its input does not have");
        }
        let schema = nullable_values(input.schema(), timestamp, &keys)?;
        Ok(Self { input, timestamp, keys, values, spec, range, schema })
    }

    /// The input.
    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// Index of the bucket column.
    pub fn timestamp(&self) -> usize {
        self.timestamp
    }

    /// Indexes of the key columns.
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// Fill value of each column that is neither the bucket nor a key, in column order.
    pub fn values(&self) -> &[FillValue] {
        &self.values
    }

    /// The bucket definition.
    pub fn spec(&self) -> &BucketSpec {
        &self.spec
    }

    /// FROM and TO.
    pub fn range(&self) -> Option<(i64, i64)> {
        self.range
    }
}

/// Returns the input's schema with nullable values, since FILL(NULL) can make even counts null.
fn nullable_values(input: &DFSchema, timestamp: usize, keys: &[usize]) -> Result<DFSchemaRef> {
    let fields = input.iter().enumerate().map(|(index, (qualifier, field))| {
        let retained = index == timestamp || keys.contains(&index);
        let never_null =
            matches!(field.data_type(), DataType::Boolean | DataType::Int8 | DataType::Int16);
        let nullable = if retained || never_null { field.is_nullable() } else { true };
        (qualifier.cloned(), FieldRef::new(field.as_ref().clone().with_nullable(nullable)))
    });
    let metadata = input.metadata().clone();
    Ok(DFSchema::new_with_metadata(fields.collect(), metadata)?.into())
}

impl PartialOrd for FillNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.timestamp, node.keys.clone(), node.values.clone(), node.spec);
        match key(self).partial_cmp(&key(other)) {
            Some(Ordering::Equal) => self.input.partial_cmp(&other.input),
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for FillNode {
    fn name(&self) -> &'static str {
        "Fill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Fill: {} keys={:?} values={:?}", self.spec, self.keys, self.values)
    }

    fn with_exprs_and_inputs(
        &self,
        _exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let Some(input) = inputs.pop() else {
            return plan_err!("Fill needs one input");
        };
        let values = self.values.clone();
        Self::try_new(input, self.timestamp, self.keys.clone(), values, self.spec, self.range)
    }
}
