//! Incremental views: tables that are filled by a query over a base table and refreshed from the
//! base. [`ViewForm`] lists the two forms.
//!
//! The view's table is an ordinary table. Three kinds of records are stored under the table's
//! identifier and removed with the table: the definition ([`IncrementalView`]), the clauses of a
//! live view ([`LiveView`]), and the refresh state ([`IncrementalState`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId};
use tidemark_types::EngineResult;

use crate::interval::Every;
use crate::live::LiveView;
use crate::records::{Owner, RecordKind, ViewSource, put, record};

/// The two forms of incremental views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewForm {
    /// A materialized view: aggregates per time bucket, or rows from the base.
    Materialized,
    /// A live view: one row per base row, with window functions.
    Live,
}

impl ViewForm {
    /// Returns the name used in statements and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Materialized => "materialized view",
            Self::Live => "live view",
        }
    }
}

/// An incremental view's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncrementalView {
    /// The view's table.
    pub table: TableId,
    /// The SQL text of the query.
    pub query: String,
    /// The syntax tree of the query, as JSON.
    pub tree: String,
    /// Objects that the query names, by syntax tree node.
    pub sources: BTreeMap<u32, ViewSource>,
    /// The owner.
    pub owner: Owner,
    /// The base table.
    pub base: TableId,
    /// The base table's name when it was last resolved.
    pub base_name: String,
    /// When the view is refreshed.
    pub trigger: RefreshTrigger,
    /// Whether the view starts empty, without an initial refresh.
    pub deferred: bool,
    /// The last transaction before the view was created or, if later, before its current policy was
    /// set.
    pub made_after: u64,
    /// First tick of the timer, in microseconds since 1970. Without START, the creation time.
    pub start_micros: i64,
    /// Whether START was specified.
    pub has_start: bool,
    /// The timer's time zone.
    pub time_zone: Option<String>,
    /// The PERIOD clause; `None` if the view shows all rows.
    pub period: Option<RefreshPeriod>,
    /// Maximum age of new base rows that a refresh considers: hours when positive, months when
    /// negative, 0 for no limit.
    pub limit_hours_or_months: i64,
    /// The EXPIRE ROWS clause, which hides rows. Without this clause, all rows are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<ExpirePolicy>,
    /// The clauses of a live view, which are stored in a separate record; `None` for a materialized
    /// view.
    #[serde(skip)]
    pub live: Option<LiveView>,
}

/// The EXPIRE ROWS clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpirePolicy {
    /// The clause as written, without CLEANUP.
    pub text: String,
    /// A query for the rows of the view's table that have not expired: its syntax tree, as JSON.
    pub tree: String,
    /// CLEANUP EVERY.
    pub cleanup: Every,
}

/// When a view is refreshed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefreshTrigger {
    /// Refreshed after each change to the base table.
    Immediate,
    /// Refreshed only when a statement requests it.
    Manual,
    /// Refreshed by a timer.
    Every(Every),
}

/// The PERIOD clause of a view. A period is shown only once it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefreshPeriod {
    /// PERIOD (LENGTH …).
    Length {
        /// The length.
        length: Every,
        /// The calendar's time zone.
        time_zone: Option<String>,
        /// Delay between a period's end and the time at which it is shown.
        delay: Option<Every>,
    },
    /// PERIOD (SAMPLE BY INTERVAL).
    SampleByInterval,
}

/// The refresh that a REFRESH statement requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefreshRequest {
    /// Recompute everything.
    Full,
    /// Resolve the names in the query again, then recompute everything.
    Rebuild,
    /// Refresh only changes.
    Incremental,
    /// Recompute a range, given in the base's time unit, with an exclusive end.
    Range(i64, i64),
}

/// An incremental view's refresh state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncrementalState {
    /// The last base table transaction that the view reflects; `None` before the first refresh.
    pub position: Option<u64>,
    /// With PERIOD: the exclusive upper bound of the base timestamps that are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_until: Option<i64>,
    /// If the view is invalid and no longer refreshed, the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// The pending refresh request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RefreshRequest>,
    /// Number of refresh requests so far.
    #[serde(default)]
    pub requests: u64,
    /// If a live view is resuming, the transaction that it must catch up to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_target: Option<u64>,
    /// Whether ALTER LIVE VIEW … SUSPEND WAL suspended the view.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// For a live view: time ranges (first and last timestamp) that the base table has retired, but
    /// to which rows have since been added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revived: Vec<(i64, i64)>,
    /// Start of the last refresh, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_micros: Option<i64>,
    /// End of the last refresh, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_micros: Option<i64>,
}

impl IncrementalView {
    /// Whether the view remains empty until the next commit to its base table.
    #[must_use]
    pub fn waits_for_commit(&self) -> bool {
        self.deferred && self.trigger == RefreshTrigger::Immediate
    }

    /// Returns whether the view is materialized or live.
    #[must_use]
    pub fn form(&self) -> ViewForm {
        if self.live.is_some() { ViewForm::Live } else { ViewForm::Materialized }
    }

    /// Returns the incremental view that owns this table, if any.
    #[must_use]
    pub fn of(snapshot: &Snapshot, table: TableId) -> Option<Self> {
        Self::read(snapshot, table, record(snapshot, RecordKind::MaterializedView, table)?)
    }

    /// Decodes the view of a table from its stored record.
    #[must_use]
    pub fn read(snapshot: &Snapshot, table: TableId, bytes: &[u8]) -> Option<Self> {
        let view: Self = serde_json::from_slice(bytes).ok()?;
        Some(Self { live: LiveView::of(snapshot, table), ..view })
    }

    /// Returns the form of the incremental view that owns this table; `None` for other tables.
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

    /// Returns all incremental views in unspecified order.
    pub fn all(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        let records = snapshot.records(RecordKind::MaterializedView.name());
        records.filter_map(|(key, bytes)| Self::read(snapshot, key.parse().ok()?, bytes))
    }

    /// If refreshes are refused because the owner no longer has a permission that the query needs,
    /// returns the reason.
    #[must_use]
    pub fn refusal(snapshot: &Snapshot, table: TableId) -> Option<String> {
        let bytes = record(snapshot, RecordKind::RefreshRefusal, table)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the change that stores the definition, without the clauses of a live view.
    pub fn put(&self) -> EngineResult<Change> {
        put(RecordKind::MaterializedView, self.table, self)
    }
}

impl IncrementalState {
    /// Returns the refresh state of this table's view.
    #[must_use]
    pub fn of(snapshot: &Snapshot, table: TableId) -> Self {
        let bytes = record(snapshot, RecordKind::MaterializedState, table);
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// Returns the state as shown to clients. A view whose refreshes are refused is shown as
    /// invalid.
    #[must_use]
    pub fn shown(snapshot: &Snapshot, table: TableId) -> Self {
        let state = Self::of(snapshot, table);
        let refusal = || IncrementalView::refusal(snapshot, table);
        Self { invalid: state.invalid.clone().or_else(refusal), ..state }
    }

    /// Returns the change that stores the state.
    pub fn put(&self, table: TableId) -> EngineResult<Change> {
        put(RecordKind::MaterializedState, table, self)
    }

    /// Returns a change that makes the commit fail if the refresh state has changed since this
    /// snapshot.
    #[must_use]
    pub fn expect(snapshot: &Snapshot, table: TableId) -> Change {
        let kind = RecordKind::MaterializedState;
        let value = record(snapshot, kind, table).map(<[u8]>::to_vec);
        Change::Expect { kind: kind.name().to_owned(), key: table.to_string(), value }
    }
}
