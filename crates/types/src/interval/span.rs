//! Intervals in a string, parse errors, and limits on expansion.

use crate::timestamp::TimestampUnit;

/// Maximum number of intervals, and of strings expanded from brackets. The limit prevents a short
/// string from exhausting memory.
const MAX_INTERVALS: usize = 100_000;

/// Maximum length of an interval string, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Maximum total length, in bytes, of the strings expanded from one interval string.
const MAX_EXPANDED_BYTES: usize = 32 << 20;

/// Maximum length, in bytes, of a string quoted in an error.
const SHOWN_BYTES: usize = 80;

/// Why a string is not an interval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IntervalError {
    /// Describes the mistake and quotes the text that contains it.
    pub message: String,
}

pub(super) type Result<T> = std::result::Result<T, IntervalError>;

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(IntervalError { message: message.into() })
}

pub(super) fn bad_date<T>(text: &str) -> Result<T> {
    fail(format!("Invalid date: {}", shown(text)))
}

pub(super) fn out_of_range<T>(text: &str) -> Result<T> {
    fail(format!("interval is out of range: {}", shown(text)))
}

/// Returns the prefix of a string that an error quotes.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= SHOWN_BYTES) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The kind of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whole days. A filter selects among them, and a time of day can be added.
    Days,
    /// A time range within a day.
    Time,
    /// A timestamp, or the interval between two timestamps. No time of day can be added.
    Timestamps,
}

/// A half-open interval in the column's unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) lo: i64,
    pub(super) hi: i64,
    pub(super) kind: Kind,
    /// Whether the string specified an offset.
    pub(super) zoned: bool,
    /// Whether the interval lies between two timestamps. No duration can be applied to such an
    /// interval.
    pub(super) bounded: bool,
}

impl Span {
    pub(super) fn new(lo: i64, hi: i64, kind: Kind) -> Self {
        Self { lo, hi, kind, zoned: false, bounded: false }
    }

    /// Splits the interval into days.
    pub(super) fn days(self, unit: TimestampUnit) -> impl Iterator<Item = Self> {
        let day = unit.per_day();
        let count = if self.kind == Kind::Days { (self.hi - self.lo) / day } else { 0 };
        (0..count).map(move |index| {
            let lo = self.lo + index * day;
            Self { lo, hi: lo + day, ..self }
        })
    }
}

/// The remaining limits for one interval string.
#[derive(Debug)]
pub(super) struct Budget {
    texts: usize,
    bytes: usize,
    intervals: usize,
}

impl Budget {
    pub(super) fn new(text: &str) -> Result<Self> {
        if text.len() > MAX_BYTES {
            let bytes = text.len();
            return fail(format!("interval is too long [bytes={bytes}, limit={MAX_BYTES}]"));
        }
        Ok(Self { texts: MAX_INTERVALS, bytes: MAX_EXPANDED_BYTES, intervals: MAX_INTERVALS })
    }

    /// Reserves `count` strings with `bytes` bytes in total.
    pub(super) fn take_texts(&mut self, count: usize, bytes: usize) -> Result<()> {
        match (self.texts.checked_sub(count), self.bytes.checked_sub(bytes)) {
            (Some(texts), Some(bytes)) => {
                (self.texts, self.bytes) = (texts, bytes);
                Ok(())
            }
            _ => too_many(),
        }
    }

    /// Reserves one interval, whether or not a filter later removes it.
    pub(super) fn take_interval(&mut self) -> Result<()> {
        match self.intervals.checked_sub(1) {
            Some(intervals) => {
                self.intervals = intervals;
                Ok(())
            }
            None => too_many(),
        }
    }
}

/// Fails if the string already has `count` intervals and no more are allowed.
pub(super) fn check_count(count: usize) -> Result<()> {
    if count < MAX_INTERVALS { Ok(()) } else { too_many() }
}

fn too_many<T>() -> Result<T> {
    fail(format!("too many intervals [limit={MAX_INTERVALS}]"))
}
