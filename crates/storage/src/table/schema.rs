//! What a table is.

use serde::{Deserialize, Serialize};
use tidemark_types::{PartitionBy, SqlType, identifier};

/// Identifies a table for ever; never given to another table.
pub type TableId = u64;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSchema {
    /// Identifies the column within its table for ever; 0 in a change asks for a new one.
    pub id: u32,
    /// The name, in the letter case it was given.
    pub name: String,
    /// The type.
    pub sql_type: SqlType,
    /// Expected number of distinct symbols; kept for SHOW, not a limit.
    pub symbol_capacity: u32,
    /// Kept for SHOW.
    pub symbol_cache: bool,
    /// Kept for SHOW.
    pub indexed: bool,
    /// Kept for SHOW: values per block of the index.
    #[serde(default = "default_index_capacity")]
    pub index_capacity: u32,
    /// Whether every row must have a value. Rows that exist are not looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_null: bool,
    /// Kept for the catalog: the length that the type of a text was given; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub length: u32,
    /// Kept for the catalog: the digits of a second that the type of a time was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<u8>,
    /// Kept for the catalog: whether the type of a time was given WITH TIME ZONE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zoned: bool,
    /// Kept for the catalog: whether the type of a text was given as TEXT.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text: bool,
    /// What rows get that name no value; the maker of rows applies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<ColumnDefault>,
    /// The column whose cells this one took over when its type was changed; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_place_of: u32,
}

/// A column's default, in a form the storage does not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDefault {
    /// As it was written.
    pub text: String,
    /// As it is computed.
    pub tree: String,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_index_capacity() -> u32 {
    256
}

impl ColumnSchema {
    /// A column with the dialect's defaults and an identifier still to be given.
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

    /// What stays the same when the column's name or type is changed.
    #[must_use]
    pub fn identity(&self) -> u32 {
        if self.in_place_of == 0 { self.id } else { self.in_place_of }
    }
}

/// A table's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// The table's identifier; 0 in a change asks for a new one.
    pub id: TableId,
    /// The name, in the letter case it was given.
    pub name: String,
    /// Raised by every change of the definition. A change must name the version it was made for.
    pub version: u64,
    /// The columns in their order.
    pub columns: Vec<ColumnSchema>,
    /// Position of the designated timestamp.
    pub timestamp: Option<usize>,
    /// Unit of the partitions.
    pub partition_by: PartitionBy,
    /// Kept for SHOW: whether the table was declared with WAL.
    pub wal: bool,
    /// Rows a bulk write may hold in memory: more are written to disk, still unseen.
    pub max_uncommitted_rows: u64,
    /// How late rows of a bulk write usually come, microseconds: the newest ones stay in memory
    /// that long, as far as there is room.
    pub o3_max_lag_micros: i64,
    /// Identifiers of the DEDUP UPSERT key columns, the designated timestamp among them: a row
    /// replaces those with the same keys that arrived before. None: no row is replaced.
    pub dedup_keys: Vec<u32>,
    /// Keys and indexes as declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Time to live: hours when positive, months when negative, none when 0.
    pub ttl_hours_or_months: i64,
    /// What becomes of partitions as they age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<StoragePolicy>,
    /// The table whose place this one took when an import overwrote it; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_place_of: TableId,
}

/// STORAGE POLICY: ages of partitions, as a time to live has them: hours when positive, months when
/// negative, none when 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoragePolicy {
    /// When they become Parquet files.
    pub to_parquet: i64,
    /// Kept, without effect.
    pub to_remote: i64,
    /// When they are dropped.
    pub drop_local: i64,
    /// Whether it rests: DISABLE.
    pub is_disabled: bool,
    /// When it was set, enabled or disabled last, microseconds since 1970.
    pub changed_micros: i64,
}

/// A key or an index as declared, which tools read in the catalog. Rows are not looked at for it:
/// [`TableSchema::dedup_keys`] are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// Its name, in the letter case it was given.
    pub name: String,
    /// What it is.
    pub kind: ConstraintKind,
    /// Names of the columns, in the order of the key.
    pub columns: Vec<String>,
    /// Of a foreign key; absent where the other table was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<Reference>,
}

/// Kinds of [`Constraint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// The one key that tells rows apart.
    PrimaryKey,
    /// Another such key.
    Unique,
    /// The key of rows of another table.
    ForeignKey,
    /// An index, which allows equal keys.
    Index,
    /// An index that does not.
    UniqueIndex,
    /// A condition, of which the name alone is kept.
    Check,
}

/// What a foreign key refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The table, by [`TableSchema::identity`]; 0 for the key's own.
    pub table: TableId,
    /// Names of its columns, in the order of those of the key.
    pub columns: Vec<String>,
    /// What ON UPDATE and ON DELETE say, by the letters of `PostgreSQL`: `a` no action, `r`
    /// restrict, `c` cascade, `n` set null, `d` set default.
    pub actions: (char, char),
}

/// What a new table gets where its definition does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDefaults {
    /// [`TableSchema::max_uncommitted_rows`].
    pub max_uncommitted_rows: u64,
    /// [`TableSchema::o3_max_lag_micros`].
    pub o3_max_lag_micros: i64,
}

impl Default for TableDefaults {
    fn default() -> Self {
        Self { max_uncommitted_rows: 500_000, o3_max_lag_micros: 600_000_000 }
    }
}

impl TableSchema {
    /// A table with the dialect's defaults.
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

    /// What stays the same when the table is renamed, or overwritten by an import.
    #[must_use]
    pub fn identity(&self) -> TableId {
        if self.in_place_of == 0 { self.id } else { self.in_place_of }
    }

    /// The same table with other defaults.
    #[must_use]
    pub fn with_defaults(self, defaults: TableDefaults) -> Self {
        let TableDefaults { max_uncommitted_rows, o3_max_lag_micros } = defaults;
        Self { max_uncommitted_rows, o3_max_lag_micros, ..self }
    }

    /// Position of the column with this name, letter case ignored.
    #[must_use]
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| identifier::same(&column.name, name))
    }

    /// The designated timestamp's column.
    #[must_use]
    pub fn timestamp_column(&self) -> Option<&ColumnSchema> {
        self.columns.get(self.timestamp?)
    }

    /// The first instant of the partition that holds `ts`, in the timestamp's own unit; the
    /// smallest integer when there is only one partition.
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

    /// The first instant after the partition that starts at `floor`, in the timestamp's own unit.
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

    /// The name of the partition that starts at `floor`: `2024-01-31`, `default`.
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

    /// [`Self::o3_max_lag_micros`] in the timestamp's own unit.
    pub(crate) fn o3_max_lag(&self) -> i64 {
        let unit = if self.timestamp_is_nanos() { 1_000 } else { 1 };
        self.o3_max_lag_micros.max(0).saturating_mul(unit)
    }

    fn timestamp_is_nanos(&self) -> bool {
        self.timestamp_column().is_some_and(|column| column.sql_type == SqlType::TimestampNs)
    }
}
