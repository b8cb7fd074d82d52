//! Live views: materialized views whose query has a row for each row of the base.
//!
//! A live view has the records of a materialized view ([`crate::MaterializedView`],
//! [`crate::MaterializedState`]) and one more, which says what is particular to it.

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId};
use tidemark_types::calendar::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND,
};
use tidemark_types::{EngineResult, SqlType};

use crate::records::{RecordKind, put};

/// What a materialized view is in addition when it is a live view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveView {
    /// FLUSH EVERY.
    pub flush_every: LiveInterval,
    /// IN MEMORY.
    pub in_memory: LiveInterval,
    /// START FROM.
    pub start: LiveStart,
    /// What its query reads of the base.
    pub columns: Vec<UsedColumn>,
}

/// The first row of the base that is shown, in the unit of its designated timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveStart {
    /// The clock's time when the view was made.
    Now(i64),
    /// All rows.
    Beginning,
    /// An instant.
    At(i64),
}

/// A column of the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedColumn {
    /// Its name in the query.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
}

/// A length of time as it was written, such as `250ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveInterval {
    /// How many units.
    pub count: u32,
    /// The unit.
    pub unit: LiveUnit,
}

/// Units of the intervals of live views.
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

    fn suffix(self) -> &'static str {
        match self {
            Self::Millisecond => "ms",
            Self::Second => "s",
            Self::Minute => "m",
            Self::Hour => "h",
            Self::Day => "d",
        }
    }

    /// The word that lists show.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Millisecond => "MILLISECOND",
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
        }
    }

    fn micros(self) -> i64 {
        match self {
            Self::Millisecond => 1_000,
            Self::Second => MICROS_PER_SECOND,
            Self::Minute => MICROS_PER_MINUTE,
            Self::Hour => MICROS_PER_HOUR,
            Self::Day => MICROS_PER_DAY,
        }
    }
}

impl LiveInterval {
    /// What a text such as `250ms` says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let count = text[..digits].parse().ok()?;
        let suffix = &text[digits..];
        let unit = LiveUnit::ALL.into_iter().find(|unit| unit.suffix() == suffix)?;
        Some(Self { count, unit })
    }

    /// Its length.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.unit.micros().saturating_mul(i64::from(self.count))
    }
}

impl std::fmt::Display for LiveInterval {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}{}", self.count, self.unit.suffix())
    }
}

impl UsedColumn {
    /// A column of this name and type.
    #[must_use]
    pub fn new(name: &str, sql_type: SqlType) -> Self {
        Self { name: name.to_owned(), type_name: sql_type.name() }
    }
}

impl LiveView {
    /// The live view whose table this is.
    #[must_use]
    pub fn of(snapshot: &Snapshot, table: TableId) -> Option<Self> {
        let bytes = snapshot.record(RecordKind::LiveView.name(), &table.to_string())?;
        serde_json::from_slice(bytes).ok()
    }

    /// Whether a table is a live view.
    #[must_use]
    pub fn is(snapshot: &Snapshot, table: TableId) -> bool {
        snapshot.record(RecordKind::LiveView.name(), &table.to_string()).is_some()
    }

    /// The change that records it.
    pub fn put(&self, table: TableId) -> EngineResult<Change> {
        put(RecordKind::LiveView, table, self)
    }

    /// The first instant shown; the least there is where nothing is left out.
    #[must_use]
    pub fn first_instant(&self) -> i64 {
        match self.start {
            LiveStart::Now(at) | LiveStart::At(at) => at,
            LiveStart::Beginning => i64::MIN,
        }
    }
}
