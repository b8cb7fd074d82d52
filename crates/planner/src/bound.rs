//! Results of binding.

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
use crate::bind_requests::BindRequests;
use crate::binder::state::conditions::Conditions;
use crate::binder::statements::insert_values::InsertTemplate;
use crate::binder::statements::returning::Returning;
use crate::parameter_type::ParameterType;
use crate::sequence_values::SequenceValues;

/// A query.
#[derive(Debug, Clone)]
pub struct BoundQuery {
    /// The plan. Its columns correspond to `columns`, in the same order and with their Arrow types.
    pub plan: LogicalPlan,
    /// Names and SQL types of the output columns.
    pub columns: Vec<Field>,
    /// Index of the designated timestamp.
    pub timestamp: Option<usize>,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// The conditions in the query's WHERE clause, if no parameter occurs elsewhere.
    pub conditions: Option<Conditions>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
    /// The command tag: `SELECT` or `SHOW`.
    pub command: &'static str,
}

/// An INSERT's rows. They have all of the table's columns in schema order, with their Arrow types.
#[derive(Debug, Clone)]
pub enum InsertSource {
    /// VALUES rows, converted at bind time.
    Batch(RecordBatch),
    /// INSERT … SELECT.
    Plan(LogicalPlan),
    /// VALUES rows with parameters: [`InsertTemplate::rows`] builds a batch from the parameter
    /// values.
    Template(InsertTemplate),
}

/// INSERT.
#[derive(Debug, Clone)]
pub struct BoundInsert {
    /// The target table in the snapshot.
    pub table: Arc<TableSnapshot>,
    /// The rows.
    pub source: InsertSource,
    /// The RETURNING clause, if any.
    pub returning: Option<Returning>,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
    /// The sequence values generated for the rows, available once the rows are computed.
    pub sequence_values: SequenceValues,
}

/// CREATE TABLE.
#[derive(Debug, Clone)]
pub struct BoundCreateTable {
    /// The table to create, with ID 0; `None` if it already exists and IF NOT EXISTS is given.
    pub schema: Option<TableSchema>,
    /// The plan of AS (SELECT …). It returns the table's columns in schema order.
    pub source: Option<LogicalPlan>,
    /// Notice about requested features that have no effect.
    pub notice: Option<String>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
}

/// DROP, TRUNCATE, RENAME and ALTER TABLE: changes that are committed together, in this order.
#[derive(Debug, Clone)]
pub struct BoundSchemaChange {
    /// Tables to drop.
    pub drop: Vec<Arc<TableSnapshot>>,
    /// Names of views to drop.
    pub drop_views: Vec<String>,
    /// Tables to truncate.
    pub truncate: Vec<Arc<TableSnapshot>>,
    /// New table definitions, which have the same ID and the next version.
    pub replace: Vec<TableSchema>,
    /// Partitions to drop, detach or attach.
    pub partitions: Vec<BoundPartitions>,
    /// Partitions to convert to another file format.
    pub formats: Vec<BoundFormat>,
    /// New values for the one column that is converted or added with a default; `replace` contains
    /// the column's definition.
    pub conversion: Option<BoundConversion>,
    /// New records for renamed views and for views that the change invalidates.
    pub records: Vec<Change>,
    /// SQUASH PARTITIONS: whether to merge the segments of partitions.
    pub squash: bool,
    /// RESTART IDENTITY: whether to restart the sequences of the truncated tables.
    pub restart_identity: bool,
    /// SET TYPE: for each table, whether it is a WAL table after the next restart.
    pub table_types: Vec<(TableId, bool)>,
    /// The command tag.
    pub command: &'static str,
    /// Notice about requested features that have no effect.
    pub notice: Option<String>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
}

/// CREATE, ALTER and COMPILE VIEW.
#[derive(Debug, Clone)]
pub struct BoundViewChange {
    /// The change to commit; `None` for COMPILE, and if IF NOT EXISTS is given and the view exists.
    pub change: Option<Change>,
    /// The command tag.
    pub command: &'static str,
    /// Notice for the client.
    pub notice: Option<String>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
}

/// The action that a statement performs on a materialized or live view.
#[derive(Debug, Clone)]
pub enum IncrementalAction {
    /// Create the view and its table, which have no ID yet.
    Create(Box<(TableSchema, IncrementalView)>),
    /// Change the view's definition.
    Redefine(Box<IncrementalView>),
    /// Commit these changes.
    Change(Vec<Change>),
    /// No action, because IF NOT EXISTS is given and the view exists.
    Nothing,
}

/// CREATE, ALTER and REFRESH MATERIALIZED VIEW, CREATE and ALTER LIVE VIEW.
#[derive(Debug, Clone)]
pub struct BoundIncremental {
    /// The action.
    pub action: IncrementalAction,
    /// The command tag.
    pub command: &'static str,
    /// Notice about requested features that have no effect.
    pub notice: Option<String>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
}

/// A table's partitions to drop, detach or attach.
#[derive(Debug, Clone)]
pub struct BoundPartitions {
    /// The table.
    pub table: Arc<TableSnapshot>,
    /// The action to perform on these partitions.
    pub action: PartitionAction,
    /// The partitions' start timestamps.
    pub floors: Vec<i64>,
}

/// A table's partitions to convert to another file format.
#[derive(Debug, Clone)]
pub struct BoundFormat {
    /// The table.
    pub table: Arc<TableSnapshot>,
    /// The target format.
    pub to: PartitionFormat,
    /// The partitions' start timestamps.
    pub floors: Vec<i64>,
}

/// New values for a column.
#[derive(Debug, Clone)]
pub struct BoundConversion {
    /// The table.
    pub table: Arc<TableSnapshot>,
    /// The column's index.
    pub column: usize,
    /// Plan that returns each row's ID and its new value.
    pub plan: LogicalPlan,
}

/// UPDATE.
#[derive(Debug, Clone)]
pub struct BoundUpdate {
    /// The target table in the snapshot.
    pub table: Arc<TableSnapshot>,
    /// Indices of the changed columns.
    pub columns: Vec<usize>,
    /// Plan that returns the ID of each changed row, then its new values. A target row that matches
    /// several source rows in FROM occurs several times.
    pub plan: LogicalPlan,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
    /// Output of RETURNING: the last columns of the plan.
    pub returning: Vec<Field>,
}

/// DELETE.
#[derive(Debug, Clone)]
pub struct BoundDelete {
    /// The target table in the snapshot.
    pub table: Arc<TableSnapshot>,
    /// Plan that returns the ID of each deleted row, possibly with duplicates; `None` if all rows
    /// are deleted.
    pub plan: Option<LogicalPlan>,
    /// Types of `$1`, `$2`, ….
    pub parameters: Vec<ParameterType>,
    /// Accesses for permission checks.
    pub accesses: Vec<Access>,
    /// Output of RETURNING: the last columns of the plan.
    pub returning: Vec<Field>,
}

/// Maintenance actions on the whole database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceAction {
    /// CHECKPOINT CREATE, SNAPSHOT PREPARE.
    CheckpointCreate,
    /// CHECKPOINT RELEASE, SNAPSHOT COMPLETE.
    CheckpointRelease,
    /// CHECK DATABASE, CHECK TABLE t.
    Check,
    /// RECOVER TABLE t: reports the data that would be lost.
    ShowLosses,
    /// RECOVER TABLE t SKIP: discards the damaged data.
    SkipDamage,
}

impl MaintenanceAction {
    /// Whether the action writes to disk.
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
    /// The action.
    pub action: MaintenanceAction,
    /// The table to which the action applies; `None` for all tables.
    pub table: Option<Arc<TableSnapshot>>,
    /// The required permissions.
    pub accesses: Vec<Access>,
}

/// EXPLAIN.
#[derive(Debug, Clone)]
pub struct BoundExplain {
    /// The representation to show. The engine writes it to a STRING column named `QUERY PLAN`, one
    /// row per line.
    pub stage: ExplainStage,
    /// Whether ANALYZE is given.
    pub analyze: bool,
    /// The explained statement.
    pub statement: Box<BoundStatement>,
    /// The tree as indented JSON lines, for EXPLAIN (AST).
    pub tree: Vec<String>,
    /// The permissions required to explain the statement.
    pub accesses: Vec<Access>,
}

/// A bound statement, ready to run.
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
    /// BEGIN, SET and other statements that do not change the database.
    Session {
        /// The statement's words as written.
        words: Vec<String>,
        /// The command tag, in upper case.
        command: String,
        /// Notice about requested features that have no effect.
        notice: Option<&'static str>,
    },
    /// CHECKPOINT, CHECK, RECOVER.
    Maintenance(BoundMaintenance),
    /// CANCEL QUERY.
    CancelQuery {
        /// The query's ID.
        id: u64,
        /// Position of the ID in the SQL text.
        at: tidemark_types::Span,
        /// The user to whom the query must belong; `None` if the user may cancel all queries.
        of: Option<String>,
    },
    /// CREATE, ALTER and COMPILE VIEW.
    ViewChange(BoundViewChange),
    /// CREATE, ALTER and REFRESH MATERIALIZED VIEW, CREATE and ALTER LIVE VIEW.
    Incremental(BoundIncremental),
    /// The information that is required before the statement can be bound.
    Asking(BindRequests),
    /// An empty statement.
    Empty,
}

impl BoundStatement {
    /// The kind of statement.
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

    /// Whether the statement writes to disk. Read-only sessions reject such statements.
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
            // EXPLAIN ANALYZE computes the rows of a change but does not commit them.
            Self::Query(_)
            | Self::Explain(_)
            | Self::Session { .. }
            | Self::CancelQuery { .. }
            | Self::Asking(_)
            | Self::Empty => false,
        }
    }

    /// The plan that the statement runs or explains; `None` if it computes no rows.
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

    /// The command tag.
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

    /// The output columns; empty for statements that return no rows.
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

    /// Notice about requested features that have no effect. The client receives it with the success
    /// response.
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

    /// The statement's accesses, for permission checks.
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
