//! Context for a transaction's steps.

use std::collections::HashMap;
use std::sync::Arc;

use tidemark_types::{EngineResult, SqlType};

use crate::disk::Disk;
use crate::disk::file::StoredFile;
use crate::segment::Segment;
use crate::state::recent::FollowedStep;
use crate::table::schema::TableSchema;
use crate::table::symbols::{NewSymbols, SymbolDictionary, SymbolStore};
use crate::table::{TableHead, TableSnapshot};

/// The inputs of the state machine in addition to the transaction, and the outputs of applying the
/// transaction.
#[derive(Debug)]
pub(crate) struct ApplyContext<'a> {
    pub(crate) vfs: &'a Arc<Disk>,
    pub(crate) lsn: u64,
    /// Runs up to this transaction are being written to segments and must not change.
    pub(crate) frozen_lsn: u64,
    pub(crate) run_rows: usize,
    /// Files that are no longer used by any table.
    pub(crate) removed: &'a mut Vec<Arc<StoredFile>>,
    /// Segments that were adopted without being synced.
    pub(crate) unsynced: &'a mut Vec<Arc<Segment>>,
    pub(crate) pending_rewrites: &'a mut PendingRewrites,
    /// Changes to the rows of followed tables.
    pub(crate) steps: &'a mut Vec<FollowedStep>,
}

/// Data that the next checkpoint must rewrite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PendingRewrites {
    /// Size in bytes of deleted rows that the checkpoint frees.
    pub(crate) dead_bytes: u64,
    /// Size in bytes of files with updated cells. The checkpoint needs this much disk space to
    /// rewrite them.
    pub(crate) rewrite_bytes: u64,
}

/// Size in bytes of deleted rows below which no checkpoint is requested.
const MUCH_BYTES: u64 = 64 << 10;

impl PendingRewrites {
    /// Whether there are enough deleted rows to justify a checkpoint.
    pub(crate) fn is_much(self) -> bool {
        self.dead_bytes >= MUCH_BYTES
    }
}

/// Returns all symbols up to `max_key` that the dictionary does not contain yet. They include
/// symbols of writes that are in progress or were aborted.
pub(crate) fn new_symbols(
    column: u32,
    dictionary: &SymbolDictionary,
    store: &SymbolStore,
    max_key: i32,
) -> Option<NewSymbols> {
    let (first_key, end) = (dictionary.len() as u32, (max_key + 1) as u32);
    (end > first_key).then(|| NewSymbols { column, first_key, texts: store.texts(first_key, end) })
}

/// Returns the head of a table with this definition and the table's existing dictionaries.
pub(crate) fn head_of(
    schema: TableSchema,
    known: &HashMap<u32, Arc<SymbolDictionary>>,
    next_column: u32,
) -> TableHead {
    let symbol_columns = schema.columns.iter().filter(|c| c.sql_type == SqlType::Symbol);
    let symbols = symbol_columns.map(|column| {
        let dictionary = known.get(&column.id).cloned().unwrap_or_else(|| {
            Arc::new(SymbolDictionary::new(Arc::new(SymbolStore::default()), 0))
        });
        (column.id, dictionary)
    });
    let symbols = symbols.collect();
    let used = schema.columns.iter().map(|column| column.id + 1).max().unwrap_or(1);
    TableHead { next_column: next_column.max(used), schema: Arc::new(schema), symbols }
}

/// Adds symbols to a table's dictionaries.
pub(crate) fn grow_symbols(table: &mut TableSnapshot, new: &[NewSymbols]) -> EngineResult<()> {
    if new.is_empty() {
        return Ok(());
    }
    let mut head = TableHead::clone(&table.head);
    for symbols in new {
        let Some(dictionary) = head.symbols.get_mut(&symbols.column) else {
            continue; // The column was dropped, so its cells are invisible.
        };
        dictionary.store().extend(symbols.first_key, &symbols.texts)?;
        let end = symbols.first_key + symbols.texts.len() as u32;
        *dictionary = Arc::new(dictionary.grown(end));
    }
    table.head = Arc::new(head);
    Ok(())
}
