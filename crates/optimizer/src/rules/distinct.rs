//! Logical rule: converts DISTINCT into GROUP BY. If there are only a few columns and all are
//! symbols, Tidemark's operator groups by the symbols' keys. `DataFusion`'s rule handles all other
//! cases.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Distinct, Expr, Extension, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tidemark_operators::SampleByNode;

/// Maximum number of symbol columns. Up to this number, their combinations are few enough to keep
/// in memory.
const MAX_SYMBOLS: usize = 3;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct GroupDistinct(ReplaceDistinctWithAggregate);

impl OptimizerRule for GroupDistinct {
    fn name(&self) -> &'static str {
        "group_distinct"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Distinct(Distinct::All(input)) if are_symbols(&input) => {
                let keys = input.schema().columns().into_iter().map(Expr::Column).collect();
                let node = SampleByNode::try_new(Arc::unwrap_or_clone(input), None, keys, vec![])?;
                let node = Arc::new(node.in_any_order(true));
                Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
            }
            plan => self.0.rewrite(plan, config),
        }
    }
}

fn are_symbols(rows: &LogicalPlan) -> bool {
    let fields = rows.schema().fields();
    let is_symbol = |data_type: &DataType| matches!(data_type, DataType::Dictionary(_, _));
    (1..=MAX_SYMBOLS).contains(&fields.len())
        && fields.iter().all(|field| is_symbol(field.data_type()))
}
