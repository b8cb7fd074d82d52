//! What binding yields.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use tidemark_ast::ExplainStage;
use tidemark_border::StatementKind;
use tidemark_catalog::IncrementalView;
use tidemark_storage::{
    Change, PartitionAction, PartitionFormat, TableId, TableSchema, TableSnapshot,
};
use tidemark_types::{Field, SqlType};

use crate::access::Access;
use crate::binder::state::conditions::Conditions;
use crate::binder::statements::insert_values::InsertTemplate;
use crate::binder::statements::returning::Returning;
use crate::drawn::Drawn;
use crate::parameter_type::ParameterType;
use crate::questions::Questions;

/// A query.
#[derive(Debug, Clone)]
pub struct BoundQuery {
    /// The plan; its columns are those of `columns`, in order, in their Arrow types.
    pub plan: LogicalPlan,
    /// The output's names and SQL types.
    pub columns: Vec<Field>,
    /// Index of the designated timestamp.
    pub timestamp: Option<usize>,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// The conditions of its WHERE, where all parameters are in them.
    pub conditions: Option<Conditions>,
    /// What is read.
    pub accesses: Vec<Access>,
    /// The command tag's word: `SELECT`, `SHOW`, `EXPLAIN`.
    pub command: &'static str,
}

/// The rows of an INSERT. They have the table's columns, in schema order and Arrow types.
#[derive(Debug, Clone)]
pub enum InsertSource {
    /// VALUES, converted while binding.
    Batch(RecordBatch),
    /// INSERT … SELECT.
    Plan(LogicalPlan),
    /// VALUES with parameters: [`InsertTemplate::rows`] makes a batch of their values.
    Template(InsertTemplate),
}

/// INSERT.
#[derive(Debug, Clone)]
pub struct BoundInsert {
    /// The target, as of the snapshot.
    pub table: Arc<TableSnapshot>,
    /// The rows.
    pub source: InsertSource,
    /// RETURNING.
    pub returning: Option<Returning>,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// What is read and written.
    pub accesses: Vec<Access>,
    /// The numbers that its rows were given, once they are made.
    pub drawn: Drawn,
}

/// CREATE TABLE.
#[derive(Debug, Clone)]
pub struct BoundCreateTable {
    /// The table to make; its id is 0. `None` when IF NOT EXISTS finds it there.
    pub schema: Option<TableSchema>,
    /// AS (SELECT …): a plan whose columns are the table's, in schema order.
    pub source: Option<LogicalPlan>,
    /// What the statement asks for and has no effect here.
    pub notice: Option<String>,
    /// What is read and written.
    pub accesses: Vec<Access>,
}

/// DROP, TRUNCATE, RENAME and ALTER TABLE: changes to be committed together, in this order.
#[derive(Debug, Clone)]
pub struct BoundSchemaChange {
    /// Tables to drop.
    pub drop: Vec<Arc<TableSnapshot>>,
    /// Names of views to drop.
    pub drop_views: Vec<String>,
    /// Tables to empty.
    pub truncate: Vec<Arc<TableSnapshot>>,
    /// Schemas to put in place of the present ones (same id, next version).
    pub replace: Vec<TableSchema>,
    /// Partitions that go or come back.
    pub partitions: Vec<BoundPartitions>,
    /// Partitions whose files get another format.
    pub formats: Vec<BoundFormat>,
    /// The cells of the one column that gets another type; `replace` has its new definition.
    pub conversion: Option<BoundConversion>,
    /// Views under other names.
    pub records: Vec<Change>,
    /// SQUASH PARTITIONS: put what lies in parts together.
    pub squash: bool,
    /// RESTART IDENTITY: columns of the emptied tables number their rows from the start.
    pub restart_identity: bool,
    /// SET TYPE: whether a table is a WAL table from the next start on.
    pub table_types: Vec<(TableId, bool)>,
    /// The command tag's words.
    pub command: &'static str,
    /// What the statement asks for and has no effect here.
    pub notice: Option<String>,
    /// What is changed.
    pub accesses: Vec<Access>,
}

/// CREATE, ALTER and COMPILE VIEW.
#[derive(Debug, Clone)]
pub struct BoundViewChange {
    /// What to commit; nothing for COMPILE, and where IF [NOT] EXISTS says so.
    pub change: Option<Change>,
    /// The command tag's words.
    pub command: &'static str,
    /// What its client has to know.
    pub notice: Option<String>,
    /// What is read and changed.
    pub accesses: Vec<Access>,
}

/// What a statement about a materialized or live view does.
#[derive(Debug, Clone)]
pub enum IncrementalAction {
    /// Makes the view and its table, which have no identifier yet.
    Create(Box<(TableSchema, IncrementalView)>),
    /// Gives the view another definition.
    Redefine(Box<IncrementalView>),
    /// Changes to commit.
    Change(Vec<Change>),
    /// IF NOT EXISTS finds it there.
    Nothing,
}

/// CREATE, ALTER and REFRESH MATERIALIZED VIEW, CREATE and ALTER LIVE VIEW.
#[derive(Debug, Clone)]
pub struct BoundIncremental {
    /// What is done.
    pub action: IncrementalAction,
    /// The command tag's words.
    pub command: &'static str,
    /// What the statement asks for and has no effect here.
    pub notice: Option<String>,
    /// What is read and changed.
    pub accesses: Vec<Access>,
}

/// Partitions of a table that go or come back.
#[derive(Debug, Clone)]
pub struct BoundPartitions {
    /// The table.
    pub table: Arc<TableSnapshot>,
    /// What happens to them.
    pub action: PartitionAction,
    /// Their first instants.
    pub floors: Vec<i64>,
}

/// Partitions of a table whose files get another format.
#[derive(Debug, Clone)]
pub struct BoundFormat {
    /// The table.
    pub table: Arc<TableSnapshot>,
    /// What the files become.
    pub to: PartitionFormat,
    /// Their first instants.
    pub floors: Vec<i64>,
}

/// A column's cells in another type.
#[derive(Debug, Clone)]
pub struct BoundConversion {
    /// The table.
    pub table: Arc<TableSnapshot>,
    /// The column's position.
    pub column: usize,
    /// Yields each row's identifier and its cell in the new type.
    pub plan: LogicalPlan,
}

/// UPDATE.
#[derive(Debug, Clone)]
pub struct BoundUpdate {
    /// The target, as of the snapshot.
    pub table: Arc<TableSnapshot>,
    /// Positions of the columns that change.
    pub columns: Vec<usize>,
    /// Yields the identifier of each row that changes, then its new cells. A row that FROM pairs
    /// with several others comes several times.
    pub plan: LogicalPlan,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// What is read and written.
    pub accesses: Vec<Access>,
    /// What RETURNING answers: the last columns of the plan.
    pub returning: Vec<Field>,
}

/// DELETE.
#[derive(Debug, Clone)]
pub struct BoundDelete {
    /// The target, as of the snapshot.
    pub table: Arc<TableSnapshot>,
    /// Yields the identifier of each row that goes, some of them perhaps several times; `None`
    /// when all rows go.
    pub plan: Option<LogicalPlan>,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// What is read and written.
    pub accesses: Vec<Access>,
    /// What RETURNING answers: the last columns of the plan.
    pub returning: Vec<Field>,
}

/// What is done to the database as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceAction {
    /// CHECKPOINT CREATE, SNAPSHOT PREPARE.
    CheckpointCreate,
    /// CHECKPOINT RELEASE, SNAPSHOT COMPLETE.
    CheckpointRelease,
    /// CHECK DATABASE, CHECK TABLE t.
    Check,
    /// RECOVER TABLE t: tells what would be given up.
    ShowLosses,
    /// RECOVER TABLE t SKIP: gives it up.
    SkipDamage,
}

impl MaintenanceAction {
    /// Whether it changes what is on the disk.
    fn writes(self) -> bool {
        match self {
            Self::CheckpointCreate | Self::CheckpointRelease | Self::SkipDamage => true,
            Self::Check | Self::ShowLosses => false,
        }
    }
}

/// CHECKPOINT, CHECK, RECOVER.
#[derive(Debug, Clone)]
pub struct BoundMaintenance {
    /// What is done.
    pub action: MaintenanceAction,
    /// The table it is done to; all of them when absent.
    pub table: Option<Arc<TableSnapshot>>,
    /// What is needed for it.
    pub accesses: Vec<Access>,
}

/// EXPLAIN.
#[derive(Debug, Clone)]
pub struct BoundExplain {
    /// Which representation to show. The engine writes one row per line into a STRING column
    /// `QUERY PLAN`.
    pub stage: ExplainStage,
    /// EXPLAIN ANALYZE.
    pub analyze: bool,
    /// The statement explained.
    pub statement: Box<BoundStatement>,
    /// The tree as indented JSON lines, for EXPLAIN (AST).
    pub tree: Vec<String>,
    /// What it takes to be shown.
    pub accesses: Vec<Access>,
}

/// A statement ready to run.
#[derive(Debug, Clone)]
pub enum BoundStatement {
    /// SELECT, SHOW, VALUES.
    Query(Box<BoundQuery>),
    /// INSERT.
    Insert(BoundInsert),
    /// UPDATE.
    Update(BoundUpdate),
    /// DELETE.
    Delete(BoundDelete),
    /// CREATE TABLE.
    CreateTable(BoundCreateTable),
    /// DROP, TRUNCATE, RENAME, ALTER TABLE.
    SchemaChange(BoundSchemaChange),
    /// EXPLAIN.
    Explain(BoundExplain),
    /// BEGIN, SET and other words that change nothing in the database.
    Session {
        /// The words as written.
        words: Vec<String>,
        /// The command tag's words, in capitals.
        command: String,
        /// What the statement asks for and has no effect here.
        notice: Option<&'static str>,
    },
    /// CHECKPOINT, CHECK, RECOVER.
    Maintenance(BoundMaintenance),
    /// CANCEL QUERY.
    CancelQuery {
        /// The query's id.
        id: u64,
        /// Its position.
        at: tidemark_types::Span,
        /// Whose query it must be; `None` for users who may cancel all queries.
        of: Option<String>,
    },
    /// CREATE, ALTER, DROP and COMPILE VIEW.
    ViewChange(BoundViewChange),
    /// CREATE, ALTER and REFRESH MATERIALIZED VIEW.
    Incremental(BoundIncremental),
    /// What must be known before it can be bound.
    Asking(Questions),
    /// An empty text.
    Empty,
}

impl BoundStatement {
    /// What the statement does.
    #[must_use]
    pub fn kind(&self) -> StatementKind {
        match self {
            Self::Query(_) | Self::Explain(_) | Self::Asking(_) => StatementKind::Select,
            Self::Insert(_) => StatementKind::Insert,
            Self::Update(_) | Self::Delete(_) => StatementKind::Update,
            Self::CreateTable(_)
            | Self::SchemaChange(_)
            | Self::ViewChange(_)
            | Self::Incremental(_)
            | Self::Maintenance(_) => StatementKind::Ddl,
            Self::Session { .. } | Self::CancelQuery { .. } => StatementKind::Session,
            Self::Empty => StatementKind::Empty,
        }
    }

    /// Whether it changes what is on the disk; a read-only session may not run it.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Insert(_)
            | Self::Update(_)
            | Self::Delete(_)
            | Self::CreateTable(_)
            | Self::SchemaChange(_)
            | Self::ViewChange(_)
            | Self::Incremental(_) => true,
            Self::Maintenance(maintenance) => maintenance.action.writes(),
            // EXPLAIN ANALYZE computes the rows of a change and does not commit them.
            Self::Query(_)
            | Self::Explain(_)
            | Self::Session { .. }
            | Self::CancelQuery { .. }
            | Self::Asking(_)
            | Self::Empty => false,
        }
    }

    /// The plan it runs, or explains; `None` for statements without rows to compute.
    #[must_use]
    pub fn plan(&self) -> Option<&LogicalPlan> {
        match self {
            Self::Query(query) => Some(&query.plan),
            Self::Update(update) => Some(&update.plan),
            Self::Delete(delete) => delete.plan.as_ref(),
            Self::CreateTable(create) => create.source.as_ref(),
            Self::Explain(explain) => explain.statement.plan(),
            Self::Insert(BoundInsert { source: InsertSource::Plan(plan), .. }) => Some(plan),
            _ => None,
        }
    }

    /// The words of the command tag.
    #[must_use]
    pub fn command(&self) -> &str {
        match self {
            Self::Query(query) => query.command,
            Self::Insert(_) => "INSERT",
            Self::Update(_) => "UPDATE",
            Self::Delete(_) => "DELETE",
            Self::CreateTable(_) => "CREATE TABLE",
            Self::SchemaChange(change) => change.command,
            Self::ViewChange(change) => change.command,
            Self::Incremental(change) => change.command,
            Self::Explain(_) => "EXPLAIN",
            Self::Session { command, .. } => command,
            Self::Maintenance(maintenance) => match maintenance.action {
                MaintenanceAction::CheckpointCreate => "CHECKPOINT CREATE",
                MaintenanceAction::CheckpointRelease => "CHECKPOINT RELEASE",
                MaintenanceAction::Check => "CHECK",
                MaintenanceAction::ShowLosses | MaintenanceAction::SkipDamage => "RECOVER TABLE",
            },
            Self::CancelQuery { .. } => "CANCEL QUERY",
            Self::Asking(_) | Self::Empty => "",
        }
    }

    /// The output columns; empty for statements without rows.
    #[must_use]
    pub fn columns(&self) -> Vec<Field> {
        match self {
            Self::Query(query) => query.columns.clone(),
            Self::Explain(_) => {
                vec![Field::new("QUERY PLAN", SqlType::String)]
            }
            Self::Insert(BoundInsert { returning: Some(returning), .. }) => {
                returning.columns.clone()
            }
            Self::Update(update) => update.returning.clone(),
            Self::Delete(delete) => delete.returning.clone(),
            _ => Vec::new(),
        }
    }

    /// Index of the designated timestamp in [`Self::columns`].
    #[must_use]
    pub fn timestamp(&self) -> Option<usize> {
        match self {
            Self::Query(query) => query.timestamp,
            _ => None,
        }
    }

    /// What the statement asks for without effect here: the client receives it beside its success.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        match self {
            Self::CreateTable(create) => create.notice.as_deref(),
            Self::SchemaChange(change) => change.notice.as_deref(),
            Self::Incremental(change) => change.notice.as_deref(),
            Self::ViewChange(change) => change.notice.as_deref(),
            Self::Session { notice, .. } => *notice,
            _ => None,
        }
    }

    /// Types of `$1`, `$2`, ….
    #[must_use]
    pub fn parameters(&self) -> &[ParameterType] {
        match self {
            Self::Query(query) => &query.parameters,
            Self::Insert(insert) => &insert.parameters,
            Self::Update(update) => &update.parameters,
            Self::Delete(delete) => &delete.parameters,
            Self::Explain(explain) => explain.statement.parameters(),
            _ => &[],
        }
    }

    /// What the statement reads and writes.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        match self {
            Self::Query(query) => &query.accesses,
            Self::Insert(insert) => &insert.accesses,
            Self::Update(update) => &update.accesses,
            Self::Delete(delete) => &delete.accesses,
            Self::CreateTable(create) => &create.accesses,
            Self::SchemaChange(change) => &change.accesses,
            Self::ViewChange(change) => &change.accesses,
            Self::Incremental(change) => &change.accesses,
            Self::Explain(explain) => &explain.accesses,
            Self::Maintenance(maintenance) => &maintenance.accesses,
            Self::Session { .. } | Self::CancelQuery { .. } | Self::Asking(_) | Self::Empty => &[],
        }
    }
}
