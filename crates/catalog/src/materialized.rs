//! Materialized views: tables that are filled by a query over a base table.
//!
//! The table is one like others. Beside it are two records under its identifier, which go with it:
//! what it is ([`MaterializedView`]), and what it shows at the moment ([`MaterializedState`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId};
use tidemark_types::EngineResult;

use crate::live::LiveView;
use crate::records::{Owner, RecordKind, ViewSource, put};

/// What a materialized view is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializedView {
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

/// A count and a unit, `10m`: `s`, `m`, `h`, `d`, `w`, `M`, `y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Every {
    /// How many units.
    pub count: u32,
    /// The unit's letter.
    pub unit: char,
}

impl Every {
    /// Seconds; of months and years the shortest ones have.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        let each = match self.unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            'M' => 28 * 86_400,
            _ => 365 * 86_400,
        };
        u64::from(self.count) * each
    }
}

impl std::fmt::Display for Every {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}{}", self.count, self.unit)
    }
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

/// What a materialized view shows at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializedState {
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

impl MaterializedView {
    /// Whether it stays empty until the next commit to its base.
    #[must_use]
    pub fn waits_for_commit(&self) -> bool {
        self.deferred && self.trigger == RefreshTrigger::Immediate
    }

    /// The materialized view whose table this is.
    #[must_use]
    pub fn of(snapshot: &Snapshot, table: TableId) -> Option<Self> {
        let kind = RecordKind::MaterializedView.name();
        serde_json::from_slice(snapshot.record(kind, &table.to_string())?).ok()
    }

    /// Whether a table is a materialized view.
    #[must_use]
    pub fn is(snapshot: &Snapshot, table: TableId) -> bool {
        snapshot.record(RecordKind::MaterializedView.name(), &table.to_string()).is_some()
    }

    /// How statements name a table that a query fills; `None` for other tables.
    #[must_use]
    pub fn kind(snapshot: &Snapshot, table: TableId) -> Option<&'static str> {
        let is_live = LiveView::is(snapshot, table);
        let kind = if is_live { "live view" } else { "materialized view" };
        Self::is(snapshot, table).then_some(kind)
    }

    /// All of them, in no order that means anything.
    pub fn all(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        let records = snapshot.records(RecordKind::MaterializedView.name());
        records.filter_map(|(_, bytes)| serde_json::from_slice(bytes).ok())
    }

    /// Why its refreshes are refused: its owner lost a right that its query needs.
    #[must_use]
    pub fn refusal(snapshot: &Snapshot, table: TableId) -> Option<String> {
        let bytes = snapshot.record(RecordKind::RefreshRefusal.name(), &table.to_string())?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The change that records it.
    pub fn put(&self) -> EngineResult<Change> {
        put(RecordKind::MaterializedView, self.table, self)
    }
}

impl MaterializedState {
    /// What the view of this table shows.
    #[must_use]
    pub fn of(snapshot: &Snapshot, table: TableId) -> Self {
        let bytes = snapshot.record(RecordKind::MaterializedState.name(), &table.to_string());
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// The state as clients see it: a view whose refreshes are refused is invalid.
    #[must_use]
    pub fn shown(snapshot: &Snapshot, table: TableId) -> Self {
        let state = Self::of(snapshot, table);
        let refusal = || MaterializedView::refusal(snapshot, table);
        Self { invalid: state.invalid.clone().or_else(refusal), ..state }
    }

    /// The change that records it.
    pub fn put(&self, table: TableId) -> EngineResult<Change> {
        put(RecordKind::MaterializedState, table, self)
    }

    /// Lets the commit fail where the state is not the one of this snapshot.
    #[must_use]
    pub fn expect(snapshot: &Snapshot, table: TableId) -> Change {
        let (kind, key) = (RecordKind::MaterializedState.name(), table.to_string());
        let value = snapshot.record(kind, &key).map(<[u8]>::to_vec);
        Change::Expect { kind: kind.to_owned(), key, value }
    }
}
