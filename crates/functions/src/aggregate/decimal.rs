//! Sums and means of decimals; only the final result is rounded.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal256Type, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::Accumulator;
use tidemark_types::SqlType;

use super::native::NativeAggregate;
use crate::column::invalid;
use crate::number::decimal::{MAX_PRECISION, Rounding, build_decimals, divide, wide};
use crate::resolve::{Argument, ResolvedAggregate};

/// Resolves `sum(decimal)` and `avg(decimal [, places])`; `None` for other names or arguments.
pub(super) fn resolve(name: &str, arguments: &[Argument]) -> Option<ResolvedAggregate> {
    let from = arguments.first()?.sql_type;
    let SqlType::Decimal(precision, scale) = from else { return None };
    let returns = match (name, arguments) {
        // Chosen so that the sum fits even for the largest possible number of rows.
        ("sum", [_]) => {
            let extra_digits = match precision {
                0..=9 => 18,
                10..=18 => 38,
                _ => MAX_PRECISION,
            };
            SqlType::Decimal(extra_digits, scale)
        }
        ("avg", [_]) => from,
        ("avg", [_, places]) => {
            let places = places.integer().and_then(|places| u8::try_from(places).ok())?;
            let digits = precision - scale + places;
            (digits <= MAX_PRECISION).then_some(SqlType::Decimal(digits.max(1), places))?
        }
        _ => return None,
    };
    let is_mean = name == "avg";
    let udaf = NativeAggregate {
        name: if is_mean { "avg" } else { "sum" },
        variant: format!("{},{}", from.name(), returns.name()),
        returns,
        state: vec![DataType::Decimal256(MAX_PRECISION, scale as i8), DataType::Int64],
        one: Arc::new(move || {
            Box::new(Total { scale, returns, is_mean, sum: i256::ZERO, count: 0 })
        }),
        many: None,
    }
    .udaf();
    let mut types: Vec<SqlType> = arguments.iter().map(|argument| argument.sql_type).collect();
    types[0] = from;
    Some(super::shape::unordered(udaf, types, returns))
}

#[derive(Debug)]
struct Total {
    scale: u8,
    returns: SqlType,
    is_mean: bool,
    sum: i256,
    count: i64,
}

impl Total {
    fn add(&mut self, value: i256, count: i64) -> Result<()> {
        let sum = self.sum.checked_add(value);
        self.sum = sum.ok_or_else(|| invalid("decimal overflow in sum()"))?;
        self.count += count;
        Ok(())
    }

    fn result(&self) -> Option<i256> {
        let SqlType::Decimal(_, places) = self.returns else { return None };
        if self.count == 0 {
            return None;
        }
        if !self.is_mean {
            return Some(self.sum);
        }
        let ten = i256::from_i128(10);
        let (grown, divisor) = (
            self.sum.checked_mul(ten.checked_pow(u32::from(places.saturating_sub(self.scale)))?)?,
            ten.checked_pow(u32::from(self.scale.saturating_sub(places)))?,
        );
        let divisor = divisor.checked_mul(i256::from_i128(i128::from(self.count)))?;
        divide(grown, divisor, Rounding::HalfEven)
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        wide(&values[0])?.iter().flatten().try_for_each(|value| self.add(value, 1))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let found = self.result();
        if found.is_none() && self.count > 0 {
            return Err(invalid("decimal overflow in avg()"));
        }
        let excess = "decimal overflow in an aggregate";
        let array = build_decimals(1, self.returns, excess, &mut |_| Ok(found))?;
        ScalarValue::try_from_array(&array, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Decimal256(Some(self.sum), MAX_PRECISION, self.scale as i8);
        Ok(vec![sum, self.count.into()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let sums = states[0].as_primitive::<Decimal256Type>();
        let counts = states[1].as_primitive::<Int64Type>();
        for row in (0..sums.len()).filter(|row| sums.is_valid(*row)) {
            self.add(sums.value(row), counts.value(row))?;
        }
        Ok(())
    }
}
