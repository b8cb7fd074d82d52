//! One interval of a text, why a text is none, and how much a text may ask for.

use crate::timestamp::TimestampUnit;

/// The most intervals, and texts that brackets stand for: a few bytes must not fill the memory.
const MOST: usize = 100_000;

/// The most bytes of a text.
const MAX_BYTES: usize = 4 << 20;

/// The most bytes of all the texts that the brackets of one stand for.
const MAX_EXPANDED_BYTES: usize = 32 << 20;

/// Bytes of a text that an error repeats.
const SHOWN_BYTES: usize = 80;

/// Why a text is no interval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IntervalError {
    /// What is wrong, with the part that is.
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

/// What an error shows of a text.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= SHOWN_BYTES) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a date means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whole days, which a filter chooses from and a time of day is one of.
    Days,
    /// A part of a day.
    Time,
    /// An instant, or all between two of them: no time of day can be added.
    Instants,
}

/// A half-open interval in the column's unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) lo: i64,
    pub(super) hi: i64,
    pub(super) kind: Kind,
    /// Whether its text named an offset of its own.
    pub(super) zoned: bool,
    /// Whether it reaches from one instant to another, and has no other length.
    pub(super) bounded: bool,
}

impl Span {
    pub(super) fn new(lo: i64, hi: i64, kind: Kind) -> Self {
        Self { lo, hi, kind, zoned: false, bounded: false }
    }

    /// The days in it.
    pub(super) fn days(self, unit: TimestampUnit) -> impl Iterator<Item = Self> {
        let day = unit.per_day();
        let count = if self.kind == Kind::Days { (self.hi - self.lo) / day } else { 0 };
        (0..count).map(move |index| {
            let lo = self.lo + index * day;
            Self { lo, hi: lo + day, ..self }
        })
    }
}

/// What is left of what a text may ask for.
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
        Ok(Self { texts: MOST, bytes: MAX_EXPANDED_BYTES, intervals: MOST })
    }

    /// Before `count` texts of together `bytes` bytes are made.
    pub(super) fn take_texts(&mut self, count: usize, bytes: usize) -> Result<()> {
        match (self.texts.checked_sub(count), self.bytes.checked_sub(bytes)) {
            (Some(texts), Some(bytes)) => {
                (self.texts, self.bytes) = (texts, bytes);
                Ok(())
            }
            _ => too_many(),
        }
    }

    /// Before one more interval is looked at, whether a filter keeps it or not.
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

/// Whether one more may follow `count`.
pub(super) fn room_for(count: usize) -> Result<()> {
    if count < MOST { Ok(()) } else { too_many() }
}

fn too_many<T>() -> Result<T> {
    fail(format!("too many intervals [limit={MOST}]"))
}
