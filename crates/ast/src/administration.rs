//! Administrative statements: materialized and live views, COPY, backups.

use serde::{Deserialize, Serialize};

use crate::{Name, NodeId, OptionValue, Span};

/// The CREATE MATERIALIZED VIEW clauses, except the query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MaterialClauses {
    /// WITH BASE clause.
    pub base: Option<Name>,
    /// REFRESH clause; `None` if absent.
    pub refresh: Option<RefreshPolicy>,
    /// TIMESTAMP(column) clause.
    pub timestamp: Option<Name>,
    /// PARTITION BY unit, as written.
    pub partition_by: Option<Name>,
    /// TTL clause, as written.
    pub ttl: Option<Name>,
    /// EXPIRE ROWS clause.
    pub expire: Option<ExpireRows>,
    /// IN VOLUME clause.
    pub volume: Option<Name>,
    /// OWNED BY clause.
    pub owner: Option<Name>,
}

/// The CREATE LIVE VIEW clauses, except the query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LiveClauses {
    /// FLUSH EVERY interval, as written.
    pub flush_every: Name,
    /// IN MEMORY duration, as written.
    pub in_memory: Option<Name>,
    /// PARTITION BY unit, as written.
    pub partition_by: Option<Name>,
    /// START FROM clause.
    pub start: LiveStart,
    /// OWNED BY clause.
    pub owner: Option<Name>,
}

/// The first row that a live view includes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "start")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum LiveStart {
    /// NOW
    Now,
    /// BEGINNING
    Beginning,
    /// A timestamp, as written
    At { instant: Name },
}

/// `REFRESH [IMMEDIATE | MANUAL | EVERY i] [DEFERRED] [START t] [TIME ZONE z] [PERIOD (…)]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RefreshPolicy {
    /// The refresh trigger, if given.
    pub trigger: Option<RefreshTrigger>,
    /// Whether DEFERRED is given.
    pub deferred: bool,
    /// START clause.
    pub start: Option<Name>,
    /// TIME ZONE clause.
    pub time_zone: Option<Name>,
    /// PERIOD clause.
    pub period: Option<RefreshPeriod>,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// The event that triggers a refresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trigger")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RefreshTrigger {
    /// IMMEDIATE
    Immediate,
    /// MANUAL
    Manual,
    /// EVERY interval, as written
    Every { interval: Name },
}

/// The PERIOD clause: the time periods that each refresh computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "period")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RefreshPeriod {
    /// PERIOD (LENGTH l [TIME ZONE z] [DELAY d])
    Length { length: Name, time_zone: Option<Name>, delay: Option<Name> },
    /// PERIOD (SAMPLE BY INTERVAL)
    SampleByInterval,
}

/// `EXPIRE ROWS … [CLEANUP EVERY d]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ExpireRows {
    /// The rule that determines which rows expire.
    pub rule: ExpireRule,
    /// The rule as written.
    pub text: String,
    /// CLEANUP EVERY interval, as written.
    pub cleanup: Option<Name>,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// The rule that determines which of a view's rows expire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ExpireRule {
    /// WHEN condition
    When { condition: NodeId },
    /// KEEP LATEST [ON ts] PARTITION BY k, …
    KeepLatest { timestamp: Option<NodeId>, keys: Vec<NodeId> },
    /// KEEP [n] HIGHEST | LOWEST ON c [PARTITION BY k, …]
    KeepExtreme { count: Option<NodeId>, highest: bool, column: NodeId, keys: Vec<NodeId> },
}

/// An ALTER MATERIALIZED VIEW action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ViewAction {
    /// SET REFRESH …
    SetRefresh { refresh: RefreshPolicy },
    /// SET REFRESH LIMIT, as written
    SetRefreshLimit { limit: Name },
    /// SET TTL, as written
    SetTtl { ttl: Name },
    /// SET EXPIRE ROWS …
    SetExpire { expire: ExpireRows },
    /// DROP EXPIRE
    DropExpire,
    /// ALTER COLUMN c ADD INDEX [CAPACITY n | TYPE …]
    AddIndex { column: Name, options: Vec<OptionValue> },
    /// ALTER COLUMN c DROP INDEX
    DropIndex { column: Name },
    /// RESUME WAL [FROM TRANSACTION n]
    ResumeWal { from: Option<Name> },
}

/// The scope of REFRESH MATERIALIZED VIEW.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RefreshMode {
    /// No mode given.
    Default,
    /// FULL
    Full,
    /// INCREMENTAL
    Incremental,
    /// RANGE FROM a TO b
    Range { from: NodeId, to: NodeId },
}

/// The forms of COPY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "copy")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CopyStatement {
    /// COPY t FROM 'file' WITH …
    Import { table: Name, file: Name, options: Vec<OptionValue> },
    /// COPY t TO 'path' WITH …; for COPY (query) TO, `query` is set instead of `table`
    Export { table: Option<Name>, query: Option<NodeId>, path: Name, options: Vec<OptionValue> },
    /// COPY 'id' CANCEL
    Cancel { id: Name },
}

/// Database backups, and checkpoints that allow external tools to copy the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum BackupStatement {
    /// CHECKPOINT CREATE
    CheckpointCreate,
    /// CHECKPOINT RELEASE
    CheckpointRelease,
    /// SNAPSHOT PREPARE: older synonym for CHECKPOINT CREATE
    SnapshotPrepare,
    /// SNAPSHOT COMPLETE: older synonym for CHECKPOINT RELEASE
    SnapshotComplete,
    /// BACKUP DATABASE
    Database,
    /// BACKUP TABLE a, b
    Tables { tables: Vec<Name> },
    /// BACKUP ABORT
    Abort,
}
