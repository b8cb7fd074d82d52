//! Components of statements other than queries.

use serde::{Deserialize, Serialize};

use crate::{Cte, Name, NodeId, PlainRows, SelectItem, Span, TypeName};

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CreateTableNode {
    /// The new table's name.
    pub name: Name,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Column definitions. Empty with `like`, and with `query` unless casts are given.
    pub columns: Vec<ColumnDefinition>,
    /// The table named in `(LIKE other)`.
    pub like: Option<Name>,
    /// AS (query): a Query node.
    pub query: Option<NodeId>,
    /// CAST(column AS type) after AS (query).
    pub casts: Vec<(Name, TypeName)>,
    /// TIMESTAMP(column).
    pub timestamp: Option<Name>,
    /// PARTITION BY unit, as written.
    pub partition_by: Option<Name>,
    /// WAL (true) or BYPASS WAL (false), if given.
    pub wal: Option<bool>,
    /// DEDUP UPSERT KEYS columns.
    pub dedup_keys: Vec<Name>,
    /// PRIMARY KEY, UNIQUE, FOREIGN KEY and CHECK constraints, at table and column level.
    pub constraints: Vec<ConstraintNode>,
    /// TTL as written, `30d` or `4 WEEKS`, with its span.
    pub ttl: Option<Name>,
    /// STORAGE POLICY clause.
    pub policy: Option<PolicyStages>,
    /// WITH options such as `maxUncommittedRows` and `o3MaxLag`, IN VOLUME, and index clauses.
    pub options: Vec<OptionValue>,
}

/// Stages in a STORAGE POLICY: `(TO PARQUET 3d, TO REMOTE 7d, DROP LOCAL 1 MONTH)`. Ages have the
/// same syntax as TTL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PolicyStages {
    /// TO PARQUET, as written.
    pub to_parquet: Option<Name>,
    /// TO REMOTE, as written.
    pub to_remote: Option<Name>,
    /// DROP LOCAL, as written.
    pub drop_local: Option<Name>,
}

/// A key, an index or a CHECK condition, as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConstraintNode {
    /// Name after CONSTRAINT or CREATE INDEX.
    pub name: Option<Name>,
    /// Kind of the constraint.
    pub constraint: ConstraintKind,
    /// The constraint's columns; empty for CHECK and for an index on expressions.
    pub columns: Vec<Name>,
    /// A foreign key's REFERENCES clause.
    pub references: Option<ReferenceNode>,
    /// Whether IF NOT EXISTS is given in CREATE INDEX.
    pub if_not_exists: bool,
    /// The constraint's span in the SQL text.
    pub span: Span,
}

/// Kinds of [`ConstraintNode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ConstraintKind {
    /// PRIMARY KEY
    PrimaryKey,
    /// UNIQUE
    Unique,
    /// FOREIGN KEY, REFERENCES
    ForeignKey,
    /// CHECK
    Check,
    /// CREATE INDEX
    Index,
    /// CREATE UNIQUE INDEX
    UniqueIndex,
}

/// `REFERENCES table (columns) ON UPDATE … ON DELETE …`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ReferenceNode {
    /// The referenced table.
    pub table: Name,
    /// The referenced columns; empty if the primary key is referenced.
    pub columns: Vec<Name>,
    /// ON UPDATE
    pub on_update: ReferenceAction,
    /// ON DELETE
    pub on_delete: ReferenceAction,
}

/// What happens to a referencing row when the referenced row changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ReferenceAction {
    /// NO ACTION
    NoAction,
    /// RESTRICT
    Restrict,
    /// CASCADE
    Cascade,
    /// SET NULL
    SetNull,
    /// SET DEFAULT
    SetDefault,
}

/// `name type [CAPACITY n] [CACHE | NOCACHE] [INDEX [CAPACITY n]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ColumnDefinition {
    /// The column's name.
    pub name: Name,
    /// The column's type.
    pub type_name: TypeName,
    /// SYMBOL CAPACITY, as written.
    pub symbol_capacity: Option<Name>,
    /// `false` if NOCACHE is given.
    pub symbol_cache: Option<bool>,
    /// Whether INDEX is given.
    pub indexed: bool,
    /// Whether NOT NULL is given.
    pub not_null: bool,
    /// DEFAULT expression.
    pub default: Option<NodeId>,
    /// Index or file format options: `INDEX CAPACITY n`, `INDEX TYPE t`, `INCLUDE (…)`, `PARQUET
    /// (…)`. The value is the content of the parentheses.
    #[serde(default)]
    pub options: Vec<OptionValue>,
}

/// `name = value` or a single word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OptionValue {
    /// The option's name as written.
    pub name: Name,
    /// The option's value as written, without quotes.
    pub value: Option<Name>,
}

/// INSERT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InsertNode {
    /// The table.
    pub table: Name,
    /// The table's alias in ON CONFLICT and RETURNING.
    #[serde(default)]
    pub alias: Option<Name>,
    /// The column list; empty if no list is given.
    pub columns: Vec<Name>,
    /// The leading VALUES rows that consist only of plain literals.
    pub plain: Option<PlainRows>,
    /// The remaining VALUES rows.
    pub values: Option<ValuesBlock>,
    /// A Query node; `None` if VALUES are given.
    pub query: Option<NodeId>,
    /// Whether ATOMIC is given.
    pub atomic: bool,
    /// BATCH size.
    pub batch: Option<NodeId>,
    /// `o3MaxLag`, as written.
    pub o3_max_lag: Option<Name>,
    /// RETURNING list.
    pub returning: Vec<SelectItem>,
    /// ON CONFLICT clause.
    #[serde(default)]
    pub conflict: Option<Conflict>,
}

/// `ON CONFLICT [(keys)] DO NOTHING | DO UPDATE SET … [WHERE …]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Conflict {
    /// The conflict target columns; empty if none are given.
    pub keys: Vec<Name>,
    /// SET column = expression. The expressions can read the existing row and the `excluded` row.
    /// Empty for DO NOTHING.
    pub assignments: Vec<(Name, NodeId)>,
    /// WHERE condition.
    pub filter: Option<NodeId>,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// VALUES rows that contain more than plain literals. Literals are not stored as nodes but in
/// parallel lists, row by row.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ValuesBlock {
    /// Number of rows.
    pub rows: u32,
    /// Number of cells in each row. A row with 0 cells is DEFAULT VALUES.
    pub widths: Vec<u32>,
    /// One ASCII letter per cell: `n` null, `t` true, `f` false, `i` integer, `d` floating-point,
    /// `s` string, `v` DEFAULT, `x` expression.
    pub kinds: String,
    /// The literals' text (with sign, strings unescaped); for `x`, the node ID in decimal.
    pub texts: Vec<String>,
    /// Offset of each cell's first UTF-16 unit.
    pub starts: Vec<u32>,
    /// Offset of each row's opening parenthesis.
    pub row_starts: Vec<u32>,
    /// Offset of each row's closing parenthesis.
    #[serde(default)]
    pub row_ends: Vec<u32>,
}

/// UPDATE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UpdateNode {
    /// The table.
    pub table: Name,
    /// The table's alias.
    pub alias: Option<Name>,
    /// SET column = expression.
    pub assignments: Vec<(Name, NodeId)>,
    /// FROM sources.
    pub from: Option<NodeId>,
    /// WHERE condition.
    pub filter: Option<NodeId>,
    /// CTEs that precede UPDATE.
    #[serde(default)]
    pub with: Vec<Cte>,
    /// RETURNING list.
    #[serde(default)]
    pub returning: Vec<SelectItem>,
}

/// DELETE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DeleteNode {
    /// The table.
    pub table: Name,
    /// The table's alias.
    pub alias: Option<Name>,
    /// USING sources.
    pub using: Option<NodeId>,
    /// WHERE condition.
    pub filter: Option<NodeId>,
    /// CTEs that precede DELETE.
    #[serde(default)]
    pub with: Vec<Cte>,
    /// RETURNING list.
    #[serde(default)]
    pub returning: Vec<SelectItem>,
}

/// Kind of object in DROP and in CREATE VIEW.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ViewKind {
    /// TABLE
    Table,
    /// VIEW
    View,
    /// MATERIALIZED VIEW
    MaterializedView,
    /// LIVE VIEW
    LiveView,
}

/// An ALTER TABLE action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum AlterAction {
    /// ADD COLUMN [IF NOT EXISTS]
    AddColumn { column: ColumnDefinition, if_not_exists: bool },
    /// DROP COLUMN [IF EXISTS]
    DropColumn { column: Name, if_exists: bool },
    /// RENAME COLUMN a TO b
    RenameColumn { column: Name, to: Name },
    /// ALTER COLUMN c TYPE t
    ChangeType { column: Name, type_name: TypeName },
    /// ALTER COLUMN c SET NOT NULL, DROP NOT NULL
    NotNull { column: Name, not_null: bool },
    /// ALTER COLUMN c SET DEFAULT expression, with its SQL text; DROP DEFAULT
    Default { column: Name, value: Option<NodeId>, text: String },
    /// ALTER COLUMN c SYMBOL CAPACITY n
    SymbolCapacity { column: Name, capacity: Name },
    /// ALTER COLUMN c CACHE, NOCACHE
    SymbolCache { column: Name, cache: bool },
    /// ALTER COLUMN c ADD INDEX [CAPACITY n | TYPE …], DROP INDEX; `words` contains the words after
    /// ADD INDEX
    Index { column: Name, indexed: bool, words: Vec<String> },
    /// DROP, DETACH, ATTACH or CONVERT PARTITION: LIST of names, or WHERE
    Partitions { change: PartitionChange, names: Vec<Name>, filter: Option<NodeId> },
    /// SQUASH PARTITIONS
    SquashPartitions,
    /// SET PARAM name = value
    SetParameter { parameter: OptionValue },
    /// SET TTL, as written
    SetTtl { ttl: Name },
    /// SET STORAGE POLICY (…)
    SetPolicy { policy: PolicyStages },
    /// ENABLE STORAGE POLICY, DISABLE STORAGE POLICY
    SwitchPolicy { enabled: bool, span: Span },
    /// DROP STORAGE POLICY
    DropPolicy,
    /// SET TYPE WAL, SET TYPE BYPASS WAL
    SetWal { wal: bool },
    /// DEDUP ENABLE UPSERT KEYS (…); no keys for DEDUP DISABLE
    Dedup { keys: Vec<Name> },
    /// ADD [CONSTRAINT name] with any kind of table constraint; CREATE INDEX
    AddConstraint { constraint: ConstraintNode },
    /// DROP CONSTRAINT [IF EXISTS] name
    DropConstraint { name: Name, if_exists: bool },
    /// Any other action, stored as words.
    Other { words: Vec<String>, span: Span },
}

/// An operation on partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum PartitionChange {
    /// DROP PARTITION
    Drop,
    /// DETACH PARTITION
    Detach,
    /// ATTACH PARTITION
    Attach,
    /// CONVERT PARTITION TO PARQUET
    ToParquet,
    /// CONVERT PARTITION TO NATIVE
    ToNative,
}

/// SHOW subjects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "subject")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ShowSubject {
    /// SHOW TABLES
    Tables,
    /// SHOW COLUMNS FROM t
    Columns { table: Name },
    /// SHOW PARTITIONS FROM t
    Partitions { table: Name },
    /// SHOW CREATE TABLE t
    CreateTable { table: Name },
    /// SHOW CREATE [MATERIALIZED | LIVE] VIEW v
    CreateView { what: ViewKind, view: Name },
    /// SHOW CREATE DATABASE [INCLUDE | EXCLUDE (categories)]
    CreateDatabase {
        /// Whether EXCLUDE is given.
        exclude: bool,
        /// Category names as written, including ALL; empty if none are given.
        categories: Vec<Name>,
    },
    /// SHOW PARAMETERS
    Parameters,
    /// SHOW USERS, SHOW USER [u], SHOW GROUPS [u], SHOW SERVICE ACCOUNTS [e], SHOW PERMISSIONS [e]
    Access {
        list: AccessList,
        /// The user or entity, if given.
        of: Option<Name>,
    },
    /// `SHOW SERVER_VERSION`, `SHOW TRANSACTION ISOLATION LEVEL`, and the like.
    Setting { words: Vec<String> },
}

/// The access control list that SHOW displays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum AccessList {
    /// USERS
    Users,
    /// USER
    User,
    /// GROUPS
    Groups,
    /// SERVICE ACCOUNTS
    ServiceAccounts,
    /// SERVICE ACCOUNT
    ServiceAccount,
    /// PERMISSIONS
    Permissions,
}

/// The stage that EXPLAIN shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ExplainStage {
    /// EXPLAIN without a stage: the physical plan.
    Default,
    /// EXPLAIN (AST)
    Ast,
    /// EXPLAIN (BOUND)
    Bound,
    /// EXPLAIN (LOGICAL)
    Logical,
    /// EXPLAIN (PHYSICAL)
    Physical,
}
