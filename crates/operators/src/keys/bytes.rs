//! Keys with columns of any type, encoded as bytes. The table stores each key once, in a single
//! buffer.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::memory::MemoryCheck;
use super::table::table_bytes;
use super::{ABSENT, ROWS_AT_ONCE};

/// A key's table entry: part of its hash, its position, and its associated value.
type TableEntry<N> = (u32, u32, N);

/// Key alignment in bytes. Positions are counted in units of this size.
const ALIGNMENT_BYTES: usize = 8;
/// Size in bytes of the length that precedes each key.
const LENGTH_BYTES: usize = size_of::<u32>();

/// The encoding of null, which is not a valid string.
const NULL: &[u8] = &[0xff];

/// Maximum size in bytes of a table that fits in the cache. In such a table, strings are looked up
/// one by one.
const CACHED_BYTES: usize = 1 << 20;

/// Approximate size of a key batch, in bytes.
const BATCH_BYTES: usize = 128 << 10;

/// Encodes keys as bytes and decodes them.
pub(super) struct Encoder {
    form: Form,
    hasher: DefaultHashBuilder,
}

/// Encoding of a key.
enum Form {
    /// The string of the only column, or [`NULL`].
    Text,
    Row(RowConverter),
}

/// A batch's encoded keys, their hashes, and the rows that have a key; `None` means all rows.
pub(crate) struct EncodedRows {
    keys: Keys,
    pub(super) hashes: Vec<u32>,
    pub(super) with_key: Option<NullBuffer>,
}

enum Keys {
    Texts(StringViewArray),
    Rows(Rows),
}

impl EncodedRows {
    #[inline]
    fn key(&self, row: u32) -> &[u8] {
        match &self.keys {
            Keys::Texts(texts) => text(texts, row as usize),
            Keys::Rows(rows) => rows.row(row as usize).data(),
        }
    }

    fn hash(&self, row: u32) -> u32 {
        self.hashes[row as usize]
    }

    /// Number of bytes that these rows' keys occupy in the table.
    pub(super) fn bytes_of(&self, rows: &[u32]) -> usize {
        rows.iter().map(|&row| stored_bytes(self.key(row))).sum()
    }
}

impl Encoder {
    /// Creates an encoder for columns of these types.
    pub(super) fn new(types: Vec<DataType>, hasher: DefaultHashBuilder) -> Result<Self> {
        let form = match &types[..] {
            [DataType::Utf8View] => Form::Text,
            _ => Form::Row(RowConverter::new(types.into_iter().map(SortField::new).collect())?),
        };
        Ok(Self { form, hasher })
    }

    pub(super) fn encode(
        &self,
        keys: &[ArrayRef],
        with_key: Option<NullBuffer>,
    ) -> Result<EncodedRows> {
        let hash = |key: &[u8]| self.hash(key);
        let (keys, hashes) = match (&self.form, keys) {
            (Form::Text, [texts]) => {
                let texts = texts.as_string_view().clone();
                let hashes = (0..texts.len()).map(|row| hash(text(&texts, row))).collect();
                (Keys::Texts(texts), hashes)
            }
            (Form::Text, _) => return internal_err!("expected one key column"),
            (Form::Row(converter), keys) => {
                let rows = converter.convert_columns(keys)?;
                let hashes = rows.iter().map(|row| hash(row.data())).collect();
                (Keys::Rows(rows), hashes)
            }
        };
        Ok(EncodedRows { keys, hashes, with_key })
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        // Only part of the hash is stored.
        (hasher.finish() >> 32) as u32
    }

    /// Decodes keys into columns.
    pub(super) fn columns(&self, keys: &[&[u8]]) -> Result<Vec<ArrayRef>> {
        match &self.form {
            Form::Row(converter) => {
                let parser = converter.parser();
                Ok(converter.convert_rows(keys.iter().map(|key| parser.parse(key)))?)
            }
            Form::Text => {
                let mut texts = StringViewBuilder::with_capacity(keys.len());
                for key in keys {
                    let text = (*key != NULL).then(|| std::str::from_utf8(key)).transpose();
                    texts.append_option(text.map_err(|error| internal_datafusion_err!("{error}"))?);
                }
                Ok(vec![Arc::new(texts.finish())])
            }
        }
    }

    /// Decodes the tables' keys in batches, each with at most `max` keys and a limited number of
    /// bytes.
    pub(super) fn into_columns<N>(
        self,
        mut tables: impl Iterator<Item = ByteTable<N>>,
        max: usize,
    ) -> impl Iterator<Item = Result<Vec<ArrayRef>>> {
        let (mut bytes, mut start) = (vec![], 0);
        std::iter::from_fn(move || {
            while start == bytes.len() {
                (bytes, start) = (tables.next()?.bytes, 0);
            }
            let end = bytes.len().min(start + BATCH_BYTES);
            let keys: Vec<_> = keys_in(&bytes, start, end).take(max).collect();
            start += keys.iter().map(|key| stored_bytes(key)).sum::<usize>();
            Some(self.columns(&keys))
        })
    }
}

/// Returns the keys that begin between two byte offsets.
fn keys_in(bytes: &[u8], mut start: usize, end: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let key = (start < end).then(|| key(bytes, (start / ALIGNMENT_BYTES) as u32))?;
        start += stored_bytes(key);
        Some(key)
    })
}

/// Size in bytes of a stored key, including its length.
fn stored_bytes(key: &[u8]) -> usize {
    (LENGTH_BYTES + key.len()).next_multiple_of(ALIGNMENT_BYTES)
}

/// The key of a row.
#[inline]
fn text(texts: &StringViewArray, row: usize) -> &[u8] {
    if texts.is_null(row) { NULL } else { texts.value(row).as_bytes() }
}

/// Encoded keys and their associated values.
pub(super) struct ByteTable<N> {
    table: HashTable<TableEntry<N>>,
    /// Each key, preceded by its length.
    bytes: Vec<u8>,
}

impl<N> Default for ByteTable<N> {
    fn default() -> Self {
        Self { table: HashTable::new(), bytes: vec![] }
    }
}

impl<N: Copy> ByteTable<N> {
    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Memory used, in bytes.
    pub(super) fn size(&self) -> usize {
        self.table.allocation_size() + self.bytes.capacity()
    }

    /// All keys, in the order they were added.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        keys_in(&self.bytes, 0, self.bytes.len())
    }

    /// Maximum memory in use while adding `keys` keys that total `bytes` bytes
    /// ([`EncodedRows::bytes_of`]). `usize::MAX` if positions would overflow.
    pub(super) fn size_with(&self, keys: usize, bytes: usize) -> usize {
        let grown = |len: usize, capacity: usize| {
            if len > capacity { len.max(2 * capacity) } else { 0 }
        };
        let (len, bytes) = (self.len() + keys, self.bytes.len() + bytes);
        if u32::try_from(bytes / ALIGNMENT_BYTES).is_err() {
            return usize::MAX;
        }
        let table = table_bytes(grown(len, self.table.capacity()), size_of::<TableEntry<N>>());
        self.size() + table + grown(bytes, self.bytes.capacity())
    }

    /// Adds the rows' keys, which occupy `bytes_of_rows` bytes; equal keys are added once. Passes
    /// each row, with the value associated with its key, to `tell`.
    pub(super) fn add(
        &mut self,
        keys: &EncodedRows,
        (rows, bytes_of_rows): (&[u32], usize),
        mut new: impl FnMut() -> N,
        mut tell: impl FnMut(u32, N),
    ) {
        let Self { table, bytes } = self;
        bytes.reserve(bytes_of_rows);
        table.reserve(rows.len(), |(hash, ..)| spread(*hash));
        for &row in rows {
            let (hash, own) = (keys.hash(row), keys.key(row));
            let is_same = |entry: &TableEntry<N>| entry.0 == hash && key(bytes, entry.1) == own;
            let name = match table.entry(spread(hash), is_same, |(hash, ..)| spread(*hash)) {
                Entry::Occupied(entry) => entry.get().2,
                Entry::Vacant(entry) => {
                    let name = new();
                    entry.insert((hash, (bytes.len() / ALIGNMENT_BYTES) as u32, name));
                    bytes.extend_from_slice(&(own.len() as u32).to_le_bytes());
                    bytes.extend_from_slice(own);
                    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT_BYTES), 0);
                    name
                }
            };
            tell(row, name);
        }
    }

    /// Returns the values associated with the rows' keys; `None` for unknown keys. Each step
    /// processes all rows before the next step begins, so cache misses overlap.
    pub(super) fn find(&self, keys: &EncodedRows, rows: &[u32]) -> Vec<Option<N>> {
        let entry = |&row: &u32| {
            let hash = keys.hash(row);
            self.table.find(spread(hash), |entry| entry.0 == hash).map(|entry| (entry.1, entry.2))
        };
        let entries: Vec<_> = rows.iter().map(entry).collect();
        let name = |(&row, entry): (&u32, Option<(u32, N)>)| {
            let (position, name) = entry?;
            let own = keys.key(row);
            // Keys with equal hashes are rare.
            if key(&self.bytes, position) == own {
                Some(name)
            } else {
                self.named(keys.hash(row), own)
            }
        };
        rows.iter().zip(entries).map(name).collect()
    }

    fn named(&self, hash: u32, own: &[u8]) -> Option<N> {
        let is_same = |entry: &TableEntry<N>| entry.0 == hash && key(&self.bytes, entry.1) == own;
        self.table.find(spread(hash), is_same).map(|entry| entry.2)
    }
}

/// Returns the key at a position.
#[inline]
fn key(bytes: &[u8], position: u32) -> &[u8] {
    let start = position as usize * ALIGNMENT_BYTES;
    let (length, rest) = bytes[start..].split_at(LENGTH_BYTES);
    let length = length.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
    &rest[..length]
}

/// Expands a partial hash, because the table uses the first and last bits of a hash.
fn spread(bits: u32) -> u64 {
    u64::from(bits).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Assigns IDs to keys in order of first appearance.
pub(crate) struct ByteNumbers {
    encoder: Encoder,
    table: ByteTable<u32>,
}

impl ByteNumbers {
    /// Creates an empty table for columns with these types.
    pub(crate) fn new(types: Vec<DataType>) -> Result<Self> {
        let encoder = Encoder::new(types, DefaultHashBuilder::default())?;
        Ok(Self { encoder, table: ByteTable::default() })
    }

    /// Number of distinct keys.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.table.size()
    }

    /// Returns the rows' key IDs, or [`ABSENT`] for rows without a key. New keys are added.
    pub(crate) fn add(
        &mut self,
        keys: &[ArrayRef],
        with_key: Option<NullBuffer>,
        hold: MemoryCheck<'_>,
    ) -> Result<Vec<u32>> {
        let keys = self.encoder.encode(keys, with_key)?;
        let mut numbers = vec![ABSENT; keys.hashes.len()];
        let with_key = keys.with_key.as_ref();
        let has_key = |row: &u32| with_key.is_none_or(|rows| rows.is_valid(*row as usize));
        let rows: Vec<_> = (0..numbers.len() as u32).filter(has_key).collect();
        for rows in rows.chunks(ROWS_AT_ONCE) {
            let mut new = vec![];
            for (&row, number) in rows.iter().zip(self.table.find(&keys, rows)) {
                match number {
                    Some(number) => numbers[row as usize] = number,
                    None => new.push(row),
                }
            }
            let bytes = keys.bytes_of(&new);
            hold(self.table.size_with(new.len(), bytes))?;
            let mut next = self.table.len() as u32;
            let number = || {
                next += 1;
                next - 1
            };
            self.table
                .add(&keys, (&new, bytes), number, |row, number| numbers[row as usize] = number);
        }
        Ok(numbers)
    }

    /// Returns the rows' key IDs, or [`ABSENT`] for unknown keys.
    pub(crate) fn find(&self, keys: &[ArrayRef]) -> Result<Vec<u32>> {
        if let (Form::Text, [texts]) = (&self.encoder.form, keys)
            && self.size() <= CACHED_BYTES
        {
            let texts = texts.as_string_view();
            let number = |row| {
                let own = text(texts, row);
                self.table.named(self.encoder.hash(own), own).unwrap_or(ABSENT)
            };
            return Ok((0..texts.len()).map(number).collect());
        }
        let keys = self.encoder.encode(keys, None)?;
        let rows: Vec<_> = (0..keys.hashes.len() as u32).collect();
        let found = self.table.find(&keys, &rows).into_iter();
        Ok(found.map(|number| number.unwrap_or(ABSENT)).collect())
    }
}
