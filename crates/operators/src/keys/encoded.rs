//! Keys of any columns, each held once, as bytes. Several tasks may add to them at a time.

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use datafusion::common::Result;
use hashbrown::DefaultHashBuilder;
use parking_lot::{RwLock, RwLockWriteGuard};

use super::bytes::{ByteTable, EncodedRows, Encoder};
use super::room::Room;

/// Parts that keys are in by the first bits of their hashes, where several tasks add some.
const PART_BITS: u32 = 4;

/// See the file's head.
pub(super) struct Encoded {
    encoder: Encoder,
    part_bits: u32,
    parts: Vec<RwLock<Part>>,
}

/// Keys with some hashes.
type Part = ByteTable<()>;

impl Encoded {
    /// None of these columns. `is_parted`: in parts, so that tasks do not wait for each other.
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

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.read().len()).sum()
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
            let part = part.read();
            for (row, _) in rows.iter().zip(part.find(keys, &rows)).filter(|(_, own)| own.is_some())
            {
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

    /// The columns of all keys.
    pub(super) fn columns(&self) -> Result<Vec<ArrayRef>> {
        let parts: Vec<_> = self.parts.iter().map(RwLock::read).collect();
        let keys: Vec<_> = parts.iter().flat_map(|part| part.keys()).collect();
        self.encoder.columns(&keys)
    }

    /// The same, in batches of so many, or of some bytes.
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
