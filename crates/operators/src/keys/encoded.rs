//! Keys of any columns as bytes, each stored once. Several tasks may add keys concurrently.

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use datafusion::common::Result;
use hashbrown::DefaultHashBuilder;
use parking_lot::{RwLock, RwLockWriteGuard};

use super::bytes::{ByteTable, EncodedRows, Encoder};
use super::room::Room;

/// Number of hash bits that select a partition, if several tasks add keys.
const PART_BITS: u32 = 4;

/// See the module documentation.
pub(super) struct Encoded {
    encoder: Encoder,
    part_bits: u32,
    parts: Vec<RwLock<Part>>,
}

/// Keys whose hashes start with the same bits.
type Part = ByteTable<()>;

impl Encoded {
    /// Creates an empty set for these columns. `is_parted` partitions it, so that tasks do not wait
    /// for each other.
    pub(super) fn new(
        types: Vec<DataType>,
        is_parted: bool,
        hasher: DefaultHashBuilder,
    ) -> Result<Self> {
        let part_bits = if is_parted { PART_BITS } else { 0 };
        let parts = (0..1 << part_bits).map(|_| RwLock::default()).collect();
        Ok(Self { encoder: Encoder::new(types, hasher)?, part_bits, parts })
    }

    pub(super) fn encode(
        &self,
        keys: &[ArrayRef],
        with_key: Option<NullBuffer>,
    ) -> Result<EncodedRows> {
        self.encoder.encode(keys, with_key)
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.read().len()).sum()
    }

    /// Memory used, in bytes.
    pub(super) fn size(&self) -> usize {
        self.parts.iter().map(|part| part.read().size()).sum()
    }

    /// Adds the keys of all rows, or of those set in `wanted`. Returns false if memory runs out;
    /// some keys may have been added.
    pub(super) fn add(
        &self,
        keys: &EncodedRows,
        wanted: Option<&BooleanBuffer>,
        room: &impl Room,
    ) -> bool {
        let rows = self.by_part(keys, wanted);
        let mut waiting = vec![];
        for (part, rows) in self.parts.iter().zip(&rows).filter(|(_, rows)| !rows.is_empty()) {
            // Another task may be adding keys to this partition.
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

    /// Returns which rows have a key in this set.
    pub(super) fn has(&self, keys: &EncodedRows) -> BooleanBuffer {
        let mut found = BooleanBufferBuilder::new(keys.hashes.len());
        found.append_n(keys.hashes.len(), false);
        for (part, rows) in self.parts.iter().zip(self.by_part(keys, None)) {
            let part = part.read();
            for (row, _) in rows.iter().zip(part.find(keys, &rows)).filter(|(_, own)| own.is_some())
            {
                found.set_bit(*row as usize, true);
            }
        }
        found.finish()
    }

    /// Returns the rows that have a key, by partition; with `wanted`, only the rows set in it.
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

    /// Decodes all keys into columns.
    pub(super) fn columns(&self) -> Result<Vec<ArrayRef>> {
        let parts: Vec<_> = self.parts.iter().map(RwLock::read).collect();
        let keys: Vec<_> = parts.iter().flat_map(|part| part.keys()).collect();
        self.encoder.columns(&keys)
    }

    /// Decodes all keys into columns, in batches of at most `most` keys and a limited number of
    /// bytes.
    pub(super) fn into_columns(self, most: usize) -> impl Iterator<Item = Result<Vec<ArrayRef>>> {
        self.encoder.into_columns(self.parts.into_iter().map(RwLock::into_inner), most)
    }
}

/// Adds the keys of rows.
fn add_to(
    mut part: RwLockWriteGuard<'_, Part>,
    keys: &EncodedRows,
    rows: &[u32],
    room: &impl Room,
) -> bool {
    let known = part.find(keys, rows);
    let rows = rows.iter().zip(known).filter(|(_, known)| known.is_none());
    let rows: Vec<_> = rows.map(|(row, _)| *row).collect();
    let bytes = keys.bytes_of(&rows);
    let (size, most) = (part.size(), part.size_with(rows.len(), bytes));
    if !room.take(most - size) {
        return false;
    }
    part.add(keys, (&rows, bytes), || (), |_, ()| {});
    room.give(most - part.size());
    true
}
