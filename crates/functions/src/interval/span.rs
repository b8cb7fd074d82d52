//! One interval, why a text is none, and times moved by a duration.

use tidemark_types::calendar::add_months;
use tidemark_types::timestamp::TimestampUnit;

/// Why a text is no interval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IntervalError {
    /// The reference's words.
    pub message: String,
    /// Where, in bytes from the start of the text. The reference always points at the literal.
    pub offset: usize,
}

pub(super) type Result<T> = std::result::Result<T, IntervalError>;

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(IntervalError { message: message.into(), offset: 0 })
}

pub(super) fn bad_date<T>(text: &str) -> Result<T> {
    fail(format!("Invalid date: {text}"))
}

/// A half-open interval in microseconds; `zoned` when its text named an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) lo: i64,
    pub(super) hi: i64,
    pub(super) zoned: bool,
}

/// `value` moved by a duration, in the column's unit.
pub(super) fn moved(
    value: i64,
    duration: &[(i64, char)],
    times: i64,
    unit: TimestampUnit,
) -> Option<i64> {
    let mut value = value;
    for &(number, letter) in duration {
        let number = number.checked_mul(times)?;
        let nanos = match letter {
            'n' => 1,
            'u' | 'U' => 1_000,
            'T' => 1_000_000,
            's' => 1_000_000_000,
            'm' => 60_000_000_000,
            'h' | 'H' => 3_600_000_000_000,
            'd' | 'D' => 86_400_000_000_000,
            'w' | 'W' => 604_800_000_000_000,
            _ => {
                let months = if letter == 'M' { number } else { number.checked_mul(12)? };
                if months.abs() > 12 * 10_000 {
                    return None;
                }
                let micros = unit.convert(value, TimestampUnit::Micros)?;
                let shift = add_months(micros, months).checked_sub(micros)?;
                value = value.checked_add(TimestampUnit::Micros.convert(shift, unit)?)?;
                continue;
            }
        };
        let step = if nanos >= unit.nanos() {
            number.checked_mul(nanos / unit.nanos())?
        } else {
            number / (unit.nanos() / nanos)
        };
        value = value.checked_add(step)?;
    }
    Some(value)
}
