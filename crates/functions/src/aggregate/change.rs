//! Aggregates that describe how a value changes over time: differences, rates and areas under the
//! curve.
//!
//! Rows arrive in time order. Rows whose value or time is null are skipped.

use std::sync::Arc;

use datafusion_expr::AggregateUDF;
use tidemark_types::SqlType;

use super::fold::{Fold, udaf};
use super::shape::{ordered, reads_as_double};
use crate::resolve::{Argument, ResolveError, ResolvedAggregate};

/// Returns the aggregate with this name. It reads a value and its time.
pub(super) fn find(name: &str, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [value, time] = types else { return None };
    if !reads_as_double(*value) {
        return None;
    }
    macro_rules! change {
        ($name:literal, $answer:ident) => {
            for_type::<{ Answer::$answer as u8 }>($name, *time)
        };
    }
    let udaf = match name {
        "delta" => change!("delta", Difference),
        "derivative" => change!("derivative", Slope),
        "increase" => change!("increase", Growth),
        "rate" => change!("rate", Rate),
        "integral" => change!("integral", Area),
        "time_weight" => change!("time_weight", Mean),
        _ => return None,
    }?;
    Some(ordered(udaf, vec![SqlType::Double, *time], SqlType::Double))
}

/// Resolves `time_weight(value, timestamp [, 'linear' | 'locf'])`.
pub(super) fn time_weight(
    arguments: &[Argument],
) -> Result<Option<ResolvedAggregate>, ResolveError> {
    let [value, time, method @ ..] = arguments else { return Ok(None) };
    let types = [value.sql_type, time.sql_type];
    let steps = match method {
        [] => false,
        [method] => match method.text().map(|text| text.to_ascii_lowercase()).as_deref() {
            Some("linear") => false,
            Some("locf") => true,
            _ => {
                let message = "'linear' or 'locf' expected".to_owned();
                return Err(ResolveError::InvalidArgument { index: 2, message });
            }
        },
        _ => return Ok(None),
    };
    let found = if steps { super::pairs::twap(&types) } else { find("time_weight", &types) };
    Ok(found.map(|mut found| {
        found.argument_types.extend(method.iter().map(|_| SqlType::Varchar));
        found
    }))
}

/// Returns the aggregate for this type of time column.
fn for_type<const ANSWER: u8>(name: &'static str, time: SqlType) -> Option<Arc<AggregateUDF>> {
    let variant = time.name();
    match time {
        SqlType::Timestamp => {
            Some(udaf::<Change<ANSWER, 1_000_000>>(name, &variant, SqlType::Double))
        }
        SqlType::TimestampNs => {
            Some(udaf::<Change<ANSWER, 1_000_000_000>>(name, &variant, SqlType::Double))
        }
        _ => None,
    }
}

#[repr(u8)]
enum Answer {
    /// The last value minus the first.
    Difference,
    /// The difference per second.
    Slope,
    /// The sum of a counter's increases.
    Growth,
    /// The growth per second.
    Rate,
    /// The trapezoidal area, in value × seconds.
    Area,
    /// The area divided by the elapsed time.
    Mean,
}

/// Accumulates rows in time order and remembers the first and last row. `SECOND` is the number of
/// time units per second.
#[derive(Debug, Default, Clone)]
struct Change<const ANSWER: u8, const SECOND: u32> {
    count: f64,
    growth: f64,
    area: f64,
    /// Value and time of the first row.
    first: [f64; 2],
    /// Value and time of the last row.
    last: [f64; 2],
}

impl<const ANSWER: u8, const SECOND: u32> Fold for Change<ANSWER, SECOND> {
    const COLUMNS: usize = 2;
    const STATE: usize = 7;

    fn add(&mut self, row: &[f64]) {
        let point = [row[0], row[1]];
        self.merge(&Self { count: 1.0, growth: 0.0, area: 0.0, first: point, last: point });
    }

    fn merge(&mut self, later: &Self) {
        if later.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            self.first = later.first;
        } else {
            let ([from, start], [to, end]) = (self.last, later.first);
            self.growth += if to < from { to } else { to - from };
            self.area += f64::midpoint(from, to) * (end - start);
        }
        self.count += later.count;
        self.growth += later.growth;
        self.area += later.area;
        self.last = later.last;
    }

    fn to_state(&self) -> Vec<f64> {
        let [[a, b], [c, d]] = [self.first, self.last];
        vec![self.count, self.growth, self.area, a, b, c, d]
    }

    fn from_state(state: &[f64]) -> Self {
        Self {
            count: state[0],
            growth: state[1],
            area: state[2],
            first: [state[3], state[4]],
            last: [state[5], state[6]],
        }
    }

    fn finish(&self) -> Option<f64> {
        if self.count == 0.0 {
            return None;
        }
        let second = f64::from(SECOND);
        let time = self.last[1] - self.first[1];
        let difference = self.last[0] - self.first[0];
        let per_second = |change: f64| (time > 0.0).then_some(change / time * second);
        match ANSWER {
            a if a == Answer::Difference as u8 => Some(difference),
            a if a == Answer::Slope as u8 => per_second(difference),
            a if a == Answer::Growth as u8 => Some(self.growth),
            a if a == Answer::Rate as u8 => per_second(self.growth),
            a if a == Answer::Area as u8 => Some(self.area / second),
            _ if time > 0.0 => Some(self.area / time),
            _ => Some(self.first[0]),
        }
    }
}
