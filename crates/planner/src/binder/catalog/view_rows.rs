//! Catalog rows about views: `views()`, SHOW CREATE VIEW, SHOW CREATE DATABASE.

use std::sync::Arc;

use arrow_array::TimestampMicrosecondArray;
use tidemark_ast::{Name, ViewKind};
use tidemark_border::Permission;
use tidemark_catalog::{IncrementalView, View, ViewForm};
use tidemark_types::{EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::catalog::catalog_rows::texts;
use crate::binder::catalog::show::create_table_text;
use crate::binder::catalog::table::form_of;
use crate::binder::catalog::view::{ViewState, no_view};
use crate::binder::state::scope::Relation;
use crate::binder::{Binder, error};

/// Categories that SHOW CREATE DATABASE accepts.
const CATEGORIES: &[&str] = &[
    "ALL",
    "SCHEMA",
    "ACL",
    "TABLES",
    "VIEWS",
    "MATERIALIZED_VIEWS",
    "LIVE_VIEWS",
    "USERS",
    "GROUPS",
    "SERVICE_ACCOUNTS",
    "PERMISSIONS",
];

impl Binder<'_> {
    /// Returns the rows of `views()`: all views, with each invalid view's error.
    pub(crate) fn views_rows(&mut self) -> EngineResult<Relation> {
        let mut views = self.sorted_views();
        let states: Vec<ViewState> = views.iter().map(|view| self.shown_state(view)).collect();
        let queries = views.iter_mut().map(|view| {
            let query = std::mem::take(&mut view.query);
            self.may_read_all(&view.name).then_some(query)
        });
        let queries = texts(queries);
        let reason = |(view, state): (&View, &ViewState)| {
            let own = format!("view '{}' is invalid: ", view.name);
            let message =
                state.columns.as_ref().err().map_or("", |failure| failure.message.as_str());
            Some(message.strip_prefix(&own).unwrap_or(message).to_owned())
        };
        let reasons = texts(views.iter().zip(&states).map(reason));
        let status =
            |state: &ViewState| Some(if state.columns.is_ok() { "valid" } else { "invalid" });
        let changed = views.iter().map(|view| view.changed_micros);
        let changed = TimestampMicrosecondArray::from_iter_values(changed);
        self.literal_rows(vec![
            ("view_name", SqlType::String, texts(views.iter().map(|view| Some(&view.name)))),
            ("view_sql", SqlType::String, queries),
            ("view_table_dir_name", SqlType::String, texts(views.iter().map(|_| None::<&str>))),
            ("invalidation_reason", SqlType::String, reasons),
            ("view_status", SqlType::String, texts(states.iter().map(status))),
            ("view_status_update_time", SqlType::Timestamp, Arc::new(changed)),
        ])
    }

    /// A view's current state; empty and without an error if the user may not read the view.
    fn shown_state(&mut self, view: &View) -> ViewState {
        if self.may_read_all(&view.name) {
            return self.view_state(view);
        }
        ViewState { columns: Ok(Vec::new()), timestamp: None, reads: Vec::new() }
    }

    /// Returns the rows of SHOW CREATE VIEW.
    pub(crate) fn show_create_view(
        &mut self,
        what: ViewKind,
        name: &Name,
    ) -> EngineResult<Relation> {
        if let Some(form) = form_of(what) {
            return self.show_create_incremental(name, form);
        }
        self.must_see(name, Permission::Select)?;
        let Some(view) = self.view(&name.text) else {
            if self.snapshot.table(&name.text).is_some() {
                let message = "view name expected, got table name";
                return Err(error::at(ErrorCode::TableNotFound, message, name.span));
            }
            return Err(no_view(name));
        };
        self.note_all_columns(&view.name);
        let ddl = create_view_text(&view);
        self.literal_rows(vec![("ddl", SqlType::Varchar, texts([Some(ddl)]))])
    }

    /// Returns the rows of SHOW CREATE DATABASE: one statement per row, in dependency order.
    pub(crate) fn show_create_database(
        &mut self,
        exclude: bool,
        categories: &[Name],
    ) -> EngineResult<Relation> {
        for name in categories {
            if !CATEGORIES.iter().any(|known| known.eq_ignore_ascii_case(&name.text)) {
                let message = format!("unknown category: {}", name.text);
                return Err(error::at(ErrorCode::InvalidValue, message, name.span));
            }
        }
        let named = |category: &str| {
            let covers = [category, "SCHEMA", "ALL"];
            let is_covered =
                |name: &Name| covers.iter().any(|known| known.eq_ignore_ascii_case(&name.text));
            categories.iter().any(is_covered)
        };
        let is_listed = |category: &str| categories.is_empty() || named(category) != exclude;
        let mut statements = Vec::new();
        if is_listed("TABLES") {
            for table in self.listed_tables() {
                let name = &table.schema().name;
                let is_view = IncrementalView::is(self.snapshot, table.schema().id);
                if is_view || !self.may_read_all(name) {
                    continue;
                }
                self.note_all_columns(name);
                statements
                    .push(create_table_text(table.schema(), &self.declared_keys(table.schema())));
            }
        }
        if is_listed("MATERIALIZED_VIEWS") {
            statements.extend(self.incremental_statements(ViewForm::Materialized));
        }
        if is_listed("LIVE_VIEWS") {
            statements.extend(self.incremental_statements(ViewForm::Live));
        }
        if is_listed("VIEWS") {
            for view in self.views_in_order() {
                self.note_all_columns(&view.name);
                statements.push(create_view_text(&view));
            }
        }
        self.literal_rows(vec![("ddl", SqlType::Varchar, texts(statements.into_iter().map(Some)))])
    }

    /// All views, ordered so that each view follows the views that it reads.
    fn views_in_order(&mut self) -> Vec<View> {
        let mut waiting: Vec<(View, Vec<String>)> = Vec::new();
        for view in self.sorted_views() {
            if self.may_read_all(&view.name) {
                let reads = self.view_state(&view).reads;
                waiting.push((view, reads));
            }
        }
        let mut ordered = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let is_waiting =
                |name: &String| waiting.iter().any(|(view, _)| identifier::same(&view.name, name));
            let ready = waiting.iter().position(|(_, reads)| !reads.iter().any(is_waiting));
            // Views in a dependency cycle are all invalid, so their order does not matter.
            ordered.push(waiting.remove(ready.unwrap_or(0)).0);
        }
        ordered
    }
}

fn create_view_text(view: &View) -> String {
    format!("CREATE VIEW '{}' AS ( \n{}\n);", view.name.replace('\'', "''"), view.query)
}
