//! Incremental views: tables that a query over a base table fills, and that follow that table.
//!
//! There are two forms ([`ViewForm`]). The table is one like others. Beside it are records under
//! its identifier, which are removed with it: the definition ([`IncrementalView`]), what only a
//! live view has ([`LiveView`]), and what the view shows at the moment ([`IncrementalState`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId};
use tidemark_types::EngineResult;

use crate::interval::Every;
use crate::live::LiveView;
use crate::records::{Owner, RecordKind, ViewSource, put, record};

/// How an incremental view follows its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewForm {
    /// A materialized view: aggregates of time buckets, or rows of the base.
    Materialized,
    /// A live view: a row with window functions for each row of the base.
    Live,
}

impl ViewForm {
    /// How statements and messages name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Materialized => "materialized view",
            Self::Live => "live view",
        }
    }
}

/// The definition of an incremental view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncrementalView {
    /// Its own table.
    pub table: TableId,
    /// The query's text.
    pub query: String,
    /// The query's tree, as JSON.
    pub tree: String,
    /// What the query names, by the node of the tree that does.
    pub sources: BTreeMap<u32, ViewSource>,
    /// Who made it.
    pub owner: Owner,
    /// The table whose changes it follows.
    pub base: TableId,
    /// That table's name when it was last found.
    pub base_name: String,
    /// When it is refreshed.
    pub trigger: RefreshTrigger,
    /// Whether it is left empty when it is made.
    pub deferred: bool,
    /// Transactions after this one came after it was made, or got its present policy.
    pub made_after: u64,
    /// The first tick of a timer, microseconds since 1970; when it was made, without START.
    pub start_micros: i64,
    /// Whether START was said.
    pub has_start: bool,
    /// The zone in which a timer ticks.
    pub time_zone: Option<String>,
    /// Which part of time is shown: all of it where nothing was said.
    pub period: Option<RefreshPeriod>,
    /// How far back new rows of the base count: hours when positive, months when negative, 0 for
    /// ever.
    pub limit_hours_or_months: i64,
    /// Which of its rows are shown: EXPIRE ROWS; all of them without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<ExpirePolicy>,
    /// The clauses of a live view, from a record of their own; `None`: a materialized view.
    #[serde(skip)]
    pub live: Option<LiveView>,
}

/// EXPIRE ROWS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpirePolicy {
    /// The clause as written, without CLEANUP.
    pub text: String,
    /// The tree of a query over the view's own table that has the rows which are shown, as JSON.
    pub tree: String,
    /// CLEANUP EVERY.
    pub cleanup: Every,
}

/// When a view is refreshed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefreshTrigger {
    /// After each change of the base.
    Immediate,
    /// When a statement asks for it.
    Manual,
    /// By a timer.
    Every(Every),
}

/// The periods that a view shows once they are over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefreshPeriod {
    /// PERIOD (LENGTH …).
    Length {
        /// The length.
        length: Every,
        /// The zone in whose calendar they lie.
        time_zone: Option<String>,
        /// How long after its end a period is waited for.
        delay: Option<Every>,
    },
    /// PERIOD (SAMPLE BY INTERVAL).
    SampleByInterval,
}

/// What REFRESH asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefreshRequest {
    /// Everything anew.
    Full,
    /// Everything anew, of what has the names in the query now.
    Rebuild,
    /// What changed.
    Incremental,
    /// All of a range, in the base's unit of time, the end excluded.
    Range(i64, i64),
}

/// What an incremental view shows at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncrementalState {
    /// It shows the base as of this transaction; `None` before the first refresh.
    pub position: Option<u64>,
    /// Rows of the base before this instant, of those that a period leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_until: Option<i64>,
    /// Why it does not follow its base any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// What a statement asked for and was not done yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RefreshRequest>,
    /// How many statements have asked so far.
    #[serde(default)]
    pub requests: u64,
    /// Of a live view that begins to follow again: the transaction it has to reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_target: Option<u64>,
    /// Whether ALTER LIVE VIEW … SUSPEND WAL stopped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Of a live view: stretches whose rows the base put away and that have shown rows since then,
    /// first and last instant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revived: Vec<(i64, i64)>,
    /// When the last refresh began, microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_micros: Option<i64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_micros: Option<i64>,
}

impl IncrementalView {
    /// Whether it stays empty until the next commit to its base.
    #[must_use]
    pub fn waits_for_commit(&self) -> bool {
        self.deferred && self.trigger == RefreshTrigger::Immediate
    }

    /// Materialized or live.
    #[must_use]
    pub fn form(&self) -> ViewForm {
        if self.live.is_some() { ViewForm::Live } else { ViewForm::Materialized }
    }

    /// The incremental view whose table this is.
    #[must_use]
    pub fn of(snapshot: &Snapshot, table: TableId) -> Option<Self> {
        Self::read(snapshot, table, record(snapshot, RecordKind::MaterializedView, table)?)
    }

    /// The view of a table from the bytes of its record.
    #[must_use]
    pub fn read(snapshot: &Snapshot, table: TableId, bytes: &[u8]) -> Option<Self> {
        let view: Self = serde_json::from_slice(bytes).ok()?;
        Some(Self { live: LiveView::of(snapshot, table), ..view })
    }

    /// The form of the incremental view whose table this is; `None` for other tables.
    #[must_use]
    pub fn form_of(snapshot: &Snapshot, table: TableId) -> Option<ViewForm> {
        record(snapshot, RecordKind::MaterializedView, table)?;
        let live = record(snapshot, RecordKind::LiveView, table);
        Some(if live.is_some() { ViewForm::Live } else { ViewForm::Materialized })
    }

    /// Whether a table is an incremental view.
    #[must_use]
    pub fn is(snapshot: &Snapshot, table: TableId) -> bool {
        Self::form_of(snapshot, table).is_some()
    }

    /// All of them, in no order that means anything.
    pub fn all(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        let records = snapshot.records(RecordKind::MaterializedView.name());
        records.filter_map(|(key, bytes)| Self::read(snapshot, key.parse().ok()?, bytes))
    }

    /// Why its refreshes are refused: its owner lost a right that its query needs.
    #[must_use]
    pub fn refusal(snapshot: &Snapshot, table: TableId) -> Option<String> {
        let bytes = record(snapshot, RecordKind::RefreshRefusal, table)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The change that records it, without what only a live view has.
    pub fn put(&self) -> EngineResult<Change> {
        put(RecordKind::MaterializedView, self.table, self)
    }
}

impl IncrementalState {
    /// What the view of this table shows.
    #[must_use]
    pub fn of(snapshot: &Snapshot, table: TableId) -> Self {
        let bytes = record(snapshot, RecordKind::MaterializedState, table);
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// The state as clients see it: a view whose refreshes are refused is invalid.
    #[must_use]
    pub fn shown(snapshot: &Snapshot, table: TableId) -> Self {
        let state = Self::of(snapshot, table);
        let refusal = || IncrementalView::refusal(snapshot, table);
        Self { invalid: state.invalid.clone().or_else(refusal), ..state }
    }

    /// The change that records it.
    pub fn put(&self, table: TableId) -> EngineResult<Change> {
        put(RecordKind::MaterializedState, table, self)
    }

    /// Lets the commit fail where the state is not the one of this snapshot.
    #[must_use]
    pub fn expect(snapshot: &Snapshot, table: TableId) -> Change {
        let kind = RecordKind::MaterializedState;
        let value = record(snapshot, kind, table).map(<[u8]>::to_vec);
        Change::Expect { kind: kind.name().to_owned(), key: table.to_string(), value }
    }
}
