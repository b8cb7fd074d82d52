//! Checked definitions of new tables, shared by CREATE TABLE and every import.

use tidemark_storage::{ColumnSchema, TableDefaults, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, identifier};

/// Builder for the definition of a new table. Only [`TableBuilder::build`] checks the definition.
#[derive(Debug, Clone)]
pub struct TableBuilder {
    schema: TableSchema,
    timestamp: Option<String>,
}

impl TableBuilder {
    /// Creates a definition without columns.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { schema: TableSchema::new(name, Vec::new()), timestamp: None }
    }

    /// Sets the table's default settings. Later calls can override them.
    #[must_use]
    pub fn defaults(self, defaults: TableDefaults) -> Self {
        Self { schema: self.schema.with_defaults(defaults), ..self }
    }

    /// Adds a column with the dialect's defaults.
    #[must_use]
    pub fn column(self, name: &str, sql_type: SqlType) -> Self {
        self.add_column(ColumnSchema::new(name, sql_type))
    }

    /// Adds a column.
    #[must_use]
    pub fn add_column(mut self, column: ColumnSchema) -> Self {
        self.schema.columns.push(column);
        self
    }

    /// Names the designated timestamp.
    #[must_use]
    pub fn timestamp(mut self, name: &str) -> Self {
        self.timestamp = Some(name.to_owned());
        self
    }

    /// Sets the partition unit.
    #[must_use]
    pub fn partition_by(mut self, unit: PartitionBy) -> Self {
        self.schema.partition_by = unit;
        self
    }

    /// Sets the maximum number of rows that an import may hold in memory.
    #[must_use]
    pub fn max_uncommitted_rows(mut self, rows: u64) -> Self {
        self.schema.max_uncommitted_rows = rows;
        self
    }

    /// Sets the out-of-order lag that SHOW reports, in microseconds.
    #[must_use]
    pub fn o3_max_lag_micros(mut self, lag: i64) -> Self {
        self.schema.o3_max_lag_micros = lag;
        self
    }

    /// Sets whether the table was declared with WAL.
    #[must_use]
    pub fn wal(mut self, wal: bool) -> Self {
        self.schema.wal = wal;
        self
    }

    /// Returns the checked definition. Fails with whichever of `InvalidName`, `DuplicateColumn`,
    /// `TypeMismatch`, `ColumnNotFound` or `InvalidValue` applies first.
    pub fn build(self) -> EngineResult<TableSchema> {
        let Self { mut schema, timestamp } = self;
        if !identifier::is_valid_table_name(&schema.name) {
            let name = &schema.name;
            let message = if identifier::is_reserved_table_name(name) {
                format!("'{name}' is reserved for the system catalog: choose another name")
            } else {
                format!("table name is not valid [table={name}]")
            };
            return Err(EngineError::new(ErrorCode::InvalidName, message));
        }
        let columns = std::mem::take(&mut schema.columns);
        for column in columns {
            check_new_column(&schema, &column)?;
            schema.columns.push(column);
        }
        if schema.columns.is_empty() {
            return Err(EngineError::new(
                ErrorCode::InvalidValue,
                "a table needs at least one column",
            ));
        }
        if let Some(name) = timestamp {
            schema.timestamp = Some(timestamp_index(&schema, &name)?);
        }
        if schema.partition_by != PartitionBy::None && schema.timestamp.is_none() {
            return Err(EngineError::new(
                ErrorCode::InvalidValue,
                "partitioning is possible only on tables with designated timestamps",
            ));
        }
        Ok(schema)
    }
}

fn timestamp_index(schema: &TableSchema, name: &str) -> EngineResult<usize> {
    let index = schema.column_index(name).ok_or_else(|| {
        let message = format!("designated timestamp column '{name}' does not exist");
        EngineError::new(ErrorCode::ColumnNotFound, message)
    })?;
    let sql_type = schema.columns[index].sql_type;
    if !sql_type.is_timestamp() {
        let found = sql_type.name();
        let message = format!("TIMESTAMP column expected [actual={found}, column={name}]");
        return Err(EngineError::new(ErrorCode::TypeMismatch, message));
    }
    Ok(index)
}

/// Rejects a column that cannot be added: an invalid name, an existing name, or a type that cannot
/// be stored.
pub fn check_new_column(schema: &TableSchema, column: &ColumnSchema) -> EngineResult<()> {
    if !identifier::is_valid_column_name(&column.name) {
        let message = format!("invalid column name [name={}]", column.name);
        return Err(EngineError::new(ErrorCode::InvalidName, message));
    }
    if schema.column_index(&column.name).is_some() {
        let message = format!("duplicate column [name={}]", column.name);
        return Err(EngineError::new(ErrorCode::DuplicateColumn, message));
    }
    if !column.sql_type.is_storable() {
        let message = format!("a column cannot have type {}", column.sql_type.name());
        return Err(EngineError::new(ErrorCode::TypeMismatch, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(builder: TableBuilder) -> ErrorCode {
        builder.build().unwrap_err().code
    }

    #[test]
    fn builder_rejects_invalid_names_and_types_and_duplicate_columns() {
        let table = TableBuilder::new("t").column("ts", SqlType::Timestamp);
        assert_eq!(
            code(TableBuilder::new("a/b").column("x", SqlType::Int)),
            ErrorCode::InvalidName
        );
        assert_eq!(code(TableBuilder::new("t")), ErrorCode::InvalidValue);
        assert_eq!(code(table.clone().column("TS", SqlType::Long)), ErrorCode::DuplicateColumn);
        assert_eq!(code(table.clone().column("a-b", SqlType::Long)), ErrorCode::InvalidName);
        assert_eq!(code(table.clone().column("i", SqlType::Interval)), ErrorCode::TypeMismatch);
        assert_eq!(code(table.clone().timestamp("no")), ErrorCode::ColumnNotFound);
        let table = table.column("x", SqlType::Long);
        assert_eq!(code(table.clone().timestamp("x")), ErrorCode::TypeMismatch);
        assert_eq!(code(table.clone().partition_by(PartitionBy::Day)), ErrorCode::InvalidValue);
        let schema = table.timestamp("Ts").partition_by(PartitionBy::Day).build();
        assert_eq!(schema.unwrap().timestamp, Some(0));
    }
}
