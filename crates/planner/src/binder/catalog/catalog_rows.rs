//! Catalog rows for SHOW and functions such as `tables()`. They are built from the snapshot during
//! binding.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray,
    UInt16Array,
};
use arrow_schema::{Field, Schema};
use datafusion::common::ScalarValue;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan, lit, when};
use tidemark_ast::Name;
use tidemark_border::Permission;
use tidemark_catalog::{IncrementalView, ViewForm, ViewSource};
use tidemark_functions::{FunctionDoc, FunctionKind};
use tidemark_storage::{ColumnSchema, Damage, PartitionInfo, TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, PartitionBy, SqlType};

use crate::binder::state::accesses::Origin;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, ScopeColumn};
use crate::binder::{Binder, error};
use crate::visibility::Visibility;

/// A column of rows that are built during binding.
pub(crate) type LiteralColumn<'a> = (&'a str, SqlType, ArrayRef);

/// Builds a column of strings.
pub(crate) fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> ArrayRef {
    let mut builder = StringViewBuilder::new();
    for value in values {
        push(&mut builder, value.as_ref().map(AsRef::as_ref));
    }
    Arc::new(builder.finish())
}

/// Not inlined, to reduce code size: the function list alone has a dozen string columns.
#[inline(never)]
fn push(builder: &mut StringViewBuilder, value: Option<&str>) {
    builder.append_option(value);
}

pub(crate) fn booleans(values: impl IntoIterator<Item = bool>) -> ArrayRef {
    let values: Vec<bool> = values.into_iter().collect();
    Arc::new(BooleanArray::from(values))
}

pub(crate) fn ints(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from(values.into_iter().collect::<Vec<i32>>()))
}

/// Positions of the columns the user may read.
pub(crate) fn read_columns(visibility: &Visibility, schema: &TableSchema) -> Vec<usize> {
    let designated = schema.timestamp_column().map(|column| column.name.as_str());
    let reads = |&index: &usize| {
        let name = std::slice::from_ref(&schema.columns[index].name);
        visibility.reads(&schema.name, name, designated)
    };
    (0..schema.columns.len()).filter(reads).collect()
}

/// Copies a table definition with only some of its columns.
pub(crate) fn projected(schema: &TableSchema, columns: &[usize]) -> TableSchema {
    let mut part = schema.clone();
    part.columns = columns.iter().map(|&index| schema.columns[index].clone()).collect();
    part.timestamp = schema.timestamp.and_then(|at| columns.iter().position(|&index| index == at));
    part
}

fn kind(of: FunctionKind) -> &'static str {
    match of {
        FunctionKind::Scalar => "STANDARD",
        FunctionKind::Aggregate => "GROUP_BY",
        FunctionKind::Window => "WINDOW",
        FunctionKind::Table => "CURSOR",
    }
}

/// Keywords of SQL statements.
const KEYWORDS: &str = "add align all alter and as asc asof attach backup begin between by bypass \
    cache calendar cancel capacity case cast column commit convert copy create cross current \
    database day dedup deferred delete desc detach distinct drop else end except exclude exists \
    explain fill first following for from full grant group groups horizon if ignore in include \
    index inner insert intersect interval into is isolation join keys latest left like limit \
    linear list lock lt manual materialized maxuncommittedrows month name native no nocache none \
    not null nulls o3maxlag observation offset on or order outer over param parquet partition \
    period pivot preceding prepare prev range refresh rename respect resume right rollback rows \
    sample select set show splice suspend symbol table tables then timestamp to tolerance \
    transaction truncate ttl type union unbounded unlock update upsert vacuum values view wal week \
    when where window with within year zone";

pub(crate) fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values.into_iter().collect::<Vec<i64>>()))
}

/// Name prefix of system tables.
const SYSTEM_PREFIX: &str = "sys.";

impl Binder<'_> {
    /// Converts columns built during binding to a relation.
    pub(crate) fn literal_rows(
        &mut self,
        columns: Vec<LiteralColumn<'_>>,
    ) -> EngineResult<Relation> {
        let field = |(name, sql_type, array)| {
            let field = Field::new(name, SqlType::arrow_type(sql_type), true);
            (field, sql_type, array)
        };
        self.described_rows(columns.into_iter().map(field))
    }

    /// Converts columns built during binding to a relation; their fields also carry metadata.
    pub(crate) fn described_rows(
        &mut self,
        columns: impl Iterator<Item = (Field, SqlType, ArrayRef)>,
    ) -> EngineResult<Relation> {
        let (mut fields, mut types, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        for (field, sql_type, array) in columns {
            types.push((field.name().clone(), sql_type));
            fields.push(field);
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)
            .map_err(|failure| EngineError::internal(failure.to_string()))?;
        let table = MemTable::try_new(schema, vec![vec![batch]]).map_err(error::plan)?;
        self.provider_rows(Arc::new(table), &types)
    }

    /// A table provider's rows, as a relation.
    pub(crate) fn provider_rows(
        &mut self,
        provider: Arc<dyn datafusion::catalog::TableProvider>,
        columns: &[(String, SqlType)],
    ) -> EngineResult<Relation> {
        let reference = self.relation_name();
        let source = provider_as_source(provider);
        let scan =
            TableScanBuilder::new(reference.as_str(), source).build().map_err(error::plan)?;
        let columns = columns
            .iter()
            .map(|(name, sql_type)| ScopeColumn {
                qualifier: None,
                name: name.clone(),
                sql_type: *sql_type,
                column: datafusion::common::Column::new(Some(reference.as_str()), name),
                origin: Origin::NONE,
            })
            .collect();
        Ok(Relation::of(LogicalPlan::TableScan(scan), columns))
    }

    /// Returns the rows of `access_schema()`: all tables with their columns, and all views. The
    /// views are not bound.
    pub(crate) fn access_schema_rows(&mut self) -> EngineResult<Relation> {
        let tables = self.sorted_tables();
        let views = self.sorted_views();
        let mut rows: Vec<(&str, Option<&str>, bool, i64)> = Vec::new();
        for table in &tables {
            let schema = table.schema();
            for (index, column) in schema.columns.iter().enumerate() {
                let (name, identity) = (Some(column.name.as_str()), i64::from(column.identity()));
                rows.push((&schema.name, name, schema.timestamp == Some(index), identity));
            }
        }
        rows.extend(views.iter().map(|view| (view.name.as_str(), None, false, 0)));
        self.literal_rows(vec![
            ("name", SqlType::String, texts(rows.iter().map(|row| Some(row.0)))),
            ("column_name", SqlType::String, texts(rows.iter().map(|row| row.1))),
            ("designated", SqlType::Boolean, booleans(rows.iter().map(|row| row.2))),
            ("column_id", SqlType::Long, longs(rows.iter().map(|row| row.3))),
        ])
    }

    /// Returns the rows of `functions()`.
    pub(crate) fn functions_rows(&mut self) -> EngineResult<Relation> {
        let docs = tidemark_functions::all_functions();
        let rows: Vec<(&FunctionDoc, &str)> = docs
            .iter()
            .flat_map(|doc| doc.signatures.iter().map(move |signature| (doc, signature.as_str())))
            .collect();
        let column = |value: fn(&FunctionDoc) -> &'static str| {
            texts(rows.iter().map(|(doc, _)| Some(value(doc))))
        };
        let signatures = || texts(rows.iter().map(|(_, signature)| Some(*signature)));
        // `now()` is constant during a statement.
        let clock = |doc: &FunctionDoc| matches!(doc.name, "now" | "now_ns");
        self.literal_rows(vec![
            ("name", SqlType::String, column(|doc| doc.name)),
            ("signature", SqlType::String, signatures()),
            ("signature_translated", SqlType::String, signatures()),
            (
                "runtime_constant",
                SqlType::Boolean,
                booleans(rows.iter().map(|(doc, _)| clock(doc))),
            ),
            ("type", SqlType::String, column(|doc| kind(doc.kind))),
            ("family", SqlType::String, column(|doc| doc.family)),
            ("description", SqlType::String, column(|doc| doc.summary)),
            ("example", SqlType::String, column(|doc| doc.example)),
            ("varies", SqlType::Boolean, booleans(rows.iter().map(|(doc, _)| doc.changes))),
        ])
    }

    /// Returns the rows of `keywords()`.
    pub(crate) fn keywords_rows(&mut self) -> EngineResult<Relation> {
        let words = KEYWORDS.split_whitespace().map(Some);
        self.literal_rows(vec![("keyword", SqlType::String, texts(words))])
    }

    /// The keywords as `pg_get_keywords()` lists them. All are reported as unreserved, because the
    /// list does not record which words are reserved.
    pub(crate) fn pg_keywords_rows(&mut self) -> EngineResult<Relation> {
        let words: Vec<&str> = KEYWORDS.split_whitespace().collect();
        let column = |text: Option<&'static str>| texts(words.iter().map(|_| text));
        self.literal_rows(vec![
            ("word", SqlType::String, texts(words.iter().map(|word| Some(*word)))),
            ("catcode", SqlType::String, column(Some("U"))),
            ("catdesc", SqlType::String, column(Some("unreserved"))),
        ])
    }

    /// All tables visible to the user, sorted by name.
    pub(crate) fn sorted_tables(&self) -> Vec<Arc<TableSnapshot>> {
        let visibility = self.visibility();
        let sees = |table: &&Arc<TableSnapshot>| {
            visibility.is_none_or(|visibility| visibility.sees(&table.schema().name))
        };
        let mut tables: Vec<_> = self.snapshot.tables().filter(sees).map(Arc::clone).collect();
        tables.sort_by(|a, b| a.schema().name.cmp(&b.schema().name));
        tables
    }

    /// The user tables visible to the user, sorted by name; excludes system tables.
    pub(crate) fn listed_tables(&self) -> Vec<Arc<TableSnapshot>> {
        let mut tables = self.sorted_tables();
        tables.retain(|table| !table.schema().name.starts_with(SYSTEM_PREFIX));
        tables
    }

    /// Returns the rows of `tables()`.
    pub(crate) fn tables_rows(&mut self) -> EngineResult<Relation> {
        let tables = self.listed_tables();
        let schemas: Vec<&TableSchema> =
            tables.iter().map(|table| table.schema().as_ref()).collect();
        let ttl = |schema: &TableSchema| shown_ttl(schema.ttl_hours_or_months);
        let form = |schema: &TableSchema| IncrementalView::form_of(self.snapshot, schema.id);
        let letter = |schema: &TableSchema| {
            u16::from(match form(schema) {
                Some(ViewForm::Live) => b'L',
                Some(ViewForm::Materialized) => b'M',
                None => b'T',
            })
        };
        // A damaged table rejects writes.
        let suspended = tables.iter().map(|table| self.snapshot.damage(table).is_some());
        let suspended = booleans(suspended);
        let mut columns = vec![
            ("id", SqlType::Int, ints(schemas.iter().map(|s| s.id as i32))),
            ("table_name", SqlType::String, texts(schemas.iter().map(|s| Some(&s.name)))),
            (
                "designatedTimestamp",
                SqlType::String,
                texts(schemas.iter().map(|s| {
                    let designated = s.timestamp_column().filter(|_| self.reads_some(&s.name));
                    designated.map(|column| &column.name)
                })),
            ),
            (
                "partitionBy",
                SqlType::String,
                texts(schemas.iter().map(|s| Some(s.partition_by.name()))),
            ),
            (
                "maxUncommittedRows",
                SqlType::Int,
                ints(schemas.iter().map(|s| s.max_uncommitted_rows as i32)),
            ),
            ("o3MaxLag", SqlType::Long, longs(schemas.iter().map(|s| s.o3_max_lag_micros))),
            ("walEnabled", SqlType::Boolean, booleans(schemas.iter().map(|s| s.wal))),
            (
                "directoryName",
                SqlType::String,
                texts(schemas.iter().map(|s| Some(format!("{}~{}", s.name, s.id)))),
            ),
            ("dedup", SqlType::Boolean, booleans(schemas.iter().map(|s| !s.dedup_keys.is_empty()))),
            ("ttlValue", SqlType::Int, ints(schemas.iter().map(|s| ttl(s).0))),
            ("ttlUnit", SqlType::String, texts(schemas.iter().map(|s| Some(ttl(s).1)))),
            (
                "matView",
                SqlType::Boolean,
                booleans(schemas.iter().map(|s| form(s) == Some(ViewForm::Materialized))),
            ),
            (
                "table_type",
                SqlType::Char,
                Arc::new(schemas.iter().map(|s| Some(letter(s))).collect::<UInt16Array>()),
            ),
            ("table_suspended", SqlType::Boolean, suspended),
        ];
        columns.extend(self.written_columns(&tables));
        self.literal_rows(columns)
    }

    /// Returns the rows of `wal_tables()`. Transactions are applied at commit, so nothing is ever
    /// pending.
    pub(crate) fn wal_tables_rows(&mut self) -> EngineResult<Relation> {
        let tables = self.sorted_tables();
        let wal: Vec<&Arc<TableSnapshot>> =
            tables.iter().filter(|table| table.schema().wal).collect();
        let names = texts(wal.iter().map(|table| Some(&table.schema().name)));
        let version = |table: &&Arc<TableSnapshot>| table.schema().version as i64;
        let damages: Vec<_> = wal.iter().map(|table| self.snapshot.damage(table)).collect();
        let suspended = booleans(damages.iter().map(Option::is_some));
        let tag = |damage: &Option<Damage>| Some(damage.as_ref().map_or("", |_| "DAMAGED"));
        let what = |damage: &Option<Damage>| Some(damage.clone().map_or(String::new(), |d| d.what));
        self.literal_rows(vec![
            ("name", SqlType::String, names),
            ("suspended", SqlType::Boolean, suspended),
            ("writerTxn", SqlType::Long, longs(wal.iter().map(version))),
            ("bufferedTxnSize", SqlType::Long, longs(wal.iter().map(|_| 0))),
            ("sequencerTxn", SqlType::Long, longs(wal.iter().map(version))),
            ("errorTag", SqlType::String, texts(damages.iter().map(tag))),
            ("errorMessage", SqlType::String, texts(damages.iter().map(what))),
            ("memoryPressure", SqlType::Int, ints(wal.iter().map(|_| 0))),
        ])
    }

    /// Returns the rows of SHOW COLUMNS and `table_columns('t')` for a table or a view.
    pub(crate) fn columns_of(&mut self, name: &Name) -> EngineResult<Relation> {
        self.must_see(name, Permission::Select)?;
        if let Some(table) = self.snapshot.table(&name.text) {
            let schema = Arc::clone(table.schema());
            self.note_read(&schema.name, Vec::new());
            let mut sizes = Vec::with_capacity(schema.columns.len());
            for (index, column) in schema.columns.iter().enumerate() {
                sizes.push(match column.sql_type {
                    SqlType::Symbol => table.symbols(index)?.len() as i32,
                    _ => 0,
                });
            }
            if let Some(visibility) = self.visibility() {
                let seen = read_columns(visibility, &schema);
                let sizes = seen.iter().map(|&index| sizes[index]).collect();
                return self.columns_rows(&projected(&schema, &seen), sizes);
            }
            return self.columns_rows(&schema, sizes);
        }
        let view = self.view(&name.text).ok_or_else(|| error::no_table(name))?;
        self.note_all_columns(&view.name);
        let state = self.view_state(&view);
        let fields = state.columns.map_err(|failure| failure.at(error::span(name.span)))?;
        let column = |field: &tidemark_types::Field| ColumnSchema {
            symbol_cache: false,
            symbol_capacity: 0,
            index_capacity: 0,
            ..ColumnSchema::new(field.name.clone(), field.sql_type)
        };
        let columns = fields.iter().map(column).collect();
        let schema =
            TableSchema { timestamp: state.timestamp, ..TableSchema::new(&view.name, columns) };
        self.columns_rows(&schema, vec![0; fields.len()])
    }

    fn columns_rows(&mut self, schema: &TableSchema, sizes: Vec<i32>) -> EngineResult<Relation> {
        let columns = &schema.columns;
        let symbol = |sql_type: SqlType| sql_type == SqlType::Symbol;
        self.literal_rows(vec![
            ("column", SqlType::String, texts(columns.iter().map(|c| Some(&c.name)))),
            ("type", SqlType::String, texts(columns.iter().map(|c| Some(c.sql_type.name())))),
            ("indexed", SqlType::Boolean, booleans(columns.iter().map(|c| c.indexed))),
            (
                "indexBlockCapacity",
                SqlType::Int,
                ints(
                    columns
                        .iter()
                        .map(|c| if symbol(c.sql_type) { c.index_capacity as i32 } else { 0 }),
                ),
            ),
            (
                "symbolCached",
                SqlType::Boolean,
                booleans(columns.iter().map(|c| symbol(c.sql_type) && c.symbol_cache)),
            ),
            (
                "symbolCapacity",
                SqlType::Int,
                ints(
                    columns
                        .iter()
                        .map(|c| if symbol(c.sql_type) { c.symbol_capacity as i32 } else { 0 }),
                ),
            ),
            ("symbolTableSize", SqlType::Int, ints(sizes)),
            (
                "designated",
                SqlType::Boolean,
                booleans((0..columns.len()).map(|index| schema.timestamp == Some(index))),
            ),
            (
                "upsertKey",
                SqlType::Boolean,
                booleans(columns.iter().map(|c| schema.dedup_keys.contains(&c.id))),
            ),
        ])
    }

    /// Returns the rows of `snapshots()`: snapshots that running queries still read, oldest first.
    /// Files that only these snapshots need remain on disk until the queries end.
    pub(crate) fn snapshots_rows(&mut self) -> EngineResult<Relation> {
        let pinned = self.context.pinned(self.snapshot);
        let published = pinned.iter().map(|pin| pin.published_micros);
        self.literal_rows(vec![
            ("epoch", SqlType::Long, longs(pinned.iter().map(|pin| pin.epoch as i64))),
            ("lastTxn", SqlType::Long, longs(pinned.iter().map(|pin| pin.lsn as i64))),
            (
                "published",
                SqlType::Timestamp,
                Arc::new(TimestampMicrosecondArray::from_iter_values(published)),
            ),
            ("readers", SqlType::Long, longs(pinned.iter().map(|pin| pin.readers as i64))),
            ("ageMicros", SqlType::Long, longs(pinned.iter().map(|pin| pin.age_micros))),
            ("heldBytes", SqlType::Long, longs(pinned.iter().map(|pin| pin.retained_bytes as i64))),
        ])
    }

    /// Returns the rows of SHOW PARTITIONS and `table_partitions('t')`.
    pub(crate) fn partitions_rows(&mut self, table: &TableSnapshot) -> EngineResult<Relation> {
        let schema = Arc::clone(table.schema());
        let mut partitions = table.partition_list();
        let attached = partitions.len();
        partitions.extend(table.detached_list());
        let count = partitions.len();
        let nanos = schema
            .timestamp
            .is_some_and(|index| schema.columns[index].sql_type == SqlType::TimestampNs);
        let micros = |at: i64| if nanos { at.div_euclid(1_000) } else { at };
        let times = |pick: fn((i64, i64)) -> i64| -> ArrayRef {
            let values = partitions.iter().map(|partition| micros(pick(partition.bounds)));
            Arc::new(TimestampMicrosecondArray::from_iter_values(values))
        };
        let same = |value: bool| booleans((0..count).map(|_| value));
        let unit = schema.partition_by.name();
        let human_sizes: Vec<String> =
            partitions.iter().map(|p| tidemark_functions::size_text(p.disk_bytes as f64)).collect();
        let parquet_sizes =
            partitions.iter().map(|p| if p.parquet { p.parquet_bytes as i64 } else { -1 });
        let columns: Vec<LiteralColumn> = vec![
            ("index", SqlType::Int, ints((0..count).map(|index| index as i32))),
            ("partitionBy", SqlType::String, texts(partitions.iter().map(|_| Some(unit)))),
            ("name", SqlType::String, texts(partitions.iter().map(|p| Some(&p.name)))),
            ("minTimestamp", SqlType::Timestamp, times(|bounds| bounds.0)),
            ("maxTimestamp", SqlType::Timestamp, times(|bounds| bounds.1)),
            ("numRows", SqlType::Long, longs(partitions.iter().map(|p| p.rows as i64))),
            ("diskSize", SqlType::Long, longs(partitions.iter().map(|p| p.disk_bytes as i64))),
            ("diskSizeHuman", SqlType::String, texts(human_sizes.iter().map(Some))),
            ("readOnly", SqlType::Boolean, same(false)),
            ("active", SqlType::Boolean, booleans((0..count).map(|index| index + 1 == attached))),
            ("attached", SqlType::Boolean, booleans((0..count).map(|index| index < attached))),
            ("detached", SqlType::Boolean, booleans((0..count).map(|index| index >= attached))),
            ("attachable", SqlType::Boolean, booleans((0..count).map(|index| index >= attached))),
            ("hasParquetGenerated", SqlType::Boolean, same(false)),
            ("isParquet", SqlType::Boolean, booleans(partitions.iter().map(|p| p.parquet))),
            ("parquetFileSize", SqlType::Long, longs(parquet_sizes)),
        ];
        self.literal_rows(columns)
    }

    /// Returns the rows of `table_segments('t')`: the segments of each partition.
    pub(crate) fn segments_rows(&mut self, table: &TableSnapshot) -> EngineResult<Relation> {
        let partitions = table.partition_list();
        let counts = |count: fn(&PartitionInfo) -> usize| {
            ints(partitions.iter().map(|partition| count(partition) as i32))
        };
        self.literal_rows(vec![
            ("name", SqlType::String, texts(partitions.iter().map(|p| Some(&p.name)))),
            ("numRows", SqlType::Long, longs(partitions.iter().map(|p| p.rows as i64))),
            ("segments", SqlType::Int, counts(|partition| partition.segments)),
            ("runs", SqlType::Int, counts(|partition| partition.runs)),
            ("overlap", SqlType::Int, counts(|partition| partition.overlap)),
            ("diskSize", SqlType::Long, longs(partitions.iter().map(|p| p.disk_bytes as i64))),
        ])
    }

    /// Finds a catalog table that FROM can reference by name, without parentheses.
    pub(crate) fn catalog_table(&mut self, name: &str) -> EngineResult<Option<Relation>> {
        if let Some(rows) = self.pg_catalog(name)? {
            return Ok(Some(rows));
        }
        if name == "storage_policies" {
            return self.storage_policies_rows().map(Some);
        }
        let Some(external) = self.context.external() else { return Ok(None) };
        let Some(table) = external.table_function(name, self.context.only_queries_of())? else {
            return Ok(None);
        };
        let columns: Vec<(String, SqlType)> =
            table.columns.iter().map(|field| (field.name.clone(), field.sql_type)).collect();
        let rows = self.provider_rows(table.provider, &columns)?;
        self.visible_rows(name, rows).map(Some)
    }

    /// Filters the rows of a server function: removes rows about tables that the user cannot see.
    fn visible_rows(&self, function: &str, rows: Relation) -> EngineResult<Relation> {
        // A job without a table has an empty name.
        let tables = if function.eq_ignore_ascii_case("jobs") { "name" } else { "table_name" };
        let names = rows.columns.iter().find(|column| column.name == tables);
        let (Some(names), Some(_)) = (names, self.visibility()) else { return Ok(rows) };
        let seen = self.sorted_tables().into_iter().map(|table| table.schema().name.clone());
        let seen = seen.chain([String::new()]).map(|name| lit(ScalarValue::Utf8View(Some(name))));
        let is_seen = names.expr().in_list(seen.collect(), false);
        let plan = relation::filter(rows.plan.clone(), is_seen)?;
        let plan = self.readable_errors(plan, names.expr(), &rows.columns)?;
        Ok(rows.with_plan(plan))
    }

    /// Whether the user may read all of a view's sources.
    fn reads_sources(&self, view: &IncrementalView) -> bool {
        let reads = |source: &ViewSource| match source {
            ViewSource::Table { id, .. } => {
                let table = self.snapshot.table_by_id(*id);
                table.is_some_and(|table| self.may_read_all(&table.schema().name))
            }
            ViewSource::View { name, .. } => self.may_read_all(name),
        };
        view.sources.values().all(reads)
    }

    /// Returns the reason why a view no longer follows its base table. The reason may name objects
    /// in the view's query, so only users who can read the view see it. A refresh error may also
    /// quote values, so only users who can read all of the view's sources see it.
    pub(crate) fn shown_reason(
        &self,
        name: &str,
        view: &IncrementalView,
        (ended, failure): (Option<&str>, Option<&str>),
    ) -> Option<String> {
        match (ended, failure) {
            (Some(reason), _) => Some(reason.to_owned()),
            (None, Some(failure)) if self.reads_sources(view) => {
                Some(format!("refresh failed and will be retried: {failure}"))
            }
            (None, Some(_)) => Some("refresh failed and will be retried".to_owned()),
            (None, None) => None,
        }
        .filter(|_| self.may_read_all(name))
    }

    /// Hides the `last_error` of each table or view unless the user may read it and all of its
    /// sources, because errors may quote values.
    fn readable_errors(
        &self,
        plan: LogicalPlan,
        names: Expr,
        columns: &[ScopeColumn],
    ) -> EngineResult<LogicalPlan> {
        if !columns.iter().any(|column| column.name == "last_error") {
            return Ok(plan);
        }
        let reads_sources = |table: &Arc<TableSnapshot>| {
            let view = IncrementalView::of(self.snapshot, table.schema().id);
            view.is_none_or(|view| self.reads_sources(&view))
        };
        let tables = self.sorted_tables().into_iter();
        let names_read = tables.filter(|table| self.may_read_all(&table.schema().name));
        let names_read = names_read.filter(reads_sources);
        let names_read = names_read.map(|table| table.schema().name.clone());
        let names_read = names_read.map(|name| lit(ScalarValue::Utf8View(Some(name))));
        let is_read = names.in_list(names_read.collect(), false);
        let shown = |column: &ScopeColumn| {
            if column.name != "last_error" {
                return Ok(column.expr());
            }
            let text = when(is_read.clone(), column.expr()).end().map_err(error::plan)?;
            Ok(text.alias_qualified(column.column.relation.clone(), &column.name))
        };
        relation::project(plan, columns.iter().map(shown).collect::<EngineResult<_>>()?)
    }
}

/// Converts a TTL to the largest unit that divides it.
pub(crate) fn shown_ttl(hours_or_months: i64) -> (i32, &'static str) {
    let months = -hours_or_months;
    match hours_or_months {
        0 => (0, "HOUR"),
        hours if hours > 0 && hours % (24 * 7) == 0 => ((hours / (24 * 7)) as i32, "WEEK"),
        hours if hours > 0 && hours % 24 == 0 => ((hours / 24) as i32, "DAY"),
        hours if hours > 0 => (hours as i32, "HOUR"),
        _ if months % 12 == 0 => ((months / 12) as i32, "YEAR"),
        _ => (months as i32, "MONTH"),
    }
}

/// Whether a TTL is a whole number of partitions.
pub(crate) fn ttl_fits(hours_or_months: i64, partition_by: PartitionBy) -> bool {
    let (hours, months) = (hours_or_months.max(0), (-hours_or_months).max(0));
    match partition_by {
        PartitionBy::None => false,
        PartitionBy::Hour => true,
        PartitionBy::Day => hours % 24 == 0,
        PartitionBy::Week => hours > 0 && hours % (24 * 7) == 0,
        PartitionBy::Month => months > 0,
        PartitionBy::Year => months > 0 && months % 12 == 0,
    }
}
