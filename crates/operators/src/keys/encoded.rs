//! Keys with columns of any type, encoded as bytes and stored once each. Several tasks may add keys
//! concurrently.

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use datafusion::common::Result;
use hashbrown::DefaultHashBuilder;
use parking_lot::{RwLock, RwLockWriteGuard};

use super::bytes::{ByteTable, EncodedRows, Encoder};
use super::memory::KeyMemory;

/// Number of hash bits that select a partition when several tasks add keys.
const PARTITION_BITS: u32 = 4;

/// See the module documentation.
pub(super) struct Encoded {
    encoder: Encoder,
    partition_bits: u32,
    partitions: Vec<RwLock<Partition>>,
}

/// Keys whose hashes start with the same bits.
type Partition = ByteTable<()>;

impl Encoded {
    /// Creates an empty set for these columns. If `is_parted` is true, the set is partitioned so
    /// that tasks do not have to wait for each other.
    pub(super) fn new(
        types: Vec<DataType>,
        is_parted: bool,
        hasher: DefaultHashBuilder,
    ) -> Result<Self> {
        let part_bits = if is_parted { PARTITION_BITS } else { 0 };
        let partitions = (0..1 << part_bits).map(|_| RwLock::default()).collect();
        Ok(Self { encoder: Encoder::new(types, hasher)?, partition_bits: part_bits, partitions })
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
        self.partitions.iter().map(|partition| partition.read().len()).sum()
    }

    /// Memory used, in bytes.
    pub(super) fn size(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().size()).sum()
    }

    /// Adds the keys of all rows, or only of the rows set in `required`. Returns false if memory
    /// runs out, in which case some keys may have been added.
    pub(super) fn add(
        &self,
        keys: &EncodedRows,
        required: Option<&BooleanBuffer>,
        memory: &impl KeyMemory,
    ) -> bool {
        let rows = self.by_partition(keys, required);
        let mut waiting = vec![];
        for (partition, rows) in
            self.partitions.iter().zip(&rows).filter(|(_, rows)| !rows.is_empty())
        {
            // Another task may be adding keys to this partition.
            let Some(partition) = partition.try_write() else {
                waiting.push((partition, rows));
                continue;
            };
            if !add_to(partition, keys, rows, memory) {
                return false;
            }
        }
        waiting.into_iter().all(|(partition, rows)| add_to(partition.write(), keys, rows, memory))
    }

    /// Returns which rows have a key in this set.
    pub(super) fn has(&self, keys: &EncodedRows) -> BooleanBuffer {
        let mut found = BooleanBufferBuilder::new(keys.hashes.len());
        found.append_n(keys.hashes.len(), false);
        for (partition, rows) in self.partitions.iter().zip(self.by_partition(keys, None)) {
            let partition = partition.read();
            for (row, _) in
                rows.iter().zip(partition.find(keys, &rows)).filter(|(_, own)| own.is_some())
            {
                found.set_bit(*row as usize, true);
            }
        }
        found.finish()
    }

    /// Returns the rows that have a key, grouped by partition. With `required`, only the rows set
    /// there are returned.
    fn by_partition(&self, keys: &EncodedRows, required: Option<&BooleanBuffer>) -> Vec<Vec<u32>> {
        let all = keys.hashes.len();
        let mut partitions: Vec<_> = self
            .partitions
            .iter()
            .map(|_| Vec::with_capacity(all / self.partitions.len()))
            .collect();
        let with_key = keys.with_key.as_ref().map(NullBuffer::inner);
        for (row, hash) in keys.hashes.iter().enumerate() {
            if [with_key, required].into_iter().flatten().all(|rows| rows.value(row)) {
                let partition = hash.checked_shr(u32::BITS - self.partition_bits).unwrap_or(0);
                partitions[partition as usize].push(row as u32);
            }
        }
        partitions
    }

    /// Decodes all keys into columns.
    pub(super) fn columns(&self) -> Result<Vec<ArrayRef>> {
        let partitions: Vec<_> = self.partitions.iter().map(RwLock::read).collect();
        let keys: Vec<_> = partitions.iter().flat_map(|partition| partition.keys()).collect();
        self.encoder.columns(&keys)
    }

    /// Decodes all keys into columns in batches, each with at most `max` keys and a limited number
    /// of bytes.
    pub(super) fn into_columns(self, max: usize) -> impl Iterator<Item = Result<Vec<ArrayRef>>> {
        self.encoder.into_columns(self.partitions.into_iter().map(RwLock::into_inner), max)
    }
}

/// Adds the keys of rows.
fn add_to(
    mut partition: RwLockWriteGuard<'_, Partition>,
    keys: &EncodedRows,
    rows: &[u32],
    memory: &impl KeyMemory,
) -> bool {
    let known = partition.find(keys, rows);
    let rows = rows.iter().zip(known).filter(|(_, known)| known.is_none());
    let rows: Vec<_> = rows.map(|(row, _)| *row).collect();
    let bytes = keys.bytes_of(&rows);
    let (size, max) = (partition.size(), partition.size_with(rows.len(), bytes));
    if !memory.try_reserve(max - size) {
        return false;
    }
    partition.add(keys, (&rows, bytes), || (), |_, ()| {});
    memory.release(max - partition.size());
    true
}
