//! Builds a table's definition and refuses one that would not work.

use tidemark_storage::{ColumnSchema, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, identifier};

/// Most columns of a table.
pub const MAX_COLUMNS: usize = 4_096;

/// A table in the making.
#[derive(Debug, Clone)]
pub struct TableBuilder {
    schema: TableSchema,
    timestamp: Option<String>,
}

impl TableBuilder {
    /// A table of this name without columns.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { schema: TableSchema::new(name, Vec::new()), timestamp: None }
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, name: &str, sql_type: SqlType) -> Self {
        self.schema.columns.push(ColumnSchema::new(name, sql_type));
        self
    }

    /// Designates a timestamp column by name.
    #[must_use]
    pub fn timestamp(mut self, name: &str) -> Self {
        self.timestamp = Some(name.to_owned());
        self
    }

    /// Sets the unit of the partitions. A partitioned table is shown as a WAL table.
    #[must_use]
    pub fn partition_by(mut self, unit: PartitionBy) -> Self {
        self.schema.partition_by = unit;
        self.schema.wal = unit != PartitionBy::None;
        self
    }

    /// Sets how many rows an import may hold in memory.
    #[must_use]
    pub fn max_uncommitted_rows(mut self, rows: u64) -> Self {
        self.schema.max_uncommitted_rows = rows;
        self
    }

    /// Sets the expected disorder in microseconds.
    #[must_use]
    pub fn o3_max_lag_micros(mut self, micros: i64) -> Self {
        self.schema.o3_max_lag_micros = micros;
        self
    }

    /// The definition. Errors: `InvalidName`, `DuplicateColumn`, `ColumnNotFound`,
    /// `TypeMismatch`, `InvalidValue`.
    pub fn build(mut self) -> EngineResult<TableSchema> {
        self.check_names()?;
        if let Some(name) = self.timestamp.take() {
            self.schema.timestamp = Some(self.timestamp_index(&name)?);
        }
        if self.schema.timestamp.is_none() && self.schema.partition_by != PartitionBy::None {
            return Err(EngineError::new(
                ErrorCode::InvalidValue,
                "partitioning is possible only on tables with designated timestamps",
            ));
        }
        Ok(self.schema)
    }

    fn check_names(&self) -> EngineResult<()> {
        let table = &self.schema.name;
        if !identifier::is_valid_table_name(table) {
            let message = format!("invalid table name [table={table}]");
            return Err(EngineError::new(ErrorCode::InvalidName, message));
        }
        let columns = &self.schema.columns;
        if columns.len() > MAX_COLUMNS {
            let message = format!("too many columns: {} (limit {MAX_COLUMNS})", columns.len());
            return Err(EngineError::new(ErrorCode::ResourceLimit, message));
        }
        for (index, column) in columns.iter().enumerate() {
            if !identifier::is_valid_column_name(&column.name) {
                let message = format!("invalid column name [column={}]", column.name);
                return Err(EngineError::new(ErrorCode::InvalidName, message));
            }
            if columns[..index].iter().any(|other| identifier::same(&other.name, &column.name)) {
                let message = format!("Duplicate column [name={}]", column.name);
                return Err(EngineError::new(ErrorCode::DuplicateColumn, message));
            }
        }
        Ok(())
    }

    fn timestamp_index(&self, name: &str) -> EngineResult<usize> {
        let columns = &self.schema.columns;
        let found = columns.iter().position(|column| identifier::same(&column.name, name));
        let index = found.ok_or_else(|| {
            let message = format!("invalid timestamp column '{name}'");
            EngineError::new(ErrorCode::ColumnNotFound, message)
        })?;
        if !columns[index].sql_type.is_timestamp() {
            let message = format!(
                "TIMESTAMP column expected [actual={}, columnName={name}]",
                columns[index].sql_type.name()
            );
            return Err(EngineError::new(ErrorCode::TypeMismatch, message));
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trades() -> TableBuilder {
        TableBuilder::new("trades")
            .column("ts", SqlType::Timestamp)
            .column("price", SqlType::Double)
    }

    #[test]
    fn builds_a_partitioned_table() {
        let schema = trades().timestamp("TS").partition_by(PartitionBy::Day).build().unwrap();
        assert_eq!(schema.timestamp, Some(0));
        assert!(schema.wal);
    }

    #[test]
    fn refuses_what_would_not_work() {
        let code = |builder: TableBuilder| builder.build().unwrap_err().code;
        assert_eq!(code(TableBuilder::new("a/b")), ErrorCode::InvalidName);
        assert_eq!(code(trades().column("a.b", SqlType::Int)), ErrorCode::InvalidName);
        assert_eq!(code(trades().column("TS", SqlType::Int)), ErrorCode::DuplicateColumn);
        assert_eq!(code(trades().timestamp("nope")), ErrorCode::ColumnNotFound);
        assert_eq!(code(trades().timestamp("price")), ErrorCode::TypeMismatch);
        assert_eq!(code(trades().partition_by(PartitionBy::Day)), ErrorCode::InvalidValue);
    }
}
