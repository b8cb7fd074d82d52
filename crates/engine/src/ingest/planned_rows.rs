//! Commits typed rows of several tables, from any protocol, in one transaction with new tables and
//! columns.
//!
//! The changes are determined before the commit so that permissions can be checked. If tables have
//! changed before the commit, the rows are planned again.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{Field, Schema, SchemaRef};
use tidemark_border::{PlannedTable, RowsReply};
use tidemark_catalog::{TableBuilder, View};
use tidemark_ingest::{Chunk, TableRows, TargetColumn, TargetTable, Targets, absent_column};
use tidemark_planner::{Defaults, Planner};
use tidemark_storage::{BulkTarget, ColumnSchema, Snapshot, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, failpoint};

use crate::database::Database;
use crate::ingest::writer::{MAX_LOGGED_ROWS, TableIndex, Writer, Written};
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;

/// Lets readers look up tables in a snapshot.
pub(crate) struct SnapshotTargets {
    snapshot: Arc<Snapshot>,
}

impl SnapshotTargets {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot }
    }
}

impl Targets for SnapshotTargets {
    fn table(&mut self, name: &str) -> EngineResult<Option<TargetTable>> {
        let Some(found) = self.snapshot.table(name) else {
            refuse_view(&self.snapshot, name)?;
            return Ok(None);
        };
        let schema = found.schema();
        let column = |column: &ColumnSchema| TargetColumn {
            name: column.name.clone(),
            sql_type: column.sql_type,
            has_default: column.default.is_some(),
            required: column.not_null && column.default.is_none(),
        };
        Ok(Some(TargetTable {
            name: schema.name.clone(),
            columns: schema.columns.iter().map(column).collect(),
            timestamp: schema.timestamp,
        }))
    }
}

fn refuse_view(snapshot: &Snapshot, name: &str) -> EngineResult<()> {
    match View::find(snapshot, name) {
        Some(_) => {
            Err(EngineError::new(ErrorCode::InvalidName, format!("cannot write to view '{name}'")))
        }
        None => Ok(()),
    }
}

/// Properties of tables to be created together with their rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewTables {
    pub(crate) partition_by: PartitionBy,
}

impl NewTables {
    pub(crate) fn new(partition_by: &str) -> EngineResult<Self> {
        let partition_by = PartitionBy::parse(partition_by).ok_or_else(|| {
            let message = format!("invalid partitioning [partitionBy={partition_by}]");
            EngineError::new(ErrorCode::InvalidValue, message)
        })?;
        Ok(Self { partition_by })
    }
}

/// Rows, with the changes that their commit would make.
pub(crate) struct PlannedRows {
    database: Arc<Database>,
    new_tables: NewTables,
    rows: Vec<TableRows>,
    tables: Vec<Planned>,
}

/// One table in a plan.
struct Planned {
    definition: Definition,
    /// For each column of the rows, its position in the table definition.
    positions: Vec<usize>,
    schema: SchemaRef,
    defaults: Defaults,
}

enum Definition {
    New(TableSchema),
    /// The existing definition with new columns appended.
    Changed(TableSchema, Vec<String>),
    Unchanged(TableSchema),
}

impl Definition {
    fn schema(&self) -> &TableSchema {
        match self {
            Self::New(schema) | Self::Changed(schema, _) | Self::Unchanged(schema) => schema,
        }
    }
}

impl PlannedRows {
    pub(crate) fn new(
        database: &Arc<Database>,
        new_tables: NewTables,
        rows: Vec<TableRows>,
    ) -> EngineResult<Self> {
        let database = Arc::clone(database);
        let mut planned = Self { database, new_tables, rows, tables: Vec::new() };
        planned.plan()?;
        Ok(planned)
    }

    /// Plans the rows for the current tables.
    fn plan(&mut self) -> EngineResult<()> {
        let snapshot = self.database.snapshot()?;
        let one = |rows| Planned::new(&self.database, &snapshot, self.new_tables, rows);
        self.tables = self.rows.iter().map(one).collect::<EngineResult<_>>()?;
        Ok(())
    }

    /// Returns the changes that the commit would cause.
    pub(crate) fn report(&self) -> RowsReply {
        let report = |(planned, rows): (&Planned, &TableRows)| PlannedTable {
            table: planned.definition.schema().name.clone(),
            creates: matches!(planned.definition, Definition::New(_)),
            adds: match &planned.definition {
                Definition::Changed(_, columns) => columns.clone(),
                _ => Vec::new(),
            },
            rows: rows.rows(),
        };
        let tables = self.tables.iter().zip(&self.rows).map(report).collect();
        RowsReply::Planned { tables, read: None, commits: Vec::new() }
    }

    /// Commits the planned rows. If tables have changed, plans the rows again instead. Blocks.
    fn commit(&mut self) -> EngineResult<RowsReply> {
        match self.commit_once() {
            Ok(Written { rows, transaction }) => {
                Ok(RowsReply::Committed { rows, transaction, commits: Vec::new(), more: false })
            }
            Err(error) if matches!(error.code, ErrorCode::Replan | ErrorCode::TableExists) => {
                self.plan()?;
                Ok(self.report())
            }
            Err(error) => Err(error),
        }
    }

    /// Like [`Self::commit`], but runs on a blocking thread.
    pub(crate) async fn committed(mut self) -> EngineResult<(Self, RowsReply)> {
        let commit = move || {
            failpoint::hit("engine.commit")?;
            let reply = self.commit()?;
            Ok((self, reply))
        };
        guard::run_blocking("commit", commit).await
    }

    fn commit_once(&self) -> EngineResult<Written> {
        let mut writer = Writer::new(&self.database);
        for (planned, rows) in self.tables.iter().zip(&self.rows) {
            let table = planned.add_table(&mut writer, rows.rows())?;
            for chunk in &rows.chunks {
                writer.push(table, planned.batch(chunk)?)?;
            }
        }
        writer.commit_numbered(&CancelToken::default())
    }
}

impl Planned {
    fn new(
        database: &Database,
        snapshot: &Arc<Snapshot>,
        new_tables: NewTables,
        rows: &TableRows,
    ) -> EngineResult<Self> {
        let found = snapshot.table(&rows.table.name);
        let definition = match &found {
            Some(found) => changed_schema(found.schema(), rows)?,
            None if rows.exists => return Err(changed_meanwhile(&rows.table.name)),
            None => {
                refuse_view(snapshot, &rows.table.name)?;
                Definition::New(new_schema(database, new_tables, &rows.table)?)
            }
        };
        let schema = definition.schema();
        let position_of = |column: &TargetColumn| {
            schema.column_index(&column.name).ok_or_else(|| changed_meanwhile(&schema.name))
        };
        let indices = rows.table.columns.iter().map(position_of).collect::<EngineResult<_>>()?;
        let defaults = if schema.columns.iter().any(|column| column.default.is_some()) {
            Planner::defaults(schema, &[], snapshot, &database.bind_context(""))?
        } else {
            Defaults::default()
        };
        let field =
            |column: &ColumnSchema| Field::new(&column.name, column.sql_type.arrow_type(), true);
        let fields = schema.columns.iter().map(field).collect::<Vec<_>>();
        Ok(Self { positions: indices, schema: Arc::new(Schema::new(fields)), defaults, definition })
    }

    fn add_table(&self, writer: &mut Writer, rows: u64) -> EngineResult<TableIndex> {
        Ok(match &self.definition {
            // If there are too many rows for the log, they are written directly to files.
            Definition::New(schema) if rows > MAX_LOGGED_ROWS as u64 => {
                writer.staged(BulkTarget::Create(schema.clone()))?.0
            }
            Definition::New(schema) => writer.new_table(schema.clone()),
            Definition::Changed(schema, _) => writer.changed_table(schema.clone()),
            Definition::Unchanged(schema) if rows > MAX_LOGGED_ROWS as u64 => {
                let (table, current) = writer.staged(BulkTarget::Existing(schema.id))?;
                if current.version != schema.version {
                    let message = format!("table '{}' changed concurrently", schema.name);
                    return Err(EngineError::new(ErrorCode::Replan, message));
                }
                table
            }
            Definition::Unchanged(schema) => writer.table(schema),
        })
    }

    /// Converts a chunk to a batch with all columns of the table.
    fn batch(&self, chunk: &Chunk) -> EngineResult<RecordBatch> {
        let columns = &self.definition.schema().columns;
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; columns.len()];
        let mut missing = vec![None; columns.len()];
        for cells in &chunk.cells {
            let position = self.positions[cells.column];
            arrays[position] = Some(Arc::clone(&cells.array));
            missing[position] = cells.missing.as_ref();
        }
        let absent = |(array, column): (Option<ArrayRef>, &ColumnSchema)| {
            array.unwrap_or_else(|| absent_column(column.sql_type, chunk.rows))
        };
        let given: Vec<bool> = arrays.iter().map(Option::is_some).collect();
        let whole: Vec<ArrayRef> = arrays.into_iter().zip(columns).map(absent).collect();
        let batch = record_batch(&self.schema, whole)?;
        let batch = if self.defaults.is_empty() {
            batch
        } else {
            let filled = self.defaults.fill(&batch)?;
            let choose = |index: usize| {
                let (own, default) = (batch.column(index), filled.column(index));
                match (given[index], missing[index]) {
                    (false, _) => Ok(Arc::clone(default)),
                    (true, None) => Ok(Arc::clone(own)),
                    (true, Some(left_out)) => {
                        zip(&BooleanArray::new(left_out.clone(), None), default, own)
                    }
                }
            };
            let columns = (0..columns.len()).map(choose).collect::<Result<Vec<_>, _>>();
            let unfit = |error: arrow::error::ArrowError| EngineError::internal(error.to_string());
            record_batch(&self.schema, columns.map_err(unfit)?)?
        };
        self.check_values(&batch)?;
        Ok(batch)
    }

    /// Rejects nulls in NOT NULL columns. Readers already reject them, but a constraint may have
    /// been added later, or a default may be null.
    fn check_values(&self, batch: &RecordBatch) -> EngineResult<()> {
        let schema = self.definition.schema();
        for (column, array) in schema.columns.iter().zip(batch.columns()) {
            if column.not_null && array.null_count() > 0 {
                let message = format!(
                    "column '{}' of '{}' is NOT NULL: expected a value",
                    column.name, schema.name
                );
                return Err(EngineError::new(ErrorCode::NullValue, message));
            }
        }
        Ok(())
    }
}

fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> EngineResult<RecordBatch> {
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| EngineError::internal(error.to_string()))
}

/// Returns the definition of an existing table with the rows' new columns.
fn changed_schema(found: &TableSchema, rows: &TableRows) -> EngineResult<Definition> {
    let table = &rows.table;
    let name_at = |columns: &[TargetColumn]| {
        table.timestamp.and_then(|at| columns.get(at)).map(|column| column.name.clone())
    };
    let own = found.timestamp_column().map(|column| column.name.as_str());
    let is_same = match (name_at(&table.columns), own) {
        (Some(name), Some(own)) => tidemark_types::identifier::same(&name, own),
        (None, None) => true,
        _ => false,
    };
    if !is_same {
        return Err(changed_meanwhile(&found.name));
    }
    let mut schema = found.clone();
    let mut added = Vec::new();
    for column in &table.columns {
        match schema.column_index(&column.name) {
            Some(index) if schema.columns[index].sql_type == column.sql_type => {}
            Some(_) => return Err(changed_meanwhile(&found.name)),
            None => {
                schema.columns.push(ColumnSchema::new(&column.name, column.sql_type));
                added.push(column.name.clone());
            }
        }
    }
    Ok(if added.is_empty() {
        Definition::Unchanged(schema)
    } else {
        Definition::Changed(schema, added)
    })
}

fn new_schema(
    database: &Database,
    new_tables: NewTables,
    table: &TargetTable,
) -> EngineResult<TableSchema> {
    let mut builder = TableBuilder::new(&table.name).defaults(database.table_defaults);
    for column in &table.columns {
        builder = builder.column(&column.name, column.sql_type);
    }
    if let Some(timestamp) = table.timestamp.and_then(|at| table.columns.get(at)) {
        builder = builder.timestamp(&timestamp.name);
    }
    let partition_by = new_tables.partition_by;
    builder.partition_by(partition_by).wal(partition_by != PartitionBy::None).build()
}

/// Returns the error for a column that changed after its values were parsed. The sender must send
/// the rows again.
fn changed_meanwhile(table: &str) -> EngineError {
    let message = format!("table '{table}' changed concurrently: send the rows again");
    EngineError::new(ErrorCode::Busy, message)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, TimestampMicrosecondArray};
    use tidemark_ingest::Cells;
    use tidemark_types::SqlType;

    use super::*;

    const CHUNK: usize = MAX_LOGGED_ROWS;

    fn database(root: &tempfile::TempDir) -> Arc<Database> {
        let options = crate::OpenOptions { root: root.path().into(), ..Default::default() };
        Database::open(&options).unwrap()
    }

    fn definition() -> TableSchema {
        let table = TableBuilder::new("t").column("ts", SqlType::Timestamp);
        table.column("x", SqlType::Long).timestamp("ts").build().unwrap()
    }

    /// Builds one chunk of 64 Ki rows and a second chunk with the remaining rows, as line readers
    /// return them.
    fn rows(database: &Database, rows: usize) -> TableRows {
        let snapshot = database.snapshot().unwrap();
        let table = SnapshotTargets::new(snapshot).table("t").unwrap().unwrap();
        let chunk = |from: usize| {
            let numbers = from as i64..rows.min(from + CHUNK) as i64;
            let times: ArrayRef =
                Arc::new(TimestampMicrosecondArray::from_iter_values(numbers.clone()));
            let cells: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
            let columns = [times, cells].into_iter().enumerate();
            let cells = columns.map(|(column, array)| Cells { column, array, missing: None });
            Chunk { rows: rows.min(from + CHUNK) - from, cells: cells.collect() }
        };
        let chunks = (0..rows).step_by(CHUNK).map(chunk).collect();
        TableRows { known: table.columns.len(), table, exists: true, chunks }
    }

    fn planned(database: &Arc<Database>, count: usize) -> PlannedRows {
        let new_tables = NewTables::new("DAY").unwrap();
        PlannedRows::new(database, new_tables, vec![rows(database, count)]).unwrap()
    }

    fn create_table(database: &Arc<Database>) {
        let mut writer = Writer::new(database);
        writer.new_table(definition());
        writer.commit(&CancelToken::default()).unwrap();
    }

    /// Number of files in the table.
    fn files(database: &Database) -> usize {
        let table = database.snapshot().unwrap().table("t").unwrap();
        table.partition_list().iter().map(|partition| partition.segments).sum()
    }

    #[test]
    fn messages_larger_than_one_chunk_are_written_to_files() {
        for (count, expected) in [(CHUNK, 0), (CHUNK + 1, 1), (3 * CHUNK, 1)] {
            let root = tempfile::tempdir().unwrap();
            let database = database(&root);
            create_table(&database);
            let committed = planned(&database, count).commit().unwrap();
            let RowsReply::Committed { rows, .. } = committed else { panic!("{committed:?}") };
            assert_eq!((rows, files(&database)), (count as u64, expected), "{count} rows");
        }
    }

    #[test]
    fn rows_are_planned_again_when_the_table_schema_changes() {
        let root = tempfile::tempdir().unwrap();
        let database = database(&root);
        create_table(&database);
        for count in [10, CHUNK + 10] {
            let mut planned = planned(&database, count);
            let found = database.snapshot().unwrap().table("t").unwrap();
            let mut schema = TableSchema::clone(found.schema());
            schema.columns.push(ColumnSchema::new(format!("c{count}"), SqlType::Long));
            let mut writer = Writer::new(&database);
            writer.changed_table(schema);
            writer.commit(&CancelToken::default()).unwrap();
            assert!(matches!(planned.commit().unwrap(), RowsReply::Planned { .. }));
            let committed = planned.commit().unwrap();
            let RowsReply::Committed { rows, .. } = committed else { panic!("{committed:?}") };
            assert_eq!(rows, count as u64);
        }
    }
}
