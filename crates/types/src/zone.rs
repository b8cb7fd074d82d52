//! Time zones: IANA names, abbreviations the database knows, fixed offsets.

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::timestamp::parse_offset;

/// A rule that turns UTC into local clock readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// Seconds east of UTC.
    Fixed(i64),
    /// A zone of the IANA database.
    Named(Tz),
}

impl Zone {
    /// The zone a text names: `Europe/Berlin`, `CET`, `Z`, `+01:00`, `GMT+1`, `UTC-05:30`; letter
    /// case ignored. `None` when there is no such zone.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(offset) = parse_offset(&text.to_ascii_uppercase()) {
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
        let zone = text.parse().ok().or_else(|| chrono_tz::TZ_VARIANTS.into_iter().find(named));
        zone.map(Self::Named).or_else(|| abbreviation(text))
    }

    /// Seconds east of UTC at an instant.
    #[must_use]
    pub fn offset_at(self, utc_seconds: i64) -> i64 {
        match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => naive(utc_seconds).map_or(0, |utc| {
                i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
            }),
        }
    }

    /// Seconds east of UTC at a local clock reading. In the gap of a change the offset before it,
    /// in an overlap the earlier of the two instants.
    #[must_use]
    pub fn offset_at_local(self, local_seconds: i64) -> i64 {
        let Self::Named(zone) = self else { return self.offset_at(local_seconds) };
        let Some(local) = naive(local_seconds) else { return 0 };
        match zone.offset_from_local_datetime(&local).earliest() {
            Some(offset) => i64::from(offset.fix().local_minus_utc()),
            // No zone changes twice within a day, so the day before still has the old offset.
            None => self.offset_at(local_seconds - 86_400),
        }
    }

    /// The local clock reading at `utc`, both counted in units of `per_second` per second.
    #[must_use]
    pub fn to_local(self, utc: i64, per_second: i64) -> i64 {
        let offset = self.offset_at(utc.div_euclid(per_second));
        utc.saturating_add(offset * per_second)
    }

    /// The instant of the clock reading `local`.
    #[must_use]
    pub fn to_utc(self, local: i64, per_second: i64) -> i64 {
        let offset = self.offset_at_local(local.div_euclid(per_second));
        local.saturating_sub(offset * per_second)
    }
}

/// Abbreviations in use that the database has no zone for. They are ambiguous by nature; these are
/// the readings the reference shares with most software.
fn abbreviation(text: &str) -> Option<Zone> {
    const HOURS: [(&str, i64); 14] = [
        ("PST", -8),
        ("PDT", -7),
        ("MDT", -6),
        ("CST", -6),
        ("CDT", -5),
        ("EDT", -4),
        ("BST", 1),
        ("CEST", 2),
        ("EEST", 3),
        ("MSK", 3),
        ("JST", 9),
        ("KST", 9),
        ("AEST", 10),
        ("AEDT", 11),
    ];
    let found = HOURS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, hours)| Zone::Fixed(hours * 3_600))
}

fn naive(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp(seconds, 0).map(|instant| instant.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::{TimestampUnit, parse};

    fn seconds(text: &str) -> i64 {
        parse(text, TimestampUnit::Micros).unwrap() / 1_000_000
    }

    #[test]
    fn names_and_offsets_are_read() {
        let summer = seconds("2024-07-01");
        for (name, hours) in [
            ("Europe/Berlin", 2),
            ("europe/berlin", 2),
            ("CET", 2),
            ("Z", 0),
            ("UTC", 0),
            ("+02:00", 2),
            ("-03", -3),
            ("GMT+2", 2),
            ("GMT-03:00", -3),
            ("EST", -5),
        ] {
            assert_eq!(Zone::parse(name).unwrap().offset_at(summer), hours * 3_600, "{name}");
        }
        for bad in ["", "Nowhere/City", "+2500", "GMT+", "é"] {
            assert_eq!(Zone::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn gaps_and_overlaps_take_the_earlier_rule() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        // 02:30 does not exist on 2024-03-31: winter time before the change.
        assert_eq!(berlin.to_utc(seconds("2024-03-31T02:30"), 1), seconds("2024-03-31T01:30"));
        // 02:30 exists twice on 2024-10-27: summer time is the earlier instant.
        assert_eq!(berlin.to_utc(seconds("2024-10-27T02:30"), 1), seconds("2024-10-27T00:30"));
    }
}
