//! Key sets.

use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, internal_err};
use hashbrown::DefaultHashBuilder;
use parking_lot::RwLock;

use super::bytes::EncodedRows;
use super::encoded::Encoded;
use super::integers::Integers;
use super::memory::KeyMemory;
use super::values::{comparable, integers, is_integer, of_type};

/// Number of keys per batch when a set is converted back to columns, at which point memory is
/// scarce.
const BATCH_ROWS: usize = 2_048;

/// Maximum number of keys at which a set counts as small.
const FEW_KEYS: usize = 1 << 16;

/// See the module documentation.
pub(crate) struct KeySet {
    keys: Keys,
    schema: SchemaRef,
    /// Whether null is a key like any other value.
    nulls: bool,
}

enum Keys {
    Integers(RwLock<Integers>),
    Encoded(Encoded),
}

/// Encoded keys of a batch.
pub(crate) enum BatchKeys {
    Integers(Int64Array),
    Encoded(EncodedRows),
}

impl KeySet {
    /// Creates an empty set for these columns, to which `tasks` tasks can add keys. Sets with the
    /// same hasher accept each other's batches.
    pub(crate) fn new(
        schema: SchemaRef,
        nulls: bool,
        tasks: usize,
        hasher: &DefaultHashBuilder,
    ) -> Result<Self> {
        let keys = match &schema.fields()[..] {
            [only] if is_integer(only.data_type()) => Keys::Integers(RwLock::default()),
            fields => {
                let types = fields.iter().map(|field| field.data_type().clone()).collect();
                Keys::Encoded(Encoded::new(types, tasks > 1, hasher.clone())?)
            }
        };
        Ok(Self { keys, schema, nulls })
    }

    /// Whether a set can store keys of these types.
    pub(crate) fn suits(types: &[DataType]) -> bool {
        let fields: Vec<_> = types.iter().cloned().map(SortField::new).collect();
        RowConverter::supports_fields(&fields)
    }

    /// Whether concurrent tasks can add keys without waiting for each other.
    pub(crate) fn is_parted(&self) -> bool {
        matches!(self.keys, Keys::Encoded(_))
    }

    /// Encodes the keys of a batch.
    pub(crate) fn prepare(&self, keys: &[ArrayRef]) -> Result<BatchKeys> {
        Ok(match (&self.keys, keys) {
            (Keys::Integers(_), [only]) => BatchKeys::Integers(integers(only)?),
            (Keys::Integers(_), _) => return internal_err!("expected one key column"),
            (Keys::Encoded(encoded), _) => {
                let nulls = keys.iter().map(Array::logical_nulls);
                let with_key =
                    nulls.fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()));
                let keys = keys.iter().map(comparable).collect::<Result<Vec<_>>>()?;
                BatchKeys::Encoded(encoded.encode(&keys, with_key.filter(|_| !self.nulls))?)
            }
        })
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        match &self.keys {
            Keys::Integers(integers) => integers.read().len(),
            Keys::Encoded(encoded) => encoded.len(),
        }
    }

    /// Memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        match &self.keys {
            Keys::Integers(integers) => integers.read().size(),
            Keys::Encoded(encoded) => encoded.size(),
        }
    }

    /// Adds the keys of all rows, or only of the rows set in `required`. Returns false if memory
    /// runs out, in which case some keys may have been added.
    pub(crate) fn add(
        &self,
        batch: &BatchKeys,
        required: Option<&BooleanBuffer>,
        memory: &impl KeyMemory,
    ) -> Result<bool> {
        match (&self.keys, batch) {
            (Keys::Integers(integers), BatchKeys::Integers(values)) => {
                let with_key = values.nulls().filter(|_| !self.nulls).map(NullBuffer::inner);
                let both = with_key.zip(required).map(|(one, other)| one & other);
                let required = both.as_ref().or(with_key).or(required);
                let mut integers = integers.write();
                let (size, max) = (integers.size(), integers.size_with(values));
                if !memory.try_reserve(max - size) {
                    return Ok(false);
                }
                integers.add(values, required);
                memory.release(max - integers.size());
                Ok(true)
            }
            (Keys::Encoded(encoded), BatchKeys::Encoded(rows)) => {
                Ok(encoded.add(rows, required, memory))
            }
            _ => internal_err!("the keys belong to a different set"),
        }
    }

    /// Returns which rows have a key in this set.
    pub(crate) fn has(&self, batch: &BatchKeys) -> Result<BooleanBuffer> {
        Ok(match (&self.keys, batch) {
            (Keys::Integers(integers), BatchKeys::Integers(values)) => integers.read().has(values),
            (Keys::Encoded(encoded), BatchKeys::Encoded(rows)) => encoded.has(rows),
            _ => return internal_err!("the keys belong to a different set"),
        })
    }

    /// Returns the key columns if there are only a few keys. These are found faster by ID: symbols
    /// by their codes, and multi-column keys by pairs.
    pub(crate) fn few(&self) -> Result<Option<Vec<ArrayRef>>> {
        match &self.keys {
            Keys::Encoded(encoded) if self.len() <= FEW_KEYS => encoded.columns().map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the key columns in batches.
    pub(crate) fn into_batches(self) -> Box<dyn Iterator<Item = Result<Vec<ArrayRef>>> + Send> {
        match self.keys {
            Keys::Encoded(encoded) => Box::new(encoded.into_columns(BATCH_ROWS)),
            Keys::Integers(integers) => {
                let values = integers.into_inner().into_values();
                let (mut values, schema) = (values.peekable(), self.schema);
                Box::new(std::iter::from_fn(move || {
                    values.peek()?;
                    let batch: Int64Array = values.by_ref().take(BATCH_ROWS).collect();
                    let column = of_type(&batch, schema.field(0).data_type());
                    Some(column.map(|column| vec![column]))
                }))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking")]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_array::StringViewArray;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_schema::{Field, Schema};
    use datafusion::arrow::compute::cast;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn random() -> ChaCha8Rng {
        let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(1);
        println!("SEED={seed}");
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// Returns integers from a narrow or wide range, which may lie at either end of the type's
    /// range.
    fn values(rng: &mut ChaCha8Rng, len: usize) -> Vec<Option<i64>> {
        let start = [0, 5, -900, 1 << 40, i64::MIN, i64::MAX][rng.random_range(0..6)];
        let width = [1, 70, 4_000, 1 << 30, i64::MAX][rng.random_range(0..5)];
        let nulls = [0.0, 0.0, 0.2][rng.random_range(0..3)];
        let value = |rng: &mut ChaCha8Rng| {
            let value = rng.random_range(0..width);
            if start == i64::MAX { start - value } else { start.saturating_add(value) }
        };
        (0..len).map(|_| (!rng.random_bool(nulls)).then(|| value(rng))).collect()
    }

    /// Column types of the keys.
    const SHAPES: [&[DataType]; 3] =
        [&[DataType::Int64], &[DataType::Utf8View], &[DataType::Int64, DataType::Utf8View]];

    /// Returns the key columns, with the integers either as they are or as strings. In two-column
    /// keys, several integers share one string.
    fn columns(values: &[Option<i64>], shape: &[DataType]) -> Vec<ArrayRef> {
        let column = |data_type: &DataType| -> ArrayRef {
            if *data_type == DataType::Int64 {
                return Arc::new(Int64Array::from(values.to_vec()));
            }
            let text = |value: i64| format!("{}", value / shape.len() as i64);
            let texts = values.iter().map(|value| value.map(text));
            Arc::new(texts.collect::<StringViewArray>())
        };
        shape.iter().map(column).collect()
    }

    /// Bytes reserved but not yet released.
    #[derive(Default)]
    struct ReservedBytes(AtomicUsize);

    impl KeyMemory for ReservedBytes {
        fn try_reserve(&self, bytes: usize) -> bool {
            self.0.fetch_add(bytes, Ordering::Relaxed);
            true
        }

        fn release(&self, bytes: usize) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn sets_contain_exactly_the_added_keys() {
        let mut rng = random();
        for _ in 0..400 {
            let (shape, nulls) = (SHAPES[rng.random_range(0..3)], rng.random_bool(0.5));
            let fields = shape.iter().map(|own| Field::new(format!("{own}"), own.clone(), true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let tasks = rng.random_range(1..3);
            let set = KeySet::new(schema, nulls, tasks, &DefaultHashBuilder::default()).unwrap();
            let memory = ReservedBytes::default();
            let mut expected = HashSet::new();
            let is_key = |value: &Option<i64>| nulls || value.is_some();
            for _ in 0..rng.random_range(0..6) {
                let len = rng.random_range(0..600);
                let added = values(&mut rng, len);
                let batch = set.prepare(&columns(&added, shape)).unwrap();
                let required: Vec<bool> = added.iter().map(|_| rng.random_bool(0.8)).collect();
                let all = rng.random_bool(0.5);
                let mask = BooleanBuffer::from(required.clone());
                let add = || assert!(set.add(&batch, (!all).then_some(&mask), &memory).unwrap());
                std::thread::scope(|scope| (0..tasks).for_each(|_| drop(scope.spawn(add))));
                assert_eq!(memory.0.load(Ordering::Relaxed), set.size());
                let own = added.iter().zip(&required).filter(|(_, required)| all || **required);
                expected.extend(own.map(|(value, _)| *value).filter(is_key));
                // Values to look up: some that were added, and some that may not have been.
                let mut probed = values(&mut rng, 50);
                probed.extend(&added);
                let batch = set.prepare(&columns(&probed, shape)).unwrap();
                let found: Vec<bool> = set.has(&batch).unwrap().iter().collect();
                let required: Vec<bool> =
                    probed.iter().map(|value| expected.contains(value)).collect();
                assert_eq!(found, required);
                assert_eq!(set.len(), expected.len());
            }
            let mut left = vec![];
            for columns in set.into_batches() {
                let column = cast(&columns.unwrap()[0], &DataType::Int64).unwrap();
                left.extend(column.as_primitive::<Int64Type>().iter());
            }
            assert_eq!(left.len(), expected.len());
            assert_eq!(left.into_iter().collect::<HashSet<_>>(), expected);
        }
    }
}
