//! `pg_catalog` and `information_schema`: the tables that drivers and tools query to list objects.
//!
//! Each table is built from the snapshot during binding, then queried like any other. Tables for
//! features that this database lacks are empty.

macro_rules! row {
    ($($column:ident: $value:expr),* $(,)?) => {
        vec![$((stringify!($column), Cell::from($value))),*]
    };
}

mod activity;
mod attribute;
mod cell;
pub(crate) mod information;
pub(crate) mod keys;
pub(crate) mod layout;
pub(crate) mod marked;
pub(crate) mod numbers;
pub(crate) mod object;
pub(crate) mod types;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use arrow_schema::Field;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::{MemTable, source_as_provider};
use datafusion::logical_expr::{Expr, LogicalPlan};
use tidemark_catalog::IncrementalView;
use tidemark_functions::{CastMode, FunctionKind, SETTINGS, number_of};
use tidemark_storage::{ColumnSchema, TableSchema, TableSnapshot};
use tidemark_types::{CatalogType, EngineResult, SqlType};

use crate::binder::catalog::catalog_rows::{projected, read_columns};
use crate::binder::catalog::pg_catalog::attribute::{align, attribute, storage};
use crate::binder::catalog::pg_catalog::cell::{Cell, Row, column_of};
use crate::binder::catalog::pg_catalog::information::information_columns;
use crate::binder::catalog::pg_catalog::keys::{
    Key, OPERATOR_CLASS_OID, constraints_of, key_rows, keys,
};
use crate::binder::catalog::pg_catalog::layout::{INFORMATION_SCHEMA, Layout, PG_CATALOG};
use crate::binder::catalog::pg_catalog::marked::with_catalog_type;
use crate::binder::catalog::pg_catalog::numbers::{
    ACCESS_METHOD_OID, CLASS_OID, COLLATION_OID, DATABASE_OID, FUNCTIONS_OID, INDEX_METHOD_OID,
    INFORMATION_SCHEMA_OID, OWNER, OWNER_OID, PG_CATALOG_OID, PUBLIC_OID, SCHEMAS, TABLESPACE_OID,
    TYPE_FUNCTIONS_OID, UTF8, index_oid, table_oid, view_oid,
};
pub(crate) use crate::binder::catalog::pg_catalog::object::Object;
use crate::binder::catalog::pg_catalog::object::{
    DATABASE, has_index, is_numbered, sequence_name, shown_default,
};
use crate::binder::catalog::pg_catalog::types::{PgType, TYPES, column_modifier};
use crate::binder::state::scope::Relation;
use crate::binder::{Binder, Typed};

/// Whether the relation reads only tables that were built during binding, such as catalog tables.
pub(crate) fn is_catalog(relation: &Relation) -> bool {
    let (mut created, mut other) = (false, false);
    let _ = relation.plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let provider = source_as_provider(&scan.source);
            let is_made = provider.is_ok_and(|provider| provider.is::<MemTable>());
            created |= is_made;
            other |= !is_made;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    created && !other
}

impl Binder<'_> {
    /// A catalog table's rows; `None` if no catalog table has this name.
    pub(crate) fn pg_catalog(&mut self, name: &str) -> EngineResult<Option<Relation>> {
        let Some((layout, is_pg)) = find(name) else { return Ok(None) };
        if layout.name == "pg_stat_activity" {
            return self.stat_activity(layout);
        }
        let rows =
            if is_pg { self.pg_rows(layout.name)? } else { self.information_rows(layout.name)? };
        let columns = layout.fields().map(|(name, of)| {
            // Most rows list their cells in the same order, so the previous row's cell index is
            // tried first.
            let mut index = 0;
            let cells = rows.iter().map(|row| {
                if row.get(index).is_none_or(|(known, _)| *known != name) {
                    index = row.iter().position(|(known, _)| *known == name).unwrap_or(row.len());
                }
                row.get(index).map_or(&Cell::Null, |(_, cell)| cell)
            });
            let (sql_type, array) = column_of(of, cells)?;
            let field = Field::new(name, sql_type.arrow_type(), true);
            let catalog_type = CatalogType::of_name(of).map(CatalogType::name);
            Ok((with_catalog_type(field, catalog_type), sql_type, array))
        });
        let columns: Vec<_> = columns.collect::<EngineResult<_>>()?;
        self.described_rows(columns.into_iter()).map(Some)
    }

    fn pg_rows(&mut self, table: &str) -> EngineResult<Vec<Row>> {
        Ok(match table {
            "pg_namespace" => SCHEMAS
                .iter()
                .map(|&(oid, name)| row!(oid: oid, nspname: name, nspowner: OWNER_OID))
                .collect(),
            "pg_class" => {
                let objects = self.objects()?;
                let system = PG_CATALOG.iter().map(|one| (one, PG_CATALOG_OID));
                let standard = INFORMATION_SCHEMA.iter().map(|one| (one, INFORMATION_SCHEMA_OID));
                let system = system.chain(standard).map(|(one, schema)| system_class(one, schema));
                let keys = keys(&objects);
                let indexes = keys.iter().filter(|key| key.has_index()).map(Key::class);
                let bound: HashSet<i32> = keys.iter().flat_map(Key::bound_tables).collect();
                let class = |object| class(object, bound.contains(&object.oid));
                let sequences = objects.iter().flat_map(Object::sequences).map(sequence);
                objects.iter().map(class).chain(sequences).chain(indexes).chain(system).collect()
            }
            "pg_attribute" => {
                let objects = self.objects()?;
                let system =
                    PG_CATALOG.iter().chain(INFORMATION_SCHEMA.iter()).flat_map(system_attributes);
                let keys = keys(&objects);
                let indexes = keys.iter().filter(|key| key.has_index()).flat_map(Key::attributes);
                objects.iter().flat_map(attributes).chain(indexes).chain(system).collect()
            }
            "pg_attrdef" => self.objects()?.iter().flat_map(defaults).collect(),
            "pg_type" => TYPES.iter().map(type_row).collect(),
            "pg_proc" => functions(),
            "pg_tables" | "pg_views" | "pg_matviews" => listed(table, &self.objects()?),
            "pg_stat_user_tables"
            | "pg_stat_all_tables"
            | "pg_statio_all_tables"
            | "pg_statio_user_tables" => self
                .objects()?
                .iter()
                .filter(|object| object.is_stored())
                .map(|object| {
                    row!(
                        relid: object.oid, schemaname: "public", relname: object.name.clone(),
                        n_live_tup: object.rows, n_dead_tup: 0,
                    )
                })
                .collect(),
            "pg_roles" | "pg_user" => self.roles(),
            "pg_depend" => self.objects()?.iter().flat_map(dependence).collect(),
            "pg_sequence" => self.objects()?.iter().flat_map(counting).collect(),
            "pg_index"
            | "pg_indexes"
            | "pg_constraint"
            | "pg_stat_user_indexes"
            | "pg_stat_all_indexes"
            | "pg_statio_user_indexes"
            | "pg_statio_all_indexes" => key_rows(table, &self.objects()?).unwrap_or_default(),
            other => fixed(other),
        })
    }

    /// The roles in the catalog: the objects' owner and the current user.
    fn roles(&self) -> Vec<Row> {
        let user = self.context.user.as_str();
        let other = (user != OWNER && !user.is_empty()).then_some((OWNER_OID + 1, user));
        let role = |(oid, name): (i32, &str)| {
            let name = || name.to_owned();
            let all = oid == OWNER_OID;
            row!(
                oid: oid, rolname: name(), rolsuper: all, rolinherit: true, rolcreaterole: all,
                rolcreatedb: false, rolcanlogin: true, rolreplication: false, rolconnlimit: -1,
                rolpassword: "********", rolbypassrls: all,
                usename: name(), usesysid: oid, usecreatedb: false, usesuper: all, userepl: false,
                usebypassrls: all, passwd: "********",
            )
        };
        std::iter::once((OWNER_OID, OWNER)).chain(other).map(role).collect()
    }

    fn information_rows(&mut self, table: &str) -> EngineResult<Vec<Row>> {
        Ok(match table {
            "tables" => self
                .objects()?
                .iter()
                .map(|object| {
                    let is_table = object.kind == "r";
                    row!(
                        table_catalog: DATABASE, table_schema: "public",
                        table_name: object.name.clone(),
                        table_type: if is_table { "BASE TABLE" } else { "VIEW" },
                        is_insertable_into: if is_table { "YES" } else { "NO" }, is_typed: "NO",
                    )
                })
                .collect(),
            "columns" | "questdb_columns" => {
                let native = table == "questdb_columns";
                let objects = self.objects()?;
                objects.iter().flat_map(|object| information_columns(object, native)).collect()
            }
            "schemata" => SCHEMAS
                .iter()
                .map(|&(_, name)| {
                    row!(catalog_name: DATABASE, schema_name: name, schema_owner: OWNER)
                })
                .collect(),
            "views" => of_kind(&self.objects()?, "v")
                .map(|object| {
                    row!(
                        table_catalog: DATABASE, table_schema: "public",
                        table_name: object.name.clone(),
                        view_definition: object.query.clone().unwrap_or_default(),
                        check_option: "NONE", is_updatable: "NO", is_insertable_into: "NO",
                    )
                })
                .collect(),
            "character_sets" => vec![row!(
                character_set_name: "UTF8", character_repertoire: "UCS", form_of_use: "UTF8",
                default_collate_catalog: DATABASE, default_collate_schema: "pg_catalog",
                default_collate_name: "default",
            )],
            "information_schema_catalog_name" => vec![row!(catalog_name: DATABASE)],
            other => key_rows(other, &self.objects()?).unwrap_or_default(),
        })
    }

    /// All visible tables and views, with the columns that the user may read.
    pub(crate) fn objects(&mut self) -> EngineResult<Vec<Object>> {
        let mut objects: Vec<Object> =
            self.sorted_tables().iter().map(|table| self.table_object(table)).collect();
        for view in self.sorted_views() {
            let is_read = self.may_read_all(&view.name);
            let fields = if is_read {
                // A view that is currently invalid has no columns.
                self.view_state(&view).columns.unwrap_or_default()
            } else {
                Vec::new()
            };
            let column =
                |field: tidemark_types::Field| ColumnSchema::new(field.name, field.sql_type);
            objects.push(Object {
                oid: view_oid(&view),
                name: view.name.clone(),
                kind: "v",
                columns: fields.into_iter().map(column).collect(),
                timestamp: None,
                identity: 0,
                constraints: Vec::new(),
                query: is_read.then_some(view.query),
                rows: 0,
                bytes: 0,
            });
        }
        Ok(objects)
    }

    /// OIDs and names of all indexes and sequences.
    pub(crate) fn index_names(&self) -> Vec<(i32, String)> {
        let mut names = Vec::new();
        for table in self.sorted_tables() {
            let schema = table.schema();
            let seen = self.visible_schema(schema);
            let indexes = constraints_of(schema, &seen.columns).into_iter().filter(has_index);
            let oid = table_oid(schema);
            let numbered = seen.columns.iter().filter(|column| is_numbered(column));
            let sequences = numbered.map(|column| sequence_name(&schema.name, &column.name));
            let named = indexes.map(|one| one.name).chain(sequences);
            names.extend(named.map(|name| (index_oid(oid, &name), name)));
        }
        names
    }

    /// The table definition, reduced to the columns that the user may read.
    pub(crate) fn visible_schema<'s>(&self, schema: &'s TableSchema) -> Cow<'s, TableSchema> {
        match self.visibility() {
            Some(visibility) => Cow::Owned(projected(schema, &read_columns(visibility, schema))),
            None => Cow::Borrowed(schema),
        }
    }

    fn table_object(&self, table: &TableSnapshot) -> Object {
        let schema = table.schema();
        let is_read = self.reads_some(&schema.name);
        let partitions = if is_read { table.partition_list() } else { Vec::new() };
        let seen = self.visible_schema(schema).into_owned();
        let view = IncrementalView::of(self.snapshot, schema.id);
        Object {
            oid: table_oid(schema),
            name: schema.name.clone(),
            kind: if view.is_some() { "m" } else { "r" },
            timestamp: seen.timestamp,
            identity: schema.identity(),
            constraints: constraints_of(schema, &seen.columns),
            columns: seen.columns,
            query: view.filter(|_| self.may_read_all(&schema.name)).map(|view| view.query),
            rows: if is_read { table.row_count().unwrap_or(0) } else { 0 },
            bytes: partitions.iter().map(|partition| partition.disk_bytes).sum(),
        }
    }
}

/// The catalog table with this name, and whether it belongs to `pg_catalog`. The schema name
/// `pg_catalog` is optional.
fn find(name: &str) -> Option<(&'static Layout, bool)> {
    let lower = name.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("information_schema.") {
        return INFORMATION_SCHEMA.iter().find(|one| one.name == rest).map(|one| (one, false));
    }
    let plain = lower.strip_prefix("pg_catalog.").unwrap_or(&lower);
    PG_CATALOG.iter().find(|one| one.name == plain).map(|one| (one, true))
}

/// Whether the catalog has a table with this name.
pub(crate) fn has_table(name: &str) -> bool {
    find(name).is_some()
}

/// Rows of `pg_tables`, `pg_views` or `pg_matviews`.
fn listed(table: &str, objects: &[Object]) -> Vec<Row> {
    let name = |object: &Object| object.name.clone();
    let definition = |object: &Object| object.query.clone().unwrap_or_default();
    match table {
        "pg_tables" => of_kind(objects, "r")
            .map(|object| {
                row!(
                    schemaname: "public", tablename: name(object), tableowner: OWNER,
                    hasindexes: object.has_index(), hasrules: false, hastriggers: false,
                    rowsecurity: false,
                )
            })
            .collect(),
        "pg_matviews" => of_kind(objects, "m")
            .map(|object| {
                row!(
                    schemaname: "public", matviewname: name(object), matviewowner: OWNER,
                    hasindexes: object.has_index(), ispopulated: true,
                    definition: definition(object),
                )
            })
            .collect(),
        _ => of_kind(objects, "v")
            .map(|object| {
                row!(
                    schemaname: "public", viewname: name(object), viewowner: OWNER,
                    definition: definition(object),
                )
            })
            .collect(),
    }
}

fn of_kind<'a>(objects: &'a [Object], kind: &'a str) -> impl Iterator<Item = &'a Object> {
    objects.iter().filter(move |object| object.kind == kind)
}

/// The `pg_class` row for a table or view. `is_bound` indicates whether the table has a foreign key
/// or is referenced by one. `PostgreSQL` implements foreign keys as triggers, and clients look for
/// keys only in tables that have triggers.
fn class(object: &Object, is_bound: bool) -> Row {
    let is_table = object.kind == "r";
    let is_stored = object.is_stored();
    row!(
        oid: object.oid, relname: object.name.clone(), relnamespace: PUBLIC_OID, reltype: 0,
        reloftype: 0, relowner: OWNER_OID, relam: if is_stored { ACCESS_METHOD_OID } else { 0 },
        relfilenode: if is_stored { object.oid } else { 0 }, reltablespace: 0,
        relpages: (object.bytes / 8192) as i32, reltuples: object.rows, relallvisible: 0,
        reltoastrelid: 0, relhasindex: object.has_index(), relpersistence: "p",
        relkind: object.kind,
        relnatts: object.columns.len() as i16, relhasrules: !is_table,
        relhastriggers: is_bound, relispopulated: true,
        relreplident: if is_stored { "d" } else { "n" }, relrewrite: 0,
    )
}

/// The `pg_class` row for a column's sequence.
fn sequence((oid, name, _): (i32, String, i32)) -> Row {
    row!(
        oid: oid, relname: name, relnamespace: PUBLIC_OID, reltype: 0, reloftype: 0,
        relowner: OWNER_OID, relam: 0, relfilenode: oid, reltablespace: 0, relpages: 0,
        reltuples: 1, relallvisible: 0, reltoastrelid: 0, relpersistence: "p", relkind: "S",
        relnatts: 3_i16, relispopulated: true, relreplident: "n", relrewrite: 0,
    )
}

/// The table's rows in `pg_sequence`.
fn counting(object: &Object) -> impl Iterator<Item = Row> {
    object.sequences().map(|(oid, _, index)| {
        let column = object.columns.get(index as usize - 1);
        let (of, max) = match column.map(|column| column.sql_type) {
            Some(SqlType::Short) => (21, i16::MAX as u64),
            Some(SqlType::Int) => (23, i32::MAX as u64),
            _ => (20, i64::MAX as u64),
        };
        row!(
            seqrelid: oid, seqtypid: of, seqstart: 1, seqincrement: 1, seqmax: max, seqmin: 1,
            seqcache: 1, seqcycle: false,
        )
    })
}

/// The table's rows in `pg_depend`: a sequence depends on its column.
fn dependence(object: &Object) -> impl Iterator<Item = Row> {
    object.sequences().map(|(oid, _, index)| {
        row!(
            classid: CLASS_OID, objid: oid, objsubid: 0, refclassid: CLASS_OID,
            refobjid: object.oid, refobjsubid: index, deptype: "a",
        )
    })
}

/// The `pg_class` row for a catalog table.
fn system_class(layout: &Layout, schema: i32) -> Row {
    row!(
        oid: layout.oid, relname: layout.name, relnamespace: schema, reltype: 0, reloftype: 0,
        relowner: OWNER_OID, relam: 0, relfilenode: 0, reltablespace: 0, relpages: 0,
        reltuples: -1, relallvisible: 0, reltoastrelid: 0, relpersistence: "p", relkind: "v",
        relnatts: layout.fields().count() as i16, relispopulated: true,
        relreplident: "n", relrewrite: 0,
    )
}

fn attributes(object: &Object) -> Vec<Row> {
    let columns = object.columns.iter().enumerate();
    let of_column = |(index, column): (usize, &ColumnSchema)| {
        let of = types::of_column(column);
        let mut row = attribute(object.oid, index, column.name.clone().into(), of);
        row.extend(row!(
            atttypmod: column_modifier(column),
            attnotnull: column.not_null || object.timestamp == Some(index),
            atthasdef: column.default.is_some(),
        ));
        row
    };
    columns.map(of_column).collect()
}

/// A catalog table's columns.
fn system_attributes(layout: &Layout) -> Vec<Row> {
    let of_column = |(index, (name, of)): (usize, (&'static str, &str))| {
        let of = types::by_name(of).unwrap_or(&TYPES[0]);
        let mut row = attribute(layout.oid, index, name.into(), of);
        row.extend(row!(atttypmod: -1, attnotnull: false, atthasdef: false));
        row
    };
    layout.fields().enumerate().map(of_column).collect()
}

fn defaults(object: &Object) -> Vec<Row> {
    let columns = object.columns.iter().enumerate();
    let rows = columns.filter_map(|(index, column)| {
        let text = shown_default(&object.name, column)?;
        let oid = object.oid.wrapping_mul(31).wrapping_add(index as i32) & i32::MAX;
        Some(row!(oid: oid, adrelid: object.oid, adnum: index as i16 + 1, adbin: text))
    });
    rows.collect()
}

fn type_row(of: &PgType) -> Row {
    let [reads, writes, receives, sends] = functions_of(of);
    row!(
        oid: of.oid, typname: of.name, typnamespace: PG_CATALOG_OID, typowner: OWNER_OID,
        typlen: of.length, typbyval: of.length > 0 && of.length <= 8, typtype: of.kind,
        typcategory: of.category, typispreferred: matches!(of.oid, 16 | 25 | 26 | 701 | 1184),
        typisdefined: true, typdelim: ",", typrelid: 0,
        typsubscript: if of.element == 0 { "-" } else { "array_subscript_handler" },
        typelem: of.element, typarray: of.array, typinput: reads, typoutput: writes,
        typreceive: receives, typsend: sends,
        typmodin: "-", typmodout: "-", typanalyze: "-", typalign: align(of),
        typstorage: storage(of), typnotnull: false, typbasetype: 0, typtypmod: -1, typndims: 0,
        typcollation: if of.category == "S" { COLLATION_OID } else { 0 },
    )
}

/// Names of a type's four I/O functions: text input, text output, binary input, binary output.
fn functions_of(of: &PgType) -> [String; 4] {
    let text = |suffix: &str| format!("{}{suffix}", of.io);
    [text("in"), text("out"), receive(of, "recv"), receive(of, "send")]
}

/// Names of the `regproc` columns. They contain function names, which `PostgreSQL` compares by OID.
static FUNCTION_COLUMNS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let columns = PG_CATALOG.iter().flat_map(Layout::fields);
    columns.filter(|(_, of)| *of == "regproc").map(|(name, _)| name).collect()
});

/// The input and output functions of all types, without duplicates. OIDs start at
/// [`TYPE_FUNCTIONS_OID`].
static TYPE_FUNCTIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names: BTreeSet<String> = TYPES.iter().flat_map(functions_of).collect();
    names.into_iter().collect()
});

/// If a `regproc` column is compared with an `oid` column, converts its function names to OIDs;
/// `None` for other operands.
pub(crate) fn function_number(name: &Typed, beside: &Typed) -> Option<Typed> {
    let (Expr::Column(column), Expr::Column(oid)) = (&name.expr, &beside.expr) else {
        return None;
    };
    if oid.name != "oid" {
        return None;
    }
    FUNCTION_COLUMNS.contains(column.name.as_str()).then(|| {
        let text = tidemark_functions::cast(
            name.expr.clone(),
            name.sql_type,
            SqlType::Varchar,
            CastMode::Explicit,
        );
        text.ok().map(|text| {
            Typed::computed(number_of(text, &TYPE_FUNCTIONS, TYPE_FUNCTIONS_OID), SqlType::Int)
        })
    })?
}

/// The name of a type's binary input or output function.
fn receive(of: &PgType, what: &str) -> String {
    let separated =
        matches!(of.name, "timestamp" | "timestamptz" | "date" | "time") || of.io.ends_with('_');
    let bare = of.io.trim_end_matches('_');
    if separated { format!("{bare}_{what}") } else { format!("{bare}{what}") }
}

fn functions() -> Vec<Row> {
    let docs = tidemark_functions::all_functions();
    let row = |(index, doc): (usize, &tidemark_functions::FunctionDoc)| {
        let kind = match doc.kind {
            FunctionKind::Aggregate => "a",
            FunctionKind::Window => "w",
            FunctionKind::Scalar | FunctionKind::Table => "f",
        };
        row!(
            oid: FUNCTIONS_OID + index as i32, proname: doc.name, pronamespace: PG_CATALOG_OID,
            proowner: OWNER_OID, prolang: 12, procost: 1, prorows: 0, provariadic: 0,
            prokind: kind, prosecdef: false, proleakproof: false, proisstrict: false,
            proretset: doc.kind == FunctionKind::Table,
            provolatile: if doc.changes { "v" } else { "i" }, proparallel: "s", prosrc: doc.name,
        )
    };
    let of_type = |(name, oid): (&String, i32)| {
        row!(
            oid: oid, proname: name.clone(), pronamespace: PG_CATALOG_OID, proowner: OWNER_OID,
            prolang: 12, procost: 1, prorows: 0, provariadic: 0, prokind: "f", prosecdef: false,
            proleakproof: false, proisstrict: true, proretset: false, provolatile: "s",
            proparallel: "s", prosrc: name.clone(),
        )
    };
    let of_types = TYPE_FUNCTIONS.iter().zip(TYPE_FUNCTIONS_OID..).map(of_type);
    docs.iter().enumerate().map(row).chain(of_types).collect()
}

/// Rows of tables with constant content.
fn fixed(table: &str) -> Vec<Row> {
    match table {
        "pg_database" => vec![row!(
            oid: DATABASE_OID, datname: DATABASE, datdba: OWNER_OID, encoding: UTF8,
            datcollate: "C", datctype: "C", datistemplate: false, datallowconn: true,
            datconnlimit: -1, dattablespace: TABLESPACE_OID,
        )],
        "pg_am" => vec![
            row!(
                oid: ACCESS_METHOD_OID, amname: "column", amhandler: "column_handler",
                amtype: "t",
            ),
            row!(oid: INDEX_METHOD_OID, amname: "btree", amhandler: "bthandler", amtype: "i"),
        ],
        "pg_opclass" => vec![row!(
            oid: OPERATOR_CLASS_OID, opcmethod: INDEX_METHOD_OID, opcname: "column_ops",
            opcnamespace: PG_CATALOG_OID, opcowner: OWNER_OID, opcfamily: 0, opcintype: 2283,
            opcdefault: true, opckeytype: 0,
        )],
        "pg_tablespace" => vec![row!(
            oid: TABLESPACE_OID, spcname: "pg_default", spcowner: OWNER_OID,
        )],
        "pg_collation" => vec![row!(
            oid: COLLATION_OID, collname: "default", collnamespace: PG_CATALOG_OID,
            collowner: OWNER_OID, collprovider: "d", collisdeterministic: true, collencoding: -1,
            collcollate: "C", collctype: "C",
        )],
        "pg_stat_database" => vec![row!(datid: DATABASE_OID, datname: DATABASE, numbackends: 1)],
        "pg_extension" => vec![row!(
            oid: 1, extname: "questdb", extowner: OWNER_OID, extnamespace: PUBLIC_OID,
            extrelocatable: false, extversion: env!("CARGO_PKG_VERSION"),
        )],
        "pg_language" => vec![row!(
            oid: 12, lanname: "internal", lanowner: OWNER_OID, lanispl: false,
            lanpltrusted: false,
        )],
        "pg_settings" => SETTINGS
            .iter()
            .map(|&(name, setting)| {
                row!(
                    name: name, setting: setting, category: "Preset Options",
                    context: "internal", vartype: "string", source: "default",
                    boot_val: setting, reset_val: setting, pending_restart: false,
                )
            })
            .collect(),
        _ => Vec::new(),
    }
}
