//! Durations in view clauses: a count and a unit.

use serde::{Deserialize, Serialize};
use tidemark_types::calendar::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, MICROS_PER_WEEK,
};

/// A duration unit used in clauses.
#[derive(Debug)]
struct Unit {
    /// The suffix in SQL.
    suffix: &'static str,
    /// The name shown in catalog tables.
    word: &'static str,
    /// Length of the unit. For months and years, the shortest possible length.
    micros: i64,
}

const fn unit(suffix: &'static str, word: &'static str, micros: i64) -> Unit {
    Unit { suffix, word, micros }
}

/// All units, starting with the live view units. The variants of [`LiveUnit`] are indexes into this
/// array.
static UNITS: [Unit; 8] = [
    unit("ms", "MILLISECOND", 1_000),
    unit("s", "SECOND", MICROS_PER_SECOND),
    unit("m", "MINUTE", MICROS_PER_MINUTE),
    unit("h", "HOUR", MICROS_PER_HOUR),
    unit("d", "DAY", MICROS_PER_DAY),
    unit("w", "WEEK", MICROS_PER_WEEK),
    unit("M", "MONTH", 28 * MICROS_PER_DAY),
    unit("y", "YEAR", 365 * MICROS_PER_DAY),
];

/// A count and a unit, such as `10m`. Units: `s`, `m`, `h`, `d`, `w`, `M`, `y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Every {
    /// Number of units.
    pub count: u32,
    /// The unit's letter.
    pub unit: char,
}

impl Every {
    fn unit(self) -> &'static Unit {
        let [.., year] = &UNITS;
        UNITS.iter().find(|unit| unit.suffix.chars().eq([self.unit])).unwrap_or(year)
    }

    /// Returns the unit's name as shown in catalog tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.unit().word
    }

    /// Returns the length in microseconds. For months and years, this is the shortest possible
    /// length.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.unit().micros.saturating_mul(i64::from(self.count))
    }

    /// Returns the length in seconds.
    #[must_use]
    pub fn seconds(self) -> u64 {
        (self.micros() / MICROS_PER_SECOND) as u64
    }
}

impl std::fmt::Display for Every {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}{}", self.count, self.unit)
    }
}

/// A duration as written, such as `250ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveInterval {
    /// Number of units.
    pub count: u32,
    /// The unit.
    pub unit: LiveUnit,
}

/// Units for live view intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveUnit {
    /// `ms`
    Millisecond,
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
    /// `d`
    Day,
}

impl LiveUnit {
    const ALL: [Self; 5] = [Self::Millisecond, Self::Second, Self::Minute, Self::Hour, Self::Day];

    fn facts(self) -> &'static Unit {
        &UNITS[self as usize]
    }

    /// Returns the name shown in catalog tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.facts().word
    }
}

impl LiveInterval {
    /// Parses a string such as `250ms`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let count = text[..digits].parse().ok()?;
        let suffix = &text[digits..];
        let unit = LiveUnit::ALL.into_iter().find(|unit| unit.facts().suffix == suffix)?;
        Some(Self { count, unit })
    }

    /// Returns the length in microseconds.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.unit.facts().micros.saturating_mul(i64::from(self.count))
    }
}

impl std::fmt::Display for LiveInterval {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}{}", self.count, self.unit.facts().suffix)
    }
}
