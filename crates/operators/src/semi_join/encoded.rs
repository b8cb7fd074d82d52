//! Keys of any columns, each held once, as the bytes of a row.

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use super::table::table_bytes;

/// What a key has in the table: a part of its hash, and its place.
type Entry = (u32, u32);

/// Keys begin at multiples of so many bytes, of which their places are the numbers.
const PLACE_BYTES: usize = 8;
/// The length of a key is before it, in so many bytes.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Bytes of a batch of keys, about.
const BATCH_BYTES: usize = 128 << 10;

/// See the file's head.
pub(super) struct Encoded {
    converter: RowConverter,
    hasher: DefaultHashBuilder,
    table: HashTable<Entry>,
    /// Each key after its length.
    bytes: Vec<u8>,
}

/// Keys of a batch with their hashes, and which of its rows have them; `None`: all.
pub(super) struct EncodedRows {
    rows: Rows,
    hashes: Vec<u32>,
    with_key: Option<NullBuffer>,
}

impl EncodedRows {
    fn has_key(&self, row: usize) -> bool {
        self.with_key.as_ref().is_none_or(|with_key| with_key.is_valid(row))
    }
}

impl Encoded {
    pub(super) fn new(fields: Vec<SortField>, hasher: DefaultHashBuilder) -> Result<Self> {
        Ok(Self {
            converter: RowConverter::new(fields)?,
            hasher,
            table: HashTable::new(),
            bytes: vec![],
        })
    }

    pub(super) fn encode(
        &self,
        keys: &[ArrayRef],
        with_key: Option<NullBuffer>,
    ) -> Result<EncodedRows> {
        let rows = self.converter.convert_columns(keys)?;
        // A part of the hash is kept.
        let hash = |row| (self.hasher.hash_one(rows.row(row).data()) >> 32) as u32;
        let hashes = (0..rows.num_rows()).map(hash).collect();
        Ok(EncodedRows { rows, hashes, with_key })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.table.allocation_size() + self.bytes.capacity()
    }

    /// Bytes held at most while these are added; more than there are where places do not reach.
    pub(super) fn size_with(&self, EncodedRows { rows, .. }: &EncodedRows) -> usize {
        let grown = |len: usize, capacity: usize| {
            if len > capacity { len.max(2 * capacity) } else { 0 }
        };
        let len = self.len() + rows.num_rows();
        let bytes = self.bytes.len() + most_bytes(rows);
        if u32::try_from(bytes / PLACE_BYTES).is_err() {
            return usize::MAX;
        }
        let table = table_bytes(grown(len, self.table.capacity()), size_of::<Entry>());
        self.size() + table + grown(bytes, self.bytes.capacity())
    }

    /// Adds those of the rows where `wanted` is set, or of all.
    pub(super) fn add(&mut self, keys: &EncodedRows, wanted: Option<&BooleanBuffer>) {
        let found = self.has(keys);
        let is_new = |row: &usize| {
            !found.value(*row)
                && keys.has_key(*row)
                && wanted.is_none_or(|wanted| wanted.value(*row))
        };
        self.bytes.reserve(most_bytes(&keys.rows));
        self.table.reserve(keys.rows.num_rows(), |(hash, _)| spread(*hash));
        for row in (0..keys.rows.num_rows()).filter(is_new) {
            let (hash, row) = (keys.hashes[row], keys.rows.row(row));
            let row = row.data();
            // An equal one may be among those before it.
            if self.place(hash, row).is_none() {
                let place = (self.bytes.len() / PLACE_BYTES) as u32;
                self.bytes.extend_from_slice(&(row.len() as u32).to_le_bytes());
                self.bytes.extend_from_slice(row);
                let end = self.bytes.len().next_multiple_of(PLACE_BYTES);
                self.bytes.resize(end, 0);
                self.table.insert_unique(spread(hash), (hash, place), |(hash, _)| spread(*hash));
            }
        }
    }

    /// Which of the rows have a key that was added. Each step is done for all rows before the
    /// next one, so that what is not in the cache is waited for together.
    pub(super) fn has(&self, keys: &EncodedRows) -> BooleanBuffer {
        let EncodedRows { rows, hashes, .. } = keys;
        let entry = |&hash: &u32| self.table.find(spread(hash), |entry| entry.0 == hash);
        let places: Vec<_> = hashes.iter().map(|hash| entry(hash).map(|entry| entry.1)).collect();
        BooleanBuffer::collect_bool(rows.num_rows(), |row| match places[row] {
            Some(place) if keys.has_key(row) => {
                let own = rows.row(row);
                // Keys with equal hashes are rare.
                key(&self.bytes, place) == own.data()
                    || self.place(hashes[row], own.data()).is_some()
            }
            _ => false,
        })
    }

    fn place(&self, hash: u32, row: &[u8]) -> Option<u32> {
        let is_same = |entry: &Entry| entry.0 == hash && key(&self.bytes, entry.1) == row;
        self.table.find(spread(hash), is_same).map(|entry| entry.1)
    }

    /// The columns of all keys, in batches of so many, or of some bytes.
    pub(super) fn into_columns(self, most: usize) -> impl Iterator<Item = Result<Vec<ArrayRef>>> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let parser = self.converter.parser();
            let (mut rows, end) = (vec![], self.bytes.len().min(place * PLACE_BYTES + BATCH_BYTES));
            while rows.len() < most && place * PLACE_BYTES < end {
                let key = key(&self.bytes, place as u32);
                rows.push(parser.parse(key));
                place += (LENGTH_BYTES + key.len()).div_ceil(PLACE_BYTES);
            }
            (!rows.is_empty()).then(|| Ok(self.converter.convert_rows(rows)?))
        })
    }
}

/// What keys take, if each is a new one.
fn most_bytes(rows: &Rows) -> usize {
    rows.size() + rows.num_rows() * (LENGTH_BYTES + PLACE_BYTES)
}

/// The key at a place.
fn key(bytes: &[u8], place: u32) -> &[u8] {
    let start = place as usize * PLACE_BYTES;
    let (length, rest) = bytes[start..].split_at(LENGTH_BYTES);
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    &rest[..length]
}

/// A table looks at the first and at the last bits of a hash.
fn spread(part: u32) -> u64 {
    u64::from(part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
