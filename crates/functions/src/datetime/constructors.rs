//! Builds times from numbers, and formats times with `PostgreSQL`'s patterns.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int32Type, Int64Type, TimestampMillisecondType};
use datafusion::common::Result;
use tidemark_types::calendar::{
    CivilDate, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND,
};
use tidemark_types::period::Period;
use tidemark_types::{SqlType, account};

use tidemark_types::timestamp_pattern::{DAYS, MAX_PATTERN_BYTES, MONTHS};

use super::clocks::clock_nanos;
use super::periods::periods;
use super::times::{KernelResult, Us, micros_of, times};
use crate::column::{Call, build, invalid, stopped, try_build, try_build_text};
use crate::number::pattern::ordinal as ordinal_suffix;
use crate::resolve::{ResolveError, types_of};
use crate::signature::Bound;

/// Computes `make_timestamp(year, month, day, hour, minute, second)`.
pub(super) fn make_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    let whole: Vec<_> =
        (0..5).map(|index| call.primitive::<Int32Type>(index)).collect::<Result<_>>()?;
    let seconds = call.primitive::<Float64Type>(5)?;
    try_build::<Us>(call.rows, |row| {
        let fields: Option<Vec<i32>> = whole.iter().map(|field| field.get(row)).collect();
        let (Some(fields), Some(seconds)) = (fields, seconds.get(row)) else { return Ok(None) };
        let [year, month, day, hour, minute] = fields[..] else { return Ok(None) };
        let date = CivilDate { year, month: 1, day: 1 };
        let is_date = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && day >= 1
            && day <= i32::from(CivilDate { month: month as u8, ..date }.days_in_month());
        let is_time =
            (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..60.0).contains(&seconds);
        if !is_date || !is_time {
            return Err(invalid(format!(
                "invalid date or time: {year}-{month}-{day} {hour}:{minute}:{seconds}"
            )));
        }
        let date = CivilDate { year, month: month as u8, day: day as u8 };
        let of_day = i64::from(hour) * MICROS_PER_HOUR
            + i64::from(minute) * MICROS_PER_MINUTE
            + (seconds * MICROS_PER_SECOND as f64).round() as i64;
        Ok(Some(date.to_micros() + of_day))
    })
}

/// Computes `make_date(year, month, day)`.
pub(super) fn make_date(call: &Call<'_>) -> Result<ArrayRef> {
    let fields: Vec<_> =
        (0..3).map(|index| call.primitive::<Int32Type>(index)).collect::<Result<_>>()?;
    try_build::<TimestampMillisecondType>(call.rows, |row| {
        let fields: Option<Vec<i32>> = fields.iter().map(|field| field.get(row)).collect();
        let Some([year, month, day]) = fields.as_deref() else { return Ok(None) };
        let date = u8::try_from(*month).ok().zip(u8::try_from(*day).ok());
        let date = date.map(|(month, day)| CivilDate { year: *year, month, day });
        let is_there = |date: &CivilDate| {
            (1..=9999).contains(&date.year)
                && (1..=12).contains(&date.month)
                && (1..=date.days_in_month()).contains(&date.day)
        };
        match date.filter(is_there) {
            Some(date) => Ok(Some(date.to_micros() / 1_000)),
            None => Err(invalid(format!("invalid date: {year}-{month}-{day}"))),
        }
    })
}

/// Converts seconds since 1970 to a time; null if out of range. Only numbers are accepted.
pub(super) fn of_epoch(bound: &Bound<'_>) -> KernelResult {
    let from = bound.arguments[0].sql_type;
    if !from.is_integer() && !matches!(from, SqlType::Float | SqlType::Double | SqlType::Null) {
        let name = "to_timestamp".into();
        return Err(ResolveError::NoOverload { name, types: types_of(bound.arguments) });
    }
    Ok(Arc::new(|call: &Call<'_>| {
        let seconds = call.primitive::<Float64Type>(0)?;
        Ok(build::<Us>(call.rows, |row| {
            let micros = (seconds.get(row)? * MICROS_PER_SECOND as f64).round();
            (micros.abs() < 9.2e18).then_some(micros as i64)
        }))
    }))
}

/// The last id that `next_id` returned.
static LAST_ID: AtomicI64 = AtomicI64::new(0);

/// Returns microseconds since 1970, each value at most once per process. A later process returns
/// greater ids, unless the clock was set back or the earlier process generated more than a million
/// ids per second.
pub(super) fn next_id(call: &Call<'_>) -> Result<ArrayRef> {
    let count = i64::try_from(call.rows).unwrap_or(i64::MAX);
    let now = clock_nanos() / 1_000;
    let after = |last: i64| last.max(now).saturating_add(count);
    let last = LAST_ID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
    let first = last.unwrap_or_default().max(now);
    Ok(build::<Int64Type>(call.rows, |row| Some(first + row as i64)))
}

/// Rejects `next_id(first, step)`, which is allowed only as the default of an integer column.
pub(super) fn next_of_column(_: &Call<'_>) -> Result<ArrayRef> {
    Err(invalid(
        "next_id(first, step) is only valid as the DEFAULT of an integer column, with step >= 1",
    ))
}

/// The Julian day of 1970-01-01.
const JULIAN_DAY_OF_1970: i64 = 2_440_588;

/// Field patterns for `to_char`. Each pattern is listed before its own prefixes.
const FIELDS: &[&str] = &[
    "HH24", "HH12", "HH", "MI", "MS", "SSSSS", "SSSS", "SS", "US", "FF1", "FF2", "FF3", "FF4",
    "FF5", "FF6", "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "IDDD", "ID", "IW", "I",
    "MONTH", "Month", "month", "MON", "Mon", "mon", "MM", "DAY", "Day", "day", "DY", "Dy", "dy",
    "DDD", "DD", "D", "WW", "W", "Q", "CC", "A.M.", "P.M.", "a.m.", "p.m.", "AM", "PM", "am", "pm",
    "A.D.", "B.C.", "a.d.", "b.c.", "AD", "BC", "ad", "bc", "RM", "rm", "J", "TZH", "TZM", "TZ",
    "tz", "OF",
];

/// Width in letters to which month and day names are padded with blanks.
const NAME_LETTERS: usize = 9;

/// Months in Roman numerals, January first.
const ROMAN_MONTHS: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The ordinal suffix of a number.
#[derive(Debug, Clone, Copy)]
enum Ordinal {
    None,
    Upper,
    Lower,
}

/// A pattern element.
enum PatternElement {
    /// A field of the time, with leading zeros unless FM precedes it.
    Field {
        name: &'static str,
        is_padded: bool,
        /// A `TH` or `th` suffix: 1ST, 2nd.
        ordinal: Ordinal,
    },
    Text(String),
}

fn parse_pattern(pattern: &str) -> std::result::Result<Vec<PatternElement>, String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        let length = pattern.len();
        return Err(format!(
            "timestamp pattern is {length} bytes long: at most {MAX_PATTERN_BYTES} bytes are \
             allowed"
        ));
    }
    let mut elements = Vec::new();
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            elements.push(PatternElement::Text(quoted[..end].to_owned()));
            rest = quoted.get(end + 1..).unwrap_or_default();
            continue;
        }
        let bare = rest.strip_prefix("FM").unwrap_or(rest);
        let upper = |field: &&&str| bare.starts_with(**field) || is_lower_of(bare, field);
        if let Some(field) = FIELDS.iter().find(upper) {
            let is_padded = bare.len() == rest.len();
            rest = &bare[field.len()..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Ordinal::Upper,
                Some("th") => Ordinal::Lower,
                _ => Ordinal::None,
            };
            if !matches!(ordinal, Ordinal::None) {
                rest = &rest[2..];
            }
            elements.push(PatternElement::Field { name: field, is_padded, ordinal });
            continue;
        }
        let length = next.len_utf8();
        match elements.last_mut() {
            Some(PatternElement::Text(text)) => text.push(next),
            _ => elements.push(PatternElement::Text(next.to_string())),
        }
        rest = &rest[length..];
    }
    Ok(elements)
}

/// Whether a numeric field in a pattern is lower case, as in `yyyy-mm-dd`.
fn is_lower_of(text: &str, field: &str) -> bool {
    // These fields have a separate lower-case form.
    let is_name = matches!(
        field,
        "MONTH"
            | "MON"
            | "DAY"
            | "DY"
            | "AM"
            | "PM"
            | "A.M."
            | "P.M."
            | "AD"
            | "BC"
            | "A.D."
            | "B.C."
            | "RM"
            | "TZ"
    );
    let is_upper = !field.bytes().any(|letter| letter.is_ascii_lowercase());
    is_upper && !is_name && text.starts_with(&field.to_ascii_lowercase())
}

/// Builds the kernel for `to_char(time, pattern)`.
pub(super) fn to_char(bound: &Bound<'_>) -> KernelResult {
    let known = constant_pattern(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 0)?;
        written(call, known.as_deref(), |row| at(row).map(|at| micros_of(at, unit)), write_field)
    }))
}

/// Builds the kernel for `to_char(period, pattern)`.
pub(super) fn length_to_char(bound: &Bound<'_>) -> KernelResult {
    let known = constant_pattern(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        written(call, known.as_deref(), periods(call, 0)?, write_length_field)
    }))
}

/// Parses a constant pattern.
fn constant_pattern(
    bound: &Bound<'_>,
) -> std::result::Result<Option<Vec<PatternElement>>, ResolveError> {
    let known = bound.arguments[1].text().map(|text| parse_pattern(&text)).transpose();
    known.map_err(|message| ResolveError::InvalidArgument { index: 1, message })
}

/// Formats each value with its row's pattern. `write` writes one field.
fn written<T: Copy>(
    call: &Call<'_>,
    known: Option<&[PatternElement]>,
    value: impl Fn(usize) -> Option<T>,
    write: impl Fn(&str, bool, T, &mut String) -> Result<()>,
) -> Result<ArrayRef> {
    let patterns = call.texts(1)?;
    let mut text = String::new();
    try_build_text(call.rows, |row, out| {
        let Some(value) = value(row) else { return Ok(false) };
        let own;
        let elements = match (known, patterns.get(row)) {
            (Some(elements), _) => elements,
            (None, Some(pattern)) => {
                account::check().map_err(stopped)?;
                own = parse_pattern(pattern).map_err(invalid)?;
                &own
            }
            (None, None) => return Ok(false),
        };
        text.clear();
        for element in elements {
            match element {
                PatternElement::Text(fixed) => text.push_str(fixed),
                PatternElement::Field { name, is_padded, ordinal } => {
                    let start = text.len();
                    write(name, *is_padded, value, &mut text)?;
                    let suffix = ordinal_suffix(&text[start..]);
                    let is_number = text.ends_with(|last: char| last.is_ascii_digit());
                    match ordinal {
                        _ if !is_number => {}
                        Ordinal::None => {}
                        Ordinal::Lower => text.push_str(suffix),
                        Ordinal::Upper => text.push_str(&suffix.to_uppercase()),
                    }
                }
            }
        }
        out.push_str(&text);
        Ok(true)
    })
}

/// Writes a period field. `HH24` is the total number of hours, which may exceed 23.
fn write_length_field(
    field: &str,
    is_padded: bool,
    length: Period,
    out: &mut String,
) -> Result<()> {
    let Period { months, days, micros } = length;
    let (number, width) = match field {
        "YYYY" | "Y" | "YY" | "YYY" => (i64::from(months / 12), field.len()),
        "MM" => (i64::from(months % 12), 2),
        "DD" => (i64::from(days), 2),
        "HH24" => (micros / MICROS_PER_HOUR, 2),
        "HH12" | "HH" => match micros / MICROS_PER_HOUR % 12 {
            0 => (12, 2),
            hours => (hours, 2),
        },
        "MI" => (micros / MICROS_PER_MINUTE % 60, 2),
        "SS" => (micros / MICROS_PER_SECOND % 60, 2),
        "SSSS" => (micros / MICROS_PER_SECOND, 1),
        "MS" => (micros / 1_000 % 1_000, 3),
        "US" => (micros % MICROS_PER_SECOND, 6),
        _ => return Err(invalid(format!("an interval has no field {field}"))),
    };
    write_number(number, if is_padded { width } else { 1 }, out);
    Ok(())
}

/// Writes a number with at least `width` digits, not counting the sign.
fn write_number(number: i64, width: usize, out: &mut String) {
    let sign = if number < 0 { "-" } else { "" };
    // Writing to a String cannot fail.
    let _ = write!(out, "{sign}{:0width$}", number.unsigned_abs());
}

/// Returns a field that is written as a word; `None` for numeric fields.
fn name_of(field: &str, is_padded: bool, date: CivilDate, is_morning: bool) -> Option<String> {
    let month = MONTHS[usize::from(date.month).clamp(1, 12) - 1];
    let roman = ROMAN_MONTHS[usize::from(date.month).clamp(1, 12) - 1];
    let day = DAYS[usize::from(date.iso_weekday()).clamp(1, 7) - 1];
    let padded = |name: String, letters: usize| {
        let width = if is_padded { letters } else { 0 };
        format!("{name:width$}")
    };
    let either = |one: &str, other: &str, is_one: bool| {
        let name = if is_one { one } else { other };
        let is_lower = field.starts_with(|first: char| first.is_ascii_lowercase());
        if is_lower { name.to_lowercase() } else { name.to_owned() }
    };
    Some(match field {
        "MONTH" => padded(month.to_uppercase(), NAME_LETTERS),
        "Month" => padded(month.to_owned(), NAME_LETTERS),
        "month" => padded(month.to_lowercase(), NAME_LETTERS),
        "MON" => month[..3].to_uppercase(),
        "Mon" => month[..3].to_owned(),
        "mon" => month[..3].to_lowercase(),
        "DAY" => padded(day.to_uppercase(), NAME_LETTERS),
        "Day" => padded(day.to_owned(), NAME_LETTERS),
        "day" => padded(day.to_lowercase(), NAME_LETTERS),
        "DY" => day[..3].to_uppercase(),
        "Dy" => day[..3].to_owned(),
        "dy" => day[..3].to_lowercase(),
        "RM" => padded(roman.to_owned(), 4),
        "rm" => padded(roman.to_lowercase(), 4),
        "AM" | "PM" | "am" | "pm" => either("AM", "PM", is_morning),
        "A.M." | "P.M." | "a.m." | "p.m." => either("A.M.", "P.M.", is_morning),
        "AD" | "BC" | "ad" | "bc" => either("AD", "BC", date.year > 0),
        "A.D." | "B.C." | "a.d." | "b.c." => either("A.D.", "B.C.", date.year > 0),
        // All times are in UTC.
        "TZ" => "UTC".to_owned(),
        "tz" => "utc".to_owned(),
        "TZH" | "OF" => "+00".to_owned(),
        "TZM" => "00".to_owned(),
        _ => return None,
    })
}

fn write_field(field: &str, is_padded: bool, micros: i64, out: &mut String) -> Result<()> {
    let date = CivilDate::from_micros(micros);
    let of_day = micros.rem_euclid(MICROS_PER_DAY);
    let hour = of_day / MICROS_PER_HOUR;
    if let Some(name) = name_of(field, is_padded, date, hour < 12) {
        out.push_str(&name);
        return Ok(());
    }
    let fraction = of_day % MICROS_PER_SECOND;
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let weekday = i64::from(date.iso_weekday());
    let (iso_year, iso_week) = date.iso_week();
    // There is no year 0: 1 BC precedes year 1.
    let of_era = |year: i32| i64::from(if year < 1 { 1 - year } else { year });
    let (year, iso_year) = (of_era(date.year), of_era(iso_year));
    let (number, width) = match field {
        "HH24" => (hour, 2),
        "HH12" | "HH" => (twelve, 2),
        "MI" => (of_day / MICROS_PER_MINUTE % 60, 2),
        "SS" => (of_day / MICROS_PER_SECOND % 60, 2),
        "SSSS" | "SSSSS" => (of_day / MICROS_PER_SECOND, 1),
        "MS" | "FF3" => return write_fixed(fraction / 1_000, 3, out),
        "US" | "FF6" => return write_fixed(fraction, 6, out),
        "FF1" => return write_fixed(fraction / 100_000, 1, out),
        "FF2" => return write_fixed(fraction / 10_000, 2, out),
        "FF4" => return write_fixed(fraction / 100, 4, out),
        "FF5" => return write_fixed(fraction / 10, 5, out),
        "Y,YYY" => {
            write_number(year / 1_000, 1, out);
            out.push(',');
            return write_fixed(year % 1_000, 3, out);
        }
        "YYYY" => (year, 4),
        "YYY" => (year % 1_000, 3),
        "YY" => (year % 100, 2),
        "Y" => (year % 10, 1),
        "IYYY" => (iso_year, 4),
        "IYY" => (iso_year % 1_000, 3),
        "IY" => (iso_year % 100, 2),
        "I" => (iso_year % 10, 1),
        "MM" => (i64::from(date.month), 2),
        "DDD" => (i64::from(date.day_of_year()), 3),
        "IDDD" => ((i64::from(iso_week) - 1) * 7 + weekday, 3),
        "DD" => (i64::from(date.day), 2),
        "ID" => (weekday, 1),
        "D" => (weekday % 7 + 1, 1),
        "IW" => (i64::from(iso_week), 2),
        "WW" => (i64::from((date.day_of_year() - 1) / 7 + 1), 2),
        "W" => (i64::from((date.day - 1) / 7 + 1), 1),
        "Q" => (i64::from((date.month - 1) / 3 + 1), 1),
        "J" => (micros.div_euclid(MICROS_PER_DAY) + JULIAN_DAY_OF_1970, 1),
        _ if date.year > 0 => ((i64::from(date.year) + 99) / 100, 2),
        _ => (i64::from(date.year) / 100 - 1, 2),
    };
    write_number(number, if is_padded { width } else { 1 }, out);
    Ok(())
}

/// Writes a number with exactly this many digits. FM does not shorten it.
fn write_fixed(number: i64, digits: usize, out: &mut String) -> Result<()> {
    write_number(number, digits, out);
    Ok(())
}
