//! The binder's input besides the tree and the snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::ScalarUDF;
use tidemark_border::{SequenceValue, Setting, Shared, TextFormat, TextFormatRequest, TextShape};
use tidemark_catalog::Owner;
use tidemark_storage::{PinnedSnapshot, Snapshot, TableDefaults, TableId};
use tidemark_types::{EngineResult, Field, ParameterValue};

use crate::access::Access;
use crate::answering::AnsweringViews;
use crate::bind_requests::BindRequests;
use crate::parameter_type::ParameterType;
use crate::sequence_values::SequenceValues;
use crate::visibility::{Lists, Visibility};

/// A source of rows outside the tables, which the engine opens for the binder.
#[derive(Debug, Clone)]
pub struct ExternalTable {
    /// Returns the rows, with the Arrow types of `columns`.
    pub provider: Arc<dyn TableProvider>,
    /// The columns with their SQL types.
    pub columns: Vec<Field>,
    /// Index of the timestamp column by which the rows are sorted in ascending order, if known.
    pub sorted_by: Option<usize>,
}

/// The text files that a statement requests.
#[derive(Debug, Clone)]
pub struct TextRequest {
    /// The file format.
    pub format: TextFormat,
    /// Paths or patterns.
    pub paths: Vec<String>,
    /// Options, by name.
    pub options: BTreeMap<&'static str, String>,
}

impl TextRequest {
    /// The key that identifies this request.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{self:?}")
    }
}

/// A directory whose files a statement may list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRoot {
    /// Root of COPY … FROM and of files in queries.
    Import,
    /// Root of COPY … TO.
    Export,
}

/// A file that matches a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Path relative to the directory.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Modification time in milliseconds since 1970.
    pub modified_millis: i64,
}

/// Text file rows, or a request for their schema.
pub enum TextRows {
    /// The rows, if the schema is known.
    Table(ExternalTable),
    /// The files whose schema is unknown.
    Unknown(TextFormatRequest),
}

/// Sources that cannot be described without I/O. The binder itself opens no files.
pub trait ExternalSources: Send + Sync {
    /// The Parquet files behind `read_parquet('path', …)`; a path may be a pattern.
    fn read_parquet(&self, paths: &[String]) -> EngineResult<ExternalTable>;

    /// The text files in `read_csv('path', …)` or `read_json`, read with the schema in `known`.
    fn read_text(&self, request: &TextRequest, known: Option<&TextShape>)
    -> EngineResult<TextRows>;

    /// The files whose path matches a pattern, sorted by path.
    fn files(&self, root: FileRoot, pattern: &str) -> EngineResult<Vec<ListedFile>>;

    /// Returns a scalar function that performs an action on the engine; `None` if actions are not
    /// available. The function's result is true if the action's target exists.
    fn action(&self, action: Action) -> Option<Arc<ScalarUDF>> {
        let _ = action;
        None
    }

    /// Rows of a table function that the engine provides, such as the list of running queries. With
    /// `of`, only that user's queries are included. `None` if the engine has no such function.
    fn table_function(&self, name: &str, of: Option<&str>) -> EngineResult<Option<ExternalTable>> {
        let _ = (name, of);
        Ok(None)
    }

    /// The progress of the materialized or live view whose table has this ID.
    fn view_progress(&self, view: TableId) -> ViewProgress {
        let _ = view;
        ViewProgress::default()
    }

    /// The last sequence value of a column; 0 before the first value is generated.
    fn last_number(&self, table: TableId, column: u32) -> Arc<AtomicI64>;

    /// Runs a query during binding and returns at most `max` values of its first column, in order.
    fn values(&self, plan: &LogicalPlan, max: usize) -> EngineResult<Vec<ScalarValue>>;
}

/// A view's progress since the database was opened; most fields concern only live views.
#[derive(Debug, Clone, Default)]
pub struct ViewProgress {
    /// Whether a refresh has been running long enough that readers should know.
    pub is_refreshing: bool,
    /// Current error of the view's refreshes, if any.
    pub failure: Option<String>,
    /// Upper bound on the size of the saved function states, in bytes.
    pub state_bytes: i64,
    /// Microseconds since the view's refreshes started failing; 0 if they succeed.
    pub stalled_micros: i64,
    /// Number of saved states from which a repair can resume after late rows.
    pub saved_states: i64,
    /// Rows written by repairs that started at the first row, or at the earliest row that the
    /// functions read.
    pub repaired_rows: i64,
    /// Rows written by repairs that resumed from an earlier state.
    pub resumed_rows: i64,
    /// Number of repairs that resumed from an earlier state.
    pub resumes: i64,
    /// Number of failed refreshes.
    pub failures: i64,
    /// The current repair, or the last one if none is running.
    pub repair: LiveRepair,
}

/// Repair of a live view: its rows are recomputed after late rows and changes.
#[derive(Debug, Clone, Default)]
pub struct LiveRepair {
    /// Whether the repair is running.
    pub is_under_way: bool,
    /// Earliest affected timestamp, in microseconds.
    pub first_micros: Option<i64>,
    /// Earliest timestamp that the repair reads, in microseconds.
    pub low_micros: Option<i64>,
    /// Latest timestamp that the repair writes, in microseconds; `None` for the end of the data.
    pub high_micros: Option<i64>,
    /// The kinds of bound that limit the repair: `range`, `rows` and `anchor`, joined by `+`, or
    /// `none`.
    pub plan: Option<&'static str>,
    /// The action that the repair took.
    pub disposition: Option<&'static str>,
    /// Why the repair was not local.
    pub denial: Option<&'static str>,
}

/// Live view configuration.
#[derive(Debug, Clone, Copy)]
pub struct LiveSettings {
    /// Whether live views can be created.
    pub is_enabled: bool,
    /// Maximum duration that IN MEMORY accepts, in microseconds.
    pub max_in_memory_micros: i64,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self { is_enabled: true, max_in_memory_micros: 3_600_000_000 }
    }
}

/// The engine action that a function performs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Cancels a running query. The argument is the query's ID, a LONG.
    CancelQuery {
        /// The user whose queries can be cancelled; `None` for all users.
        of: Option<String>,
    },
    /// Pauses or resumes a background job. The function has no arguments.
    SwitchJob {
        /// The job's kind, as in `jobs()`.
        kind: String,
        /// The job's table; empty for jobs without a table.
        name: String,
        /// Whether the job is paused.
        is_paused: bool,
    },
}

/// The session and configuration that a statement is bound for.
#[derive(Clone, Default)]
pub struct BindContext {
    /// The session's user.
    pub user: String,
    /// Distinguishes the user from other users with the same name.
    pub identity: String,
    /// Owner of the views that the statement creates; `None` if the user owns them.
    pub owner: Option<Owner>,
    /// The value of `now()`, in microseconds since 1970.
    pub now_micros: i64,
    /// Types that the client declared for `$1`, `$2`, …; `None` if undeclared.
    pub parameter_types: Vec<Option<ParameterType>>,
    /// The parameters' values, if known. Parameters then become constants, so time ranges, LIMIT
    /// and SAMPLE BY can use them. Without values, the statement can be described but not run.
    pub parameter_values: Option<Vec<ParameterValue<'static>>>,
    /// Whether statements that write are rejected.
    pub read_only: bool,
    /// Effective configuration for SHOW PARAMETERS.
    pub settings: Arc<Vec<Setting>>,
    /// Default values for settings that CREATE TABLE omits.
    pub table_defaults: TableDefaults,
    /// Live view configuration.
    pub live: LiveSettings,
    /// The subset of the catalog that the user sees; `None` for the whole catalog.
    pub visibility: Option<Visibility>,
    /// The users, groups and permissions that the statement lists.
    pub lists: Lists,
    /// Sequence values generated in the session, in order.
    pub numbers: Shared<Vec<SequenceValue>>,
    /// Collects the sequence values that the statement generates.
    pub sequence_values: SequenceValues,
    /// Answers to permission requests by request key; `None` if permissions cannot be requested.
    pub answers: Option<HashMap<String, bool>>,
    /// Schemas of text files, by request key.
    pub texts: Shared<HashMap<String, TextShape>>,
    /// Requests for information that the binder needs before it can finish.
    pub requests: Arc<Mutex<BindRequests>>,
    /// Materialized views that can answer queries over their base tables; `None` disables the
    /// rewrite.
    pub answering: Option<Arc<AnsweringViews>>,
    /// Opens sources outside the tables.
    pub external: Option<Arc<dyn ExternalSources>>,
    /// Set if binding reads more than the tree and the snapshot: the current time, the
    /// configuration, or sources outside the tables. The result must then not be cached.
    pub is_volatile: Arc<AtomicBool>,
}

impl BindContext {
    /// The value of `now()`.
    pub(crate) fn now(&self) -> i64 {
        self.is_volatile.store(true, Ordering::Relaxed);
        self.now_micros
    }

    /// The effective configuration.
    pub(crate) fn settings(&self) -> Arc<Vec<Setting>> {
        self.is_volatile.store(true, Ordering::Relaxed);
        Arc::clone(&self.settings)
    }

    /// Sequence values generated in the session.
    pub(crate) fn session_sequence_values(&self) -> &[SequenceValue] {
        self.is_volatile.store(true, Ordering::Relaxed);
        &self.numbers
    }

    /// Marks the result as volatile, because lists from the server may change.
    pub(crate) fn read_lists(&self) {
        self.is_volatile.store(true, Ordering::Relaxed);
    }

    /// The snapshots that running queries read.
    pub(crate) fn pinned(&self, snapshot: &Arc<Snapshot>) -> Vec<PinnedSnapshot> {
        self.is_volatile.store(true, Ordering::Relaxed);
        snapshot.pinned()
    }

    /// The user whose queries the current user can see and cancel; `None` for all users.
    pub(crate) fn only_queries_of(&self) -> Option<&str> {
        let is_limited = self.visibility.as_ref().is_some_and(|visibility| !visibility.queries);
        is_limited.then_some(self.identity.as_str())
    }

    /// Requests the permissions that are still unknown.
    pub(crate) fn request_permissions(&self, accesses: Vec<Access>) {
        let mut asks = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        asks.accesses.extend(accesses);
    }

    /// Requests the schema of text files.
    pub(crate) fn request_text_schema(&self, ask: TextFormatRequest) {
        let mut asks = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        asks.texts.push(ask);
    }

    /// The pending requests; `None` if no request is pending.
    pub(crate) fn pending_requests(&self) -> Option<BindRequests> {
        let asks = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        (!asks.is_empty()).then(|| asks.clone())
    }

    /// The interface that opens sources outside the tables.
    pub(crate) fn external(&self) -> Option<Arc<dyn ExternalSources>> {
        self.is_volatile.store(true, Ordering::Relaxed);
        self.external.clone()
    }
}
