//! ALTER TABLE.

use std::sync::Arc;

use tidemark_ast::{
    AlterAction, ColumnDefinition, Name, OptionValue, PartitionChange, Span, TypeName,
};
use tidemark_border::Permission;
use tidemark_storage::{ColumnSchema, PartitionFormat, TableSchema, TableSnapshot};
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, identifier};

use crate::binder::notice;
use crate::binder::notice::idle_action;
use crate::binder::state::relation;
use crate::binder::state::scope::ScopeColumn;
use crate::binder::statements::constraints::{
    apply_dedup, drop_constraint, permission_of, with_renamed, without_column,
};
use crate::binder::statements::create_table::{
    check_column_name, column_type, index_capacity, narrow, parse_lag, symbol_capacity,
};
use crate::binder::statements::storage_policy::{alter_policy, refuse_ttl};
use crate::binder::statements::ttl::parse_ttl;
use crate::binder::{Binder, error};
use crate::{Access, BoundConversion, BoundSchemaChange};

/// The permission that the first action requires.
pub(crate) fn first_permission(actions: &[AlterAction]) -> Permission {
    actions.first().map_or(Permission::AddColumn, |action| needed(action).0)
}

impl Binder<'_> {
    /// Binds the actions of a single ALTER TABLE.
    pub(crate) fn alter_table(
        &mut self,
        table: &Name,
        actions: &[AlterAction],
        change: &mut BoundSchemaChange,
    ) -> EngineResult<()> {
        let snapshot = self.writable_table(table, first_permission(actions))?;
        let mut schema = snapshot.schema().as_ref().clone();
        for action in actions {
            check_stop()?;
            self.note_action(&schema.name, action);
            match action {
                AlterAction::AddColumn { column, if_not_exists } => {
                    let filled = self.add_column(&snapshot, &mut schema, column, *if_not_exists)?;
                    if filled.is_some() && change.conversion.is_some() {
                        let message = "only one column with a DEFAULT can be added at a time";
                        let at = column.name.span;
                        return Err(error::at(ErrorCode::NotSupported, message, at));
                    }
                    change.conversion = filled.or(change.conversion.take());
                }
                AlterAction::DropColumn { column, if_exists } => {
                    drop_column(&mut schema, column, *if_exists)?;
                }
                AlterAction::RenameColumn { column, to } => {
                    rename_column(&mut schema, column, to)?;
                }
                AlterAction::ChangeType { column, type_name } => {
                    if Self::has_type(&mut schema, column, type_name)? {
                        continue;
                    }
                    let conversion = self.change_type(&snapshot, &mut schema, column, type_name)?;
                    change.conversion = Some(conversion);
                }
                AlterAction::NotNull { column, .. } | AlterAction::Default { column, .. } => {
                    self.alter_rule(&snapshot, &mut schema, column, action)?;
                }
                AlterAction::Partitions {
                    change: what @ (PartitionChange::ToParquet | PartitionChange::ToNative),
                    names,
                    filter,
                } => {
                    let to = match what {
                        PartitionChange::ToParquet => PartitionFormat::Parquet,
                        _ => PartitionFormat::Native,
                    };
                    let partitions = (to, names.as_slice(), *filter);
                    change.formats.push(self.formats(&snapshot, table, partitions)?);
                }
                AlterAction::Partitions { change: what, names, filter } => {
                    let partitions = (*what, names.as_slice(), *filter);
                    change.partitions.extend(self.partitions(&snapshot, table, partitions)?);
                }
                AlterAction::SquashPartitions => {
                    change.squash = true;
                }
                AlterAction::SetWal { wal } => {
                    check_partitioned(&schema, table.span)?;
                    change.table_types.push((schema.id, *wal));
                }
                other => self.alter_setting(&mut schema, table, other)?,
            }
        }
        change.notice = self.notice();
        if schema != **snapshot.schema() {
            change.replace.push(schema);
        }
        Ok(())
    }

    /// Records the permission that an action requires, and the column to which it applies.
    fn note_action(&mut self, table: &str, action: &AlterAction) {
        let (permission, column) = needed(action);
        let columns = column.map(|name| name.text.clone()).into_iter().collect();
        // All tables share the log, so this permission is not for a single table.
        let table = if permission == Permission::SystemAdmin { "" } else { table };
        self.accesses.note(Access { columns, ..Access::new(table, permission) });
    }

    /// Adds a column. Existing rows get its default in the same commit.
    fn add_column(
        &mut self,
        table: &Arc<TableSnapshot>,
        schema: &mut TableSchema,
        column: &ColumnDefinition,
        if_not_exists: bool,
    ) -> EngineResult<Option<BoundConversion>> {
        let added = self.column_schema(column)?;
        self.note_idle_options(&column.options);
        if schema.column_index(&added.name).is_none() {
            schema.columns.push(added);
            let index = schema.columns.len() - 1;
            return self.filled_column(table, schema, index, column.name.span);
        }
        if if_not_exists {
            return Ok(None);
        }
        Err(error::at(
            ErrorCode::DuplicateColumn,
            format!("column '{}' already exists", column.name.text),
            column.name.span,
        ))
    }

    /// The values that existing rows receive from a new column's default.
    fn filled_column(
        &mut self,
        table: &Arc<TableSnapshot>,
        schema: &TableSchema,
        index: usize,
        position: Span,
    ) -> EngineResult<Option<BoundConversion>> {
        let column = &schema.columns[index];
        let given: Vec<usize> = (0..index).collect();
        let defaults = self.defaults(schema, &given)?;
        if (!column.not_null && defaults.is_empty()) || table.row_count()? == 0 {
            return Ok(None);
        }
        if !table.detached_list().is_empty() {
            let message = format!(
                "table '{}' has detached partitions: attach or drop them first",
                schema.name
            );
            return Err(error::at(ErrorCode::NotSupported, message, position));
        }
        let Some(value) = defaults.expr(index) else {
            let message = format!(
                "column '{}' is NOT NULL: expected a DEFAULT for the existing rows of '{}'",
                column.name, schema.name
            );
            return Err(error::at(ErrorCode::InvalidValue, message, position));
        };
        let plan = self.default_column(table, value.clone())?;
        Ok(Some(BoundConversion { table: Arc::clone(table), column: index, plan }))
    }

    /// Whether a column already has this type. If so, stores the new length or precision.
    fn has_type(
        schema: &mut TableSchema,
        column: &Name,
        type_name: &TypeName,
    ) -> EngineResult<bool> {
        let index = existing(schema, column)?;
        let to = column_type(type_name)?;
        let found = &mut schema.columns[index];
        let is_kept = found.sql_type == to;
        if is_kept {
            narrow(found, type_name);
        }
        Ok(is_kept)
    }

    /// Applies SET and DROP for NOT NULL and DEFAULT.
    fn alter_rule(
        &mut self,
        snapshot: &Arc<TableSnapshot>,
        schema: &mut TableSchema,
        column: &Name,
        action: &AlterAction,
    ) -> EngineResult<()> {
        let index = existing(schema, column)?;
        let mut changed = schema.columns[index].clone();
        match action {
            AlterAction::NotNull { not_null, .. } => {
                if *not_null && !changed.not_null {
                    self.check_values(snapshot, column)?;
                }
                changed.not_null = *not_null;
            }
            AlterAction::Default { value, text, .. } => {
                changed.default = None;
                if let Some(value) = value {
                    self.set_default(&mut changed, *value, Some(text.clone()))?;
                }
            }
            _ => return Err(EngineError::internal("unexpected action on a column")),
        }
        schema.columns[index] = changed;
        Ok(())
    }

    /// Rejects a column that contains nulls.
    fn check_values(&mut self, table: &Arc<TableSnapshot>, column: &Name) -> EngineResult<()> {
        if table.row_count()? == 0 {
            return Ok(());
        }
        let Some(external) = self.context.external() else { return Ok(()) };
        let reference = self.relation_name();
        let rows = relation::of_table(Arc::clone(table), "", reference, &self.accesses)?;
        // A column added in this transaction block is not yet in the stored table.
        let found = rows.columns.iter().find(|one| identifier::same(&one.name, &column.text));
        let Some(cells) = found.map(ScopeColumn::expr) else { return Ok(()) };
        let none = relation::filter(rows.plan.clone(), cells.clone().is_null())?;
        let none = relation::project(none, vec![cells.is_null().alias("none")])?;
        if external.values(&none, 1)?.is_empty() {
            return Ok(());
        }
        let message =
            format!("column '{}' of '{}' contains nulls", column.text, table.schema().name);
        Err(error::at(ErrorCode::InvalidValue, message, column.span))
    }

    /// Replaces a column with a new column that contains the converted values.
    fn change_type(
        &mut self,
        table: &Arc<TableSnapshot>,
        schema: &mut TableSchema,
        column: &Name,
        type_name: &TypeName,
    ) -> EngineResult<BoundConversion> {
        let index = existing(schema, column)?;
        let to = column_type(type_name)?;
        let refuse = |code, message: String| Err(error::at(code, message, type_name.span));
        if schema.timestamp == Some(index) {
            let message = "cannot change type of designated timestamp column".to_owned();
            return refuse(ErrorCode::NotSupported, message);
        }
        let old = &schema.columns[index];
        let (name, from) = (&old.name, old.sql_type);
        if schema.dedup_keys.contains(&old.id) {
            let message = format!("column '{name}' is a deduplication key; disable dedup first");
            return refuse(ErrorCode::NotSupported, message);
        }
        if !table.detached_list().is_empty() {
            let message = format!(
                "table '{}' has detached partitions: attach or drop them first",
                schema.name
            );
            return refuse(ErrorCode::NotSupported, message);
        }
        let plan =
            if changes_to(from, to) { self.converted_column(table, index, to)? } else { None };
        let Some(plan) = plan else {
            let (from, to) = (from.name(), to.name());
            let message = format!("incompatible column type change [existing={from}, new={to}]");
            return refuse(ErrorCode::TypeMismatch, message);
        };
        let (not_null, default) = (old.not_null, old.default.clone());
        let mut new = ColumnSchema {
            not_null,
            default,
            in_place_of: old.identity(),
            ..ColumnSchema::new(name.clone(), to)
        };
        narrow(&mut new, type_name);
        schema.columns[index] = new;
        Ok(BoundConversion { table: Arc::clone(table), column: index, plan })
    }

    /// Applies an action that changes only the table definition, not the rows.
    fn alter_setting(
        &mut self,
        schema: &mut TableSchema,
        table: &Name,
        action: &AlterAction,
    ) -> EngineResult<()> {
        match action {
            AlterAction::AddConstraint { constraint } => self.add_constraint(schema, constraint)?,
            AlterAction::DropConstraint { name, if_exists } => {
                drop_constraint(schema, name, *if_exists)?;
            }
            AlterAction::SymbolCapacity { column, capacity } => {
                let index = symbol(schema, column, "capacity")?;
                schema.columns[index].symbol_capacity = symbol_capacity(capacity)?;
            }
            AlterAction::SymbolCache { column, cache } => {
                let index = symbol(schema, column, "cache")?;
                schema.columns[index].symbol_cache = *cache;
            }
            AlterAction::Index { column, indexed, words } => {
                let index = alter_index(schema, column, *indexed)?;
                if words.iter().any(|word| word.eq_ignore_ascii_case("POSTING")) {
                    self.notices.push(notice::INDEX);
                }
                let words = words.iter().map(String::as_str);
                index_capacity(&mut schema.columns[index], words);
            }
            AlterAction::SetParameter { parameter } => {
                set_parameter(schema, parameter)?;
            }
            AlterAction::SetTtl { ttl } => {
                schema.ttl_hours_or_months = parse_ttl(ttl, schema.partition_by)?;
                refuse_ttl(schema, ttl)?;
            }
            AlterAction::SetPolicy { .. }
            | AlterAction::SwitchPolicy { .. }
            | AlterAction::DropPolicy => {
                alter_policy(schema, (table, action), self.context.now_micros)?;
            }
            AlterAction::Dedup { keys } => alter_dedup(schema, table, keys)?,
            AlterAction::Other { words, span } => {
                let Some((_, notice)) = idle_action(words) else {
                    let what = format!("ALTER TABLE {} is", words.join(" "));
                    return Err(error::not_supported(&what, *span));
                };
                self.notices.push(notice);
            }
            _ => return Err(EngineError::internal("unexpected action on a table setting")),
        }
        Ok(())
    }
}

/// Rejects tables whose WAL type cannot change.
fn check_partitioned(schema: &TableSchema, at: Span) -> EngineResult<()> {
    if schema.partition_by != PartitionBy::None {
        return Ok(());
    }
    let message = format!(
        "cannot set the type of table '{}': expected a partitioned table (PARTITION BY)",
        schema.name
    );
    Err(error::at(ErrorCode::NotSupported, message, at))
}

fn drop_column(schema: &mut TableSchema, column: &Name, if_exists: bool) -> EngineResult<()> {
    if if_exists && schema.column_index(&column.text).is_none() {
        return Ok(());
    }
    let index = existing(schema, column)?;
    if schema.timestamp == Some(index) {
        let (table, name) = (&schema.name, &schema.columns[index].name);
        return Err(error::at(
            ErrorCode::NotSupported,
            format!("cannot remove designated timestamp column [table={table}, column={name}]"),
            Span::default(),
        ));
    }
    let dropped = schema.columns.remove(index);
    schema.dedup_keys.retain(|id| *id != dropped.id);
    without_column(schema, &dropped.name);
    schema.timestamp = schema.timestamp.map(|at| if at > index { at - 1 } else { at });
    Ok(())
}

fn rename_column(schema: &mut TableSchema, column: &Name, to: &Name) -> EngineResult<()> {
    let index = existing(schema, column)?;
    check_column_name(to)?;
    if schema.column_index(&to.text).is_some_and(|other| other != index) {
        return Err(error::at(ErrorCode::DuplicateColumn, " column already exists", to.span));
    }
    let from = std::mem::replace(&mut schema.columns[index].name, to.text.clone());
    with_renamed(schema, &from, &to.text);
    Ok(())
}

fn alter_dedup(schema: &mut TableSchema, table: &Name, keys: &[Name]) -> EngineResult<()> {
    if keys.is_empty() {
        schema.dedup_keys.clear();
        return Ok(());
    }
    if !schema.wal {
        let message = "deduplication is only supported for WAL tables";
        return Err(error::at(ErrorCode::NotSupported, message, table.span));
    }
    apply_dedup(schema, keys)
}

/// The permission that an action requires, and the column to which it applies; `None` for the whole
/// table.
fn needed(action: &AlterAction) -> (Permission, Option<&Name>) {
    match action {
        AlterAction::AddColumn { .. } => (Permission::AddColumn, None),
        AlterAction::AddConstraint { constraint } => (permission_of(constraint), None),
        AlterAction::DropConstraint { .. } => (Permission::SetTableParam, None),
        AlterAction::DropColumn { column, .. } => (Permission::DropColumn, Some(column)),
        AlterAction::RenameColumn { column, .. } => (Permission::RenameColumn, Some(column)),
        AlterAction::ChangeType { column, .. }
        | AlterAction::NotNull { column, .. }
        | AlterAction::Default { column, .. } => (Permission::AlterColumnType, Some(column)),
        AlterAction::SymbolCapacity { column, .. } | AlterAction::SymbolCache { column, .. } => {
            (Permission::AlterColumnCache, Some(column))
        }
        AlterAction::Index { column, indexed: true, .. } => (Permission::AddIndex, Some(column)),
        AlterAction::Index { column, indexed: false, .. } => (Permission::DropIndex, Some(column)),
        AlterAction::Partitions { change, .. } => match change {
            PartitionChange::Drop => (Permission::DropPartition, None),
            PartitionChange::Detach => (Permission::DetachPartition, None),
            PartitionChange::Attach => (Permission::AttachPartition, None),
            PartitionChange::ToParquet | PartitionChange::ToNative => {
                (Permission::SetTableParam, None)
            }
        },
        AlterAction::SquashPartitions => (Permission::VacuumTable, None),
        AlterAction::SetParameter { .. } | AlterAction::SetTtl { .. } => {
            (Permission::SetTableParam, None)
        }
        AlterAction::SetPolicy { .. } => (Permission::SetStoragePolicy, None),
        AlterAction::SwitchPolicy { enabled: true, .. } => (Permission::EnableStoragePolicy, None),
        AlterAction::SwitchPolicy { .. } => (Permission::DisableStoragePolicy, None),
        AlterAction::DropPolicy => (Permission::RemoveStoragePolicy, None),
        AlterAction::SetWal { .. } => (Permission::SetTableType, None),
        AlterAction::Dedup { keys } if keys.is_empty() => (Permission::DedupDisable, None),
        AlterAction::Dedup { .. } => (Permission::DedupEnable, None),
        // A rejected action requires the most common permission, so the error reveals nothing about
        // the table.
        AlterAction::Other { words, .. } => (
            idle_action(words).map_or(Permission::SetTableParam, |(permission, _)| permission),
            None,
        ),
    }
}

pub(crate) fn existing(schema: &TableSchema, column: &Name) -> EngineResult<usize> {
    schema.column_index(&column.text).ok_or_else(|| {
        error::at(
            ErrorCode::ColumnNotFound,
            format!("Invalid column: {}", column.text),
            column.span,
        )
    })
}

fn symbol(schema: &TableSchema, column: &Name, what: &str) -> EngineResult<usize> {
    let index = existing(schema, column)?;
    let sql_type = schema.columns[index].sql_type;
    if sql_type == SqlType::Symbol {
        return Ok(index);
    }
    let (name, sql_type) = (&column.text, sql_type.name());
    Err(error::at(
        ErrorCode::TypeMismatch,
        format!("{what} is only supported for symbol type [column={name}, type={sql_type}]"),
        column.span,
    ))
}

fn alter_index(schema: &mut TableSchema, column: &Name, indexed: bool) -> EngineResult<usize> {
    let index = existing(schema, column)?;
    let found = &mut schema.columns[index];
    if found.sql_type != SqlType::Symbol {
        let (name, sql_type) = (&found.name, found.sql_type.name());
        return Err(error::at(
            ErrorCode::TypeMismatch,
            format!("indexes are supported only for symbol type [column={name}, type={sql_type}]"),
            column.span,
        ));
    }
    if found.indexed == indexed {
        let what = if indexed { "already indexed" } else { "not indexed" };
        let message = format!("column is {what} [column={}]", found.name);
        return Err(error::at(ErrorCode::InvalidValue, message, column.span));
    }
    found.indexed = indexed;
    Ok(index)
}

fn set_parameter(schema: &mut TableSchema, parameter: &OptionValue) -> EngineResult<()> {
    let name = &parameter.name;
    let value = parameter.value.as_ref().map_or("", |value| value.text.as_str());
    let invalid = || {
        let message = format!("invalid value [value={value},parameter={}]", name.text);
        error::at(ErrorCode::InvalidValue, message, name.span)
    };
    if name.text.eq_ignore_ascii_case("o3MaxLag") {
        schema.o3_max_lag_micros = parse_lag(value).ok_or_else(invalid)?;
    } else {
        let digits = value.replace('_', "");
        schema.max_uncommitted_rows = digits.parse().map_err(|_| invalid())?;
    }
    Ok(())
}

/// Whether a column can change from one type to another.
fn changes_to(from: SqlType, to: SqlType) -> bool {
    let decimal = |of: SqlType| matches!(of, SqlType::Decimal(..));
    let time = |of: SqlType| of.is_timestamp() || of == SqlType::Date;
    let number = |of: SqlType| of.is_integer() || of.is_floating() || of == SqlType::Boolean;
    if to.is_text() {
        return match from {
            from if decimal(from) => to != SqlType::Symbol,
            SqlType::Ipv4 | SqlType::Char | SqlType::Uuid => true,
            from => from.is_text() || number(from) || time(from),
        };
    }
    if from.is_text() {
        return match to {
            to if decimal(to) => from != SqlType::Symbol,
            SqlType::Char | SqlType::Uuid => true,
            to => number(to) || time(to),
        };
    }
    match to {
        to if decimal(to) => number(from) && from != SqlType::Boolean,
        to if decimal(from) => to.is_floating(),
        to => (number(from) || time(from)) && (number(to) || time(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_type_changes_match_the_conversion_matrix() {
        use SqlType::{Boolean, Date, Double, Int, Ipv4, Long, Symbol, Timestamp, Uuid, Varchar};
        let decimal = SqlType::Decimal(18, 3);
        for (from, to) in [
            (Int, Long),
            (Double, Int),
            (Int, Boolean),
            (Boolean, Int),
            (Long, Timestamp),
            (Timestamp, Date),
            (Varchar, Symbol),
            (Symbol, Varchar),
            (Int, Varchar),
            (Varchar, Uuid),
            (Uuid, Symbol),
            (Ipv4, Varchar),
            (Int, decimal),
            (decimal, Double),
            (decimal, Varchar),
            (Varchar, decimal),
        ] {
            assert!(changes_to(from, to), "{} to {}", from.name(), to.name());
        }
        for (from, to) in [
            (Int, Uuid),
            (Uuid, Int),
            (Boolean, decimal),
            (Date, decimal),
            (decimal, Int),
            (decimal, Symbol),
            (Symbol, decimal),
            (Varchar, Ipv4),
        ] {
            assert!(!changes_to(from, to), "{} to {}", from.name(), to.name());
        }
    }
}
