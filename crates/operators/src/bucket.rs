//! Describes SAMPLE BY time buckets: step, origin, time zone and range. The arithmetic is in
//! [`crate::grid`].

use std::cmp::Ordering;

use arrow_schema::TimeUnit;
use datafusion::logical_expr::Expr;
use tidemark_types::calendar::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, MICROS_PER_WEEK,
};
use tidemark_types::zone::Zone;

/// Unit of a bucket step, as written in SAMPLE BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepUnit {
    /// `n`
    Nanosecond,
    /// `U`
    Microsecond,
    /// `T`
    Millisecond,
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
    /// `d`
    Day,
    /// `w`
    Week,
    /// `M`
    Month,
    /// `y`
    Year,
}

impl StepUnit {
    /// Returns the unit for a case-sensitive letter.
    #[must_use]
    pub fn parse(letter: char) -> Option<Self> {
        Some(match letter {
            'n' => Self::Nanosecond,
            'U' => Self::Microsecond,
            'T' => Self::Millisecond,
            's' => Self::Second,
            'm' => Self::Minute,
            'h' => Self::Hour,
            'd' => Self::Day,
            'w' => Self::Week,
            'M' => Self::Month,
            'y' => Self::Year,
            _ => return None,
        })
    }

    /// The letter that SAMPLE BY uses.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Nanosecond => 'n',
            Self::Microsecond => 'U',
            Self::Millisecond => 'T',
            Self::Second => 's',
            Self::Minute => 'm',
            Self::Hour => 'h',
            Self::Day => 'd',
            Self::Week => 'w',
            Self::Month => 'M',
            Self::Year => 'y',
        }
    }
}

/// Origin of the bucket grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// The calendar grid (epoch, Monday, January 1970) in a time zone, shifted by an offset.
    Calendar {
        /// The calendar's time zone; `None` is UTC.
        zone: Option<Zone>,
        /// Shift of the grid, in microseconds of local time.
        offset_micros: i64,
    },
    /// The first row's timestamp.
    FirstObservation,
}

/// The buckets of one SAMPLE BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BucketSpec {
    /// Number of units per step, at least 1.
    pub count: u32,
    /// Unit of the step.
    pub unit: StepUnit,
    /// Origin of the grid.
    pub alignment: Alignment,
    /// First included timestamp, in the timestamp column's unit. It is also the grid's origin, to
    /// which the alignment's offset is added.
    pub from: Option<i64>,
    /// First excluded timestamp, in the timestamp column's unit.
    pub to: Option<i64>,
    /// Whether the timestamp column counts nanoseconds rather than microseconds.
    pub nanoseconds: bool,
}

impl BucketSpec {
    /// Creates buckets on the UTC calendar grid for a microsecond column.
    #[must_use]
    pub fn new(count: u32, unit: StepUnit) -> Self {
        Self {
            count,
            unit,
            alignment: Alignment::Calendar { zone: None, offset_micros: 0 },
            from: None,
            to: None,
            nanoseconds: false,
        }
    }

    /// Returns the SAMPLE BY buckets that are identical to those of `timestamp_floor` and
    /// `date_trunc` for this step. Returns `None` if there are none. They exist for any number of
    /// seconds, minutes, hours or days, and for a single week, month or year.
    #[must_use]
    pub fn of_floor(step: &str) -> Option<Self> {
        let word = match step.to_ascii_lowercase().as_str() {
            "second" => Some(StepUnit::Second),
            "minute" => Some(StepUnit::Minute),
            "hour" => Some(StepUnit::Hour),
            "day" => Some(StepUnit::Day),
            "week" => Some(StepUnit::Week),
            "month" => Some(StepUnit::Month),
            "year" => Some(StepUnit::Year),
            _ => None,
        };
        if let Some(unit) = word {
            return Some(Self::new(1, unit));
        }
        let digits = step.len() - step.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let count: u32 = if digits == 0 { 1 } else { step[..digits].parse().ok()? };
        let mut letters = step[digits..].chars();
        let unit = StepUnit::parse(letters.next()?).filter(|_| letters.next().is_none())?;
        let is_alike = match unit {
            StepUnit::Second | StepUnit::Minute | StepUnit::Hour | StepUnit::Day => count > 0,
            StepUnit::Week | StepUnit::Month | StepUnit::Year => count == 1,
            StepUnit::Nanosecond | StepUnit::Microsecond | StepUnit::Millisecond => false,
        };
        is_alike.then(|| Self::new(count, unit))
    }

    /// Minimum bucket length, in the timestamp column's unit.
    #[must_use]
    pub(crate) fn min_length(&self) -> i64 {
        let micros = match self.unit {
            StepUnit::Nanosecond | StepUnit::Microsecond => 1,
            StepUnit::Millisecond => 1_000,
            StepUnit::Second => MICROS_PER_SECOND,
            StepUnit::Minute => MICROS_PER_MINUTE,
            StepUnit::Hour => MICROS_PER_HOUR,
            StepUnit::Day => MICROS_PER_DAY,
            StepUnit::Week => MICROS_PER_WEEK,
            StepUnit::Month => 28 * MICROS_PER_DAY,
            StepUnit::Year => 365 * MICROS_PER_DAY,
        };
        let scale = if self.nanoseconds { 1_000 } else { 1 };
        micros.saturating_mul(scale).saturating_mul(i64::from(self.count))
    }

    /// The Arrow unit of the timestamp column.
    #[must_use]
    pub fn time_unit(&self) -> TimeUnit {
        if self.nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }
    }
}

impl PartialOrd for BucketSpec {
    // The order only serves to sort sibling plans. It is determined by step and range; time zones
    // are not ordered.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |spec: &Self| (spec.unit, spec.count, spec.from, spec.to);
        match key(self).cmp(&key(other)) {
            Ordering::Equal => (self == other).then_some(Ordering::Equal),
            unequal => Some(unequal),
        }
    }
}

impl std::fmt::Display for BucketSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.count, self.unit.letter())?;
        match self.alignment {
            Alignment::FirstObservation => write!(f, " align to first observation")?,
            Alignment::Calendar { zone, offset_micros } => {
                match zone {
                    Some(Zone::Named(tz)) => write!(f, " zone {}", tz.name())?,
                    Some(Zone::Fixed(seconds)) => write!(f, " zone {seconds}s")?,
                    None => {}
                }
                if offset_micros != 0 {
                    write!(f, " offset {offset_micros}us")?;
                }
            }
        }
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        Ok(())
    }
}

/// The time axis of a SAMPLE BY: the timestamp expression and its buckets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct Bucket {
    /// The input's designated timestamp.
    pub timestamp: Expr,
    /// Bucket definition.
    pub spec: BucketSpec,
}
