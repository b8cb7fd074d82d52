//! RETURNING: results for the rows that a statement inserted, changed or deleted.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field as ArrowField, Schema};
use datafusion::common::DFSchemaRef;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use tidemark_ast::{Name, SelectItem};
use tidemark_storage::TableSnapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field};

use crate::binder::clauses::stage::Item;
use crate::binder::expressions::expression::{has_aggregate, has_window};
use crate::binder::state::relation;
use crate::binder::state::scope::Relation;
use crate::binder::statements::conversion::runtime_value;
use crate::binder::{Binder, error};

/// The RETURNING list over the table's columns.
#[derive(Debug, Clone)]
pub struct Returning {
    schema: DFSchemaRef,
    exprs: Vec<Expr>,
    /// Names and SQL types of the output columns.
    pub columns: Vec<Field>,
}

impl Returning {
    /// Computes the result for the rows of a batch, which has the table's columns.
    pub fn rows(&self, batch: &RecordBatch) -> EngineResult<RecordBatch> {
        let props = ExecutionProps::new();
        let context = PhysicalPlanningContext::default();
        let mut fields = Vec::with_capacity(self.exprs.len());
        let mut arrays = Vec::with_capacity(self.exprs.len());
        for (expr, column) in self.exprs.iter().zip(&self.columns) {
            let array = create_physical_expr(expr, &self.schema, &props, &context)
                .and_then(|physical| physical.evaluate(batch))
                .and_then(|value| value.into_array(batch.num_rows()))
                .map_err(runtime_value)?;
            fields.push(ArrowField::new(&column.name, array.data_type().clone(), true));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|failure| EngineError::internal(failure.to_string()))
    }
}

impl Binder<'_> {
    /// Binds the RETURNING list; `None` if there is no RETURNING clause.
    pub(crate) fn returning(
        &mut self,
        items: &[SelectItem],
        table: &Arc<TableSnapshot>,
        name: &Name,
    ) -> EngineResult<Option<Returning>> {
        if items.is_empty() {
            return Ok(None);
        }
        let reference = self.relation_name();
        let rows = relation::of_table(Arc::clone(table), &name.text, reference, &self.accesses)?;
        self.note_read(&table.schema().name, Vec::new());
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        for item in self.returned(items, &rows)? {
            columns.push(Field::new(&item.name, item.value.sql_type));
            exprs.push(item.value.expr);
        }
        Ok(Some(Returning { schema: Arc::clone(rows.plan.schema()), exprs, columns }))
    }

    /// The RETURNING items over these rows.
    pub(crate) fn returned(
        &mut self,
        items: &[SelectItem],
        rows: &Relation,
    ) -> EngineResult<Vec<Item>> {
        let bound = self.items(items, rows)?;
        for item in &bound {
            if has_aggregate(&item.value.expr) || has_window(&item.value.expr) {
                let at = item.node.map(|node| self.tree.span(node)).unwrap_or_default();
                let message = "aggregate and window functions are not allowed in RETURNING";
                return Err(error::at(ErrorCode::NotSupported, message, at));
            }
        }
        Ok(bound)
    }
}
