//! Keys of any columns, each held once, as bytes. Several tasks may add to them at a time.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::{RwLock, RwLockWriteGuard};

use super::room::Room;
use super::table::table_bytes;

/// What a key has in the table: a part of its hash, and its place.
type Held = (u32, u32);

/// Keys begin at multiples of so many bytes, of which their places are the numbers.
const PLACE_BYTES: usize = 8;
/// The length of a key is before it, in so many bytes.
const LENGTH_BYTES: usize = size_of::<u32>();

/// What is no text.
const NULL: &[u8] = &[0xff];

/// Bytes of a batch of keys, about.
const BATCH_BYTES: usize = 128 << 10;

/// Parts that keys are in by the first bits of their hashes, where several tasks add some.
const PART_BITS: u32 = 4;

/// See the file's head.
pub(super) struct Encoded {
    form: Form,
    hasher: DefaultHashBuilder,
    part_bits: u32,
    parts: Vec<RwLock<Part>>,
}

/// What the bytes of a key are.
enum Form {
    /// Those of the only column's text, or [`NULL`].
    Text,
    Row(RowConverter),
}

/// Keys with some hashes.
#[derive(Default)]
struct Part {
    table: HashTable<Held>,
    /// Each key after its length.
    bytes: Vec<u8>,
}

/// Keys of a batch with their hashes, and which of its rows have them; `None`: all.
pub(super) struct EncodedRows {
    keys: Keys,
    hashes: Vec<u32>,
    with_key: Option<NullBuffer>,
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
}

impl Encoded {
    /// None of these columns. `is_parted`: in parts, so that tasks do not wait for each other.
    pub(super) fn new(
        types: Vec<DataType>,
        is_parted: bool,
        hasher: DefaultHashBuilder,
    ) -> Result<Self> {
        let form = match &types[..] {
            [DataType::Utf8View] => Form::Text,
            _ => Form::Row(RowConverter::new(types.into_iter().map(SortField::new).collect())?),
        };
        let part_bits = if is_parted { PART_BITS } else { 0 };
        let parts = (0..1 << part_bits).map(|_| RwLock::default()).collect();
        Ok(Self { form, hasher, part_bits, parts })
    }

    pub(super) fn encode(
        &self,
        keys: &[ArrayRef],
        with_key: Option<NullBuffer>,
    ) -> Result<EncodedRows> {
        let hash = |key: &[u8]| {
            let mut hasher = self.hasher.build_hasher();
            hasher.write(key);
            // A part of the hash is kept.
            (hasher.finish() >> 32) as u32
        };
        let (keys, hashes) = match (&self.form, keys) {
            (Form::Text, [texts]) => {
                let texts = texts.as_string_view().clone();
                let hashes = (0..texts.len()).map(|row| hash(text(&texts, row))).collect();
                (Keys::Texts(texts), hashes)
            }
            (Form::Text, _) => return internal_err!("one column of keys is expected"),
            (Form::Row(converter), keys) => {
                let rows = converter.convert_columns(keys)?;
                let hashes = rows.iter().map(|row| hash(row.data())).collect();
                (Keys::Rows(rows), hashes)
            }
        };
        Ok(EncodedRows { keys, hashes, with_key })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.read().table.len()).sum()
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.parts.iter().map(|part| part.read().size()).sum()
    }

    /// Adds those of the rows where `wanted` is set, or of all. Whether there was room for them;
    /// some were added if there was none for all.
    pub(super) fn add(
        &self,
        keys: &EncodedRows,
        wanted: Option<&BooleanBuffer>,
        room: &impl Room,
    ) -> bool {
        let rows = self.by_part(keys, wanted);
        let mut waiting = vec![];
        for (part, rows) in self.parts.iter().zip(&rows).filter(|(_, rows)| !rows.is_empty()) {
            // Another task may be adding to it.
            let Some(part) = part.try_write() else {
                waiting.push((part, rows));
                continue;
            };
            if !add_to(part, keys, rows, room) {
                return false;
            }
        }
        waiting.into_iter().all(|(part, rows)| add_to(part.write(), keys, rows, room))
    }

    /// Which of the rows have a key that was added.
    pub(super) fn has(&self, keys: &EncodedRows) -> BooleanBuffer {
        let mut found = BooleanBufferBuilder::new(keys.hashes.len());
        found.append_n(keys.hashes.len(), false);
        for (part, rows) in self.parts.iter().zip(self.by_part(keys, None)) {
            let is_there = part.read().has(keys, &rows);
            for (row, _) in rows.iter().zip(is_there).filter(|(_, is_there)| *is_there) {
                found.set_bit(*row as usize, true);
            }
        }
        found.finish()
    }

    /// Those of the rows with keys where `wanted` is set, or of all, by their parts.
    fn by_part(&self, keys: &EncodedRows, wanted: Option<&BooleanBuffer>) -> Vec<Vec<u32>> {
        let all = keys.hashes.len();
        let mut parts: Vec<_> =
            self.parts.iter().map(|_| Vec::with_capacity(all / self.parts.len())).collect();
        let with_key = keys.with_key.as_ref().map(NullBuffer::inner);
        for (row, hash) in keys.hashes.iter().enumerate() {
            if [with_key, wanted].into_iter().flatten().all(|rows| rows.value(row)) {
                let part = hash.checked_shr(u32::BITS - self.part_bits).unwrap_or(0);
                parts[part as usize].push(row as u32);
            }
        }
        parts
    }

    /// The columns of all keys, in batches of so many, or of some bytes.
    pub(super) fn into_columns(self, most: usize) -> impl Iterator<Item = Result<Vec<ArrayRef>>> {
        let mut parts = self.parts.into_iter().map(RwLock::into_inner);
        let (mut bytes, mut start) = (vec![], 0);
        std::iter::from_fn(move || {
            while start == bytes.len() {
                (bytes, start) = (parts.next()?.bytes, 0);
            }
            let (mut keys, end) = (vec![], bytes.len().min(start + BATCH_BYTES));
            while keys.len() < most && start < end {
                let key = key(&bytes, (start / PLACE_BYTES) as u32);
                keys.push(key);
                start += (LENGTH_BYTES + key.len()).next_multiple_of(PLACE_BYTES);
            }
            Some(self.form.columns(&keys))
        })
    }
}

impl Form {
    /// The columns of keys.
    fn columns(&self, keys: &[&[u8]]) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Row(converter) => {
                let parser = converter.parser();
                Ok(converter.convert_rows(keys.iter().map(|key| parser.parse(key)))?)
            }
            Self::Text => {
                let mut texts = StringViewBuilder::with_capacity(keys.len());
                for key in keys {
                    let text = (*key != NULL).then(|| std::str::from_utf8(key)).transpose();
                    texts.append_option(text.map_err(|error| internal_datafusion_err!("{error}"))?);
                }
                Ok(vec![Arc::new(texts.finish())])
            }
        }
    }
}

/// The key of a row.
#[inline]
fn text(texts: &StringViewArray, row: usize) -> &[u8] {
    if texts.is_null(row) { NULL } else { texts.value(row).as_bytes() }
}

/// Adds the keys of rows.
fn add_to(
    mut part: RwLockWriteGuard<'_, Part>,
    keys: &EncodedRows,
    rows: &[u32],
    room: &impl Room,
) -> bool {
    let is_there = part.has(keys, rows);
    let rows = rows.iter().zip(is_there).filter(|(_, is_there)| !is_there);
    let rows: Vec<_> = rows.map(|(row, _)| *row).collect();
    let bytes = bytes_of(keys, &rows);
    let (size, most) = (part.size(), part.size_with(rows.len(), bytes));
    if !room.take(most - size) {
        return false;
    }
    part.bytes.reserve(bytes);
    part.table.reserve(rows.len(), |(hash, _)| spread(*hash));
    part.add(keys, &rows);
    room.give(most - part.size());
    true
}

impl Part {
    fn size(&self) -> usize {
        self.table.allocation_size() + self.bytes.capacity()
    }

    /// Bytes held at most while so many keys of so many bytes are added; more than there are where
    /// places do not reach.
    fn size_with(&self, keys: usize, bytes: usize) -> usize {
        let grown = |len: usize, capacity: usize| {
            if len > capacity { len.max(2 * capacity) } else { 0 }
        };
        let (len, bytes) = (self.table.len() + keys, self.bytes.len() + bytes);
        if u32::try_from(bytes / PLACE_BYTES).is_err() {
            return usize::MAX;
        }
        let table = table_bytes(grown(len, self.table.capacity()), size_of::<Held>());
        self.size() + table + grown(bytes, self.bytes.capacity())
    }

    /// Adds the keys of rows; of equal ones the first.
    fn add(&mut self, keys: &EncodedRows, rows: &[u32]) {
        let Self { table, bytes } = self;
        for &row in rows {
            let (hash, own) = (keys.hash(row), keys.key(row));
            let is_same = |entry: &Held| entry.0 == hash && key(bytes, entry.1) == own;
            let entry = table.entry(spread(hash), is_same, |(hash, _)| spread(*hash));
            if let Entry::Vacant(entry) = entry {
                entry.insert((hash, (bytes.len() / PLACE_BYTES) as u32));
                bytes.extend_from_slice(&(own.len() as u32).to_le_bytes());
                bytes.extend_from_slice(own);
                bytes.resize(bytes.len().next_multiple_of(PLACE_BYTES), 0);
            }
        }
    }

    /// Which of the rows have a key that was added. Each step is done for all rows before the
    /// next one, so that what is not in the cache is waited for together.
    fn has(&self, keys: &EncodedRows, rows: &[u32]) -> Vec<bool> {
        let place = |&row: &u32| {
            let hash = keys.hash(row);
            self.table.find(spread(hash), |entry| entry.0 == hash).map(|entry| entry.1)
        };
        let places: Vec<_> = rows.iter().map(place).collect();
        let is_there = |(&row, place): (&u32, Option<u32>)| {
            place.is_some_and(|place| {
                let own = keys.key(row);
                // Keys with equal hashes are rare.
                key(&self.bytes, place) == own || self.place(keys.hash(row), own).is_some()
            })
        };
        rows.iter().zip(places).map(is_there).collect()
    }

    fn place(&self, hash: u32, own: &[u8]) -> Option<u32> {
        let is_same = |entry: &Held| entry.0 == hash && key(&self.bytes, entry.1) == own;
        self.table.find(spread(hash), is_same).map(|entry| entry.1)
    }
}

/// What the keys of rows take.
fn bytes_of(keys: &EncodedRows, rows: &[u32]) -> usize {
    let bytes = |&row: &u32| (LENGTH_BYTES + keys.key(row).len()).next_multiple_of(PLACE_BYTES);
    rows.iter().map(bytes).sum()
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
