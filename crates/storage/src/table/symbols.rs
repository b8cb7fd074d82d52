//! Symbol dictionaries: strings get permanent keys in order of first use.
//!
//! A column's store is append-only and shared by all snapshots; each snapshot sees a prefix. An
//! aborted bulk write may leave strings that no row uses. Such strings cost a few bytes, but
//! because they remain, writers need not lock the keys.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxBuildHasher;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::disk::file::StoredFile;

/// Strings added to a dictionary, with keys starting at `first_key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewSymbols {
    pub(crate) column: u32,
    pub(crate) first_key: u32,
    pub(crate) texts: Vec<String>,
}

/// All of a column's symbols, including those of writes in progress.
#[derive(Default)]
pub(crate) struct SymbolStore {
    inner: RwLock<Texts>,
    /// Files with the symbols that the manifest lists, in key order.
    files: Mutex<Vec<SymbolFile>>,
    /// Damage to one of the files, if any. Some strings are then unknown.
    damage: Mutex<Option<EngineError>>,
    /// Number of unknown strings.
    lost: AtomicUsize,
    /// Whether the next checkpoint rewrites all strings, including placeholders for unknown
    /// strings.
    accepted: AtomicBool,
}

/// Consecutive symbols of an on-disk dictionary.
#[derive(Debug, Clone)]
pub(crate) struct SymbolFile {
    pub(crate) file: Arc<StoredFile>,
    pub(crate) first_key: u32,
    pub(crate) count: u32,
    pub(crate) file_len: u64,
    pub(crate) crc: u32,
}

#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    /// End of each string in `bytes`.
    ends: Vec<i32>,
    keys: HashTable<u32>,
}

impl Texts {
    fn text(&self, key: u32) -> &[u8] {
        let key = key as usize;
        let start = if key == 0 { 0 } else { self.ends[key - 1] as usize };
        &self.bytes[start..self.ends[key] as usize]
    }

    fn find(&self, hash: u64, text: &[u8]) -> Option<u32> {
        self.keys.find(hash, |&key| self.text(key) == text).copied()
    }

    fn intern(&mut self, text: &str) -> EngineResult<u32> {
        let hash = FxBuildHasher.hash_one(text.as_bytes());
        if let Some(key) = self.find(hash, text.as_bytes()) {
            return Ok(key);
        }
        let too_many =
            || EngineError::new(ErrorCode::ResourceLimit, "too many distinct symbols in a column");
        let end = i32::try_from(self.bytes.len() + text.len()).map_err(|_| too_many())?;
        let key = i32::try_from(self.ends.len()).map_err(|_| too_many())? as u32;
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(end);
        let Self { bytes, ends, keys } = self;
        let hash_of = |&key: &u32| {
            let key = key as usize;
            let start = if key == 0 { 0 } else { ends[key - 1] as usize };
            FxBuildHasher.hash_one(&bytes[start..ends[key] as usize])
        };
        keys.insert_unique(hash, key, hash_of);
        Ok(key)
    }
}

impl SymbolStore {
    /// Returns the keys of a string column, and adds keys for new strings.
    pub(crate) fn intern_column(&self, array: &ArrayRef) -> EngineResult<Int32Array> {
        let mut texts = self.inner.write();
        if let Some(dictionary) = array.as_dictionary_opt::<Int32Type>() {
            let values = dictionary.values();
            let mut known = vec![-1_i32; values.len()];
            let mut intern = |key: usize| {
                if known[key] < 0 {
                    known[key] = texts.intern(text_at(values, key)?)? as i32;
                }
                Ok(known[key])
            };
            let keys = dictionary.keys();
            if keys.null_count() == 0 && values.null_count() == 0 {
                let keys = keys.values().iter().map(|key| intern(*key as usize));
                let keys = keys.collect::<EngineResult<Vec<i32>>>()?;
                return Ok(Int32Array::new(keys.into(), None));
            }
            // A key may also point to a null value.
            let mut given = |key: usize| values.is_valid(key).then(|| intern(key)).transpose();
            let keys = keys.iter().map(|key| key.map_or(Ok(None), |key| given(key as usize)));
            return keys.collect();
        }
        (0..array.len())
            .map(|row| {
                let text = array.is_valid(row).then(|| text_at(array, row)).transpose()?;
                text.map(|text| texts.intern(text).map(|key| key as i32)).transpose()
            })
            .collect()
    }

    /// Adds the strings from a log record or file, and compares strings that are already known.
    pub(crate) fn extend(&self, first_key: u32, new: &[String]) -> EngineResult<()> {
        let mut texts = self.inner.write();
        let damaged = || EngineError::new(ErrorCode::Damaged, "symbols are out of sequence");
        for (expected, text) in (first_key..).zip(new) {
            if expected as usize > texts.ends.len() || texts.intern(text)? != expected {
                return Err(damaged());
            }
        }
        Ok(())
    }

    /// Damage to the dictionary's files, if any.
    pub(crate) fn damage(&self) -> Option<EngineError> {
        self.damage.lock().clone()
    }

    /// Number of unknown strings.
    pub(crate) fn lost_texts(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Makes the placeholders for unknown strings permanent at the next checkpoint.
    pub(crate) fn accept_losses(&self) {
        self.accepted.store(self.damage.lock().is_some(), Ordering::Relaxed);
    }

    /// Whether a checkpoint must rewrite all strings.
    pub(crate) fn accepts_losses(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Marks the dictionary as damaged from now on.
    pub(crate) fn condemn(&self, error: EngineError) {
        crate::disk::suspicion::suspect();
        self.damage.lock().get_or_insert(error);
    }

    /// Assigns the keys of an unreadable file to placeholder strings, so that later symbols keep
    /// their keys.
    pub(crate) fn lose(&self, file: &SymbolFile, error: EngineError) -> EngineResult<()> {
        self.condemn(error);
        let known = self.inner.read().ends.len() as u32;
        let end = file.first_key + file.count;
        // The placeholders start with the replacement character, because no symbol does.
        let text = |key: u32| format!("\u{FFFD}lost symbol {key}");
        let lost: Vec<String> = (known..end).map(text).collect();
        self.lost.fetch_add(lost.len(), Ordering::Relaxed);
        self.extend(known, &lost)
    }

    pub(crate) fn symbol_files(&self) -> Vec<SymbolFile> {
        self.files.lock().clone()
    }

    pub(crate) fn set_symbol_files(&self, files: Vec<SymbolFile>) {
        *self.files.lock() = files;
        if self.accepted.swap(false, Ordering::Relaxed) {
            *self.damage.lock() = None;
            self.lost.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn files(&self) -> Vec<Arc<StoredFile>> {
        self.files.lock().iter().map(|file| Arc::clone(&file.file)).collect()
    }

    /// Returns the strings for keys `from..to`.
    pub(crate) fn texts(&self, from: u32, to: u32) -> Vec<String> {
        let texts = self.inner.read();
        (from..to).map(|key| String::from_utf8_lossy(texts.text(key)).into_owned()).collect()
    }

    fn lookup(&self, text: &str) -> Option<u32> {
        let hash = FxBuildHasher.hash_one(text.as_bytes());
        self.inner.read().find(hash, text.as_bytes())
    }

    fn values(&self, len: u32) -> StringArray {
        let texts = self.inner.read();
        let len = len as usize;
        let mut offsets = Vec::with_capacity(len + 1);
        offsets.push(0);
        offsets.extend_from_slice(&texts.ends[..len]);
        let size = offsets[len] as usize;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        StringArray::new(offsets, Buffer::from(&texts.bytes[..size]), None)
    }
}

fn text_at(array: &ArrayRef, row: usize) -> EngineResult<&str> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Ok(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Ok(array.as_string_view().value(row)),
        other => Err(EngineError::new(
            ErrorCode::TypeMismatch,
            format!("a SYMBOL column cannot store {other}"),
        )),
    }
}

impl fmt::Debug for SymbolStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolStore")
            .field("len", &self.inner.read().ends.len())
            .finish_non_exhaustive()
    }
}

/// Symbols of one column within one snapshot.
#[derive(Debug)]
pub struct SymbolDictionary {
    store: Arc<SymbolStore>,
    len: u32,
    values: OnceLock<ArrayRef>,
}

impl SymbolDictionary {
    pub(crate) fn new(store: Arc<SymbolStore>, len: u32) -> Self {
        Self { store, len, values: OnceLock::new() }
    }

    pub(crate) fn store(&self) -> &Arc<SymbolStore> {
        &self.store
    }

    /// Returns the same store, visible up to `len`.
    pub(crate) fn grown(&self, len: u32) -> Self {
        Self::new(Arc::clone(&self.store), len.max(self.len))
    }

    /// Whether this dictionary extends an earlier dictionary, so keys of the earlier dictionary
    /// have the same meaning.
    #[must_use]
    pub fn extends(&self, earlier: &Self) -> bool {
        Arc::ptr_eq(&self.store, &earlier.store) && earlier.len <= self.len
    }

    /// Number of symbols; keys are `0..len`.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the string for a key; empty if the key is out of range.
    pub fn get(&self, key: u32) -> &str {
        let texts = self.array().as_string::<i32>();
        if (key as usize) < texts.len() { texts.value(key as usize) } else { "" }
    }

    /// Returns the key of a string, if any.
    pub fn lookup(&self, text: &str) -> Option<u32> {
        self.store.lookup(text).filter(|&key| key < self.len)
    }

    /// All strings in key order, as one `StringArray` shared by all callers.
    pub fn values(&self) -> ArrayRef {
        Arc::clone(self.array())
    }

    /// Fails if some strings are unknown.
    pub(crate) fn sound(&self) -> EngineResult<&ArrayRef> {
        match self.store.damage() {
            Some(error) => Err(error),
            None => Ok(self.array()),
        }
    }

    pub(crate) fn array(&self) -> &ArrayRef {
        self.values.get_or_init(|| Arc::new(self.store.values(self.len)))
    }
}
