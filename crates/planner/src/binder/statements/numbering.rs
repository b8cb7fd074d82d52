//! Sequence columns: SERIAL and IDENTITY. A sequence begins at its start value or, if the table
//! already has rows at the first request, after the column's maximum. Values for rows that were
//! never committed are not reused while the database is open.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_array::Int64Array;
use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Sort, Volatility,
};
use tidemark_functions::CastMode;
use tidemark_storage::{ColumnSchema, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::SequenceValues;
use crate::binder::catalog::pg_catalog::object::{Numbering, sequence_name};
use crate::binder::expressions::constant::as_i64;
use crate::binder::state::relation;
use crate::binder::{Binder, Typed};

impl Binder<'_> {
    /// Returns an expression that generates a column's next sequence values; `None` if the database
    /// generates no sequence values.
    pub(crate) fn next_number(
        &mut self,
        schema: &TableSchema,
        column: &ColumnSchema,
        Numbering { first, step }: Numbering,
    ) -> EngineResult<Option<Expr>> {
        let Some(external) = self.context.external.clone() else { return Ok(None) };
        let last = external.last_number(schema.identity(), column.identity());
        if last.load(Ordering::Acquire) == 0
            && let Some(table) = self.snapshot.table(&schema.name)
            && table.row_count()? > 0
        {
            let reference = self.relation_name();
            let rows = relation::of_table(table, "", reference, &self.accesses)?;
            let index = rows.columns.iter().find(|one| one.name == column.name);
            let index =
                index.ok_or_else(|| EngineError::internal("a column is missing from its table"))?;
            let plan = relation::project(rows.plan.clone(), vec![index.expr().alias("number")])?;
            let greatest = vec![datafusion::logical_expr::ident("number").sort(false, false)];
            let plan = Sort { expr: greatest, input: Arc::new(plan), fetch: Some(1) };
            let found = external.values(&LogicalPlan::Sort(plan), 1)?;
            let greatest = found.first().and_then(as_i64).unwrap_or_default();
            last.fetch_max(greatest, Ordering::AcqRel);
        }
        let before = first.saturating_sub(step);
        let _ = last.compare_exchange(0, before, Ordering::AcqRel, Ordering::Acquire);
        let function = ScalarUDF::from(NextNumber {
            last,
            sequence: sequence_name(&schema.name, &column.name),
            generated: self.context.sequence_values.clone(),
            max: max_of(column.sql_type),
            step,
            signature: Signature::exact(Vec::new(), Volatility::Volatile),
        });
        let value = Typed::computed(function.call(Vec::new()), SqlType::Long);
        let at = tidemark_ast::Span::default();
        Ok(Some(self.cast(value, column.sql_type, CastMode::Insert, at)?.expr))
    }
}

fn max_of(sql_type: SqlType) -> i64 {
    match sql_type {
        SqlType::Short => i16::MAX.into(),
        SqlType::Int => i32::MAX.into(),
        _ => i64::MAX,
    }
}

#[derive(Debug)]
struct NextNumber {
    last: Arc<AtomicI64>,
    sequence: String,
    generated: SequenceValues,
    /// The column type's maximum value.
    max: i64,
    step: i64,
    signature: Signature,
}

impl PartialEq for NextNumber {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.last, &other.last)
    }
}

impl Eq for NextNumber {}

impl Hash for NextNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.last).hash(state);
    }
}

impl ScalarUDFImpl for NextNumber {
    fn name(&self) -> &'static str {
        "next_id"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let count = i64::try_from(args.number_rows).unwrap_or(i64::MAX);
        let length = count.saturating_mul(self.step);
        let after = |last: i64| last.checked_add(length).filter(|end| *end <= self.max);
        let updated = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, after);
        let Ok(before) = updated else {
            let message = format!("the column has reached its maximum value {}", self.max);
            let failure = EngineError::new(ErrorCode::InvalidValue, message);
            return Err(datafusion::common::DataFusionError::External(Box::new(failure)));
        };
        let end = before + length;
        if count > 0 {
            self.generated.note(&self.sequence, &self.last, (length, end));
        }
        let steps = (1..).map(|number: i64| before.wrapping_add(self.step.wrapping_mul(number)));
        let numbers: Int64Array = steps.take(args.number_rows).collect();
        Ok(ColumnarValue::Array(Arc::new(numbers)))
    }
}
