//! Partitioning by time.

use serde::{Deserialize, Serialize};

use crate::calendar::{self, CivilDate};
use crate::timestamp::{self, TimestampUnit};

/// A table's partition unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PartitionBy {
    /// One partition for everything.
    None,
    /// Hours, UTC.
    Hour,
    /// Days, UTC.
    Day,
    /// ISO weeks, from Monday, UTC.
    Week,
    /// Months, UTC.
    Month,
    /// Years, UTC.
    Year,
}

impl PartitionBy {
    /// Parses the unit name, ignoring case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "NONE" => Self::None,
            "HOUR" => Self::Hour,
            "DAY" => Self::Day,
            "WEEK" => Self::Week,
            "MONTH" => Self::Month,
            "YEAR" => Self::Year,
            _ => return None,
        })
    }

    /// Returns the name printed by SHOW.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
        }
    }

    /// Returns the first microsecond of the partition that contains `ts_micros`; `i64::MIN` for
    /// NONE.
    #[must_use]
    pub fn floor(self, ts_micros: i64) -> i64 {
        match self {
            Self::None => i64::MIN,
            Self::Hour => calendar::floor_to(ts_micros, calendar::MICROS_PER_HOUR, 0),
            Self::Day => calendar::floor_to(ts_micros, calendar::MICROS_PER_DAY, 0),
            Self::Week => calendar::floor_to(
                ts_micros,
                calendar::MICROS_PER_WEEK,
                calendar::FIRST_MONDAY_MICROS,
            ),
            Self::Month => {
                let date = CivilDate::from_micros(ts_micros);
                CivilDate { day: 1, ..date }.to_micros()
            }
            Self::Year => {
                let date = CivilDate::from_micros(ts_micros);
                CivilDate { month: 1, day: 1, ..date }.to_micros()
            }
        }
    }

    /// Returns the first microsecond after the partition that starts at `floor_micros`; `i64::MAX`
    /// for NONE.
    #[must_use]
    pub fn ceil(self, floor_micros: i64) -> i64 {
        match self {
            Self::None => i64::MAX,
            Self::Hour => floor_micros.saturating_add(calendar::MICROS_PER_HOUR),
            Self::Day => floor_micros.saturating_add(calendar::MICROS_PER_DAY),
            Self::Week => floor_micros.saturating_add(calendar::MICROS_PER_WEEK),
            Self::Month => calendar::add_months(floor_micros, 1),
            Self::Year => calendar::add_months(floor_micros, 12),
        }
    }

    /// Returns the directory name of the partition that starts at `floor_micros`: `2024-01-31`,
    /// `2024-W05`, `2024-01-31T09`, `2024`, or `default` for NONE.
    #[must_use]
    pub fn directory_name(self, floor_micros: i64) -> String {
        let date = CivilDate::from_micros(floor_micros);
        let (year, month, day) = (date.year, date.month, date.day);
        match self {
            Self::None => "default".into(),
            Self::Hour => {
                let hour =
                    floor_micros.rem_euclid(calendar::MICROS_PER_DAY) / calendar::MICROS_PER_HOUR;
                format!("{year:04}-{month:02}-{day:02}T{hour:02}")
            }
            Self::Day => format!("{year:04}-{month:02}-{day:02}"),
            Self::Week => {
                let (iso_year, week) = date.iso_week();
                format!("{iso_year:04}-W{week:02}")
            }
            Self::Month => format!("{year:04}-{month:02}"),
            Self::Year => format!("{year:04}"),
        }
    }

    /// Returns the start, in microseconds, of the partition with this directory name; `None` if the
    /// string is not a valid name.
    #[must_use]
    pub fn parse_directory_name(self, name: &str) -> Option<i64> {
        let start = match self {
            Self::None => return None,
            Self::Week => {
                let (year, week) = name.split_once("-W")?;
                // The fourth of January is always in the first ISO week.
                let first = timestamp::parse(&format!("{year}-01-04"), TimestampUnit::Micros)?;
                let weeks = week.parse::<i64>().ok()?.checked_sub(1)?;
                first.checked_add(weeks.checked_mul(7 * calendar::MICROS_PER_DAY)?)?
            }
            _ => timestamp::parse(name, TimestampUnit::Micros)?,
        };
        let floor = self.floor(start);
        (self.directory_name(floor) == name).then_some(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_and_ceiling_enclose_the_timestamp() {
        let units = [
            PartitionBy::Hour,
            PartitionBy::Day,
            PartitionBy::Week,
            PartitionBy::Month,
            PartitionBy::Year,
        ];
        for ts in [0, -1, 1_704_067_199_999_999, 1_704_067_200_000_000, 1_709_251_199_000_000] {
            for unit in units {
                let floor = unit.floor(ts);
                let ceil = unit.ceil(floor);
                assert!(floor <= ts && ts < ceil, "{unit:?} {ts}");
                assert_eq!(unit.floor(floor), floor);
                assert_eq!(unit.floor(ceil), ceil);
            }
        }
    }

    #[test]
    fn partition_directory_names_are_formatted() {
        let ts = 1_704_153_723_000_000; // 2024-01-02T00:02:03Z
        let name = |unit: PartitionBy| unit.directory_name(unit.floor(ts));
        assert_eq!(name(PartitionBy::Hour), "2024-01-02T00");
        assert_eq!(name(PartitionBy::Day), "2024-01-02");
        assert_eq!(name(PartitionBy::Week), "2024-W01");
        assert_eq!(name(PartitionBy::Month), "2024-01");
        assert_eq!(name(PartitionBy::Year), "2024");
        assert_eq!(name(PartitionBy::None), "default");
    }

    #[test]
    fn partition_directory_names_are_parsed() {
        let units = [
            PartitionBy::Hour,
            PartitionBy::Day,
            PartitionBy::Week,
            PartitionBy::Month,
            PartitionBy::Year,
        ];
        for unit in units {
            for ts in (0..60).map(|day| 1_703_000_000_000_000 + day * 86_401_000_000) {
                let floor = unit.floor(ts);
                assert_eq!(unit.parse_directory_name(&unit.directory_name(floor)), Some(floor));
            }
        }
        for name in ["", "2024", "2024-1-1", "2024-02-30", "2024-01-01T00", "x"] {
            assert_eq!(PartitionBy::Day.parse_directory_name(name), None, "{name}");
        }
        assert_eq!(PartitionBy::Week.parse_directory_name("2024-W54"), None);
    }
}
