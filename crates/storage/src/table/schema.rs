//! Table definitions.

use serde::{Deserialize, Serialize};
use tidemark_types::{PartitionBy, SqlType, identifier};

/// A table's permanent identifier; never reused.
pub type TableId = u64;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSchema {
    /// Permanent identifier of the column within its table; 0 in a change requests a new
    /// identifier.
    pub id: u32,
    /// Name, in its original case.
    pub name: String,
    /// Column type.
    pub sql_type: SqlType,
    /// Expected number of distinct symbols; stored only for SHOW, not a limit.
    pub symbol_capacity: u32,
    /// Declared symbol cache; stored only for SHOW.
    pub symbol_cache: bool,
    /// Declared index; stored only for SHOW.
    pub indexed: bool,
    /// Values per index block; stored only for SHOW.
    #[serde(default = "default_index_capacity")]
    pub index_capacity: u32,
    /// Whether every row must have a value. Existing rows are not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_null: bool,
    /// A string type's declared length, stored for the catalog; 0 if none was declared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub length: u32,
    /// A time type's declared fractional digits, stored for the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<u8>,
    /// Whether a time type was declared WITH TIME ZONE, stored for the catalog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zoned: bool,
    /// Whether a string type was declared as TEXT, stored for the catalog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text: bool,
    /// Default for rows without a value. The producer of the rows applies the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<ColumnDefault>,
    /// The column whose cells this column took over in a type change; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_place_of: u32,
}

/// A column's default, in a form that the storage does not interpret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDefault {
    /// The default's SQL text.
    pub text: String,
    /// Syntax tree, as JSON, from which the default is computed.
    pub tree: String,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_index_capacity() -> u32 {
    256
}

impl ColumnSchema {
    /// Creates a column with the dialect's defaults and without an identifier.
    pub fn new(name: impl Into<String>, sql_type: SqlType) -> Self {
        Self {
            id: 0,
            name: name.into(),
            sql_type,
            symbol_capacity: 256,
            symbol_cache: true,
            indexed: false,
            index_capacity: default_index_capacity(),
            not_null: false,
            length: 0,
            precision: None,
            zoned: false,
            text: false,
            default: None,
            in_place_of: 0,
        }
    }

    /// Identity that survives changes to the column's name or type.
    #[must_use]
    pub fn identity(&self) -> u32 {
        if self.in_place_of == 0 { self.id } else { self.in_place_of }
    }
}

/// A table's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// Table identifier; 0 in a change requests a new identifier.
    pub id: TableId,
    /// Name, in its original case.
    pub name: String,
    /// Increases with every change to the definition. A change must specify the version it is based
    /// on.
    pub version: u64,
    /// Columns in order.
    pub columns: Vec<ColumnSchema>,
    /// Position of the designated timestamp.
    pub timestamp: Option<usize>,
    /// Time unit of each partition.
    pub partition_by: PartitionBy,
    /// Whether the table was declared with WAL; stored only for SHOW.
    pub wal: bool,
    /// Maximum number of rows that a bulk write holds in memory. Further rows are written to disk
    /// and remain invisible until the commit.
    pub max_uncommitted_rows: u64,
    /// Usual delay of late rows in a bulk write, in microseconds. The most recent rows remain in
    /// memory for this period, memory permitting.
    pub o3_max_lag_micros: i64,
    /// Identifiers of the DEDUP UPSERT key columns, including the designated timestamp. A row
    /// replaces earlier rows with the same keys. If empty, no row is replaced.
    pub dedup_keys: Vec<u32>,
    /// Keys and indexes as declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Time to live: hours if positive, months if negative, none if 0.
    pub ttl_hours_or_months: i64,
    /// Actions on partitions as they age, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<StoragePolicy>,
    /// The table that this table replaced when an import overwrote it; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_place_of: TableId,
}

/// STORAGE POLICY. Partition ages are expressed like a time to live: hours if positive, months if
/// negative, none if 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoragePolicy {
    /// Age at which partitions become Parquet files.
    pub to_parquet: i64,
    /// Stored, but has no effect.
    pub to_remote: i64,
    /// Age at which partitions are dropped.
    pub drop_local: i64,
    /// Whether the policy is disabled (DISABLE).
    pub is_disabled: bool,
    /// When the policy was last set, enabled or disabled, in microseconds since 1970.
    pub changed_micros: i64,
}

/// A key or an index as declared, which tools read in the catalog. It does not constrain rows; only
/// [`TableSchema::dedup_keys`] does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// Name, in its original case.
    pub name: String,
    /// Constraint kind.
    pub kind: ConstraintKind,
    /// Column names, in key order.
    pub columns: Vec<String>,
    /// Target of a foreign key; `None` if the other table did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<Reference>,
}

/// Kinds of [`Constraint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// PRIMARY KEY: the main key that identifies rows.
    PrimaryKey,
    /// UNIQUE: an additional key that identifies rows.
    Unique,
    /// FOREIGN KEY: a key that refers to rows in another table.
    ForeignKey,
    /// An index that allows equal keys.
    Index,
    /// An index that does not allow equal keys.
    UniqueIndex,
    /// A condition; only its name is stored.
    Check,
}

/// Target of a foreign key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Identity of the referenced table ([`TableSchema::identity`]); 0 if the table references
    /// itself.
    pub table: TableId,
    /// Names of the referenced columns, in key column order.
    pub columns: Vec<String>,
    /// Actions of ON UPDATE and ON DELETE, using `PostgreSQL`'s letters: `a` no action, `r`
    /// restrict, `c` cascade, `n` set null, `d` set default.
    pub actions: (char, char),
}

/// Defaults for values that a new table's definition does not specify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDefaults {
    /// Default for [`TableSchema::max_uncommitted_rows`].
    pub max_uncommitted_rows: u64,
    /// Default for [`TableSchema::o3_max_lag_micros`].
    pub o3_max_lag_micros: i64,
}

impl Default for TableDefaults {
    fn default() -> Self {
        Self { max_uncommitted_rows: 500_000, o3_max_lag_micros: 600_000_000 }
    }
}

impl TableSchema {
    /// Creates a table definition with the dialect's defaults.
    pub fn new(name: impl Into<String>, columns: Vec<ColumnSchema>) -> Self {
        Self {
            id: 0,
            name: name.into(),
            version: 0,
            columns,
            timestamp: None,
            partition_by: PartitionBy::None,
            wal: false,
            max_uncommitted_rows: TableDefaults::default().max_uncommitted_rows,
            o3_max_lag_micros: TableDefaults::default().o3_max_lag_micros,
            dedup_keys: Vec::new(),
            constraints: Vec::new(),
            ttl_hours_or_months: 0,
            policy: None,
            in_place_of: 0,
        }
    }

    /// Identity that survives renames, and an import that overwrites the table.
    #[must_use]
    pub fn identity(&self) -> TableId {
        if self.in_place_of == 0 { self.id } else { self.in_place_of }
    }

    /// Returns the same definition with these defaults.
    #[must_use]
    pub fn with_defaults(self, defaults: TableDefaults) -> Self {
        let TableDefaults { max_uncommitted_rows, o3_max_lag_micros } = defaults;
        Self { max_uncommitted_rows, o3_max_lag_micros, ..self }
    }

    /// Position of the column with this name, ignoring case.
    #[must_use]
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| identifier::same(&column.name, name))
    }

    /// The designated timestamp column, if any.
    #[must_use]
    pub fn timestamp_column(&self) -> Option<&ColumnSchema> {
        self.columns.get(self.timestamp?)
    }

    /// Start of the partition that contains `ts`, in the timestamp's unit; the smallest integer if
    /// there is only one partition.
    #[must_use]
    pub fn partition_floor(&self, ts: i64) -> i64 {
        if self.partition_by == PartitionBy::None || self.timestamp.is_none() {
            return i64::MIN;
        }
        if self.timestamp_is_nanos() {
            self.partition_by.floor(ts.div_euclid(1_000)).saturating_mul(1_000)
        } else {
            self.partition_by.floor(ts)
        }
    }

    /// End of the partition that starts at `floor`, exclusive, in the timestamp's unit.
    #[must_use]
    pub fn partition_ceil(&self, floor: i64) -> i64 {
        if floor == i64::MIN {
            i64::MAX
        } else if self.timestamp_is_nanos() {
            self.partition_by.ceil(floor.div_euclid(1_000)).saturating_mul(1_000)
        } else {
            self.partition_by.ceil(floor)
        }
    }

    /// Name of the partition that starts at `floor`, such as `2024-01-31` or `default`.
    #[must_use]
    pub fn partition_name(&self, floor: i64) -> String {
        if floor == i64::MIN {
            PartitionBy::None.directory_name(0)
        } else if self.timestamp_is_nanos() {
            self.partition_by.directory_name(floor.div_euclid(1_000))
        } else {
            self.partition_by.directory_name(floor)
        }
    }

    /// [`Self::o3_max_lag_micros`] in the timestamp's unit.
    pub(crate) fn o3_max_lag(&self) -> i64 {
        let unit = if self.timestamp_is_nanos() { 1_000 } else { 1 };
        self.o3_max_lag_micros.max(0).saturating_mul(unit)
    }

    fn timestamp_is_nanos(&self) -> bool {
        self.timestamp_column().is_some_and(|column| column.sql_type == SqlType::TimestampNs)
    }
}
