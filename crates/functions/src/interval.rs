//! Interval text, as in `ts IN '2024-01-[01..05]T09:30;1h'`.
//!
//! ```text
//! text     = dates [@zone] [#filter] [;duration [;period ;count]]
//! dates    = element | '[' element {, element} ']'
//! element  = date | date..date | $variable [± n unit]     with [lists] and [a..b] in any field
//! ```
//!
//! The work goes in three steps: brackets are expanded into plain texts, each text becomes one
//! half-open interval, and the intervals are filtered, moved, repeated, sorted and merged.

use tidemark_types::calendar::CivilDate;
use tidemark_types::timestamp::{Granularity, TimestampUnit, parse_fields};
use tidemark_types::zone::Zone;

mod dates;
mod span;

use dates::{days_of_period, iso_week, variable};
pub use span::IntervalError;
use span::{Result, Span, bad_date, fail, moved};

/// More intervals than this are refused: a text of a few bytes must not fill the memory.
const MAX_INTERVALS: usize = 100_000;

/// Reads interval text into sorted, disjoint, half-open intervals in `unit`.
pub fn parse_interval(text: &str, unit: TimestampUnit, now_micros: i64) -> Result<Vec<(i64, i64)>> {
    let (dates, suffix) = split_suffix(text)?;
    let (dates, filter) = split_mark(dates, '#');
    let (dates, zone) = split_mark(dates, '@');
    let zone = zone.map(parse_zone).transpose()?;
    let filter = filter.map(DayFilter::parse).transpose()?;
    let mut spans: Vec<Fine> = Vec::new();
    for element in elements(dates)? {
        let (element, own) = match element.split_once(';') {
            Some((element, own)) => (element.to_owned(), Some(own.to_owned())),
            None => (element, None),
        };
        let own = own.as_deref().map(parse_suffix).transpose()?;
        let repeat = own.as_ref().or(suffix.as_ref());
        for span in element_spans(&element, unit, now_micros, filter.as_ref())? {
            push_repeated(&mut spans, span, repeat, zone, unit)?;
        }
    }
    let mut found: Vec<(i64, i64)> =
        spans.into_iter().map(|span| (span.lo, span.hi)).filter(|(lo, hi)| lo < hi).collect();
    found.sort_unstable();
    Ok(merge(&found))
}

/// An interval in the column's own unit.
#[derive(Debug, Clone, Copy)]
struct Fine {
    lo: i64,
    hi: i64,
    zoned: bool,
}

impl Fine {
    fn lo(self, unit: TimestampUnit) -> i64 {
        unit.convert(self.lo, TimestampUnit::Micros).unwrap_or(self.lo)
    }

    fn of(span: Span, unit: TimestampUnit) -> Result<Self> {
        let convert = |value| TimestampUnit::Micros.convert(value, unit);
        match (convert(span.lo), convert(span.hi)) {
            (Some(lo), Some(hi)) => Ok(Self { lo, hi, zoned: span.zoned }),
            _ => fail("interval is out of range"),
        }
    }
}

fn merge(sorted: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut merged: Vec<(i64, i64)> = Vec::with_capacity(sorted.len());
    for &(lo, hi) in sorted {
        match merged.last_mut() {
            Some(last) if lo <= last.1 => last.1 = last.1.max(hi),
            _ => merged.push((lo, hi)),
        }
    }
    merged
}

/// `;duration` or `;duration;period;count`.
#[derive(Debug)]
struct Suffix {
    duration: Vec<(i64, char)>,
    period: Vec<(i64, char)>,
    count: i64,
}

/// Splits at the first `;` outside brackets.
fn split_suffix(text: &str) -> Result<(&str, Option<Suffix>)> {
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b';' if depth == 0 => {
                let suffix = parse_suffix(&text[at + 1..]);
                return suffix.map(|suffix| (&text[..at], Some(suffix))).map_err(|error| {
                    if error.message.is_empty() {
                        let message = format!("Invalid interval format: {text}");
                        IntervalError { message, offset: at }
                    } else {
                        error
                    }
                });
            }
            _ => {}
        }
    }
    if depth > 0 { fail("Unclosed '[' in interval") } else { Ok((text, None)) }
}

fn parse_suffix(text: &str) -> Result<Suffix> {
    let parts: Vec<&str> = text.split(';').collect();
    match parts.as_slice() {
        [duration] => {
            Ok(Suffix { duration: parse_duration(duration, false)?, period: vec![], count: 1 })
        }
        [duration, period, count] => match count.trim().parse() {
            Ok(count) if count > 0 => Ok(Suffix {
                duration: parse_duration(duration, false)?,
                period: parse_duration(period, true)?,
                count,
            }),
            Ok(_) => fail("Count must be positive"),
            Err(_) => fail("Count not a number"),
        },
        _ => fail(""),
    }
}

/// `12h30m`: numbers and units in a row. An empty text lasts no time.
fn parse_duration(text: &str, signed: bool) -> Result<Vec<(i64, char)>> {
    let text = text.trim();
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) if signed => (-1, rest),
        _ => (1, text),
    };
    let mut parts = Vec::new();
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'_').count();
        if digits == 0 {
            return fail(format!("Expected number before unit '{first}'"));
        }
        let number: Option<i64> = rest[..digits].replace('_', "").parse().ok();
        let Some(number) = number.filter(|number| *number <= i64::from(i32::MAX)) else {
            return fail("Range not a number");
        };
        let Some(unit) = rest[digits..].chars().next() else {
            return fail("Missing unit at end of duration");
        };
        if !"nuUTsmhHdDwWMyY".contains(unit) {
            return fail(format!("Unknown interval unit: {unit}"));
        }
        parts.push((sign * number, unit));
        rest = &rest[digits + unit.len_utf8()..];
    }
    Ok(parts)
}

fn push_repeated(
    out: &mut Vec<Fine>,
    span: Fine,
    suffix: Option<&Suffix>,
    zone: Option<Zone>,
    unit: TimestampUnit,
) -> Result<()> {
    let count = suffix.map_or(1, |suffix| suffix.count);
    let out_of_range = IntervalError { message: "interval is out of range".into(), offset: 0 };
    for index in 0..count {
        let (lo, hi) = match suffix {
            None => (span.lo, span.hi),
            Some(suffix) => {
                // The duration counts from the start, whatever field the text ends with.
                let lo = moved(span.lo, &suffix.period, index, unit).ok_or(out_of_range.clone())?;
                let hi = moved(lo, &suffix.duration, 1, unit).ok_or(out_of_range.clone())?;
                (lo, hi)
            }
        };
        let to_utc = |local: i64| match zone {
            Some(zone) if !span.zoned => zone.to_utc(local, unit.per_second()),
            _ => local,
        };
        // A duration is elapsed time, so only the start is a clock reading.
        let start = to_utc(lo);
        let end = if suffix.is_some() { start + (hi - lo) } else { to_utc(hi) };
        out.push(Fine { lo: start, hi: end, zoned: true });
        if out.len() > MAX_INTERVALS {
            return fail(format!("too many intervals [limit={MAX_INTERVALS}]"));
        }
    }
    Ok(())
}

/// The part before `mark` outside brackets, and what follows it.
fn split_mark(text: &str, mark: char) -> (&str, Option<&str>) {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if c == mark && depth == 0 => return (&text[..at], Some(&text[at + 1..])),
            _ => {}
        }
    }
    (text, None)
}

fn parse_zone(name: &str) -> Result<Zone> {
    match Zone::parse(name) {
        Some(zone) => Ok(zone),
        None => fail(format!("invalid timezone: {name}")),
    }
}

/// `#workday`, `#weekend`, `#Mon,Sat`.
struct DayFilter {
    kept: [bool; 7],
}

impl DayFilter {
    fn parse(text: &str) -> Result<Self> {
        const NAMES: [&str; 7] =
            ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let mut kept = [false; 7];
        for name in text.split(',').map(str::trim) {
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "workday" | "wd" => kept[..5].fill(true),
                "weekend" => kept[5..].fill(true),
                _ => {
                    let known = |day: &&str| **day == lower || day[..3] == lower;
                    match NAMES.iter().position(known) {
                        Some(day) => kept[day] = true,
                        None => return fail(format!("Invalid day name: {name}")),
                    }
                }
            }
        }
        Ok(Self { kept })
    }

    fn keeps(&self, micros: i64) -> bool {
        self.kept[usize::from(CivilDate::from_micros(micros).iso_weekday()) - 1]
    }
}

/// The elements of a date list, brackets inside fields expanded.
fn elements(dates: &str) -> Result<Vec<String>> {
    let trimmed = dates.trim();
    let Some(inner) = trimmed.strip_prefix('[') else { return expand(trimmed) };
    let Some(close) = closing(inner) else { return fail("Unclosed '[' in interval") };
    let (list, tail) = (&inner[..close], &inner[close + 1..]);
    if list.trim().is_empty() {
        return fail("Empty bracket expansion");
    }
    let mut found = Vec::new();
    for item in split_list(list) {
        // A time of day for all precedes an element's own zone, filter and duration.
        let item = item.trim();
        let (date, own) = item.split_at(item.find(['@', '#', ';']).unwrap_or(item.len()));
        found.extend(expand(&format!("{date}{tail}{own}"))?);
    }
    Ok(found)
}

/// Where the bracket that is open at the start closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits at commas outside brackets.
fn split_list(list: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut depth = 0_i32;
    let mut start = 0;
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    items
}

/// Expands every bracket of a text: the product of all choices.
fn expand(text: &str) -> Result<Vec<String>> {
    let Some(open) = text.find('[') else { return Ok(vec![text.to_owned()]) };
    let Some(length) = closing(&text[open + 1..]) else {
        return fail("Unclosed '[' in interval");
    };
    let (head, list) = (&text[..open], &text[open + 1..open + 1 + length]);
    let tails = expand(&text[open + length + 2..])?;
    if list.trim().is_empty() {
        return fail("Empty bracket expansion");
    }
    // A week day and a part of a time or fraction keep their width; all other fields have two.
    let width = if head.len() > 4 && head[..head.len() - 1].contains("-W") && head.ends_with('-') {
        1
    } else {
        2
    };
    let mut found = Vec::new();
    for item in list.split(',').map(str::trim) {
        for choice in bracket_item(item, width)? {
            for tail in &tails {
                found.push(format!("{head}{choice}{tail}"));
                if found.len() > MAX_INTERVALS {
                    return fail(format!("too many intervals [limit={MAX_INTERVALS}]"));
                }
            }
        }
    }
    Ok(found)
}

fn bracket_item(item: &str, width: usize) -> Result<Vec<String>> {
    let number = |text: &str| -> Result<u32> {
        text.trim().parse().or_else(|_| fail(format!("Expected number in bracket: {text}")))
    };
    if let Some((low, high)) = item.split_once("..") {
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return fail(format!("Range must be ascending: {low}..{high}"));
        }
        if (high - low) as usize >= MAX_INTERVALS {
            return fail(format!("too many intervals [limit={MAX_INTERVALS}]"));
        }
        return Ok((low..=high).map(|value| format!("{value:0width$}")).collect());
    }
    if item.contains(':') {
        return Ok(vec![item.to_owned()]);
    }
    number(item).map(|value| vec![format!("{value:0width$}")])
}

/// The intervals of one element: one, or the days of a range, or the days a filter asks for.
fn element_spans(
    text: &str,
    unit: TimestampUnit,
    now: i64,
    filter: Option<&DayFilter>,
) -> Result<Vec<Fine>> {
    // A list element may carry its own filter and zone.
    let (text, own) = split_mark(text.trim(), '#');
    let own = own.map(DayFilter::parse).transpose()?;
    let filter = own.as_ref().or(filter);
    let (text, zone) = split_mark(text, '@');
    let zone = zone.map(parse_zone).transpose()?;
    let mut spans = match (text.split_once(".."), days_of_period(text)) {
        (Some((low, high)), _) => day_range(low.trim(), high.trim(), unit, now)?,
        (None, Some(days)) => {
            days.iter().map(|day| single(day, unit, now)).collect::<Result<_>>()?
        }
        (None, None) => vec![single(text, unit, now)?],
    };
    if let Some(filter) = filter {
        spans = spans.into_iter().flat_map(|span| split_days(span, unit)).collect();
        // Days are those of the calendar on the wall, before the zone moves them.
        spans.retain(|span| filter.keeps(span.lo(unit)));
    }
    if let Some(zone) = zone {
        for span in spans.iter_mut().filter(|span| !span.zoned) {
            let to_utc = |local| zone.to_utc(local, unit.per_second());
            *span = Fine { lo: to_utc(span.lo), hi: to_utc(span.hi), zoned: true };
        }
    }
    Ok(spans)
}

/// A long interval as its days, so that a filter can choose among them.
fn split_days(span: Fine, unit: TimestampUnit) -> Vec<Fine> {
    let day = unit.per_day();
    let whole = span.lo.rem_euclid(day) == 0 && (span.hi - span.lo) % day == 0;
    let days = (span.hi - span.lo) / day;
    if !whole || days <= 1 || days as usize > MAX_INTERVALS {
        return vec![span];
    }
    let at = |index| span.lo + index * day;
    (0..days).map(|index| Fine { lo: at(index), hi: at(index + 1), ..span }).collect()
}

/// `a..b`: each day from a to b, with b's time of day when it has one.
fn day_range(low: &str, high: &str, unit: TimestampUnit, now: i64) -> Result<Vec<Fine>> {
    let low = match (time_of_day(high), time_of_day(low)) {
        (Some(time), None) => format!("{low}T{time}"),
        _ => low.to_owned(),
    };
    let (first, last) = (single(&low, unit, now)?, single(high, unit, now)?);
    if first.lo > last.lo {
        return fail(format!("Range must be ascending: {low}..{high}"));
    }
    if low.starts_with("$now") || high.starts_with("$now") {
        return Ok(vec![Fine { hi: last.hi, ..first }]);
    }
    let day = unit.per_day();
    let length = first.hi - first.lo;
    let days = (last.lo - first.lo) / day;
    if days as usize > MAX_INTERVALS {
        return fail(format!("too many intervals [limit={MAX_INTERVALS}]"));
    }
    // Between business days there are no others.
    let business = DayFilter { kept: [true, true, true, true, true, false, false] };
    let all = !low.contains("bd") && !high.contains("bd");
    let at = |index| first.lo + index * day;
    let spans = (0..=days).map(|index| Fine { lo: at(index), hi: at(index) + length, ..first });
    Ok(spans.filter(|span| all || business.keeps(span.lo(unit))).collect())
}

/// The time of day that a date or a variable ends with. `T` is also a unit, with nothing behind.
fn time_of_day(text: &str) -> Option<&str> {
    let starts =
        |(at, _): &(usize, &str)| text.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit);
    text.match_indices('T').find(starts).map(|(at, _)| &text[at + 1..])
}

fn single(text: &str, unit: TimestampUnit, now: i64) -> Result<Fine> {
    if text.starts_with('$') {
        return Fine::of(variable(text, now)?, unit);
    }
    if let Some((year, rest)) = text.split_once("-W") {
        return Fine::of(iso_week(text, year, rest)?, unit);
    }
    let Some(parsed) = parse_fields(text) else { return bad_date(text) };
    let (Some(lo), Some(hi)) = (parsed.start(unit), parsed.end(unit)) else {
        return fail("interval is out of range");
    };
    debug_assert!(!matches!(parsed.granularity, Granularity::Nanos(0)));
    Ok(Fine { lo, hi, zoned: parsed.zoned })
}

#[cfg(test)]
mod tests {
    use tidemark_types::timestamp::{iso_text, parse};

    use super::*;

    const MICROS: TimestampUnit = TimestampUnit::Micros;

    fn spans(text: &str) -> Vec<(String, String)> {
        let now = parse("2024-05-17T13:45:56", MICROS).unwrap();
        let short = |value| iso_text(value, MICROS).trim_end_matches(":00.000000Z").to_owned();
        parse_interval(text, MICROS, now)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .into_iter()
            .map(|(lo, hi)| (short(lo), short(hi)))
            .collect()
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(lo, hi)| ((*lo).into(), (*hi).into())).collect();
        assert_eq!(spans(text), expected, "{text}");
    }

    #[test]
    fn prefixes_and_durations() {
        check("2024", &[("2024-01-01T00:00", "2025-01-01T00:00")]);
        check("2024-01-01T12", &[("2024-01-01T12:00", "2024-01-01T13:00")]);
        check("2024-01;1h", &[("2024-01-01T00:00", "2024-01-01T01:00")]);
        check("2024-01-01;12h30m", &[("2024-01-01T00:00", "2024-01-01T12:30")]);
        check("2024-01-01;", &[]);
        check("2024-01-31;1M", &[("2024-01-31T00:00", "2024-02-29T00:00")]);
    }

    #[test]
    fn repetition() {
        check(
            "2024-01-01;1d;7d;3",
            &[
                ("2024-01-01T00:00", "2024-01-02T00:00"),
                ("2024-01-08T00:00", "2024-01-09T00:00"),
                ("2024-01-15T00:00", "2024-01-16T00:00"),
            ],
        );
        check(
            "2024-01-08T00:00:00;1d;-7d;2",
            &[("2024-01-01T00:00", "2024-01-02T00:00"), ("2024-01-08T00:00", "2024-01-09T00:00")],
        );
    }

    #[test]
    fn brackets() {
        check("2024-01-[1..5]", &[("2024-01-01T00:00", "2024-01-06T00:00")]);
        check(
            "2024-[01,03]",
            &[("2024-01-01T00:00", "2024-02-01T00:00"), ("2024-03-01T00:00", "2024-04-01T00:00")],
        );
        check(
            "[2024-01-01,2024-03]",
            &[("2024-01-01T00:00", "2024-01-02T00:00"), ("2024-03-01T00:00", "2024-04-01T00:00")],
        );
        check(
            "[2024-01-01;1h,2024-03-01]",
            &[("2024-01-01T00:00", "2024-01-01T01:00"), ("2024-03-01T00:00", "2024-03-02T00:00")],
        );
        check(
            "2024-01-05T[09:30,12:00];1h",
            &[("2024-01-05T09:30", "2024-01-05T10:30"), ("2024-01-05T12:00", "2024-01-05T13:00")],
        );
        check("2024-01-01T[00:00,12:30];13h", &[("2024-01-01T00:00", "2024-01-02T01:30")]);
    }

    #[test]
    fn weeks_zones_filters_variables() {
        check("2024-W[01..02]", &[("2024-01-01T00:00", "2024-01-15T00:00")]);
        check(
            "2024-W01-[1,5]",
            &[("2024-01-01T00:00", "2024-01-02T00:00"), ("2024-01-05T00:00", "2024-01-06T00:00")],
        );
        check("2024-01-01T13:30@Europe/Berlin;1h", &[("2024-01-01T12:30", "2024-01-01T13:30")]);
        check("2024-01-01T13:30@+01:00", &[("2024-01-01T12:30", "2024-01-01T12:31")]);
        check(
            "2024-01-[01..08]#workday",
            &[("2024-01-01T00:00", "2024-01-06T00:00"), ("2024-01-08T00:00", "2024-01-09T00:00")],
        );
        check("2024-01-[01..08]#Sat", &[("2024-01-06T00:00", "2024-01-07T00:00")]);
        check("$today", &[("2024-05-17T00:00", "2024-05-18T00:00")]);
        check("$today + 1bd", &[("2024-05-20T00:00", "2024-05-21T00:00")]);
        check("[$today - 2d..$today]", &[("2024-05-15T00:00", "2024-05-18T00:00")]);
        check(
            "[$today-1d..$today]T09:00;1h",
            &[("2024-05-16T09:00", "2024-05-16T10:00"), ("2024-05-17T09:00", "2024-05-17T10:00")],
        );
        check(
            "[$yesterday..$today]T09:30@Asia/Tokyo",
            &[("2024-05-16T00:30", "2024-05-16T00:31"), ("2024-05-17T00:30", "2024-05-17T00:31")],
        );
        check(
            "[$today..$today+1bd]T09:30;1m",
            &[("2024-05-17T09:30", "2024-05-17T09:31"), ("2024-05-20T09:30", "2024-05-20T09:31")],
        );
        check("$now-2h30m", &[("2024-05-17T11:15:56.000000Z", "2024-05-17T11:15:56.000001Z")]);
        check("$todayT09:30;1h", &[("2024-05-17T09:30", "2024-05-17T10:30")]);
        assert_eq!(spans("[2024-01]#workday").len(), 5);
    }

    #[test]
    fn months_and_years_have_a_time_on_each_day() {
        assert_eq!(spans("[2026-02]T06:00;2h").len(), 28);
        assert_eq!(spans("2024T06:00;2h").len(), 366);
        assert_eq!(spans("2026-[01..03]T08:00").len(), 31 + 28 + 31);
        assert_eq!(spans("[2024-01]T09:00#workday;1h").len(), 23);
        assert_eq!(spans("[2024-12]T09:00;1h").last().unwrap().0, "2024-12-31T09:00");
        check(
            "[2026-05-01@Asia/Tokyo,2026-05-02@UTC]T09:00",
            &[("2026-05-01T00:00", "2026-05-01T00:01"), ("2026-05-02T09:00", "2026-05-02T09:01")],
        );
        check(
            "[2024-01-05#Fri,2024-01-06#wd]T09:00;1h",
            &[("2024-01-05T09:00", "2024-01-05T10:00")],
        );
    }

    #[test]
    fn errors_have_the_references_words() {
        for (text, message) in [
            ("2024-1-1", "Invalid date: 2024-1-1"),
            ("2024-13", "Invalid date: 2024-13"),
            ("2024-01-08;-1d", "Expected number before unit '-'"),
            ("2024-01-01;1d;7d", "Invalid interval format: 2024-01-01;1d;7d"),
            ("2024-01-[01,05", "Unclosed '[' in interval"),
            ("2024-01-[05..01]", "Range must be ascending: 5..1"),
            ("2024-01-[]", "Empty bracket expansion"),
            ("2024-01-01#Foo", "Invalid day name: Foo"),
            ("2024-01-01@Nowhere/City", "invalid timezone: Nowhere/City"),
            ("$tomorow", "Unknown date variable: $tomorow"),
            ("[2024-13]T09:00;1h", "Invalid date: 2024-13T09:00"),
        ] {
            assert_eq!(parse_interval(text, MICROS, 0).unwrap_err().message, message, "{text}");
        }
    }
}
