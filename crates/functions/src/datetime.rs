//! Date and time functions. Kernels work in the argument's own unit; calendar fields go through
//! microseconds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType::{Boolean, Date, Int, Interval, Long, String, Timestamp, TimestampNs};
use tidemark_types::calendar::{self, CivilDate, MICROS_PER_DAY, add_months, is_leap_year};
use tidemark_types::timestamp::TimestampUnit;
use tidemark_types::timestamp_pattern::TimestampPattern;
use tidemark_types::zone::Zone;

use crate::cast::unit_of;
use crate::column::{Call, Texts, build, build_flags, build_text, internal, invalid};
use crate::native::Kernel;
use crate::registry::Param::{Is, Text, Time};
use crate::registry::{Bound, Function, Gives, Overload, direct, made, pure, volatile};
use crate::resolve::{ResolveError, types_of};

type Made = std::result::Result<Kernel, ResolveError>;
type Us = TimestampMicrosecondType;
type Ns = TimestampNanosecondType;

/// A time argument by row, in its own unit.
fn times(
    call: &Call<'_>,
    index: usize,
) -> Result<(impl Fn(usize) -> Option<i64> + use<>, TimestampUnit)> {
    let (array, scalar) = call.array(index)?;
    let unit = match array.data_type() {
        DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, _) => TimestampUnit::Millis,
        DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, _) => TimestampUnit::Nanos,
        DataType::Timestamp(..) => TimestampUnit::Micros,
        other => return Err(internal(format!("{other} is no time"))),
    };
    let wide = arrow::compute::cast(&array, &DataType::Int64)?;
    let wide = wide.as_primitive::<Int64Type>().clone();
    let at = move |row: usize| {
        let row = if scalar { 0 } else { row };
        wide.is_valid(row).then(|| wide.value(row))
    };
    Ok((at, unit))
}

fn build_times(
    rows: usize,
    unit: TimestampUnit,
    value: impl FnMut(usize) -> Option<i64>,
) -> ArrayRef {
    match unit {
        TimestampUnit::Millis => build::<TimestampMillisecondType>(rows, value),
        TimestampUnit::Micros => build::<Us>(rows, value),
        TimestampUnit::Nanos => build::<Ns>(rows, value),
    }
}

/// A floor toward the past into microseconds.
fn micros_of(value: i64, unit: TimestampUnit) -> i64 {
    match unit {
        TimestampUnit::Millis => value.saturating_mul(1_000),
        TimestampUnit::Micros => value,
        TimestampUnit::Nanos => value.div_euclid(1_000),
    }
}

// ---- fields ------------------------------------------------------------------------------------

#[derive(Debug, Clone, Copy)]
enum Part {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    DayOfYear,
    DayOfWeek,
    IsoDayOfWeek,
    SundayFirst,
    Day,
    Hour,
    Minute,
    Second,
    MillisOfMinute,
    MicrosOfMinute,
    NanosOfMinute,
    Millis,
    Micros,
    Nanos,
    Epoch,
    DaysInMonth,
}

impl Part {
    fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "millennium" | "millenniums" => Self::Millennium,
            "century" | "centuries" => Self::Century,
            "decade" | "decades" => Self::Decade,
            "year" | "years" => Self::Year,
            "isoyear" => Self::IsoYear,
            "quarter" => Self::Quarter,
            "month" | "months" => Self::Month,
            "week" | "weeks" => Self::Week,
            "doy" => Self::DayOfYear,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "day" | "days" => Self::Day,
            "hour" | "hours" => Self::Hour,
            "minute" | "minutes" => Self::Minute,
            "second" | "seconds" => Self::Second,
            "millisecond" | "milliseconds" => Self::MillisOfMinute,
            "microsecond" | "microseconds" => Self::MicrosOfMinute,
            "nanosecond" | "nanoseconds" => Self::NanosOfMinute,
            "epoch" => Self::Epoch,
            _ => return None,
        })
    }

    fn of(self, value: i64, unit: TimestampUnit) -> i64 {
        let micros = micros_of(value, unit);
        let date = CivilDate::from_micros(micros);
        let of_day = micros.rem_euclid(MICROS_PER_DAY);
        let year = i64::from(date.year);
        let fraction_nanos = value.rem_euclid(unit.per_second()) * unit.nanos();
        let ordinal = |length: i64| {
            if year > 0 { (year - 1) / length + 1 } else { year.div_euclid(length) }
        };
        match self {
            Self::Millennium => ordinal(1_000),
            Self::Century => ordinal(100),
            Self::Decade => year.div_euclid(10),
            Self::Year => year,
            Self::IsoYear => i64::from(date.iso_week().0),
            Self::Quarter => i64::from((date.month - 1) / 3 + 1),
            Self::Month => i64::from(date.month),
            Self::Week => i64::from(date.iso_week().1),
            Self::DayOfYear => i64::from(date.day_of_year()),
            Self::DayOfWeek => i64::from(date.iso_weekday() % 7),
            Self::IsoDayOfWeek => i64::from(date.iso_weekday()),
            Self::SundayFirst => i64::from(date.iso_weekday() % 7 + 1),
            Self::Day => i64::from(date.day),
            Self::DaysInMonth => i64::from(date.days_in_month()),
            Self::Hour => of_day / calendar::MICROS_PER_HOUR,
            Self::Minute => of_day / calendar::MICROS_PER_MINUTE % 60,
            Self::Second => of_day / calendar::MICROS_PER_SECOND % 60,
            Self::MillisOfMinute | Self::Millis => fraction_nanos / 1_000_000,
            Self::MicrosOfMinute => fraction_nanos / 1_000,
            Self::Micros => fraction_nanos / 1_000 % 1_000,
            Self::NanosOfMinute => fraction_nanos,
            Self::Nanos => fraction_nanos % 1_000,
            Self::Epoch => micros.div_euclid(calendar::MICROS_PER_SECOND),
        }
    }
}

fn part(call: &Call<'_>, index: usize, part: Part) -> Result<ArrayRef> {
    let (at, unit) = times(call, index)?;
    Ok(build::<Int32Type>(call.rows, |row| at(row).map(|value| part.of(value, unit) as i32)))
}

/// The part `extract` asks for; the binder passes the unit as a constant text.
fn extract(bound: &Bound<'_>, long: bool) -> Made {
    let name = bound.arguments[0].text().unwrap_or_default();
    let Some(part_of) = Part::parse(&name) else {
        let message = format!("unsupported timestamp part: {name}");
        return Err(ResolveError::InvalidArgument { index: 0, message });
    };
    Ok(Arc::new(move |call: &Call<'_>| {
        if !long {
            return part(call, 1, part_of);
        }
        let (at, unit) = times(call, 1)?;
        Ok(build::<Int64Type>(call.rows, |row| at(row).map(|value| part_of.of(value, unit))))
    }))
}

// ---- moving and measuring ----------------------------------------------------------------------

/// The length of a fixed unit in nanoseconds; `None` for months and years.
fn fixed_nanos(letter: char) -> Option<i64> {
    Some(match letter {
        'n' => 1,
        'u' | 'U' => 1_000,
        'T' => 1_000_000,
        's' => 1_000_000_000,
        'm' => 60_000_000_000,
        'h' => 3_600_000_000_000,
        'd' => 86_400_000_000_000,
        'w' => 604_800_000_000_000,
        _ => return None,
    })
}

/// `number` units of `letter` later; `None` when that is out of range.
fn add(value: i64, letter: char, number: i64, unit: TimestampUnit) -> Option<i64> {
    if let Some(nanos) = fixed_nanos(letter) {
        let step = if nanos >= unit.nanos() {
            number.checked_mul(nanos / unit.nanos())?
        } else {
            number / (unit.nanos() / nanos)
        };
        return value.checked_add(step);
    }
    if number.abs() > 1_000_000 {
        return None;
    }
    let micros = micros_of(value, unit);
    let moved = if letter == 'M' {
        add_months(micros, number)
    } else {
        // Unlike months, years do not clamp: 29 February plus a year is 1 March.
        let date = CivilDate::from_micros(micros);
        let first = CivilDate { day: 1, year: date.year + number as i32, ..date };
        let days = first.to_days() + i64::from(date.day) - 1;
        days.checked_mul(MICROS_PER_DAY)?.checked_add(micros.rem_euclid(MICROS_PER_DAY))?
    };
    value.checked_add(TimestampUnit::Micros.convert(moved.checked_sub(micros)?, unit)?)
}

fn period(bound: &Bound<'_>, index: usize) -> std::result::Result<Option<char>, ResolveError> {
    let Some(text) = bound.arguments[index].text() else { return Ok(None) };
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if fixed_nanos(letter).is_some() || matches!(letter, 'M' | 'y') => {
            Ok(Some(letter))
        }
        _ => Err(ResolveError::InvalidArgument {
            index,
            message: format!("invalid time period [unit={text}]"),
        }),
    }
}

/// The unit of a row, for a unit that is not constant.
fn letter_at(letters: &Texts, known: Option<char>, row: usize) -> Option<char> {
    known.or_else(|| {
        let letter = letters.get(row)?.chars().next()?;
        (fixed_nanos(letter).is_some() || matches!(letter, 'M' | 'y')).then_some(letter)
    })
}

fn dateadd(bound: &Bound<'_>) -> Made {
    if bound.arguments[0].text().is_some_and(|unit| unit.chars().count() > 1) {
        let types = types_of(bound.arguments);
        return Err(ResolveError::NoOverload { name: "dateadd".into(), types });
    }
    let letter = period(bound, 0)?;
    if bound.arguments[1].is_null() {
        let message = "`null` is not a valid stride".into();
        return Err(ResolveError::InvalidArgument { index: 1, message });
    }
    let zoned = bound.arguments.len() == 4;
    let known_zone = if zoned { zone_argument(bound, 3)? } else { None };
    Ok(Arc::new(move |call: &Call<'_>| {
        let letters = call.texts(0)?;
        let numbers = call.primitive::<Int64Type>(1)?;
        let (at, unit) = times(call, 2)?;
        let zones = if zoned { Some(Zones::new(call, 3, known_zone)?) } else { None };
        Ok(build_times(call.rows, unit, |row| {
            let letter = letter_at(&letters, letter, row)?;
            let (number, value) = (numbers.get(row)?, at(row)?);
            match &zones {
                None => add(value, letter, number, unit),
                Some(zones) => {
                    let (zone, per_second) = (zones.get(row)?, unit.per_second());
                    let moved = add(zone.to_local(value, per_second), letter, number, unit)?;
                    Some(zone.to_utc(moved, per_second))
                }
            }
        }))
    }))
}

/// Complete units between two instants, whichever is the earlier.
fn difference(a: i64, b: i64, letter: char, unit: TimestampUnit) -> Option<i64> {
    let (low, high) = (a.min(b), a.max(b));
    if let Some(nanos) = fixed_nanos(letter) {
        let distance = high.checked_sub(low)?;
        return if nanos >= unit.nanos() {
            Some(distance / (nanos / unit.nanos()))
        } else {
            distance.checked_mul(unit.nanos() / nanos)
        };
    }
    let (low, high) = (micros_of(low, unit), micros_of(high, unit));
    let index = |micros| {
        let date = CivilDate::from_micros(micros);
        i64::from(date.year) * 12 + i64::from(date.month)
    };
    let within = |micros: i64| {
        let date = CivilDate::from_micros(micros);
        (date.day, micros.rem_euclid(MICROS_PER_DAY))
    };
    let months = index(high) - index(low) - i64::from(within(high) < within(low));
    Some(if letter == 'M' { months } else { months / 12 })
}

fn datediff(bound: &Bound<'_>) -> Made {
    // An unknown unit is not an error here: the answer is null.
    let letter = period(bound, 0).unwrap_or(None);
    Ok(Arc::new(move |call: &Call<'_>| {
        let letters = call.texts(0)?;
        let ((a, a_unit), (b, b_unit)) = (times(call, 1)?, times(call, 2)?);
        let unit = a_unit.max(b_unit);
        Ok(build::<Int64Type>(call.rows, |row| {
            let letter = letter_at(&letters, letter, row)?;
            let (a, b) = (a_unit.convert(a(row)?, unit)?, b_unit.convert(b(row)?, unit)?);
            difference(a, b, letter, unit)
        }))
    }))
}

// ---- grids -------------------------------------------------------------------------------------

/// A step such as `5m` or `M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    number: i64,
    letter: char,
}

impl Step {
    fn parse(text: &str) -> Option<Self> {
        let letter = text.chars().next_back()?;
        let digits = &text[..text.len() - letter.len_utf8()];
        let number = if digits.is_empty() { 1 } else { digits.parse().ok()? };
        let known = fixed_nanos(letter).is_some() || matches!(letter, 'M' | 'y');
        (known && number > 0 && number <= i64::from(i32::MAX)).then_some(Self { number, letter })
    }

    /// The start of the step that holds `value`, counted from `origin` or from the calendar.
    fn floor(self, value: i64, origin: Option<i64>, unit: TimestampUnit) -> Option<i64> {
        if let Some(nanos) = fixed_nanos(self.letter) {
            let length = self.number.checked_mul(nanos)? / unit.nanos();
            if length <= 1 {
                return Some(value);
            }
            let monday = if self.letter == 'w' { calendar::FIRST_MONDAY_MICROS } else { 0 };
            let origin = origin.unwrap_or(monday / 1_000_000 * unit.per_second());
            return Some(calendar::floor_to(value, length, origin));
        }
        let months = if self.letter == 'M' { self.number } else { self.number.checked_mul(12)? };
        let micros = micros_of(value, unit);
        let base = origin.map_or(0, |origin| micros_of(origin, unit));
        let index = |micros| {
            let date = CivilDate::from_micros(micros);
            i64::from(date.year) * 12 + i64::from(date.month) - 1
        };
        let mut steps = (index(micros) - index(base)).div_euclid(months);
        if add_months(base, steps * months) > micros {
            steps -= 1;
        }
        TimestampUnit::Micros.convert(add_months(base, steps * months), unit)
    }

    fn next(self, floor: i64, unit: TimestampUnit) -> Option<i64> {
        add(floor, self.letter, self.number, unit)
    }
}

fn step(bound: &Bound<'_>) -> std::result::Result<Step, ResolveError> {
    let text = bound.arguments[0].text().unwrap_or_default();
    Step::parse(&text).ok_or_else(|| ResolveError::InvalidArgument {
        index: 0,
        message: format!("invalid unit '{text}'"),
    })
}

fn timestamp_floor(bound: &Bound<'_>) -> Made {
    let step = step(bound)?;
    let with_origin = bound.types.len() >= 3;
    let offset = bound.arguments.get(3).and_then(crate::resolve::Argument::text);
    let offset = match offset {
        None => 0,
        Some(text) => offset_seconds(&text).ok_or_else(|| ResolveError::InvalidArgument {
            index: 3,
            message: format!("invalid offset: {text}"),
        })?,
    };
    let zone = if bound.types.len() == 5 { zone_argument(bound, 4)? } else { None };
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        let (origin, origin_unit) = times(call, if with_origin { 2 } else { 1 })?;
        let per_second = unit.per_second();
        let shift = offset * per_second;
        Ok(build_times(call.rows, unit, |row| {
            let value = at(row)?;
            let origin = origin(row).filter(|_| with_origin);
            let origin = origin.and_then(|origin| origin_unit.convert(origin, unit));
            let local = zone.map_or(value, |zone| zone.to_local(value, per_second));
            let floor = step.floor(local.checked_sub(shift)?, origin, unit)?.checked_add(shift)?;
            Some(zone.map_or(floor, |zone| zone.to_utc(floor, per_second)))
        }))
    }))
}

/// `±hh:mm`, the sign optional.
fn offset_seconds(text: &str) -> Option<i64> {
    let signed = if text.starts_with(['+', '-']) { text.to_owned() } else { format!("+{text}") };
    tidemark_types::timestamp::parse_offset(&signed)
}

fn timestamp_ceil(bound: &Bound<'_>) -> Made {
    let step = step(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        // An instant on the grid moves to the next step, as in the reference.
        Ok(build_times(call.rows, unit, |row| step.next(step.floor(at(row)?, None, unit)?, unit)))
    }))
}

fn date_trunc(bound: &Bound<'_>) -> Made {
    let name = bound.arguments[0].text().unwrap_or_default();
    let (number, letter) = match name.to_ascii_lowercase().trim_end_matches('s') {
        "nanosecond" => (1, 'n'),
        "microsecond" => (1, 'U'),
        "millisecond" => (1, 'T'),
        "second" => (1, 's'),
        "minute" => (1, 'm'),
        "hour" => (1, 'h'),
        "day" => (1, 'd'),
        "week" => (1, 'w'),
        "month" => (1, 'M'),
        "quarter" => (3, 'M'),
        "year" => (1, 'y'),
        "decade" => (10, 'y'),
        "century" | "centurie" => (100, 'y'),
        "millennium" => (1_000, 'y'),
        _ => {
            let message = format!("invalid unit '{name}'");
            return Err(ResolveError::InvalidArgument { index: 0, message });
        }
    };
    let step = Step { number, letter };
    // Decades start at year 0, centuries and millennia at year 1.
    let first = match number {
        10 => Some(CivilDate { year: 0, month: 1, day: 1 }),
        100 | 1_000 => Some(CivilDate { year: 1, month: 1, day: 1 }),
        _ => None,
    };
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        Ok(build_times(call.rows, unit, |row| {
            let value = at(row)?;
            match first {
                None => step.floor(value, None, unit),
                Some(first) => {
                    let micros = step.floor(
                        micros_of(value, unit),
                        Some(first.to_micros()),
                        TimestampUnit::Micros,
                    )?;
                    TimestampUnit::Micros.convert(micros, unit)
                }
            }
        }))
    }))
}

// ---- zones -------------------------------------------------------------------------------------

fn bad_zone(index: usize, name: &str) -> ResolveError {
    ResolveError::InvalidArgument { index, message: format!("invalid timezone: {name}") }
}

fn zone_argument(
    bound: &Bound<'_>,
    index: usize,
) -> std::result::Result<Option<Zone>, ResolveError> {
    match bound.arguments.get(index).and_then(crate::resolve::Argument::text) {
        None => Ok(None),
        Some(name) => Zone::parse(&name).map(Some).ok_or_else(|| bad_zone(index, &name)),
    }
}

/// The zone of each row: one for all when it is constant.
struct Zones {
    known: Option<Zone>,
    names: Texts,
}

impl Zones {
    fn new(call: &Call<'_>, index: usize, known: Option<Zone>) -> Result<Self> {
        let names = call.texts(index)?;
        let constant = if names.scalar { names.get(0).map(str::to_owned) } else { None };
        let known = match (known, constant) {
            (None, Some(name)) => Some(
                Zone::parse(&name).ok_or_else(|| invalid(format!("invalid timezone: {name}")))?,
            ),
            (known, _) => known,
        };
        Ok(Self { known, names })
    }

    fn get(&self, row: usize) -> Option<Zone> {
        self.known.or_else(|| Zone::parse(self.names.get(row)?))
    }
}

fn in_zone(bound: &Bound<'_>, to_utc: bool) -> Made {
    let known = zone_argument(bound, 1)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 0)?;
        let zones = Zones::new(call, 1, known)?;
        let per_second = unit.per_second();
        Ok(build_times(call.rows, unit, |row| {
            let (zone, value) = (zones.get(row)?, at(row)?);
            Some(if to_utc {
                zone.to_utc(value, per_second)
            } else {
                zone.to_local(value, per_second)
            })
        }))
    }))
}

// ---- text --------------------------------------------------------------------------------------

fn pattern_of(bound: &Bound<'_>) -> Option<TimestampPattern> {
    bound.arguments.get(1)?.text().map(|text| TimestampPattern::compile(&text))
}

fn to_str(bound: &Bound<'_>) -> Made {
    let known = pattern_of(bound);
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 0)?;
        let patterns = call.texts(1)?;
        let mut bytes = Vec::new();
        Ok(build_text(call.rows, |row, out| {
            let Some(value) = at(row) else { return false };
            bytes.clear();
            match (&known, patterns.get(row)) {
                (Some(pattern), _) => pattern.format(&mut bytes, value, unit),
                (None, Some(text)) => {
                    TimestampPattern::compile(text).format(&mut bytes, value, unit);
                }
                (None, None) => return false,
            }
            out.push_str(std::str::from_utf8(&bytes).unwrap_or_default());
            true
        }))
    }))
}

/// Reads text by a pattern, or as ISO when there is none.
fn from_str(bound: &Bound<'_>) -> Made {
    let known = pattern_of(bound);
    let iso = bound.types.len() == 1;
    let unit = unit_of(bound.returns).unwrap_or(TimestampUnit::Micros);
    Ok(Arc::new(move |call: &Call<'_>| {
        let texts = call.texts(0)?;
        let patterns = call.texts(usize::from(!iso))?;
        Ok(build_times(call.rows, unit, |row| {
            let text = texts.get(row)?;
            match &known {
                _ if iso => tidemark_types::timestamp::parse(text, unit),
                Some(pattern) => pattern.parse(text, unit),
                None => TimestampPattern::compile(patterns.get(row)?).parse(text, unit),
            }
        }))
    }))
}

// ---- clocks and intervals ----------------------------------------------------------------------

fn clock_nanos() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

fn interval_of(
    rows: usize,
    mut bounds: impl FnMut(usize) -> Option<(i64, i64)>,
) -> Result<ArrayRef> {
    let pairs: Vec<Option<(i64, i64)>> = (0..rows).map(&mut bounds).collect();
    let lo = build::<Us>(rows, |row| pairs[row].map(|pair| pair.0));
    let hi = build::<Us>(rows, |row| pairs[row].map(|pair| pair.1));
    let DataType::Struct(fields) = Interval.arrow_type() else {
        return Err(internal("an interval is a pair"));
    };
    let nulls = pairs
        .iter()
        .any(Option::is_none)
        .then(|| NullBuffer::from(pairs.iter().map(Option::is_some).collect::<Vec<bool>>()));
    Ok(Arc::new(StructArray::try_new(fields, vec![lo, hi], nulls)?))
}

fn interval(call: &Call<'_>) -> Result<ArrayRef> {
    let (low, high) = (call.primitive::<Us>(0)?, call.primitive::<Us>(1)?);
    for row in 0..call.rows {
        if let (Some(low), Some(high)) = (low.get(row), high.get(row))
            && low > high
        {
            return Err(invalid("invalid interval boundaries"));
        }
    }
    interval_of(call.rows, |row| Some((low.get(row)?, high.get(row)?)))
}

fn bound_of(call: &Call<'_>, column: usize) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let pair = array.as_struct_opt().ok_or_else(|| internal("not an interval"))?;
    let values = pair.column(column).as_primitive::<Us>();
    Ok(build::<Us>(call.rows, |row| {
        let row = if scalar { 0 } else { row };
        (pair.is_valid(row) && values.is_valid(row)).then(|| values.value(row))
    }))
}

/// The day `shift` days from now in the first argument's zone, both ends included.
fn day_from_now(call: &Call<'_>, shift: i64) -> Result<ArrayRef> {
    let name = if call.arguments.is_empty() { None } else { call.constant_text(0)? };
    let zone = match name {
        None => Zone::Fixed(0),
        Some(name) => {
            Zone::parse(&name).ok_or_else(|| invalid(format!("invalid timezone: {name}")))?
        }
    };
    let local = zone.to_local(clock_nanos() / 1_000, 1_000_000);
    let midnight = CivilDate::from_micros(local).to_micros() + shift * MICROS_PER_DAY;
    let (lo, hi) =
        (zone.to_utc(midnight, 1_000_000), zone.to_utc(midnight + MICROS_PER_DAY, 1_000_000));
    interval_of(call.rows, |_| Some((lo, hi - 1)))
}

/// The steps so far are kept from batch to batch of one statement.
fn sequence(call: &Call<'_>, elapsed: &Mutex<i64>) -> Result<ArrayRef> {
    let (at, unit) = times(call, 0)?;
    let steps = call.primitive::<Int64Type>(1)?;
    let mut elapsed = elapsed.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(build_times(call.rows, unit, |row| {
        let value = at(row)?.checked_add(*elapsed);
        *elapsed = elapsed.wrapping_add(steps.get(row).unwrap_or(0));
        value
    }))
}

const TIME: &[crate::registry::Param] = &[Time];

macro_rules! field {
    ($name:literal, $part:expr, $summary:literal) => {
        pure($name, &[direct(TIME, Int, |call| part(call, 0, $part))], $summary)
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
        &[made(&[Text, Time], Gives::Is(Int), |bound| extract(bound, false))],
        "a part of a time: extract(unit FROM time)",
    ),
    pure(
        "extract_epoch",
        &[made(&[Text, Time], Gives::Is(Long), |bound| extract(bound, true))],
        "the parts of extract that need a LONG: epoch",
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
        &[made(&[Text, Time, Time], Gives::Is(Long), datediff)],
        "complete units between two times",
    ),
    pure(
        "date_trunc",
        &[made(&[Text, Time], Gives::SameAs(1), date_trunc)],
        "start of the named unit",
    ),
    pure("timestamp_floor", FLOOR, "start of the step, counted from 1970 or an origin"),
    pure(
        "timestamp_ceil",
        &[made(&[Text, Time], Gives::SameAs(1), timestamp_ceil)],
        "start of the next step",
    ),
    pure(
        "to_timezone",
        &[made(&[Time, Text], Gives::SameAs(0), |b| in_zone(b, false))],
        "UTC to a zone's clock",
    ),
    pure(
        "to_utc",
        &[made(&[Time, Text], Gives::SameAs(0), |b| in_zone(b, true))],
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
        ],
        "text as TIMESTAMP by a pattern; null when it does not match",
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
        &[direct(&[Is(Timestamp)], Timestamp, |call| {
            let (at, _) = times(call, 0)?;
            let today = CivilDate::from_micros(clock_nanos() / 1_000).to_micros();
            Ok(build::<Us>(call.rows, |row| today.checked_sub(at(row)?)))
        })],
        "time from a moment to today",
    ),
];
