//! A named window's ANCHOR: functions restart at the start of each period. Period numbers are
//! computed first and added to PARTITION BY, so each partition contains one period.

use std::hash::Hash;
use std::sync::Arc;

use arrow_array::builder::Int64Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SortExpr,
    Volatility, WindowFunctionDefinition,
};
use tidemark_ast::{Anchor, AnchorPeriod, Name, Span};
use tidemark_functions::CastMode;
use tidemark_operators::PERIOD_NUMBER;
use tidemark_types::zone::{ClockDays, Zone};
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::partition_kernel::{PartitionKernel, over_partitions};
use crate::binder::expressions::window_frame::{OverRows, default_frame};
use crate::binder::state::named_windows::Window;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

/// Numbers the periods within a partition. The operator for windows in time order has its own
/// implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PeriodNumber;

impl PartitionKernel for PeriodNumber {
    const ARGUMENTS: usize = 1;

    fn name(&self) -> &'static str {
        PERIOD_NUMBER
    }

    fn returns(&self) -> DataType {
        DataType::Int64
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let values = arguments[0].as_primitive::<Int64Type>();
        let mut numbers = Int64Builder::with_capacity(rows);
        let mut last = None;
        let mut number = 0;
        for row in 0..rows {
            let value = values.is_valid(row).then(|| values.value(row));
            if last != Some(value) {
                (last, number) = (Some(value), number + 1);
            }
            numbers.append_value(number);
        }
        Ok(Arc::new(numbers.finish()))
    }
}

/// Computes the start of the day that contains a timestamp, as a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DayBegin {
    pub(crate) days: ClockDays,
    pub(crate) per_second: i64,
    signature: Signature,
}

impl DayBegin {
    /// The day that contains a timestamp: its start, and the start of the next day.
    pub(crate) fn around(&self, at: i64) -> (i64, i64) {
        let (first, next) = self.days.around(at.div_euclid(self.per_second));
        (first.saturating_mul(self.per_second), next.saturating_mul(self.per_second))
    }
}

impl ScalarUDFImpl for DayBegin {
    fn name(&self) -> &'static str {
        "day_begin"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = ColumnarValue::values_to_arrays(&args.args)?;
        let times = cast(&times[0], &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>();
        let mut begins = Int64Builder::with_capacity(times.len());
        let mut day = (i64::MAX, i64::MIN);
        for time in times {
            if let Some(time) = time.filter(|time| !(day.0..day.1).contains(time)) {
                day = self.around(time);
            }
            begins.append_option(time.map(|_| day.0));
        }
        Ok(ColumnarValue::Array(Arc::new(begins.finish())))
    }
}

impl Binder<'_> {
    /// Returns the expression for a window's period number, which is added to the window's
    /// PARTITION BY.
    pub(crate) fn anchored(
        &mut self,
        anchor: &Anchor,
        over: &Window,
        (partition_by, order_by): (&[Typed], &[SortExpr]),
        scope: &Scope<'_>,
    ) -> EngineResult<Expr> {
        let Anchor { period, span } = anchor;
        let refuse = |message: &str, at: Span| {
            Err(error::at(ErrorCode::NotSupported, message.to_owned(), at))
        };
        if let Some(frame) = &over.frame {
            return refuse("a window with an ANCHOR cannot have a frame", frame.span);
        }
        let keys = over.partition_by.iter().zip(partition_by);
        for (id, key) in keys {
            if !matches!(key.expr, Expr::Column(_)) {
                let message = "a window with an ANCHOR must be partitioned by plain columns";
                return refuse(message, self.tree.span(*id));
            }
        }
        let designated = scope.relation.and_then(|relation| relation.timestamp_column());
        let designated = designated
            .filter(|column| matches!(order_by, [key] if key.asc && key.expr == column.expr()));
        let Some(designated) = designated else {
            let message = "a window with an ANCHOR must be ordered by the designated timestamp, \
                           ascending";
            return refuse(message, *span);
        };
        let period = match period {
            AnchorPeriod::Daily { time, zone } => {
                let day = DayBegin {
                    days: clock_days(time, zone.as_ref())?,
                    per_second: match designated.sql_type {
                        SqlType::TimestampNs => 1_000_000_000,
                        _ => 1_000_000,
                    },
                    signature: Signature::any(1, Volatility::Immutable),
                };
                ScalarUDF::from(day).call(vec![designated.expr()])
            }
            AnchorPeriod::Expression { value } => {
                let at = self.tree.span(*value);
                let found = self.expression(*value, scope)?;
                if found.constant.is_some() || found.expr.is_volatile() {
                    return refuse("ANCHOR EXPRESSION must depend on the row and nothing else", at);
                }
                let is_known = found.sql_type.is_timestamp()
                    || matches!(found.sql_type, SqlType::Long | SqlType::Int);
                if !is_known {
                    let of = found.sql_type.name();
                    let message =
                        format!("ANCHOR EXPRESSION must be TIMESTAMP, LONG or INT, found {of}");
                    return Err(error::at(ErrorCode::TypeMismatch, message, at));
                }
                self.cast(found, SqlType::Long, CastMode::Explicit, at)?.expr
            }
        };
        let window = OverRows {
            function: WindowFunctionDefinition::WindowUDF(over_partitions(PeriodNumber)),
            arguments: vec![period],
            partition_by: partition_by.iter().map(|key| key.expr.clone()).collect(),
            order_by: order_by.to_vec(),
            ignore_nulls: false,
            distinct: false,
        };
        Ok(window.over(&default_frame(true)))
    }
}

/// Days that start at a given wall-clock time.
fn clock_days(time: &Name, zone: Option<&Name>) -> EngineResult<ClockDays> {
    let invalid = |message: String, at: Span| error::at(ErrorCode::InvalidValue, message, at);
    let digits = |text: &str| (text.len() == 2).then(|| text.parse::<u8>().ok()).flatten();
    let read = time.text.split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes) = (digits(hours)?, digits(minutes)?);
        (hours < 24 && minutes < 60).then_some(i64::from(hours) * 3_600 + i64::from(minutes) * 60)
    });
    let seconds_of_day = read.ok_or_else(|| {
        invalid(format!("invalid time of day '{}': expected HH:MM", time.text), time.span)
    })?;
    let zone = match zone {
        None => Zone::Fixed(0),
        Some(name) => Zone::parse(&name.text)
            .ok_or_else(|| invalid(format!("invalid timezone: {}", name.text), name.span))?,
    };
    Ok(ClockDays { seconds_of_day, zone })
}
