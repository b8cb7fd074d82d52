//! Keys and indexes that the catalog lists: the declared ones, and DEDUP UPSERT KEYS. A new row
//! replaces the row with equal deduplication keys, so these keys are unique. If no key column is
//! nullable, they form a primary key unless the table declares another one.

use std::collections::HashMap;

use tidemark_storage::{ColumnSchema, Constraint, ConstraintKind, TableId, TableSchema};
use tidemark_types::identifier;

use super::attribute::attribute;
use super::cell::{Cell, Row};
use super::numbers::{INDEX_METHOD_OID, OWNER_OID, PUBLIC_OID, index_oid};
use super::object::{DATABASE, Object, has_index};
use super::types;
use crate::binder::names::quoted;

/// Operator class reported for every indexed column.
pub(super) const OPERATOR_CLASS_OID: i32 = 1_978;

/// A table's keys and indexes. DEDUP UPSERT KEYS are added unless an equal key is declared. `seen`
/// lists the columns that the user may read; keys that include any other column are omitted.
pub(super) fn constraints_of(schema: &TableSchema, seen: &[ColumnSchema]) -> Vec<Constraint> {
    let sees = |name: &String| seen.iter().any(|column| identifier::same(&column.name, name));
    let mut constraints = schema.constraints.clone();
    let of = |id: &u32| schema.columns.iter().find(|column| column.id == *id);
    let keys: Vec<&ColumnSchema> = schema.dedup_keys.iter().filter_map(of).collect();
    let same = |one: &Constraint| {
        let names = |name: &String| keys.iter().any(|key| identifier::same(&key.name, name));
        !matches!(one.kind, ConstraintKind::ForeignKey | ConstraintKind::Index)
            && one.columns.len() == keys.len()
            && one.columns.iter().all(names)
    };
    if !keys.is_empty() && !constraints.iter().any(same) {
        let time = schema.timestamp_column().map(|column| column.id);
        let has_value = |key: &&ColumnSchema| key.not_null || Some(key.id) == time;
        let has_primary = constraints.iter().any(|one| one.kind == ConstraintKind::PrimaryKey);
        let (kind, suffix) = if keys.iter().all(has_value) && !has_primary {
            (ConstraintKind::PrimaryKey, "pkey")
        } else {
            (ConstraintKind::Unique, "key")
        };
        constraints.push(Constraint {
            name: format!("{}_{suffix}", schema.name),
            kind,
            columns: keys.iter().map(|key| key.name.clone()).collect(),
            references: None,
        });
    }
    // CHECK conditions and indexes on expressions have no columns to list.
    constraints.retain(|one| !one.columns.is_empty() && one.columns.iter().all(sees));
    constraints
}

/// A key or an index, with its table.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    table: &'a Object,
    constraint: &'a Constraint,
    /// The table that a foreign key references.
    other: Option<&'a Object>,
}

/// The keys of all tables. Foreign keys whose referenced table or columns are missing are omitted.
pub(crate) fn keys(objects: &[Object]) -> Vec<Key<'_>> {
    let tables = objects.iter().filter(|object| object.kind == "r");
    let by_identity: HashMap<TableId, &Object> =
        tables.map(|table| (table.identity, table)).collect();
    let mut keys = Vec::new();
    for table in objects {
        let of_table = table.constraints.iter();
        keys.extend(of_table.filter_map(|one| Key::new(&by_identity, table, one)));
    }
    keys
}

impl<'a> Key<'a> {
    fn new(
        by_identity: &HashMap<TableId, &'a Object>,
        table: &'a Object,
        constraint: &'a Constraint,
    ) -> Option<Self> {
        let other = match &constraint.references {
            Some(to) => {
                let other = match to.table {
                    0 => table,
                    identity => by_identity.get(&identity)?,
                };
                to.columns.iter().all(|name| other.position(name).is_some()).then_some(other)
            }
            None => None,
        };
        let is_whole = constraint.kind != ConstraintKind::ForeignKey || other.is_some();
        is_whole.then_some(Self { table, constraint, other })
    }

    fn kind(&self) -> ConstraintKind {
        self.constraint.kind
    }

    /// For a foreign key, the OIDs of its table and of the referenced table.
    pub(super) fn bound_tables(&self) -> impl Iterator<Item = i32> + use<> {
        let other = self.other.map(|other| other.oid);
        other.map(|other| [self.table.oid, other]).into_iter().flatten()
    }

    fn is_unique(&self) -> bool {
        !matches!(self.kind(), ConstraintKind::ForeignKey | ConstraintKind::Index)
    }

    /// Whether the key is a constraint, not just an index.
    fn is_constraint(&self) -> bool {
        !matches!(self.kind(), ConstraintKind::Index | ConstraintKind::UniqueIndex)
    }

    pub(crate) fn has_index(&self) -> bool {
        has_index(self.constraint)
    }

    pub(crate) fn name(&self) -> &str {
        &self.constraint.name
    }

    pub(crate) fn index_oid(&self) -> i32 {
        index_oid(self.table.oid, self.name())
    }

    /// The key's OID as a constraint.
    pub(crate) fn oid(&self) -> i32 {
        self.index_oid() | 1
    }

    /// A table's column numbers, from 1.
    fn column_numbers(table: &Object, columns: &[String]) -> Vec<i32> {
        let index = |name: &String| table.position(name).map_or(0, |index| index as i32 + 1);
        columns.iter().map(index).collect()
    }

    fn columns(&self) -> Vec<i32> {
        Self::column_numbers(self.table, &self.constraint.columns)
    }

    fn other_columns(&self) -> Option<(&'a Object, &'a [String])> {
        Some((self.other?, &self.constraint.references.as_ref()?.columns))
    }

    /// The CREATE INDEX statement.
    pub(crate) fn index_definition(&self) -> String {
        let unique = if self.is_unique() { "UNIQUE " } else { "" };
        let (name, table) = (quoted(self.name()), quoted(&self.table.name));
        let columns = list(&self.constraint.columns);
        format!("CREATE {unique}INDEX {name} ON public.{table} USING btree ({columns})")
    }

    /// Name of the key's `number`th column, counted from 1.
    pub(crate) fn column(&self, number: usize) -> Option<&str> {
        self.constraint.columns.get(number.checked_sub(1)?).map(String::as_str)
    }

    /// Formats the key as `PRIMARY KEY (a, b)`; `None` for an index.
    pub(crate) fn definition(&self) -> Option<String> {
        definition(self.constraint, self.other.map(|other| other.name.as_str()))
    }

    /// The key's row in `pg_class`.
    pub(super) fn class(&self) -> Row {
        row!(
            oid: self.index_oid(), relname: self.name().to_owned(), relnamespace: PUBLIC_OID,
            reltype: 0, reloftype: 0, relowner: OWNER_OID, relam: INDEX_METHOD_OID,
            relfilenode: self.index_oid(), reltablespace: 0, relpages: 0, reltuples: 0,
            relallvisible: 0, reltoastrelid: 0, relpersistence: "p", relkind: "i",
            relnatts: self.constraint.columns.len() as i16, relispopulated: true,
            relreplident: "n", relrewrite: 0,
        )
    }

    /// The key's rows in `pg_attribute`.
    pub(super) fn attributes(&self) -> Vec<Row> {
        let indices = self.constraint.columns.iter().filter_map(|name| self.table.position(name));
        let row = |(index, position): (usize, usize)| {
            let column = &self.table.columns[position];
            let name = column.name.clone().into();
            let mut row = attribute(self.index_oid(), index, name, types::of_column(column));
            row.extend(row!(atttypmod: -1, attnotnull: false, atthasdef: false));
            row
        };
        indices.enumerate().map(row).collect()
    }

    fn index(&self) -> Row {
        let count = self.constraint.columns.len();
        let each = |value: i32| vec![value; count];
        row!(
            indexrelid: self.index_oid(), indrelid: self.table.oid, indnatts: count as i16,
            indnkeyatts: count as i16, indisunique: self.is_unique(),
            indisprimary: self.kind() == ConstraintKind::PrimaryKey, indisexclusion: false,
            indimmediate: true, indisclustered: false, indisvalid: true, indcheckxmin: false,
            indisready: true, indislive: true, indisreplident: false,
            indnullsnotdistinct: false, indkey: self.columns(), indcollation: each(0),
            indclass: each(OPERATOR_CLASS_OID), indoption: each(0),
        )
    }

    fn constraint(&self) -> Row {
        let kind = match self.kind() {
            ConstraintKind::PrimaryKey => "p",
            ConstraintKind::ForeignKey => "f",
            _ => "u",
        };
        let mut row = row!(
            oid: self.oid(), conname: self.name().to_owned(), connamespace: PUBLIC_OID,
            contype: kind, condeferrable: false, condeferred: false, convalidated: true,
            conrelid: self.table.oid, contypid: 0,
            conindid: if self.has_index() { self.index_oid() } else { 0 }, conparentid: 0,
            confrelid: self.other.map_or(0, |other| other.oid), conislocal: true, coninhcount: 0,
            connoinherit: true, conkey: self.columns(),
        );
        if let (Some((other, names)), Some(to)) =
            (self.other_columns(), &self.constraint.references)
        {
            row.extend(row!(
                confupdtype: to.actions.0.to_string(), confdeltype: to.actions.1.to_string(),
                confmatchtype: "s", confkey: Self::column_numbers(other, names),
            ));
        } else {
            row.extend(row!(confupdtype: " ", confdeltype: " ", confmatchtype: " "));
        }
        row
    }

    fn listed_index(&self) -> Row {
        row!(
            schemaname: "public", tablename: self.table.name.clone(),
            indexname: self.name().to_owned(), indexdef: self.index_definition(),
        )
    }

    /// The key's row in the index statistics. The counts are null, because they are not collected.
    fn counted(&self) -> Row {
        row!(
            relid: self.table.oid, indexrelid: self.index_oid(), schemaname: "public",
            relname: self.table.name.clone(), indexrelname: self.name().to_owned(),
        )
    }

    fn declared(&self) -> Row {
        let kind = match self.kind() {
            ConstraintKind::PrimaryKey => "PRIMARY KEY",
            ConstraintKind::ForeignKey => "FOREIGN KEY",
            _ => "UNIQUE",
        };
        row!(
            constraint_catalog: DATABASE, constraint_schema: "public",
            constraint_name: self.name().to_owned(), table_catalog: DATABASE,
            table_schema: "public", table_name: self.table.name.clone(),
            constraint_type: kind, is_deferrable: "NO", initially_deferred: "NO",
            enforced: "YES", nulls_distinct: "NO",
        )
    }

    fn used(&self) -> Vec<Row> {
        self.rows_of_columns(self.table, &self.constraint.columns)
    }

    /// For a foreign key, the rows for the columns that it references. For any other key, the rows
    /// for its own columns.
    fn meant(&self) -> Vec<Row> {
        let (table, columns) =
            self.other_columns().unwrap_or((self.table, &self.constraint.columns));
        self.rows_of_columns(table, columns)
    }

    fn rows_of_columns(&self, table: &Object, columns: &[String]) -> Vec<Row> {
        let row = |(index, column): (usize, &String)| {
            let position = index as i32 + 1;
            row!(
                constraint_catalog: DATABASE, constraint_schema: "public",
                constraint_name: self.name().to_owned(), table_catalog: DATABASE,
                table_schema: "public", table_name: table.name.clone(),
                column_name: column.clone(), ordinal_position: position,
                position_in_unique_constraint: self.other.map_or(Cell::Null, |_| position.into()),
            )
        };
        columns.iter().enumerate().map(row).collect()
    }

    fn referential(&self) -> Option<Row> {
        let to = self.constraint.references.as_ref()?;
        let other = self.other?;
        let same = |one: &&Constraint| one.columns == to.columns && one.references.is_none();
        let unique = other.constraints.iter().find(same);
        Some(row!(
            constraint_catalog: DATABASE, constraint_schema: "public",
            constraint_name: self.name().to_owned(), unique_constraint_catalog: DATABASE,
            unique_constraint_schema: "public",
            unique_constraint_name: unique.map_or(Cell::Null, |one| one.name.clone().into()),
            match_option: "NONE", update_rule: action(to.actions.0),
            delete_rule: action(to.actions.1),
        ))
    }
}

/// Formats columns as `a, b`, with quotes if needed.
fn list(columns: &[String]) -> String {
    columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// Formats a constraint as in CREATE TABLE: `PRIMARY KEY (a, b)`. Returns `None` for an index, and
/// for a foreign key if the name of the referenced table is not given.
pub(crate) fn definition(constraint: &Constraint, other: Option<&str>) -> Option<String> {
    let columns = list(&constraint.columns);
    Some(match constraint.kind {
        ConstraintKind::PrimaryKey => format!("PRIMARY KEY ({columns})"),
        ConstraintKind::Unique => format!("UNIQUE ({columns})"),
        ConstraintKind::ForeignKey => {
            let to = constraint.references.as_ref()?;
            let (table, names) = (quoted(other?), list(&to.columns));
            let says = |event: &str, letter| match action(letter) {
                "NO ACTION" => String::new(),
                word => format!(" ON {event} {word}"),
            };
            let (update, delete) = (says("UPDATE", to.actions.0), says("DELETE", to.actions.1));
            format!("FOREIGN KEY ({columns}) REFERENCES {table}({names}){update}{delete}")
        }
        ConstraintKind::Index | ConstraintKind::UniqueIndex | ConstraintKind::Check => return None,
    })
}

fn action(letter: char) -> &'static str {
    match letter {
        'r' => "RESTRICT",
        'c' => "CASCADE",
        'n' => "SET NULL",
        'd' => "SET DEFAULT",
        _ => "NO ACTION",
    }
}

/// The rows of a catalog table that describes keys; `None` for other tables.
pub(crate) fn key_rows(table: &str, objects: &[Object]) -> Option<Vec<Row>> {
    let keys = keys(objects).into_iter();
    let indexes = |key: &Key<'_>| key.has_index();
    let constraints = |key: &Key<'_>| key.is_constraint();
    Some(match table {
        "pg_index" => keys.filter(indexes).map(|key| key.index()).collect(),
        "pg_indexes" => keys.filter(indexes).map(|key| key.listed_index()).collect(),
        "pg_constraint" => keys.filter(constraints).map(|key| key.constraint()).collect(),
        "pg_stat_user_indexes"
        | "pg_stat_all_indexes"
        | "pg_statio_user_indexes"
        | "pg_statio_all_indexes" => keys.filter(indexes).map(|key| key.counted()).collect(),
        "table_constraints" => keys.filter(constraints).map(|key| key.declared()).collect(),
        "key_column_usage" => keys.filter(constraints).flat_map(|key| key.used()).collect(),
        "constraint_column_usage" => keys.filter(constraints).flat_map(|key| key.meant()).collect(),
        "referential_constraints" => keys.filter_map(|key| key.referential()).collect(),
        _ => return None,
    })
}
