//! Date and time functions. Kernels work in the argument's own unit; calendar fields are computed
//! in microseconds.

mod clocks;
mod fields;
mod grid;
mod made;
mod overlap;
mod patterns;
pub(crate) mod periods;
mod shift;
pub(crate) mod times;
mod zones;

use std::sync::{Arc, Mutex};

use arrow::datatypes::TimestampMillisecondType;
use datafusion_expr::{Expr, ScalarUDF, Volatility};
use tidemark_types::SqlType::{
    Boolean, Date, Double, Int, Interval, Long, Period, String, Timestamp, TimestampNs,
};
use tidemark_types::calendar::{CivilDate, is_leap_year};
use tidemark_types::period::Period as Length;

use self::clocks::{bound_of, clock_nanos, day_from_now, interval, sequence};
use self::fields::{Part, date_part, extract, part, range_asked};
use self::grid::{date, date_trunc, timestamp_ceil, timestamp_floor};
use self::made::{
    length_to_char, make_date, make_timestamp, next_id, next_of_column, of_epoch, to_char,
};
use self::overlap::overlaps;
use self::patterns::{from_day, from_str, to_str};
use self::periods::{age, ahead, make_interval, mapped, parts_asked, time_bucket, truncated};
use self::shift::{dateadd, datediff, difference_type};
use self::times::{Ns, Us, micros_of, times};
use self::zones::in_zone;
use crate::column::{Call, build, build_flags};
use crate::native::{Kernel, Native, call};
use crate::number::pattern;
use crate::signature::Param::{Is, Number, Text, Time};
use crate::signature::{Function, Gives, Overload, direct, made, near, pure, volatile};

/// Converts microseconds to nanoseconds and saturates at the ends of their range, which keeps the
/// order of timestamps.
#[must_use]
pub fn in_nanoseconds(micros: Expr) -> Expr {
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let (at, _) = times(call, 0)?;
        let least = i64::MIN + 1;
        Ok(build::<Ns>(call.rows, |row| at(row).map(|at| at.saturating_mul(1_000).max(least))))
    });
    let native = Native::new(
        "in_nanoseconds",
        std::string::String::new(),
        TimestampNs,
        Volatility::Immutable,
        kernel,
    );
    let udf = Arc::new(ScalarUDF::from(native.taking(vec![Timestamp]).keeping_order()));
    call(&udf, vec![micros])
}

const TIME: &[crate::signature::Param] = &[Time];

/// A PERIOD grid over the times of the second argument.
const fn steps(takes: &'static [crate::signature::Param]) -> Overload {
    made(takes, Gives::SameAs(1), |_| Ok(Arc::new(time_bucket)))
}

macro_rules! field {
    ($name:literal, $part:expr, $summary:literal) => {
        pure($name, &[near(TIME, Int, |_| $part.range(), |call| part(call, 0, $part))], $summary)
    };
}

macro_rules! clock {
    ($name:literal, $type:expr, $lane:ty, $divisor:literal, $volatility:expr, $summary:literal) => {
        Function {
            name: $name,
            summary: $summary,
            volatility: $volatility,
            overloads: &[direct(&[], $type, |call| {
                let now = clock_nanos() / $divisor;
                Ok(build::<$lane>(call.rows, |_| Some(now)))
            })],
            special: None,
        }
    };
}

macro_rules! day {
    ($name:literal, $shift:literal, $summary:literal) => {
        Function {
            name: $name,
            summary: $summary,
            volatility: Volatility::Stable,
            overloads: &[
                direct(&[], Interval, |call| day_from_now(call, $shift)),
                direct(&[Text], Interval, |call| day_from_now(call, $shift)),
            ],
            special: None,
        }
    };
}

const FLOOR: &[Overload] = &[
    made(&[Text, Time], Gives::SameAs(1), timestamp_floor),
    made(&[Text, Time, Time], Gives::SameAs(1), timestamp_floor),
    made(&[Text, Time, Time, Text], Gives::SameAs(1), timestamp_floor),
    made(&[Text, Time, Time, Text, Text], Gives::SameAs(1), timestamp_floor),
];

pub(crate) const FUNCTIONS: &[Function] = &[
    field!("year", Part::Year, "year"),
    field!("month", Part::Month, "month, 1 to 12"),
    field!("day", Part::Day, "day of the month, 1 to 31"),
    field!("hour", Part::Hour, "hour, 0 to 23"),
    field!("minute", Part::Minute, "minute, 0 to 59"),
    field!("second", Part::Second, "second, 0 to 59"),
    field!("millis", Part::Millis, "milliseconds of the second, 0 to 999"),
    field!("micros", Part::Micros, "microseconds of the millisecond, 0 to 999"),
    field!("nanos", Part::Nanos, "nanoseconds of the microsecond, 0 to 999"),
    field!("day_of_week", Part::IsoDayOfWeek, "1 on Monday to 7 on Sunday"),
    field!("day_of_week_sunday_first", Part::SundayFirst, "1 on Sunday to 7 on Saturday"),
    field!("days_in_month", Part::DaysInMonth, "length of the month"),
    field!("week_of_year", Part::Week, "ISO week"),
    pure(
        "is_leap_year",
        &[direct(TIME, Boolean, |call| {
            let (at, unit) = times(call, 0)?;
            let leap = |value| is_leap_year(CivilDate::from_micros(micros_of(value, unit)).year);
            Ok(build_flags(call.rows, |row| at(row).is_some_and(leap)))
        })],
        "whether February has 29 days",
    ),
    pure(
        "is_end_of_month",
        &[direct(TIME, Boolean, |call| {
            let (at, unit) = times(call, 0)?;
            let last = |value| {
                let date = CivilDate::from_micros(micros_of(value, unit));
                date.day == date.days_in_month()
            };
            Ok(build_flags(call.rows, |row| at(row).is_some_and(last)))
        })],
        "whether it is the last day of its month",
    ),
    pure(
        "extract",
        &[
            made(&[Text, Time], Gives::Near(Int, range_asked), |bound| extract(bound, false)),
            made(&[Text, Is(Period)], Gives::Is(Double), parts_asked),
        ],
        "a part of a time or a length: extract(unit FROM time)",
    ),
    pure(
        "extract_epoch",
        &[
            made(&[Text, Time], Gives::Is(Long), |bound| extract(bound, true)),
            made(&[Text, Is(Period)], Gives::Is(Double), parts_asked),
        ],
        "the parts of extract that need a LONG: epoch",
    ),
    pure(
        "date_part",
        &[
            made(&[Text, Time], Gives::Is(Double), date_part),
            made(&[Text, Is(Period)], Gives::Is(Double), parts_asked),
        ],
        "a part of a time or a length as DOUBLE, as extract gives it",
    ),
    pure(
        "make_date",
        &[direct(&[Is(Int), Is(Int), Is(Int)], Date, make_date)],
        "the day with this year, month and day",
    ),
    pure(
        "make_interval",
        &[direct(
            &[Is(Int), Is(Int), Is(Int), Is(Int), Is(Int), Is(Int), Is(Double)],
            Period,
            make_interval,
        )],
        "the length of so many years, months, weeks, days, hours, minutes and seconds",
    ),
    pure(
        "justify_hours",
        &[direct(&[Is(Period)], Period, |call| mapped(call, Length::with_days))],
        "a length whose hours beyond a day are days",
    ),
    pure(
        "justify_days",
        &[direct(&[Is(Period)], Period, |call| mapped(call, Length::with_months))],
        "a length whose days beyond 30 are months",
    ),
    pure(
        "justify_interval",
        &[direct(&[Is(Period)], Period, |call| mapped(call, Length::justified))],
        "a length whose hours beyond a day are days, and days beyond 30 months",
    ),
    pure(
        "date_bin",
        &[steps(&[Is(Period), Time, Time])],
        "start of the step of this length that holds a time, counted from an origin",
    ),
    pure(
        "time_bucket",
        &[steps(&[Is(Period), Time]), steps(&[Is(Period), Time, Time])],
        "start of the step of this length that holds a time, counted from 2000 or an origin",
    ),
    pure(
        "overlaps",
        &[
            direct(&[Time, Time, Time, Time], Boolean, |call| overlaps(call, [false, false])),
            direct(&[Time, Is(Period), Time, Is(Period)], Boolean, |call| {
                overlaps(call, [true, true])
            }),
            direct(&[Time, Is(Period), Time, Time], Boolean, |call| overlaps(call, [true, false])),
            direct(&[Time, Time, Time, Is(Period)], Boolean, |call| overlaps(call, [false, true])),
        ],
        "whether two ranges of time have a time in common: (start, end) OVERLAPS (start, length)",
    ),
    pure(
        "make_timestamp",
        &[direct(
            &[Is(Int), Is(Int), Is(Int), Is(Int), Is(Int), Is(Double)],
            Timestamp,
            make_timestamp,
        )],
        "the time with this year, month, day, hour, minute and second",
    ),
    pure(
        "to_char",
        &[
            made(&[Time, Text], Gives::Is(String), to_char),
            made(&[Is(Period), Text], Gives::Is(String), length_to_char),
            made(&[Number, Text], Gives::Is(String), pattern::to_char),
        ],
        "time, length or number by a pattern of PostgreSQL: 'YYYY-MM-DD HH24:MI', '9,999.00'",
    ),
    volatile(
        "next_id",
        &[direct(&[], Long, next_id), direct(&[Is(Long), Is(Long)], Long, next_of_column)],
        "a number that was not given before: microseconds since 1970, each once; as a column's \
         default the next number, from a first one by a step",
    ),
    pure(
        "dateadd",
        &[
            made(&[Text, Is(Long), Time], Gives::SameAs(2), dateadd),
            made(&[Text, Is(Long), Time, Text], Gives::SameAs(2), dateadd),
        ],
        "time moved by so many units, in a zone's clock when one is given",
    ),
    pure(
        "datediff",
        &[made(&[Text, Time, Time], Gives::Decided(Long, difference_type), datediff)],
        "complete units between two times; null for an unknown unit",
    ),
    pure(
        "date_trunc",
        &[
            made(&[Text, Time], Gives::SameAs(1), date_trunc),
            made(&[Text, Is(Period)], Gives::Is(Period), truncated),
        ],
        "start of the named unit",
    ),
    pure("date", &[made(&[Time], Gives::SameAs(0), |_| Ok(Arc::new(date)))], "start of the day"),
    pure("timestamp_floor", FLOOR, "start of the step, counted from 1970 or an origin"),
    pure(
        "timestamp_ceil",
        &[made(&[Text, Time], Gives::SameAs(1), timestamp_ceil)],
        "start of the next step",
    ),
    pure(
        "timezone",
        &[
            made(&[Text, Time], Gives::SameAs(1), |b| in_zone(b, (1, 0), false)),
            made(&[Is(Period), Time], Gives::SameAs(1), |_| Ok(Arc::new(ahead))),
        ],
        "what the clocks of a zone show at a time; `time AT TIME ZONE zone` is the same",
    ),
    pure(
        "to_timezone",
        &[made(&[Time, Text], Gives::SameAs(0), |b| in_zone(b, (0, 1), false))],
        "UTC to a zone's clock",
    ),
    pure(
        "to_utc",
        &[made(&[Time, Text], Gives::SameAs(0), |b| in_zone(b, (0, 1), true))],
        "a zone's clock to UTC",
    ),
    pure(
        "to_str",
        &[
            made(&[Is(Date), Text], Gives::Is(String), to_str),
            made(&[Is(Timestamp), Text], Gives::Is(String), to_str),
            made(&[Is(TimestampNs), Text], Gives::Is(String), to_str),
        ],
        "time as text by a pattern",
    ),
    pure(
        "to_timestamp",
        &[
            made(&[Text], Gives::Is(Timestamp), from_str),
            made(&[Text, Text], Gives::Is(Timestamp), from_str),
            made(&[Is(Double)], Gives::Is(Timestamp), of_epoch),
        ],
        "text as TIMESTAMP by a pattern, null when it does not match; seconds since 1970",
    ),
    pure(
        "to_timestamp_ns",
        &[
            made(&[Text], Gives::Is(TimestampNs), from_str),
            made(&[Text, Text], Gives::Is(TimestampNs), from_str),
        ],
        "text as TIMESTAMP_NS by a pattern",
    ),
    pure("to_date", &[made(&[Text, Text], Gives::Is(Date), from_str)], "text as DATE by a pattern"),
    pure("to_pg_date", &[made(&[Text], Gives::Is(Date), from_day)], "a text yyyy-MM-dd as DATE"),
    clock!("now", Timestamp, Us, 1_000, Volatility::Stable, "time of the statement"),
    clock!(
        "now_ns",
        TimestampNs,
        Ns,
        1,
        Volatility::Stable,
        "time of the statement in nanoseconds"
    ),
    clock!("systimestamp", Timestamp, Us, 1_000, Volatility::Volatile, "clock of the host"),
    clock!(
        "systimestamp_ns",
        TimestampNs,
        Ns,
        1,
        Volatility::Volatile,
        "clock of the host in nanoseconds"
    ),
    clock!(
        "sysdate",
        Date,
        TimestampMillisecondType,
        1_000_000,
        Volatility::Volatile,
        "clock of the host in milliseconds"
    ),
    clock!(
        "pg_postmaster_start_time",
        Timestamp,
        Us,
        1_000,
        Volatility::Stable,
        "start of the server"
    ),
    day!("today", 0, "the current day, in UTC or a zone"),
    day!("yesterday", -1, "the day before today"),
    day!("tomorrow", 1, "the day after today"),
    pure(
        "interval",
        &[direct(&[Is(Timestamp), Is(Timestamp)], Interval, interval)],
        "closed interval between two times",
    ),
    pure(
        "interval_start",
        &[direct(&[Is(Interval)], Timestamp, |call| bound_of(call, 0))],
        "lower bound",
    ),
    pure(
        "interval_end",
        &[direct(&[Is(Interval)], Timestamp, |call| bound_of(call, 1))],
        "upper bound",
    ),
    volatile(
        "timestamp_sequence",
        &[made(&[Time, Is(Long)], Gives::SameAs(0), |_| {
            let elapsed = Mutex::new(0);
            Ok(Arc::new(move |call: &Call<'_>| sequence(call, &elapsed)))
        })],
        "times that grow by a step from row to row",
    ),
    volatile(
        "timestamp_sequence_ns",
        &[made(&[Is(TimestampNs), Is(Long)], Gives::Is(TimestampNs), |_| {
            let elapsed = Mutex::new(0);
            Ok(Arc::new(move |call: &Call<'_>| sequence(call, &elapsed)))
        })],
        "times in nanoseconds that grow by a step from row to row",
    ),
    pure(
        "age",
        &[
            direct(&[Is(Timestamp)], Timestamp, |call| {
                let (at, _) = times(call, 0)?;
                let today = CivilDate::from_micros(clock_nanos() / 1_000).to_micros();
                Ok(build::<Us>(call.rows, |row| today.checked_sub(at(row)?)))
            }),
            direct(&[Is(Timestamp), Is(Timestamp)], Period, age),
        ],
        "time from a moment to today; the length from the second time to the first",
    ),
];
