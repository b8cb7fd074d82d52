//! Window functions that process a whole partition at once.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};

/// A window function's computation over a whole partition.
pub(crate) trait PartitionKernel:
    Debug + Clone + PartialEq + Eq + Hash + Send + Sync + 'static
{
    /// Number of arguments.
    const ARGUMENTS: usize;

    /// The function's name in plans.
    fn name(&self) -> &'static str;

    /// The function's result type.
    fn returns(&self) -> DataType;

    /// Returns one result per row of the partition. The rows are in the window's order.
    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef>;
}

/// Wraps the kernel as a `DataFusion` window function.
pub(crate) fn over_partitions<K: PartitionKernel>(kernel: K) -> Arc<WindowUDF> {
    let signature = Signature::any(K::ARGUMENTS, Volatility::Immutable);
    Arc::new(WindowUDF::from(OverPartitions { signature, kernel }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OverPartitions<K> {
    signature: Signature,
    kernel: K,
}

impl<K: PartitionKernel> WindowUDFImpl for OverPartitions<K> {
    fn name(&self) -> &str {
        self.kernel.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(
        &self,
        _: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator(self.kernel.clone())))
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(arguments.name(), self.kernel.returns(), true)))
    }
}

#[derive(Debug)]
struct Evaluator<K>(K);

impl<K: PartitionKernel> PartitionEvaluator for Evaluator<K> {
    fn evaluate_all(&mut self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate(arguments, rows)
    }
}
