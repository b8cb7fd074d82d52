//! Reads a connection's messages, and manages the tables for the next commit.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxBuildHasher;
use tidemark_types::ErrorCode;
use tidemark_types::identifier::{fold, is_valid_table_name};

use super::block::{Block, Context, Flags};
use super::bytes::Bytes;
use super::dictionary::Dictionary;
use super::options::QwpOptions;
use super::table::TableColumns;
use super::{QwpFailure, QwpStatus};
use crate::rows::shown;
use crate::rows::{RefusedTarget, TableRows, Targets};

const MAGIC: &[u8; 4] = b"QWP1";
const VERSION: u8 = 1;
const DEFER_COMMIT: u8 = 0x01;
const GORILLA: u8 = 0x04;
const DELTA_DICTIONARY: u8 = 0x08;

/// Reads one connection's messages. Must not be used again after a failure.
#[derive(Debug)]
pub struct QwpReader {
    options: QwpOptions,
    dictionary: Dictionary,
    tables: Vec<TableColumns>,
    by_name: HashMap<String, usize, FxBuildHasher>,
    /// Every table name that the connection has used, case-folded.
    named: HashSet<String, FxBuildHasher>,
    rows: u64,
    pending_bytes: usize,
}

impl QwpReader {
    /// Creates a reader without rows.
    #[must_use]
    pub fn new(options: QwpOptions) -> Self {
        Self {
            options,
            dictionary: Dictionary::default(),
            tables: Vec::new(),
            by_name: HashMap::default(),
            named: HashSet::default(),
            rows: 0,
            pending_bytes: 0,
        }
    }

    /// Returns the number of rows not yet committed.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the memory use of uncommitted rows in bytes.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Returns the dictionary's memory use in bytes.
    #[must_use]
    pub fn dictionary_bytes(&self) -> usize {
        self.dictionary.memory_bytes()
    }

    /// Reads a message. Returns whether the commit of its rows is deferred.
    pub fn read(&mut self, message: &[u8], targets: &mut dyn Targets) -> Result<bool, QwpFailure> {
        let memory = self.options.max_pending_bytes.saturating_sub(self.pending_bytes);
        let mut bytes = Bytes::new(message, memory);
        let (flags, tables) = header(&mut bytes)?;
        if flags.delta {
            self.dictionary.extend(&mut bytes, &self.options)?;
        }
        let context = Context { flags, options: &self.options, entries: self.dictionary.len() };
        let mut blocks = Vec::new();
        for _ in 0..tables {
            blocks.push(Block::read(&mut bytes, &context)?);
        }
        if bytes.left() > 0 {
            let reason = format!("{} bytes after the last table", bytes.left());
            return Err(bytes.malformed(reason).into());
        }
        // Applies the rows only after the entire message has been read without error.
        blocks.iter().try_for_each(|block| self.take(block, targets))?;
        Ok(flags.defers)
    }

    fn take(&mut self, block: &Block<'_>, targets: &mut dyn Targets) -> Result<(), QwpFailure> {
        let folded = fold(block.table);
        if !is_valid_table_name(block.table) {
            let reason = format!("invalid table name: {}", shown(block.table.as_bytes()));
            return Err(QwpFailure::refused(QwpStatus::ParseError, reason));
        }
        if block.rows == 0 {
            return Ok(());
        }
        let position = match self.by_name.get(&folded) {
            Some(position) => *position,
            None => self.open(folded, block.table, targets)?,
        };
        let table = &mut self.tables[position];
        let bytes = table
            .push(block, &mut self.dictionary, &self.options)
            .map_err(|failure| failure.of(|| table.rows.target()))?;
        self.pending_bytes = self.pending_bytes.saturating_add(bytes);
        self.rows += block.rows as u64;
        Ok(())
    }

    fn open(
        &mut self,
        folded: String,
        name: &str,
        targets: &mut dyn Targets,
    ) -> Result<usize, QwpFailure> {
        let max = self.options.max_tables;
        if !self.named.contains(&folded) {
            if self.named.len() >= max {
                let reason = format!("too many tables [qwp.max.tables.per.connection={max}]");
                return Err(QwpFailure::refused(QwpStatus::ParseError, reason));
            }
            self.named.insert(folded.clone());
        }
        let target = |exists| RefusedTarget { table: name.to_owned(), exists };
        let found = match targets.table(name) {
            Ok(found) => found,
            Err(error) if error.code == ErrorCode::InvalidName => {
                let refused = QwpFailure::refused(QwpStatus::SchemaMismatch, error.message);
                return Err(refused.of(|| target(true)));
            }
            Err(error) => return Err(error.into()),
        };
        if found.is_none() && !self.options.create_tables {
            let reason = format!(
                "table {} does not exist, and creating tables is disabled",
                shown(name.as_bytes())
            );
            let refused = QwpFailure::refused(QwpStatus::SchemaMismatch, reason);
            return Err(refused.of(|| target(false)));
        }
        self.tables.push(TableColumns::new(name, found));
        self.by_name.insert(folded, self.tables.len() - 1);
        Ok(self.tables.len() - 1)
    }

    /// Returns all rows that are waiting to be committed. The rows of later messages belong to the
    /// next commit.
    pub fn take_tables(&mut self) -> Vec<TableRows> {
        self.by_name.clear();
        self.rows = 0;
        self.pending_bytes = 0;
        let tables = std::mem::take(&mut self.tables);
        tables.into_iter().map(|table| table.rows).collect()
    }
}

/// Reads the flags and the number of tables.
fn header(bytes: &mut Bytes<'_>) -> Result<(Flags, u16), QwpFailure> {
    if bytes.take(4, "message header")? != MAGIC {
        return Err(bytes.malformed("the message does not start with QWP1").into());
    }
    let version = bytes.byte("message header")?;
    if version != VERSION {
        return Err(bytes
            .malformed(format!("version {version} differs from the negotiated version {VERSION}"))
            .into());
    }
    let flags = bytes.byte("message header")?;
    if flags & !(DEFER_COMMIT | GORILLA | DELTA_DICTIONARY) != 0 {
        return Err(bytes.malformed(format!("reserved flags are set [flags={flags:#04x}]")).into());
    }
    let tables = u16::from_le_bytes(bytes.array("message header")?);
    let length = u32::from_le_bytes(bytes.array("message header")?);
    if length as usize != bytes.left() {
        let left = bytes.left();
        return Err(bytes
            .malformed(format!("the header specifies {length} bytes, but {left} were found"))
            .into());
    }
    let is_set = |flag| flags & flag != 0;
    let (gorilla, delta) = (is_set(GORILLA), is_set(DELTA_DICTIONARY));
    Ok((Flags { defers: is_set(DEFER_COMMIT), gorilla, delta }, tables))
}
