//! Date and time functions. Kernels work in the argument's own unit and compute calendar fields in
//! microseconds.

mod clocks;
mod constructors;
mod fields;
mod grid;
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
use self::constructors::{
    length_to_char, make_date, make_timestamp, next_id, next_of_column, of_epoch, to_char,
};
use self::fields::{TimeField, date_part, extract, requested_range, time_field};
use self::grid::{date, date_trunc, timestamp_ceil, timestamp_floor};
use self::overlap::overlaps;
use self::patterns::{from_day, from_str, to_str};
use self::periods::{age, at_offset, make_interval, mapped, period_field, time_bucket, truncated};
use self::shift::{dateadd, datediff, difference_type};
use self::times::{Ns, Us, micros_of, times};
use self::zones::in_zone;
use crate::column::{Call, build, build_flags};
use crate::native::{Kernel, Native, call};
use crate::number::pattern;
use crate::signature::Param::{Is, Number, Text, Time};
use crate::signature::{Function, Overload, ResultType, bounded, direct, per_call, pure, volatile};

/// Converts microseconds to nanoseconds. Out-of-range values saturate, which preserves the order of
/// timestamps.
#[must_use]
pub fn in_nanoseconds(micros: Expr) -> Expr {
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let (at, _) = times(call, 0)?;
        let min = i64::MIN + 1;
        Ok(build::<Ns>(call.rows, |row| at(row).map(|at| at.saturating_mul(1_000).max(min))))
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

/// Returns a signature with a PERIOD as the first argument and the times as the second.
const fn steps(takes: &'static [crate::signature::Param]) -> Overload {
    per_call(takes, ResultType::SameAs(1), |_| Ok(Arc::new(time_bucket)))
}

macro_rules! field {
    ($name:literal, $field:expr, $summary:literal) => {
        pure(
            $name,
            &[bounded(TIME, Int, |_| $field.range(), |call| time_field(call, 0, $field))],
            $summary,
        )
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
    per_call(&[Text, Time], ResultType::SameAs(1), timestamp_floor),
    per_call(&[Text, Time, Time], ResultType::SameAs(1), timestamp_floor),
    per_call(&[Text, Time, Time, Text], ResultType::SameAs(1), timestamp_floor),
    per_call(&[Text, Time, Time, Text, Text], ResultType::SameAs(1), timestamp_floor),
];

pub(crate) const FUNCTIONS: &[Function] = &[
    field!("year", TimeField::Year, "year"),
    field!("month", TimeField::Month, "month, 1 to 12"),
    field!("day", TimeField::Day, "day of the month, 1 to 31"),
    field!("hour", TimeField::Hour, "hour, 0 to 23"),
    field!("minute", TimeField::Minute, "minute, 0 to 59"),
    field!("second", TimeField::Second, "second, 0 to 59"),
    field!("millis", TimeField::Millis, "milliseconds of the second, 0 to 999"),
    field!("micros", TimeField::Micros, "microseconds of the millisecond, 0 to 999"),
    field!("nanos", TimeField::Nanos, "nanoseconds of the microsecond, 0 to 999"),
    field!("day_of_week", TimeField::IsoDayOfWeek, "weekday, 1 (Monday) to 7 (Sunday)"),
    field!(
        "day_of_week_sunday_first",
        TimeField::SundayFirst,
        "weekday, 1 (Sunday) to 7 (Saturday)"
    ),
    field!("days_in_month", TimeField::DaysInMonth, "number of days in the month"),
    field!("week_of_year", TimeField::Week, "ISO week number"),
    pure(
        "is_leap_year",
        &[direct(TIME, Boolean, |call| {
            let (at, unit) = times(call, 0)?;
            let leap = |value| is_leap_year(CivilDate::from_micros(micros_of(value, unit)).year);
            Ok(build_flags(call.rows, |row| at(row).is_some_and(leap)))
        })],
        "whether the year is a leap year",
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
        "whether the date is the last day of its month",
    ),
    pure(
        "extract",
        &[
            per_call(&[Text, Time], ResultType::Bounded(Int, requested_range), |bound| {
                extract(bound, false)
            }),
            per_call(&[Text, Is(Period)], ResultType::Is(Double), period_field),
        ],
        "field of a timestamp or period: extract(field FROM value)",
    ),
    pure(
        "extract_epoch",
        &[
            per_call(&[Text, Time], ResultType::Is(Long), |bound| extract(bound, true)),
            per_call(&[Text, Is(Period)], ResultType::Is(Double), period_field),
        ],
        "extract fields that return a LONG: epoch",
    ),
    pure(
        "date_part",
        &[
            per_call(&[Text, Time], ResultType::Is(Double), date_part),
            per_call(&[Text, Is(Period)], ResultType::Is(Double), period_field),
        ],
        "field of a timestamp or period as DOUBLE, like extract",
    ),
    pure(
        "make_date",
        &[direct(&[Is(Int), Is(Int), Is(Int)], Date, make_date)],
        "date from year, month and day",
    ),
    pure(
        "make_interval",
        &[direct(
            &[Is(Int), Is(Int), Is(Int), Is(Int), Is(Int), Is(Int), Is(Double)],
            Period,
            make_interval,
        )],
        "period from years, months, weeks, days, hours, minutes and seconds",
    ),
    pure(
        "justify_hours",
        &[direct(&[Is(Period)], Period, |call| mapped(call, Length::with_days))],
        "converts every 24 hours of a period to a day",
    ),
    pure(
        "justify_days",
        &[direct(&[Is(Period)], Period, |call| mapped(call, Length::with_months))],
        "converts every 30 days of a period to a month",
    ),
    pure(
        "justify_interval",
        &[direct(&[Is(Period)], Period, |call| mapped(call, Length::justified))],
        "converts every 24 hours of a period to a day, and every 30 days to a month",
    ),
    pure(
        "date_bin",
        &[steps(&[Is(Period), Time, Time])],
        "start of the interval that contains a timestamp: (width, timestamp, origin)",
    ),
    pure(
        "time_bucket",
        &[steps(&[Is(Period), Time]), steps(&[Is(Period), Time, Time])],
        "start of the interval that contains a timestamp, counted from 2000 or from an origin",
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
        "whether two time ranges overlap: (start, end or period) OVERLAPS (start, end or period)",
    ),
    pure(
        "make_timestamp",
        &[direct(
            &[Is(Int), Is(Int), Is(Int), Is(Int), Is(Int), Is(Double)],
            Timestamp,
            make_timestamp,
        )],
        "timestamp from year, month, day, hour, minute and second",
    ),
    pure(
        "to_char",
        &[
            per_call(&[Time, Text], ResultType::Is(String), to_char),
            per_call(&[Is(Period), Text], ResultType::Is(String), length_to_char),
            per_call(&[Number, Text], ResultType::Is(String), pattern::to_char),
        ],
        "formats a value with a PostgreSQL pattern such as 'YYYY-MM-DD HH24:MI' or '9,999.00'",
    ),
    volatile(
        "next_id",
        &[direct(&[], Long, next_id), direct(&[Is(Long), Is(Long)], Long, next_of_column)],
        "unique number based on microseconds since 1970; as a column default, next_id(first, step) \
         numbers the rows from first in increments of step",
    ),
    pure(
        "dateadd",
        &[
            per_call(&[Text, Is(Long), Time], ResultType::SameAs(2), dateadd),
            per_call(&[Text, Is(Long), Time, Text], ResultType::SameAs(2), dateadd),
        ],
        "adds n units to a timestamp, in local time if a time zone is given",
    ),
    pure(
        "datediff",
        &[per_call(&[Text, Time, Time], ResultType::Decided(Long, difference_type), datediff)],
        "number of complete units between two timestamps; null for an unknown unit",
    ),
    pure(
        "date_trunc",
        &[
            per_call(&[Text, Time], ResultType::SameAs(1), date_trunc),
            per_call(&[Text, Is(Period)], ResultType::Is(Period), truncated),
        ],
        "truncates a timestamp or period to a unit",
    ),
    pure(
        "date",
        &[per_call(&[Time], ResultType::SameAs(0), |_| Ok(Arc::new(date)))],
        "start of the day",
    ),
    pure("timestamp_floor", FLOOR, "start of the interval, counted from 1970 or an origin"),
    pure(
        "timestamp_ceil",
        &[per_call(&[Text, Time], ResultType::SameAs(1), timestamp_ceil)],
        "start of the next interval",
    ),
    pure(
        "timezone",
        &[
            per_call(&[Text, Time], ResultType::SameAs(1), |b| in_zone(b, (1, 0), false)),
            per_call(&[Is(Period), Time], ResultType::SameAs(1), |_| Ok(Arc::new(at_offset))),
        ],
        "converts UTC to local time in a time zone; also written `time AT TIME ZONE zone`",
    ),
    pure(
        "to_timezone",
        &[per_call(&[Time, Text], ResultType::SameAs(0), |b| in_zone(b, (0, 1), false))],
        "converts UTC to local time in a time zone",
    ),
    pure(
        "to_utc",
        &[per_call(&[Time, Text], ResultType::SameAs(0), |b| in_zone(b, (0, 1), true))],
        "converts local time in a time zone to UTC",
    ),
    pure(
        "to_str",
        &[
            per_call(&[Is(Date), Text], ResultType::Is(String), to_str),
            per_call(&[Is(Timestamp), Text], ResultType::Is(String), to_str),
            per_call(&[Is(TimestampNs), Text], ResultType::Is(String), to_str),
        ],
        "formats a timestamp with a pattern",
    ),
    pure(
        "to_timestamp",
        &[
            per_call(&[Text], ResultType::Is(Timestamp), from_str),
            per_call(&[Text, Text], ResultType::Is(Timestamp), from_str),
            per_call(&[Is(Double)], ResultType::Is(Timestamp), of_epoch),
        ],
        "parses a TIMESTAMP with a pattern, null if it does not match; or converts epoch seconds",
    ),
    pure(
        "to_timestamp_ns",
        &[
            per_call(&[Text], ResultType::Is(TimestampNs), from_str),
            per_call(&[Text, Text], ResultType::Is(TimestampNs), from_str),
        ],
        "parses a TIMESTAMP_NS with a pattern",
    ),
    pure(
        "to_date",
        &[per_call(&[Text, Text], ResultType::Is(Date), from_str)],
        "parses a DATE with a pattern",
    ),
    pure(
        "to_pg_date",
        &[per_call(&[Text], ResultType::Is(Date), from_day)],
        "parses a DATE, yyyy-MM-dd",
    ),
    clock!("now", Timestamp, Us, 1_000, Volatility::Stable, "current time, fixed per statement"),
    clock!(
        "now_ns",
        TimestampNs,
        Ns,
        1,
        Volatility::Stable,
        "current time in nanoseconds, fixed per statement"
    ),
    clock!("systimestamp", Timestamp, Us, 1_000, Volatility::Volatile, "current time on the host"),
    clock!(
        "systimestamp_ns",
        TimestampNs,
        Ns,
        1,
        Volatility::Volatile,
        "current time on the host in nanoseconds"
    ),
    clock!(
        "sysdate",
        Date,
        TimestampMillisecondType,
        1_000_000,
        Volatility::Volatile,
        "current time on the host in milliseconds"
    ),
    clock!(
        "pg_postmaster_start_time",
        Timestamp,
        Us,
        1_000,
        Volatility::Stable,
        "server start time"
    ),
    day!("today", 0, "the current day, in UTC or a time zone"),
    day!("yesterday", -1, "the day before today"),
    day!("tomorrow", 1, "the day after today"),
    pure(
        "interval",
        &[direct(&[Is(Timestamp), Is(Timestamp)], Interval, interval)],
        "closed interval between two timestamps",
    ),
    pure(
        "interval_start",
        &[direct(&[Is(Interval)], Timestamp, |call| bound_of(call, 0))],
        "lower bound of an interval",
    ),
    pure(
        "interval_end",
        &[direct(&[Is(Interval)], Timestamp, |call| bound_of(call, 1))],
        "upper bound of an interval",
    ),
    volatile(
        "timestamp_sequence",
        &[per_call(&[Time, Is(Long)], ResultType::SameAs(0), |_| {
            let elapsed = Mutex::new(0);
            Ok(Arc::new(move |call: &Call<'_>| sequence(call, &elapsed)))
        })],
        "timestamps that increase by a fixed step per row",
    ),
    volatile(
        "timestamp_sequence_ns",
        &[per_call(&[Is(TimestampNs), Is(Long)], ResultType::Is(TimestampNs), |_| {
            let elapsed = Mutex::new(0);
            Ok(Arc::new(move |call: &Call<'_>| sequence(call, &elapsed)))
        })],
        "nanosecond timestamps that increase by a fixed step per row",
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
        "time from a timestamp to today, or from the second timestamp to the first",
    ),
];
