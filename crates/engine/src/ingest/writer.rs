//! Writes rows into tables. It is the only component that does so. One commit may contain batches
//! for several tables, together with new tables and columns.
//!
//! A few rows for an existing table are buffered in memory and written to the log. Larger numbers
//! are staged in segments, which a single log record adopts. Nothing is visible before the commit.
//! Without a commit, nothing is left behind.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use tidemark_operators::cell_bytes;
use tidemark_storage::{BulkTarget, BulkWriter, Change, TableId, TableSchema};
use tidemark_types::{EngineError, EngineResult, account, failpoint};

use crate::database::Database;
use crate::ingest::transaction::Transaction;
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;

/// Maximum number of rows that are written to the log per table.
pub(crate) const MAX_LOGGED_ROWS: usize = 64 * 1024;
/// The corresponding limit in bytes, including strings and arrays.
const MAX_LOGGED_BYTES: usize = 16 << 20;

/// Uncommitted rows. Dropping the writer discards them.
pub struct Writer {
    database: Arc<Database>,
    /// Table and column definitions to be committed with the rows.
    definitions: Vec<Change>,
    tables: Vec<TableRows>,
    rows: u64,
}

/// Result of a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    /// The transaction number; `None` if there was nothing to write.
    pub(crate) transaction: Option<u64>,
}

/// Rows of one table.
#[derive(Debug)]
enum TableRows {
    /// Rows in memory.
    Buffered(BufferedRows),
    /// Rows in segments, which the commit adopts.
    Staged(Box<BulkWriter>),
}

/// Rows that are written to the log.
#[derive(Debug)]
struct BufferedRows {
    table: TableId,
    /// Schema version that the rows match.
    schema_version: u64,
    /// Whether the same commit creates or changes the table definition. Before the commit, no files
    /// can be staged for this definition.
    is_defined: bool,
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Size in bytes, including strings and arrays.
    bytes: usize,
}

/// Refers to one table in a [`Writer`].
#[derive(Debug, Clone, Copy)]
pub struct TableIndex(usize);

impl Writer {
    /// Creates a writer without rows.
    pub fn new(database: &Arc<Database>) -> Self {
        let database = Arc::clone(database);
        Self { database, definitions: Vec::new(), tables: Vec::new(), rows: 0 }
    }

    /// Adds a change that is committed before the rows.
    pub(crate) fn with(&mut self, change: Change) {
        self.definitions.push(change);
    }

    /// Adds a table to be created together with the rows.
    pub fn new_table(&mut self, schema: TableSchema) -> TableIndex {
        let id = self.database.storage.reserve_table_id();
        let schema = TableSchema { id, version: schema.version.max(1), ..schema };
        self.definitions.push(Change::CreateTable(schema.clone()));
        self.add_buffered(schema.id, schema.version, true)
    }

    /// Adds an existing table whose definition the same commit changes, for example by appending
    /// columns.
    pub fn changed_table(&mut self, schema: TableSchema) -> TableIndex {
        let (id, version) = (schema.id, schema.version + 1);
        self.definitions.push(Change::ReplaceSchema(schema));
        self.add_buffered(id, version, true)
    }

    /// Adds a table with this definition. The commit fails with `Replan` if the definition has
    /// changed.
    pub fn table(&mut self, schema: &TableSchema) -> TableIndex {
        self.add_buffered(schema.id, schema.version, false)
    }

    fn add_buffered(
        &mut self,
        table: TableId,
        schema_version: u64,
        is_defined: bool,
    ) -> TableIndex {
        self.tables.push(TableRows::Buffered(BufferedRows {
            table,
            schema_version,
            is_defined,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
        }));
        TableIndex(self.tables.len() - 1)
    }

    /// Adds a table whose rows are all staged in files. The table is either created together with
    /// its rows, or it is an import target, which may gain columns during the import. Returns the
    /// definition that the rows must match.
    pub fn staged(&mut self, target: BulkTarget) -> EngineResult<(TableIndex, TableSchema)> {
        let bulk = self.database.storage.begin_bulk(target)?;
        let schema = bulk.schema().clone();
        self.tables.push(TableRows::Staged(Box::new(bulk)));
        Ok((TableIndex(self.tables.len() - 1), schema))
    }

    /// Returns the number of rows added so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether further rows for the table are written to files. If so, [`Self::push`] may block.
    pub fn is_staging(&self, TableIndex(table): TableIndex) -> bool {
        match &self.tables[table] {
            TableRows::Buffered(buffered) => {
                !buffered.is_defined
                    && (buffered.rows > MAX_LOGGED_ROWS || buffered.bytes > MAX_LOGGED_BYTES)
            }
            TableRows::Staged(_) => true,
        }
    }

    /// Buffers rows in memory, regardless of their number.
    pub(crate) fn buffer(
        &mut self,
        TableIndex(table): TableIndex,
        batch: RecordBatch,
    ) -> EngineResult<()> {
        let TableRows::Buffered(buffered) = &mut self.tables[table] else {
            return self.push(TableIndex(table), batch);
        };
        buffered.rows += batch.num_rows();
        buffered.bytes += cell_bytes(&batch);
        account::check_allocation(buffered.bytes)?;
        self.rows += batch.num_rows() as u64;
        buffered.batches.push(batch);
        Ok(())
    }

    /// Adds rows whose columns are in definition order. The rows may be in any order. May block.
    pub fn push(&mut self, table: TableIndex, batch: RecordBatch) -> EngineResult<()> {
        if !self.is_staging(table) {
            return self.buffer(table, batch);
        }
        let rows = batch.num_rows() as u64;
        account::check_allocation(cell_bytes(&batch))?;
        self.bulk(table)?.push(batch)?;
        self.rows += rows;
        Ok(())
    }

    /// Returns the table's bulk writer. Rows that are still in memory are first moved into it.
    fn bulk(&mut self, TableIndex(table): TableIndex) -> EngineResult<&mut BulkWriter> {
        let rows = &mut self.tables[table];
        if let TableRows::Buffered(buffered) = rows {
            let target = BulkTarget::Existing(buffered.table);
            let mut bulk = self.database.storage.begin_bulk(target)?;
            buffered.batches.drain(..).try_for_each(|batch| bulk.push(batch))?;
            *rows = TableRows::Staged(Box::new(bulk));
        }
        match rows {
            TableRows::Staged(bulk) => Ok(bulk),
            TableRows::Buffered(_) => Err(EngineError::internal("rows were not staged")),
        }
    }

    /// Commits everything together and returns the number of rows. Blocks until the rows are as
    /// durable as configured. If the statement has already been stopped, commits nothing.
    pub fn commit(self, token: &CancelToken) -> EngineResult<u64> {
        self.commit_numbered(token).map(|written| written.rows)
    }

    /// Like [`Self::commit`], but also returns the transaction number.
    pub(crate) fn commit_numbered(self, token: &CancelToken) -> EngineResult<Written> {
        let Self { database, definitions: mut changes, tables, rows } = self;
        let mut staged = Vec::new();
        for table in tables {
            match table {
                TableRows::Buffered(BufferedRows { table, schema_version, batches, .. }) => {
                    let append = |batch| Change::Append { table, schema_version, batch };
                    changes.extend(batches.into_iter().map(append));
                }
                TableRows::Staged(bulk) => staged.push(*bulk),
            }
        }
        let storage = &database.storage;
        let receipt = match (changes.is_empty(), staged.is_empty()) {
            (true, true) => None,
            (false, true) => Some(token.settle(|| storage.commit(changes))?),
            _ => Some(token.settle(|| storage.commit_bulk(staged, changes))?),
        };
        database.metrics.rows_written.add(rows);
        Ok(Written { rows, transaction: receipt.map(|receipt| receipt.lsn) })
    }

    /// Adds the rows to a block, which commits them with the block's other rows. The rows must be
    /// in memory. Returns the number of rows added.
    pub(crate) fn pend(self, block: &Transaction) -> EngineResult<u64> {
        let storage = &self.database.storage;
        let mut pending = Vec::new();
        for rows in &self.tables {
            let TableRows::Buffered(buffered) = rows else {
                return Err(EngineError::internal(
                    "rows of a transaction block are staged in files",
                ));
            };
            for batch in &buffered.batches {
                pending.push(storage.pend(buffered.table, buffered.schema_version, batch)?);
            }
        }
        block.add(pending)?;
        self.database.metrics.rows_written.add(self.rows);
        Ok(self.rows)
    }

    /// Commits the rows, or adds them to the transaction block if there is one.
    pub(crate) async fn finish(
        self,
        block: Option<&Transaction>,
        token: &CancelToken,
    ) -> EngineResult<u64> {
        if let Some(block) = block {
            return self.pend(block);
        }
        if self.tables.iter().all(TableRows::is_empty) && self.definitions.is_empty() {
            return Ok(0);
        }
        let token = token.clone();
        guard::run_blocking("commit", move || {
            failpoint::hit("engine.commit")?;
            self.commit(&token)
        })
        .await
    }
}

impl TableRows {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Buffered(buffered) if buffered.batches.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, TimestampMicrosecondArray};
    use tidemark_catalog::TableBuilder;
    use tidemark_storage::ColumnSchema;
    use tidemark_types::{ErrorCode, PartitionBy, SqlType};

    use super::*;

    fn database(root: &tempfile::TempDir) -> Arc<Database> {
        let options = crate::OpenOptions { root: root.path().into(), ..Default::default() };
        Database::open(&options).unwrap()
    }

    fn definition(name: &str) -> TableSchema {
        let table = TableBuilder::new(name).column("ts", SqlType::Timestamp);
        let table = table.column("x", SqlType::Long).timestamp("ts");
        table.partition_by(PartitionBy::Day).build().unwrap()
    }

    fn batch(rows: usize, columns: usize) -> RecordBatch {
        let numbers = 0..rows as i64;
        let times: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from_iter_values(numbers.clone()));
        let cells: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        let names = ["ts", "x", "y"].into_iter().take(columns);
        RecordBatch::try_from_iter(
            names.map(|name| {
                (name, if name == "ts" { Arc::clone(&times) } else { Arc::clone(&cells) })
            }),
        )
        .unwrap()
    }

    fn rows_of(database: &Database, table: &str) -> Option<u64> {
        let snapshot = database.snapshot().unwrap();
        snapshot.table(table).map(|table| table.row_count().unwrap())
    }

    fn existing(database: &Database, table: &str) -> TableSchema {
        TableSchema::clone(database.snapshot().unwrap().table(table).unwrap().schema())
    }

    /// A single commit contains new tables, new columns, rows in the log and rows in files.
    #[test]
    fn new_tables_and_rows_for_several_tables_commit_together() {
        let root = tempfile::tempdir().unwrap();
        let database = database(&root);
        let mut writer = Writer::new(&database);
        for name in ["few", "many", "wider"] {
            let target = writer.new_table(definition(name));
            writer.push(target, batch(10, 2)).unwrap();
        }
        assert_eq!(rows_of(&database, "few"), None);
        assert_eq!(writer.commit(&CancelToken::default()).unwrap(), 30);
        let before = database.snapshot().unwrap();
        let mut writer = Writer::new(&database);
        let few = writer.table(&existing(&database, "few"));
        let many = writer.table(&existing(&database, "many"));
        let mut wider = existing(&database, "wider");
        wider.columns.push(ColumnSchema::new("y", SqlType::Long));
        let wider = writer.changed_table(wider);
        let (created, _) = writer.staged(BulkTarget::Create(definition("made"))).unwrap();
        for _ in 0..3 {
            writer.push(few, batch(10, 2)).unwrap();
            writer.push(many, batch(50_000, 2)).unwrap();
            writer.push(wider, batch(10, 3)).unwrap();
            writer.push(created, batch(7, 2)).unwrap();
        }
        assert!(writer.is_staging(many) && writer.is_staging(created) && !writer.is_staging(few));
        assert_eq!((rows_of(&database, "many"), rows_of(&database, "made")), (Some(10), None));
        assert_eq!(writer.commit(&CancelToken::default()).unwrap(), 3 * (10 + 50_000 + 10 + 7));
        let after = database.snapshot().unwrap();
        assert_eq!(after.lsn(), before.lsn() + 1, "one transaction");
        let rows = ["few", "many", "wider", "made"].map(|table| rows_of(&database, table));
        assert_eq!(rows, [Some(40), Some(150_010), Some(40), Some(21)]);
        assert_eq!(existing(&database, "wider").columns.len(), 3);
    }

    #[test]
    fn writers_that_are_dropped_cancelled_or_outdated_change_nothing() {
        let root = tempfile::tempdir().unwrap();
        let database = database(&root);
        let mut writer = Writer::new(&database);
        writer.new_table(definition("t"));
        writer.commit(&CancelToken::default()).unwrap();
        let fill = |writer: &mut Writer| {
            let table = writer.table(&existing(&database, "t"));
            for _ in 0..3 {
                writer.push(table, batch(50_000, 2)).unwrap();
            }
        };
        let mut writer = Writer::new(&database);
        fill(&mut writer);
        drop(writer);
        let mut writer = Writer::new(&database);
        fill(&mut writer);
        let token = CancelToken::default();
        token.cancel();
        assert_eq!(writer.commit(&token).unwrap_err().code, ErrorCode::Cancelled);
        let mut writer = Writer::new(&database);
        let table = writer.table(&existing(&database, "t"));
        writer.push(table, batch(10, 2)).unwrap();
        let mut changing = Writer::new(&database);
        let mut wider = existing(&database, "t");
        wider.columns.push(ColumnSchema::new("y", SqlType::Long));
        changing.changed_table(wider);
        changing.commit(&CancelToken::default()).unwrap();
        assert_eq!(writer.commit(&CancelToken::default()).unwrap_err().code, ErrorCode::Replan);
        assert_eq!(rows_of(&database, "t"), Some(0));
        let staged = std::fs::read_dir(root.path().join("db/stage")).map_or(0, Iterator::count);
        assert_eq!(staged, 0);
    }
}
