//! DROP, TRUNCATE, RENAME and ALTER of tables.

use std::sync::Arc;

use tidemark_ast::{AlterAction, Name, Node, ViewKind};
use tidemark_border::Permission;
use tidemark_catalog::{IncrementalView, View};
use tidemark_storage::{Change, Constraint, TableSchema, TableSnapshot};
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode, identifier};

use crate::binder::catalog::table::{form_of, no_name_of_a_table};
use crate::binder::statements::alter::first_permission;
use crate::binder::statements::constraints::is_index;
use crate::binder::statements::create_table::{check_table_name, reserved};
use crate::binder::{Binder, error};
use crate::{Access, BoundSchemaChange, BoundStatement};

/// Returns the command tag for a statement with these actions.
fn command_of(actions: &[AlterAction]) -> &'static str {
    match actions {
        [AlterAction::AddConstraint { constraint }] if is_index(constraint) => "CREATE INDEX",
        _ => "ALTER TABLE",
    }
}

/// Adds a table to the tables to drop. A table named twice is dropped once.
fn drop_once(dropped: &mut Vec<Arc<TableSnapshot>>, table: Arc<TableSnapshot>) {
    if dropped.iter().all(|other| other.schema().id != table.schema().id) {
        dropped.push(table);
    }
}

/// The notice that IF EXISTS sends for a table that does not exist.
fn skipped(table: &Name) -> String {
    format!("table '{}' does not exist, skipping", table.text)
}

impl Binder<'_> {
    /// Binds a statement that changes tables.
    pub(crate) fn schema_change(mut self, node: &Node) -> EngineResult<BoundStatement> {
        let mut change = BoundSchemaChange {
            drop: Vec::new(),
            drop_views: Vec::new(),
            truncate: Vec::new(),
            replace: Vec::new(),
            partitions: Vec::new(),
            formats: Vec::new(),
            conversion: None,
            records: Vec::new(),
            squash: false,
            restart_identity: false,
            table_types: Vec::new(),
            command: "",
            notice: None,
            accesses: Vec::new(),
        };
        match node {
            Node::Drop { what, names, if_exists } => {
                self.dropped(*what, names, *if_exists, &mut change)?;
            }
            Node::DropAllTables => {
                change.command = "DROP TABLE";
                // The statement requires the permission on every table, including tables that the
                // user cannot see.
                self.note_change("", Permission::DropTable);
                change.drop = self.sorted_tables();
                change.drop_views = self.sorted_views().into_iter().map(|view| view.name).collect();
                for view in &change.drop_views {
                    self.note_change(view, Permission::DropView);
                }
                for table in &change.drop {
                    self.note_change(&table.schema().name, Permission::DropTable);
                }
            }
            // TRUNCATE keeps the dictionaries, so KEEP SYMBOL MAPS is always in effect and symbols
            // retain their codes.
            Node::Truncate { tables, if_exists, keep_symbols: _, restart_identity, cascade } => {
                change.command = "TRUNCATE TABLE";
                change.restart_identity = *restart_identity;
                change.truncate = self.truncated(tables, *if_exists, *cascade)?;
            }
            Node::Rename { table, to, if_exists } => {
                self.renamed(table, to, *if_exists, &mut change)?;
            }
            Node::DropIndex { names, if_exists } => {
                change.command = "DROP INDEX";
                self.drop_indexes(names, *if_exists, &mut change)?;
            }
            Node::AlterTable { table, if_exists, actions } => {
                change.command = command_of(actions);
                if *if_exists && self.is_missing(table, first_permission(actions))? {
                    change.notice = Some(skipped(table));
                } else {
                    self.alter_table(table, actions, &mut change)?;
                }
            }
            _ => return Err(EngineError::internal("expected a change to a table")),
        }
        self.invalidate_followers(&mut change)?;
        change.accesses = self.accesses.list();
        Ok(BoundStatement::SchemaChange(change))
    }

    /// The objects that `DROP … a, b` drops. An object named twice is dropped once.
    fn dropped(
        &mut self,
        what: ViewKind,
        names: &[Name],
        if_exists: bool,
        change: &mut BoundSchemaChange,
    ) -> EngineResult<()> {
        change.command = match what {
            ViewKind::Table => "DROP TABLE",
            ViewKind::View => "DROP VIEW",
            ViewKind::MaterializedView => "DROP MATERIALIZED VIEW",
            ViewKind::LiveView => "DROP LIVE VIEW",
        };
        for name in names {
            let table = match (what, form_of(what)) {
                (_, Some(form)) => self.dropped_incremental(name, form, if_exists)?,
                (ViewKind::View, None) => {
                    let Some(view) = self.dropped_view(name, if_exists)? else { continue };
                    if !change.drop_views.contains(&view) {
                        change.drop_views.push(view);
                    }
                    continue;
                }
                (_, None) => self.target(name, if_exists, Permission::DropTable)?,
            };
            if let Some(table) = table {
                drop_once(&mut change.drop, table);
            }
        }
        Ok(())
    }

    /// Records a change to a table. An empty name denotes the whole database.
    pub(crate) fn note_change(&mut self, table: &str, permission: Permission) {
        self.accesses.note(Access::new(table, permission));
    }

    /// True if no table or view has this name. Fails if the name is not visible to the user.
    fn is_missing(&mut self, name: &Name, permission: Permission) -> EngineResult<bool> {
        if self.snapshot.table(&name.text).is_some() || self.view(&name.text).is_some() {
            return Ok(false);
        }
        self.must_see(name, permission)?;
        Ok(true)
    }

    /// Binds RENAME and ALTER TABLE … RENAME TO.
    fn renamed(
        &mut self,
        table: &Name,
        to: &Name,
        if_exists: bool,
        change: &mut BoundSchemaChange,
    ) -> EngineResult<()> {
        if if_exists && self.is_missing(table, Permission::RenameTable)? {
            change.command = "ALTER TABLE";
            change.notice = Some(skipped(table));
        } else if let Some(records) = self.renamed_view(table, to)? {
            change.command = "ALTER VIEW";
            change.records = records;
        } else {
            change.command = "RENAME TABLE";
            change.replace.push(self.renamed_table(table, to)?);
        }
        Ok(())
    }

    /// The tables truncated by `TRUNCATE a, b`.
    fn truncated(
        &mut self,
        tables: &[Name],
        if_exists: bool,
        cascade: bool,
    ) -> EngineResult<Vec<Arc<TableSnapshot>>> {
        let mut truncated = Vec::with_capacity(tables.len());
        for table in tables {
            if let Some(table) = self.target(table, if_exists, Permission::TruncateTable)? {
                drop_once(&mut truncated, table);
            }
        }
        if cascade {
            self.truncated_with(&mut truncated)?;
        }
        Ok(truncated)
    }

    /// For CASCADE, recursively adds the tables whose foreign keys reference these tables.
    fn truncated_with(&mut self, truncated: &mut Vec<Arc<TableSnapshot>>) -> EngineResult<()> {
        let others = self.sorted_tables();
        let mut next = 0;
        while let Some(table) = truncated.get(next).map(Arc::clone) {
            check_stop()?;
            let (own, identity) = (table.schema().id, table.schema().identity());
            let refers =
                |one: &Constraint| one.references.as_ref().is_some_and(|to| to.table == identity);
            for other in &others {
                let schema = other.schema();
                if schema.id != own && schema.constraints.iter().any(refers) {
                    self.note_change(&schema.name, Permission::TruncateTable);
                    drop_once(truncated, Arc::clone(other));
                }
            }
            next += 1;
        }
        Ok(())
    }

    fn target(
        &mut self,
        name: &Name,
        if_exists: bool,
        permission: Permission,
    ) -> EngineResult<Option<Arc<TableSnapshot>>> {
        self.must_see(name, permission)?;
        self.note_change(&name.text, permission);
        match self.snapshot.table(&name.text) {
            Some(table) if !IncrementalView::is(self.snapshot, table.schema().id) => {
                Ok(Some(table))
            }
            None if self.view(&name.text).is_none() => {
                if if_exists {
                    Ok(None)
                } else {
                    Err(error::no_table(name))
                }
            }
            Some(_) | None => Err(no_name_of_a_table(name)),
        }
    }

    /// Returns the changes that rename a view; `None` if no view has the old name.
    fn renamed_view(&mut self, view: &Name, to: &Name) -> EngineResult<Option<Vec<Change>>> {
        let Some(found) = self.view(&view.text) else { return Ok(None) };
        self.must_see(view, Permission::AlterView)?;
        self.note_change(&view.text, Permission::AlterView);
        self.note_change(&view.text, Permission::DropView);
        self.note_change("", Permission::CreateView);
        check_table_name(to)?;
        let is_same = identifier::same(&view.text, &to.text);
        let is_taken = self.snapshot.table(&to.text).is_some() || self.view(&to.text).is_some();
        if is_taken && !is_same {
            let message = format!("view already exists [view={}]", to.text);
            return Err(error::at(ErrorCode::TableExists, message, to.span));
        }
        let removed = View::delete(&found.name);
        let renamed = View { name: to.text.clone(), ..found };
        Ok(Some(vec![removed, renamed.put()?]))
    }

    fn renamed_table(&mut self, table: &Name, to: &Name) -> EngineResult<TableSchema> {
        self.note_change(&table.text, Permission::RenameTable);
        let at_start = |failure: EngineError| failure.at(tidemark_types::Span::new(0, 0));
        let found = self.writable_table(table, Permission::RenameTable).map_err(at_start)?;
        let other = self.snapshot.table(&to.text);
        let is_used = other.is_some_and(|other| other.schema().id != found.schema().id);
        if is_used || self.view(&to.text).is_some() {
            let (from, to) = (&table.text, &to.text);
            return Err(at_start(EngineError::new(
                ErrorCode::TableExists,
                format!(
                    "cannot rename table, new name is already in use [table={from}, \
                     toTableName={to}]"
                ),
            )));
        }
        let is_catalog = crate::binder::catalog::pg_catalog::has_table(&to.text);
        if is_catalog || !identifier::is_valid_table_name(&to.text) {
            return Err(error::at(
                ErrorCode::InvalidName,
                if identifier::is_reserved_table_name(&to.text) {
                    reserved(&to.text)
                } else {
                    format!("invalid table name: {}", to.text)
                },
                to.span,
            ));
        }
        let mut schema = found.schema().as_ref().clone();
        schema.name.clone_from(&to.text);
        Ok(schema)
    }
}
