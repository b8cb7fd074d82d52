//! SHOW statements, and the tree output of EXPLAIN (AST).

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::Int32Array;
use tidemark_ast::{ShowSubject, Tree};
use tidemark_border::{ListedCell, ListedType, Setting};
use tidemark_catalog::IncrementalView;
use tidemark_functions::SETTINGS;
use tidemark_storage::{Constraint, TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::catalog::catalog_rows::{shown_ttl, texts};
use crate::binder::catalog::pg_catalog::keys::definition;
use crate::binder::catalog::policy_rows::policy_text;
use crate::binder::catalog::table::no_name_of_a_table;
use crate::binder::names::quoted;
use crate::binder::state::scope::Relation;
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// A SHOW statement's rows.
    pub(crate) fn show(&mut self, subject: &ShowSubject) -> EngineResult<Relation> {
        match subject {
            ShowSubject::Tables => {
                let tables = self.listed_tables();
                let names = texts(tables.iter().map(|table| Some(&table.schema().name)));
                self.literal_rows(vec![("table_name", SqlType::String, names)])
            }
            ShowSubject::Columns { table } => self.columns_of(table),
            ShowSubject::Partitions { table } => {
                let table = self.readable_table(table)?;
                self.note_read(&table.schema().name, Vec::new());
                self.partitions_rows(&table)
            }
            ShowSubject::CreateTable { table: name } => {
                let table = self.readable_table(name)?;
                if IncrementalView::is(self.snapshot, table.schema().id) {
                    return Err(no_name_of_a_table(name));
                }
                self.note_all_columns(&table.schema().name);
                let ddl = create_table_text(table.schema(), &self.declared_keys(table.schema()));
                self.literal_rows(vec![("ddl", SqlType::Varchar, texts([Some(ddl)]))])
            }
            ShowSubject::CreateView { what, view } => self.show_create_view(*what, view),
            ShowSubject::CreateDatabase { exclude, categories } => {
                self.show_create_database(*exclude, categories)
            }
            ShowSubject::Parameters => self.parameters_rows(),
            ShowSubject::Access { list, of } => {
                let of = of.as_ref();
                let name = format!("{list:?}:{}", of.map_or("", |name| name.text.as_str()));
                let at = of.map_or(self.tree.span(self.tree.root), |name| name.span);
                self.listed_rows(&name)?
                    .ok_or_else(|| error::not_supported("access control is", at))
            }
            ShowSubject::Setting { words } => self.setting(words),
        }
    }

    fn parameters_rows(&mut self) -> EngineResult<Relation> {
        let settings = self.context.settings();
        let text = |of: fn(&Setting) -> &str| texts(settings.iter().map(|one| Some(of(one))));
        let flag = |of: fn(&Setting) -> bool| -> arrow_array::ArrayRef {
            let flags = settings.iter().map(|one| Some(of(one)));
            Arc::new(flags.collect::<arrow_array::BooleanArray>())
        };
        self.literal_rows(vec![
            ("property_path", SqlType::String, text(|one| &one.key)),
            ("env_var_name", SqlType::String, text(|one| &one.environment_variable)),
            ("value", SqlType::String, text(|one| &one.value)),
            ("value_source", SqlType::String, text(|one| &one.source)),
            ("sensitive", SqlType::Boolean, flag(|one| one.sensitive)),
            ("reloadable", SqlType::Boolean, flag(|one| one.reloadable)),
        ])
    }

    /// Rows that the server passed along with the statement.
    pub(crate) fn listed_rows(&mut self, name: &str) -> EngineResult<Option<Relation>> {
        self.context.read_lists();
        let lists = self.context.lists.clone();
        let Some(list) = lists.get(name) else { return Ok(None) };
        let mut columns = Vec::with_capacity(list.columns.len());
        for (index, (name, listed)) in list.columns.iter().enumerate() {
            let cells = list.rows.iter().map(|row| row.get(index).and_then(Option::as_ref));
            let column: (&str, SqlType, arrow_array::ArrayRef) = match listed {
                ListedType::String => (name, SqlType::String, texts(cells.map(listed_text))),
                ListedType::Boolean => {
                    let values: arrow_array::BooleanArray = cells
                        .map(|cell| Some(matches!(cell, Some(ListedCell::Boolean(true)))))
                        .collect();
                    (name, SqlType::Boolean, Arc::new(values))
                }
            };
            columns.push(column);
        }
        self.literal_rows(columns).map(Some)
    }

    /// A session setting that `PostgreSQL` clients request.
    fn setting(&mut self, words: &[String]) -> EngineResult<Relation> {
        let lower = words.join(" ").to_ascii_lowercase();
        let name = match lower.as_str() {
            "transaction isolation level" => "transaction_isolation",
            "time zone" => "timezone",
            "all" => return self.all_settings(),
            other => other,
        };
        let found = SETTINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some(&(name, value)) = found else {
            let end = self.tree.span(self.tree.root).end;
            let last = words.last().map_or(0, |word| word.encode_utf16().count());
            return Err(error::at(
                ErrorCode::Syntax,
                "expected TABLES, COLUMNS FROM <tab>, PARTITIONS FROM <tab>, TRANSACTION \
                 ISOLATION LEVEL, transaction_isolation, max_identifier_length, \
                 standard_conforming_strings, parameters, server_version, \
                 server_version_num, search_path, datestyle, or time zone",
                tidemark_ast::Span { start: end.saturating_sub(last as u32), end },
            ));
        };
        if let ("max_identifier_length", Ok(length)) = (name, value.parse::<i32>()) {
            let cell = Arc::new(Int32Array::from(vec![length]));
            return self.literal_rows(vec![(name, SqlType::Int, cell)]);
        }
        self.literal_rows(vec![(name, SqlType::String, texts([Some(value)]))])
    }

    /// All settings that [`Self::setting`] supports.
    fn all_settings(&mut self) -> EngineResult<Relation> {
        let names = texts(SETTINGS.iter().map(|(name, _)| Some(*name)));
        let values = texts(SETTINGS.iter().map(|(_, value)| Some(*value)));
        let about = texts(SETTINGS.iter().map(|_| Some("")));
        self.literal_rows(vec![
            ("name", SqlType::String, names),
            ("setting", SqlType::String, values),
            ("description", SqlType::String, about),
        ])
    }

    /// The table's keys in CREATE TABLE syntax. A foreign key is included only if the user may read
    /// the referenced columns.
    pub(crate) fn declared_keys(&self, schema: &TableSchema) -> Vec<String> {
        let tables = self.sorted_tables();
        let declared = |one: &Constraint| {
            let other = one.references.as_ref().and_then(|to| {
                let is_it = |table: &&Arc<TableSnapshot>| table.schema().identity() == to.table;
                let other = match to.table {
                    0 => Some(schema),
                    _ => tables.iter().find(is_it).map(|table| table.schema().as_ref()),
                }?;
                let seen = self.visible_schema(other);
                let is_seen = to.columns.iter().all(|name| seen.column_index(name).is_some());
                is_seen.then(|| other.name.clone())
            });
            let definition = definition(one, other.as_deref())?;
            Some(format!("CONSTRAINT {} {definition}", quoted(&one.name)))
        };
        schema.constraints.iter().filter_map(declared).collect()
    }
}

fn listed_text(cell: Option<&ListedCell>) -> Option<&str> {
    match cell {
        Some(ListedCell::Text(text)) => Some(text),
        _ => None,
    }
}

/// The CREATE TABLE statement. It omits options with default values, and indexes, which have
/// statements of their own. `declared` contains the table's keys.
pub(crate) fn create_table_text(schema: &TableSchema, declared: &[String]) -> String {
    let mut text = format!("CREATE TABLE '{}' ( \n", schema.name.replace('\'', "''"));
    for (index, column) in schema.columns.iter().enumerate() {
        let is_last = index + 1 == schema.columns.len() && declared.is_empty();
        let comma = if is_last { "" } else { "," };
        let _ = write!(text, "\t{} {}", quoted(&column.name), column.sql_type.name());
        if column.sql_type == SqlType::Symbol {
            if column.symbol_capacity != 256 {
                let _ = write!(text, " CAPACITY {}", column.symbol_capacity);
            }
            if !column.symbol_cache {
                text.push_str(" NOCACHE");
            }
            if column.indexed {
                text.push_str(" INDEX");
                if column.index_capacity != 256 {
                    let _ = write!(text, " CAPACITY {}", column.index_capacity);
                }
            }
        }
        if column.not_null {
            text.push_str(" NOT NULL");
        }
        if let Some(default) = &column.default {
            let _ = write!(text, " DEFAULT {}", default.text);
        }
        let _ = writeln!(text, "{comma}");
    }
    if !declared.is_empty() {
        let _ = writeln!(text, "\t{}", declared.join(",\n\t"));
    }
    text.push(')');
    if let Some(timestamp) = schema.timestamp {
        let name = quoted(&schema.columns[timestamp].name);
        let _ = write!(text, " timestamp({name}) PARTITION BY {}", schema.partition_by.name());
        if let Some(policy) = &schema.policy {
            let _ = write!(text, "\n{}", policy_text(policy));
        }
        if !schema.wal {
            text.push_str(" BYPASS WAL");
        }
    }
    if schema.ttl_hours_or_months != 0 {
        let (value, unit) = shown_ttl(schema.ttl_hours_or_months);
        let plural = if value == 1 { "" } else { "S" };
        let _ = write!(text, " TTL {value} {unit}{plural}");
    }
    let keys: Vec<String> = schema
        .columns
        .iter()
        .filter(|column| schema.dedup_keys.contains(&column.id))
        .map(|column| quoted(&column.name))
        .collect();
    if !keys.is_empty() {
        let _ = write!(text, "\nDEDUP UPSERT KEYS({})", keys.join(","));
    }
    text.push(';');
    text
}

/// Formats a tree as indented JSON, one string per line.
pub(crate) fn tree_lines(tree: &Tree) -> EngineResult<Vec<String>> {
    let text = serde_json::to_string_pretty(tree)
        .map_err(|failure| EngineError::internal(failure.to_string()))?;
    Ok(text.lines().map(str::to_owned).collect())
}
