//! DROP, TRUNCATE, RENAME and ALTER TABLE.

use std::sync::Arc;

use tidemark_ast::{AlterAction, Name, Node, ViewKind};
use tidemark_storage::{TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use super::create_table::check_column_name;
use super::{Binder, error};
use crate::{Access, BoundSchemaChange, BoundStatement};

impl Binder<'_> {
    /// Binds a statement that changes tables.
    pub(crate) fn schema_change(mut self, node: &Node) -> EngineResult<BoundStatement> {
        let mut change = BoundSchemaChange {
            drop: Vec::new(),
            truncate: Vec::new(),
            replace: Vec::new(),
            command: "",
            accesses: Vec::new(),
        };
        match node {
            Node::Drop { what, name, if_exists } => {
                change.command = "DROP TABLE";
                if *what != ViewKind::Table {
                    return Err(error::not_supported("views are", name.span));
                }
                change.drop.extend(self.target(name, *if_exists, "DROP TABLE")?);
            }
            Node::DropAllTables => {
                change.command = "DROP TABLE";
                change.drop = self.sorted_tables();
                for table in &change.drop {
                    self.note_change(&table.schema().name, "DROP TABLE");
                }
            }
            Node::Truncate { table, if_exists } => {
                change.command = "TRUNCATE TABLE";
                change.truncate.extend(self.target(table, *if_exists, "TRUNCATE TABLE")?);
            }
            Node::Rename { table, to } => {
                change.command = "RENAME TABLE";
                change.replace.push(self.renamed_table(table, to)?);
            }
            Node::AlterTable { table, actions } => {
                change.command = "ALTER TABLE";
                let snapshot = self.writable_table(table)?;
                let mut schema = snapshot.schema().as_ref().clone();
                for action in actions {
                    self.alter(&mut schema, action)?;
                }
                change.replace.push(schema);
            }
            _ => return Err(EngineError::internal("no change of a table")),
        }
        change.accesses = self.accesses.list();
        Ok(BoundStatement::SchemaChange(change))
    }

    fn note_change(&mut self, table: &str, permission: &'static str) {
        let columns = Vec::new();
        self.accesses.note(Access { table: table.to_owned(), columns, permission });
    }

    fn target(
        &mut self,
        name: &Name,
        if_exists: bool,
        permission: &'static str,
    ) -> EngineResult<Option<Arc<TableSnapshot>>> {
        self.note_change(&name.text, permission);
        match self.snapshot.table(&name.text) {
            None if if_exists => Ok(None),
            None => Err(error::no_table(name)),
            found => Ok(found),
        }
    }

    fn renamed_table(&mut self, table: &Name, to: &Name) -> EngineResult<TableSchema> {
        self.note_change(&table.text, "RENAME TABLE");
        let at_start = |failure: EngineError| failure.at(tidemark_types::Span::new(0, 0));
        let found = self.writable_table(table).map_err(at_start)?;
        if let Some(other) = self.snapshot.table(&to.text)
            && other.schema().id != found.schema().id
        {
            let (from, to) = (&table.text, &to.text);
            return Err(at_start(EngineError::new(
                ErrorCode::TableExists,
                format!(
                    "cannot rename table, new name is already in use [table={from}, \
                     toTableName={to}]"
                ),
            )));
        }
        if !tidemark_types::identifier::is_valid_table_name(&to.text) {
            return Err(error::at(
                ErrorCode::InvalidName,
                format!("invalid table name: {}", to.text),
                to.span,
            ));
        }
        let mut schema = found.schema().as_ref().clone();
        schema.name.clone_from(&to.text);
        Ok(schema)
    }

    fn alter(&mut self, schema: &mut TableSchema, action: &AlterAction) -> EngineResult<()> {
        match action {
            AlterAction::AddColumn { column, if_not_exists } => {
                self.note_change(&schema.name, "ADD COLUMN");
                let added = self.column_schema(column)?;
                if schema.column_index(&added.name).is_some() {
                    if *if_not_exists {
                        return Ok(());
                    }
                    return Err(error::at(
                        ErrorCode::DuplicateColumn,
                        format!("column '{}' already exists", column.name.text),
                        column.name.span,
                    ));
                }
                schema.columns.push(added);
                Ok(())
            }
            AlterAction::DropColumn { column } => {
                self.note_change(&schema.name, "DROP COLUMN");
                let index = existing(schema, column)?;
                if schema.timestamp == Some(index) {
                    let (table, name) = (&schema.name, &schema.columns[index].name);
                    return Err(error::at(
                        ErrorCode::NotSupported,
                        format!(
                            "cannot remove designated timestamp column [table={table}, \
                             column={name}]"
                        ),
                        tidemark_ast::Span::default(),
                    ));
                }
                let dropped = schema.columns.remove(index);
                schema.dedup_keys.retain(|id| *id != dropped.id);
                schema.timestamp = schema.timestamp.map(|at| if at > index { at - 1 } else { at });
                Ok(())
            }
            AlterAction::RenameColumn { column, to } => {
                self.note_change(&schema.name, "RENAME COLUMN");
                let index = existing(schema, column)?;
                check_column_name(to)?;
                if schema.column_index(&to.text).is_some_and(|other| other != index) {
                    return Err(error::at(
                        ErrorCode::DuplicateColumn,
                        " column already exists",
                        to.span,
                    ));
                }
                schema.columns[index].name.clone_from(&to.text);
                Ok(())
            }
            AlterAction::ChangeType { column, .. } => {
                existing(schema, column)?;
                Err(error::not_supported("changing a column's type is", column.span))
            }
            AlterAction::Other { words, span } => {
                let what = words.join(" ");
                Err(error::not_supported(&format!("ALTER TABLE {what} is"), *span))
            }
        }
    }
}

fn existing(schema: &TableSchema, column: &Name) -> EngineResult<usize> {
    schema.column_index(&column.text).ok_or_else(|| {
        error::at(
            ErrorCode::ColumnNotFound,
            format!("column '{}' does not exist in table '{}'", column.text, schema.name),
            column.span,
        )
    })
}
