//! What the binder receives beside the tree and the snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::ScalarUDF;
use tidemark_border::{DrawnNumber, Setting, Shared, TextAsk, TextFormat, TextShape};
use tidemark_catalog::Owner;
use tidemark_storage::{PinnedSnapshot, Snapshot, TableDefaults, TableId};
use tidemark_types::{EngineResult, Field, ParameterValue};

use crate::access::Access;
use crate::answering::AnsweringViews;
use crate::drawn::Drawn;
use crate::parameter_type::ParameterType;
use crate::questions::Questions;
use crate::visibility::{Lists, Visibility};

/// A source of rows outside the tables, opened by the engine on the binder's behalf.
#[derive(Debug, Clone)]
pub struct ExternalTable {
    /// Yields the rows, in the Arrow types of `columns`.
    pub provider: Arc<dyn TableProvider>,
    /// The columns in SQL types.
    pub columns: Vec<Field>,
    /// Index of the time by which the rows are known to ascend.
    pub sorted_by: Option<usize>,
}

/// Texts in files as a statement names them.
#[derive(Debug, Clone)]
pub struct TextRequest {
    /// What the files are.
    pub format: TextFormat,
    /// Paths or patterns.
    pub paths: Vec<String>,
    /// What is said about them, by the names of the options.
    pub options: BTreeMap<&'static str, String>,
}

impl TextRequest {
    /// Tells it apart from others, as a question.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{self:?}")
    }
}

/// A directory whose files a statement may list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRoot {
    /// That of COPY … FROM and of files in queries.
    Import,
    /// That of COPY … TO.
    Export,
}

/// A file that a pattern names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path below the directory.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was written, in milliseconds since 1970.
    pub modified_millis: i64,
}

/// The rows of texts in files, or what must be known of them first.
pub enum TextRows {
    /// Their rows.
    Table(ExternalTable),
    /// The files whose shape is not known.
    Unknown(TextAsk),
}

/// Sources that need I/O to be described. The binder itself opens nothing.
pub trait ExternalSources: Send + Sync {
    /// The Parquet files behind `read_parquet('path', …)`; a path may be a pattern.
    fn read_parquet(&self, paths: &[String]) -> EngineResult<ExternalTable>;

    /// The texts behind `read_csv('path', …)`, read as `known` says.
    fn read_text(&self, request: &TextRequest, known: Option<&TextShape>)
    -> EngineResult<TextRows>;

    /// The files that a pattern names, in the order of their paths.
    fn files(&self, root: FileRoot, pattern: &str) -> EngineResult<Vec<ListedFile>>;

    /// A function of rows that acts on the engine and is true where there was what it acts on;
    /// `None` where nothing can be acted on.
    fn action(&self, action: Action) -> Option<Arc<ScalarUDF>> {
        let _ = action;
        None
    }

    /// Rows of a function the engine knows and the binder does not, such as the list of running
    /// queries; `None` when there is no such function. With `of` it tells that user's queries
    /// alone.
    fn table_function(&self, name: &str, of: Option<&str>) -> EngineResult<Option<ExternalTable>> {
        let _ = (name, of);
        Ok(None)
    }

    /// How a materialized or live view, by its table, fares.
    fn view_progress(&self, view: TableId) -> ViewProgress {
        let _ = view;
        ViewProgress::default()
    }

    /// The last number that a column which numbers its rows was given; 0 before the first.
    fn last_number(&self, table: TableId, column: u32) -> Arc<AtomicI64>;

    /// The first column of a query whose rows decide what a statement means, in their order and at
    /// most so many rows.
    fn values(&self, plan: &LogicalPlan, most: usize) -> EngineResult<Vec<ScalarValue>>;
}

/// How a view fares while the database is open; most of it is of live views alone.
#[derive(Debug, Clone, Default)]
pub struct ViewProgress {
    /// Whether it is being refreshed, for so long that it matters to who reads it.
    pub is_refreshing: bool,
    /// Why its refreshes fail at the moment.
    pub failure: Option<String>,
    /// Bytes that the kept state of its functions takes, at most.
    pub kept_bytes: i64,
    /// Microseconds since which its refreshes fail; 0 when they do not.
    pub stalled_micros: i64,
    /// Earlier states that late rows may go on from.
    pub kept_states: i64,
    /// Rows that repairs wrote that began with the first row, or as far back as functions look.
    pub repaired_rows: i64,
    /// Rows that repairs wrote that went on from an earlier state.
    pub resumed_rows: i64,
    /// How many repairs did.
    pub resumes: i64,
    /// Refreshes that failed.
    pub failures: i64,
    /// The running repair, or the last one.
    pub repair: LiveRepair,
}

/// What late rows and changes made a live view compute again.
#[derive(Debug, Clone, Default)]
pub struct LiveRepair {
    /// Whether it runs.
    pub is_under_way: bool,
    /// The first instant touched, microseconds.
    pub first_micros: Option<i64>,
    /// The first instant read.
    pub low_micros: Option<i64>,
    /// The last instant written; `None` for the end of the data.
    pub high_micros: Option<i64>,
    /// What bounds it: `range`, `rows`, `anchor`, joined by `+`, or `none`.
    pub plan: Option<&'static str>,
    /// What was done.
    pub disposition: Option<&'static str>,
    /// Why it was not local.
    pub denial: Option<&'static str>,
}

/// What is configured of live views.
#[derive(Debug, Clone, Copy)]
pub struct LiveSettings {
    /// Whether they can be made.
    pub is_enabled: bool,
    /// The longest IN MEMORY.
    pub longest_micros: i64,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self { is_enabled: true, longest_micros: 3_600_000_000 }
    }
}

/// What a function does to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Stops the running query whose number, a LONG, it is called with.
    CancelQuery {
        /// Whose queries alone; `None`: those of every user.
        of: Option<String>,
    },
    /// Lets work in the background rest, or go on. It is called with nothing.
    SwitchJob {
        /// As `jobs()` names it.
        kind: String,
        /// Of which table; empty where the job is of none.
        name: String,
        /// Whether it rests from now on.
        is_paused: bool,
    },
}

/// Who asks, and in which setting.
#[derive(Clone, Default)]
pub struct BindContext {
    /// The session's user.
    pub user: String,
    /// Tells the user apart from others of the same name.
    pub identity: String,
    /// Who owns a view that the statement makes; `None`: the user.
    pub owner: Option<Owner>,
    /// The instant that `now()` means, in microseconds since 1970.
    pub now_micros: i64,
    /// Types the client declared for `$1`, `$2`, …; `None` where it left them open.
    pub parameter_types: Vec<Option<ParameterType>>,
    /// Values of the parameters. With values, parameters become constants (so that time ranges,
    /// LIMIT and SAMPLE BY see them); without, the statement can be described but not run.
    pub parameter_values: Option<Vec<ParameterValue<'static>>>,
    /// Refuse everything that writes.
    pub read_only: bool,
    /// Effective configuration for SHOW PARAMETERS.
    pub settings: Arc<Vec<Setting>>,
    /// What CREATE TABLE leaves open.
    pub table_defaults: TableDefaults,
    /// What is configured of live views.
    pub live: LiveSettings,
    /// What of the catalog is seen; `None`: everything.
    pub visibility: Option<Visibility>,
    /// Users, groups and rights, as far as the statement asks for them.
    pub lists: Lists,
    /// The numbers that the session's rows were given, in the order in which they were drawn.
    pub numbers: Shared<Vec<DrawnNumber>>,
    /// Where the numbers go that the statement gives its rows.
    pub drawn: Drawn,
    /// What is granted of what was asked; `None`: nothing can be asked.
    pub answers: Option<HashMap<String, bool>>,
    /// How texts in files are read, by the keys of what was asked.
    pub texts: Shared<HashMap<String, TextShape>>,
    /// Set by a binding that has to know more before it is done.
    pub asks: Arc<Mutex<Questions>>,
    /// The materialized views that answer queries over their bases; `None`: none does.
    pub answering: Option<Arc<AnsweringViews>>,
    /// Opens what lies outside the tables.
    pub external: Option<Arc<dyn ExternalSources>>,
    /// Set by a binding that read more than tree and snapshot: the clock, the configuration, what
    /// lies outside the tables. Such a binding is true for its moment only.
    pub is_volatile: Arc<AtomicBool>,
}

impl BindContext {
    /// The instant that `now()` means.
    pub(crate) fn now(&self) -> i64 {
        self.is_volatile.store(true, Ordering::Relaxed);
        self.now_micros
    }

    /// The effective configuration.
    pub(crate) fn settings(&self) -> Arc<Vec<Setting>> {
        self.is_volatile.store(true, Ordering::Relaxed);
        Arc::clone(&self.settings)
    }

    /// The numbers that the session's rows were given.
    pub(crate) fn drawn_numbers(&self) -> &[DrawnNumber] {
        self.is_volatile.store(true, Ordering::Relaxed);
        &self.numbers
    }

    /// What the server tells is true for the moment.
    pub(crate) fn read_lists(&self) {
        self.is_volatile.store(true, Ordering::Relaxed);
    }

    /// The snapshots that running queries read.
    pub(crate) fn pinned(&self, snapshot: &Arc<Snapshot>) -> Vec<PinnedSnapshot> {
        self.is_volatile.store(true, Ordering::Relaxed);
        snapshot.pinned()
    }

    /// Whose queries alone the user sees and cancels; `None`: those of every user.
    pub(crate) fn only_queries_of(&self) -> Option<&str> {
        let is_limited = self.visibility.as_ref().is_some_and(|visibility| !visibility.queries);
        is_limited.then_some(self.identity.as_str())
    }

    /// Asks for rights that have no answer yet.
    pub(crate) fn ask(&self, accesses: Vec<Access>) {
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        asks.accesses.extend(accesses);
    }

    /// Asks for the shape of texts.
    pub(crate) fn ask_text(&self, ask: TextAsk) {
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        asks.texts.push(ask);
    }

    /// What binding asks; `None`: nothing.
    pub(crate) fn asked(&self) -> Option<Questions> {
        let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        (!asks.is_empty()).then(|| asks.clone())
    }

    /// What opens sources outside the tables.
    pub(crate) fn external(&self) -> Option<Arc<dyn ExternalSources>> {
        self.is_volatile.store(true, Ordering::Relaxed);
        self.external.clone()
    }
}
