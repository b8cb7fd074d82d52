//! Time zones: IANA names, abbreviations in the zone database, and fixed offsets.

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::offset::parse_offset;

mod abbreviations;

/// Maximum length of a name in bytes, including surrounding whitespace.
const MAX_NAME_LENGTH: usize = 256;

/// A rule that converts UTC to local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Zone {
    /// Seconds east of UTC.
    Fixed(i64),
    /// A zone in the IANA database.
    Named(Tz),
}

impl Zone {
    /// Parses `Europe/Berlin`, `CET`, `Z`, `+01:00`, `01:00`, `GMT+1` or `UTC-05:30`, ignoring
    /// case. Returns `None` for an unknown zone.
    ///
    /// All code that accepts a zone calls this function, so the same names are valid everywhere.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_NAME_LENGTH {
            return None;
        }
        let text = text.trim();
        // The sign of an offset is optional.
        let sign = if text.starts_with(|c: char| c.is_ascii_digit()) { "+" } else { "" };
        if let Some(offset) = parse_offset(&format!("{sign}{}", text.to_ascii_uppercase())) {
            return Some(Self::Fixed(offset));
        }
        let prefix = text.get(..3).filter(|prefix| {
            prefix.eq_ignore_ascii_case("GMT") || prefix.eq_ignore_ascii_case("UTC")
        });
        if prefix.is_some() {
            let rest = &text[3..];
            let padded = match rest.as_bytes() {
                [sign @ (b'+' | b'-'), digit] => format!("{}0{}", *sign as char, *digit as char),
                _ => rest.to_owned(),
            };
            if let Some(offset) = parse_offset(&padded) {
                return Some(Self::Fixed(offset));
            }
        }
        let named = |zone: &Tz| zone.name().eq_ignore_ascii_case(text);
        // Checked first, because EST and MST in the zone database have no daylight time.
        let zone = abbreviations::zone_of(text)
            .or_else(|| text.parse().ok())
            .or_else(|| chrono_tz::TZ_VARIANTS.into_iter().find(named));
        zone.map(Self::Named)
    }

    /// Parses the zone that may follow a time after a space. Abbreviations other than those of UTC
    /// are rejected, because `PostgreSQL` treats them as offsets, whereas [`Self::parse`] treats
    /// them as zones with daylight time.
    #[must_use]
    pub(crate) fn of_time(word: &str) -> Option<Self> {
        if ["UTC", "Z", "GMT"].iter().any(|utc| utc.eq_ignore_ascii_case(word)) {
            return Some(Self::Fixed(0));
        }
        let has_region = word.contains('/') && !word.ends_with(' ');
        if has_region { Self::parse(word) } else { None }
    }

    /// Returns the number of seconds east of UTC at a timestamp.
    #[must_use]
    pub fn offset_at(self, utc_seconds: i64) -> i64 {
        match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => naive(utc_seconds).map_or(0, |utc| {
                i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
            }),
        }
    }

    /// Returns the number of seconds east of UTC at a local time. In a gap, this is the offset
    /// before the change. In an overlap, it is the offset of the earlier timestamp.
    #[must_use]
    pub fn offset_at_local(self, local_seconds: i64) -> i64 {
        let Self::Named(zone) = self else { return self.offset_at(local_seconds) };
        let Some(local) = naive(local_seconds) else { return 0 };
        match zone.offset_from_local_datetime(&local).earliest() {
            Some(offset) => i64::from(offset.fix().local_minus_utc()),
            // No zone changes twice within a day, so the previous day has the old offset.
            None => self.offset_at(local_seconds - 86_400),
        }
    }

    /// Converts `utc` to local time. Both are in ticks, with `per_second` ticks per second.
    #[must_use]
    pub fn to_local(self, utc: i64, per_second: i64) -> i64 {
        let offset = self.offset_at(utc.div_euclid(per_second));
        utc.saturating_add(offset * per_second)
    }

    /// Converts local time to UTC.
    #[must_use]
    pub fn to_utc(self, local: i64, per_second: i64) -> i64 {
        let offset = self.offset_at_local(local.div_euclid(per_second));
        local.saturating_sub(offset * per_second)
    }
}

/// A day definition: every day begins at the same local time in a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockDays {
    /// Seconds after midnight at which a day begins.
    pub seconds_of_day: i64,
    /// The time zone.
    pub zone: Zone,
}

impl ClockDays {
    /// Returns the start of the day that contains a UTC timestamp in seconds, and the start of the
    /// next day. If the clock skips the starting time, the day begins right after the gap. If the
    /// clock repeats it, the day begins at the first occurrence.
    #[must_use]
    pub fn around(self, utc_seconds: i64) -> (i64, i64) {
        let local = self.zone.to_local(utc_seconds, 1);
        let mut day = (local - self.seconds_of_day).div_euclid(SECONDS_PER_DAY) + 1;
        let mut end = self.begin(day);
        while end > utc_seconds {
            let begin = self.begin(day - 1);
            if begin <= utc_seconds {
                return (begin, end);
            }
            (day, end) = (day - 1, begin);
        }
        // The clock was set back across the start of a day.
        (end, self.begin(day + 1))
    }

    /// Returns the first timestamp whose local time is at or after the start of a day.
    fn begin(self, day: i64) -> i64 {
        let reading = day.saturating_mul(SECONDS_PER_DAY).saturating_add(self.seconds_of_day);
        let found = self.zone.to_utc(reading, 1);
        if self.zone.to_local(found, 1) == reading {
            return found;
        }
        // The start lies in a gap. The clock changes within the previous 24 hours, and the new
        // offset applies from then on.
        let (mut before, mut after) = (found - SECONDS_PER_DAY, found);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            let is_changed = self.zone.offset_at(middle) == self.zone.offset_at(found);
            (before, after) = if is_changed { (before, middle) } else { (middle, after) };
        }
        after
    }
}

const SECONDS_PER_DAY: i64 = 86_400;

/// Parses a grid offset to seconds: `hh:mm`, `hhmm` or `h`, with an optional sign. Unlike a zone
/// offset it may exceed a day.
#[must_use]
pub fn parse_shift(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') {
        return None;
    }
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at(2),
        None => (digits, "0"),
    };
    if hours.len() > 2 || minutes.len() > 2 {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn naive(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp(seconds, 0).map(|timestamp| timestamp.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::{TimestampUnit, parse};

    #[test]
    fn each_day_begins_exactly_once_across_clock_changes() {
        let zone = Zone::parse("Europe/Paris").unwrap();
        let at = |hours: i64, minutes: i64| ClockDays {
            seconds_of_day: hours * 3_600 + minutes * 60,
            zone,
        };
        let around = |days: ClockDays, text: &str| days.around(seconds(text));
        let bounds = |first: &str, next: &str| (seconds(first), seconds(next));
        // 29 March 2026: the time from 02:00 to 03:00 is skipped at 01:00 UTC.
        let day = bounds("2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z");
        assert_eq!(around(at(2, 30), "2026-03-29T01:00:00Z"), day);
        assert_eq!(around(at(2, 30), "2026-03-29T20:00:00Z"), day);
        let before = bounds("2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z");
        assert_eq!(around(at(2, 30), "2026-03-29T00:59:59Z"), before);
        // 25 October 2026: the hour from 02:00 to 03:00 occurs twice, starting at 00:00 UTC and at
        // 01:00 UTC.
        let day = bounds("2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z");
        assert_eq!(around(at(2, 30), "2026-10-25T00:30:00Z"), day);
        assert_eq!(around(at(2, 30), "2026-10-25T01:10:00Z"), day);
        assert_eq!(around(at(2, 30), "2026-10-25T01:30:00Z"), day);
        let utc = ClockDays { seconds_of_day: 34_200, zone: Zone::Fixed(0) };
        let day = bounds("1969-12-31T09:30:00Z", "1970-01-01T09:30:00Z");
        assert_eq!(around(utc, "1970-01-01T09:29:59Z"), day);
    }

    fn seconds(text: &str) -> i64 {
        parse(text, TimestampUnit::Micros).unwrap() / 1_000_000
    }

    #[test]
    fn zone_names_and_offsets_are_parsed() {
        let summer = seconds("2024-07-01");
        for (name, hours) in [
            ("Europe/Berlin", 2),
            ("europe/berlin", 2),
            ("CET", 2),
            ("Z", 0),
            ("UTC", 0),
            ("+02:00", 2),
            ("-03", -3),
            ("02:00", 2),
            ("0200", 2),
            ("02", 2),
            ("GMT+2", 2),
            ("GMT-03:00", -3),
            ("EST", -4),
            ("pdt", -7),
            ("MST", -6),
            ("HST", -10),
            ("CEST", 2),
            ("JST", 9),
            ("WIB", 7),
            ("pkt", 5),
        ] {
            assert_eq!(Zone::parse(name).unwrap().offset_at(summer), hours * 3_600, "{name}");
        }
        let winter = seconds("2024-01-01");
        for (name, hours) in [("EDT", -5), ("CEST", 1), ("BST", 0), ("AEST", 11)] {
            assert_eq!(Zone::parse(name).unwrap().offset_at(winter), hours * 3_600, "{name}");
        }
        for bad in ["", "Nowhere/City", "+2500", "GMT+", "é", "+1", "1", "IST", "1:00"] {
            assert_eq!(Zone::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn alignment_offsets_are_parsed() {
        for (text, minutes) in
            [("-01:30", -90), ("+0530", 330), ("00:15", 15), ("1:00", 60), ("25:00", 1_500)]
        {
            assert_eq!(parse_shift(text), Some(minutes * 60), "{text}");
        }
        for bad in ["", "+", "Europe/Berlin", "01:60", "100:00", "--1", "1:+1", "Z", "é"] {
            assert_eq!(parse_shift(bad), None, "{bad}");
        }
    }

    #[test]
    fn skipped_and_repeated_local_times_use_the_earlier_offset() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        // 02:30 does not exist on 2024-03-31, so the offset before the change applies.
        assert_eq!(berlin.to_utc(seconds("2024-03-31T02:30"), 1), seconds("2024-03-31T01:30"));
        // 02:30 occurs twice on 2024-10-27; the earlier timestamp is in summer time.
        assert_eq!(berlin.to_utc(seconds("2024-10-27T02:30"), 1), seconds("2024-10-27T00:30"));
    }
}
