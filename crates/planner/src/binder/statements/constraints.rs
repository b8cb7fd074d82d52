//! Keys and indexes declared in CREATE TABLE, ALTER TABLE and CREATE INDEX. They are stored in the
//! table definition for tools that read the catalog; only DEDUP enforces any of them.

use std::collections::HashSet;
use std::sync::Arc;

use tidemark_ast::{
    ConstraintKind as Written, ConstraintNode, Name, ReferenceAction, ReferenceNode,
};
use tidemark_border::Permission;
use tidemark_storage::{Constraint, ConstraintKind, Reference, TableSchema, TableSnapshot};
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineResult, ErrorCode, identifier};

use crate::binder::notice::{CONSTRAINT, KEY_NOT_ENFORCED, KEY_OF_NEW_ROWS, TABLE_INDEX};
use crate::binder::{Binder, error};
use crate::{Access, BoundSchemaChange};

/// Maximum number of columns in a key or an index, as in the `PostgreSQL` catalog.
const MAX_KEY_COLUMNS: usize = 32;
/// Maximum number of keys and indexes per table.
const MAX_CONSTRAINTS: usize = 1_000;

/// The permission required to declare a constraint.
pub(crate) fn permission_of(constraint: &ConstraintNode) -> Permission {
    match constraint.constraint {
        Written::PrimaryKey => Permission::DedupEnable,
        Written::Index | Written::UniqueIndex => Permission::AddIndex,
        Written::Unique | Written::ForeignKey | Written::Check => Permission::SetTableParam,
    }
}

/// Whether the constraint is declared by CREATE INDEX.
pub(crate) fn is_index(constraint: &ConstraintNode) -> bool {
    matches!(constraint.constraint, Written::Index | Written::UniqueIndex)
}

/// The columns of the key that identifies rows: the primary key, or the only UNIQUE constraint.
pub(crate) fn row_key(constraints: &[ConstraintNode]) -> &[Name] {
    let of = |kind: Written| constraints.iter().filter(move |one| one.constraint == kind);
    let mut unique = of(Written::Unique);
    let only = match (unique.next(), unique.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    of(Written::PrimaryKey).next().or(only).map_or(&[], |key| &key.columns)
}

fn kind_of(written: Written) -> ConstraintKind {
    match written {
        Written::PrimaryKey => ConstraintKind::PrimaryKey,
        Written::Unique => ConstraintKind::Unique,
        Written::ForeignKey => ConstraintKind::ForeignKey,
        Written::Index => ConstraintKind::Index,
        Written::UniqueIndex => ConstraintKind::UniqueIndex,
        Written::Check => ConstraintKind::Check,
    }
}

fn letter(action: ReferenceAction) -> char {
    match action {
        ReferenceAction::NoAction => 'a',
        ReferenceAction::Restrict => 'r',
        ReferenceAction::Cascade => 'c',
        ReferenceAction::SetNull => 'n',
        ReferenceAction::SetDefault => 'd',
    }
}

impl Binder<'_> {
    /// Adds the declared constraints to a table definition, in declaration order.
    pub(crate) fn declare(
        &mut self,
        schema: &mut TableSchema,
        constraints: &[ConstraintNode],
    ) -> EngineResult<()> {
        for written in constraints {
            check_stop()?;
            self.declare_one(schema, written)?;
        }
        Ok(())
    }

    fn declare_one(
        &mut self,
        schema: &mut TableSchema,
        written: &ConstraintNode,
    ) -> EngineResult<()> {
        let ConstraintNode {
            name: _,
            constraint,
            columns: keys,
            references: _,
            if_not_exists,
            span,
        } = written;
        let kind = kind_of(*constraint);
        if *if_not_exists && written.name.is_none() {
            let message = "IF NOT EXISTS requires an index name";
            return Err(error::at(ErrorCode::Syntax, message, *span));
        }
        if keys.len() > MAX_KEY_COLUMNS || schema.constraints.len() >= MAX_CONSTRAINTS {
            let message = format!(
                "a table can have at most {MAX_CONSTRAINTS} keys and indexes, with at most \
                 {MAX_KEY_COLUMNS} columns each"
            );
            return Err(error::at(ErrorCode::ResourceLimit, message, *span));
        }
        let is_second = |one: &Constraint| one.kind == ConstraintKind::PrimaryKey;
        if kind == ConstraintKind::PrimaryKey && schema.constraints.iter().any(is_second) {
            let message =
                format!("multiple primary keys for table '{}' are not allowed", schema.name);
            return Err(error::at(ErrorCode::InvalidValue, message, *span));
        }
        let column = |name: &Name| {
            let index = schema.column_index(&name.text);
            let found = index.map(|index| schema.columns[index].name.clone());
            found.ok_or_else(|| error::invalid_column(&name.text, name.span))
        };
        let columns = keys.iter().map(column).collect::<EngineResult<Vec<_>>>()?;
        let references = self.reference(schema, written)?;
        if let Some(name) = self.constraint_name(schema, written, kind, &columns)? {
            schema.constraints.push(Constraint { name, kind, columns, references });
        }
        Ok(())
    }

    /// A foreign key's target; `None` if the referenced table does not exist or is not visible.
    fn reference(
        &self,
        schema: &TableSchema,
        written: &ConstraintNode,
    ) -> EngineResult<Option<Reference>> {
        let Some(references) = &written.references else { return Ok(None) };
        let ReferenceNode { table, columns: keys, on_update, on_delete } = references;
        let is_own = identifier::same(&table.text, &schema.name);
        // Tables that the user may not see are treated as missing.
        let named =
            |known: &Arc<TableSnapshot>| identifier::same(&known.schema().name, &table.text);
        let other = match self.sorted_tables().into_iter().find(named) {
            _ if is_own => schema.clone(),
            Some(table) => self.visible_schema(table.schema()).into_owned(),
            None => return Ok(None),
        };
        let key = || other.constraints.iter().find(|one| one.kind == ConstraintKind::PrimaryKey);
        let columns = if keys.is_empty() {
            key().map(|key| key.columns.clone()).unwrap_or_default()
        } else {
            let column = |name: &Name| {
                let index = other.column_index(&name.text);
                let found = index.map(|index| other.columns[index].name.clone());
                found.ok_or_else(|| error::invalid_column(&name.text, name.span))
            };
            keys.iter().map(column).collect::<EngineResult<_>>()?
        };
        if columns.len() != written.columns.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(error::at(ErrorCode::InvalidValue, message, written.span));
        }
        let actions = (letter(*on_update), letter(*on_delete));
        let table = if is_own { 0 } else { other.identity() };
        Ok(Some(Reference { table, columns, actions }))
    }

    /// The given name or, without one, the first unused name under `PostgreSQL`'s naming rules.
    /// Returns `None` if IF NOT EXISTS is given and the name is in use.
    fn constraint_name(
        &self,
        schema: &TableSchema,
        written: &ConstraintNode,
        kind: ConstraintKind,
        columns: &[String],
    ) -> EngineResult<Option<String>> {
        let mut used: HashSet<String> =
            schema.constraints.iter().map(|one| identifier::fold(&one.name)).collect();
        // Indexes share a namespace with tables; a foreign key's name is local to its table.
        if !matches!(kind, ConstraintKind::ForeignKey | ConstraintKind::Check) {
            let tables = self.sorted_tables();
            let others = tables.iter().filter(|table| table.schema().id != schema.id);
            let named = others.flat_map(|table| &table.schema().constraints);
            used.extend(named.map(|one| identifier::fold(&one.name)));
            used.extend(tables.iter().map(|table| identifier::fold(&table.schema().name)));
        }
        if let Some(name) = &written.name {
            return match used.contains(&identifier::fold(&name.text)) {
                false => Ok(Some(name.text.clone())),
                true if written.if_not_exists => Ok(None),
                true => {
                    let message = format!("'{}' already exists: choose another name", name.text);
                    Err(error::at(ErrorCode::TableExists, message, name.span))
                }
            };
        }
        let columns = if columns.is_empty() { "expr".to_owned() } else { columns.join("_") };
        let table = &schema.name;
        let base = match kind {
            ConstraintKind::PrimaryKey => format!("{table}_pkey"),
            ConstraintKind::Unique => format!("{table}_{columns}_key"),
            ConstraintKind::ForeignKey => format!("{table}_{columns}_fkey"),
            ConstraintKind::Check => format!("{table}_check"),
            ConstraintKind::Index | ConstraintKind::UniqueIndex => {
                format!("{table}_{columns}_idx")
            }
        };
        let numbered = (1..).map(|number: usize| format!("{base}{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        Ok(names.find(|name| !used.contains(&identifier::fold(name))))
    }

    /// Binds `ADD CONSTRAINT` and `CREATE INDEX`.
    pub(crate) fn add_constraint(
        &mut self,
        schema: &mut TableSchema,
        written: &ConstraintNode,
    ) -> EngineResult<()> {
        let keys = row_key(std::slice::from_ref(written));
        let is_time = |key: &Name| {
            schema.timestamp.is_some_and(|time| schema.column_index(&key.text) == Some(time))
        };
        if schema.wal && schema.dedup_keys.is_empty() && keys.iter().any(is_time) {
            apply_dedup(schema, keys)?;
            self.notices.push(KEY_OF_NEW_ROWS);
            return self.declare_one(schema, written);
        }
        self.notices.push(match written.constraint {
            Written::PrimaryKey => KEY_NOT_ENFORCED,
            Written::Index | Written::UniqueIndex => TABLE_INDEX,
            Written::Unique | Written::ForeignKey | Written::Check => CONSTRAINT,
        });
        self.declare_one(schema, written)
    }

    /// Binds `DROP INDEX a, b`; the indexes can belong to any tables.
    pub(crate) fn drop_indexes(
        &mut self,
        names: &[Name],
        if_exists: bool,
        change: &mut BoundSchemaChange,
    ) -> EngineResult<()> {
        let tables = self.sorted_tables();
        for name in names {
            check_stop()?;
            let has = |schema: &TableSchema| {
                schema.constraints.iter().any(|one| is_index_named(one, name))
            };
            let Some(table) = tables.iter().find(|table| has(table.schema())) else {
                if if_exists {
                    continue;
                }
                let message = format!("index does not exist [index={}]", name.text);
                return Err(error::at(ErrorCode::TableNotFound, message, name.span));
            };
            let schema = table.schema();
            self.accesses.note(Access::new(&schema.name, Permission::DropIndex));
            let known = change.replace.iter().position(|other| other.id == schema.id);
            let index = known.unwrap_or_else(|| {
                change.replace.push(schema.as_ref().clone());
                change.replace.len() - 1
            });
            change.replace[index].constraints.retain(|one| !is_index_named(one, name));
        }
        Ok(())
    }
}

fn is_index_named(constraint: &Constraint, name: &Name) -> bool {
    let kind = constraint.kind;
    matches!(kind, ConstraintKind::Index | ConstraintKind::UniqueIndex)
        && identifier::same(&constraint.name, &name.text)
}

/// Binds `DROP CONSTRAINT name`.
pub(crate) fn drop_constraint(
    schema: &mut TableSchema,
    name: &Name,
    if_exists: bool,
) -> EngineResult<()> {
    let before = schema.constraints.len();
    let is_it = |one: &Constraint| {
        identifier::same(&one.name, &name.text)
            && !matches!(one.kind, ConstraintKind::Index | ConstraintKind::UniqueIndex)
    };
    schema.constraints.retain(|one| !is_it(one));
    if schema.constraints.len() == before && !if_exists {
        let (table, name_text) = (&schema.name, &name.text);
        let message = format!("constraint '{name_text}' of table '{table}' does not exist");
        return Err(error::at(ErrorCode::ColumnNotFound, message, name.span));
    }
    Ok(())
}

/// Applies DEDUP UPSERT KEYS. They require a WAL table, and the timestamp must be one of the keys.
pub(crate) fn apply_dedup(schema: &mut TableSchema, keys: &[Name]) -> EngineResult<()> {
    let Some(first) = keys.first() else { return Ok(()) };
    if !schema.wal {
        return Err(error::at(
            ErrorCode::NotSupported,
            "deduplication is possible only on WAL tables",
            first.span,
        ));
    }
    schema.dedup_keys.clear();
    for key in keys {
        let index = schema.column_index(&key.text).ok_or_else(|| {
            error::at(
                ErrorCode::ColumnNotFound,
                format!("deduplicate key column not found [column={}]", key.text),
                key.span,
            )
        })?;
        schema.dedup_keys.push(schema.columns[index].id);
    }
    let includes_time =
        schema.timestamp.is_some_and(|index| schema.dedup_keys.contains(&schema.columns[index].id));
    if !includes_time {
        return Err(error::at(
            ErrorCode::InvalidValue,
            "deduplicate key list must include dedicated timestamp column",
            first.span,
        ));
    }
    Ok(())
}

/// Removes the constraints that include a dropped column.
pub(crate) fn without_column(schema: &mut TableSchema, column: &str) {
    let names = |one: &Constraint| one.columns.iter().any(|name| identifier::same(name, column));
    schema.constraints.retain(|one| !names(one));
}

/// Renames a column in the constraints.
pub(crate) fn with_renamed(schema: &mut TableSchema, from: &str, to: &str) {
    let columns = schema.constraints.iter_mut().flat_map(|one| &mut one.columns);
    columns.filter(|name| identifier::same(name, from)).for_each(|name| to.clone_into(name));
}
