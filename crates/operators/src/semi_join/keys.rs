//! Keys that rows have, each once.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, internal_err};
use hashbrown::DefaultHashBuilder;

use super::encoded::{Encoded, EncodedRows};
use super::integers::Integers;
use crate::lookup_join::index::{integers, is_integer, one_zero};

/// Keys of a batch that leaves a set: there is little memory then.
const BATCH_ROWS: usize = 2_048;

/// See the file's head.
pub(super) struct KeySet {
    keys: Keys,
    schema: SchemaRef,
    /// Whether a null is a key like any other.
    nulls: bool,
}

enum Keys {
    Integers(Integers),
    Encoded(Encoded),
}

/// The keys of a batch.
pub(super) enum BatchKeys {
    Integers(Int64Array),
    Encoded(EncodedRows),
}

impl KeySet {
    /// No keys of these columns. Sets of one hasher take each other's batches.
    pub(super) fn new(schema: SchemaRef, nulls: bool, hasher: &DefaultHashBuilder) -> Result<Self> {
        let keys = match &schema.fields()[..] {
            [only] if is_integer(only.data_type()) => Keys::Integers(Integers::default()),
            fields => {
                let fields = fields.iter().map(|field| SortField::new(field.data_type().clone()));
                Keys::Encoded(Encoded::new(fields.collect(), hasher.clone())?)
            }
        };
        Ok(Self { keys, schema, nulls })
    }

    /// Whether it can have keys of these types.
    pub(super) fn suits(types: &[DataType]) -> bool {
        let fields: Vec<_> = types.iter().cloned().map(SortField::new).collect();
        RowConverter::supports_fields(&fields)
    }

    /// The keys of a batch in the form that they are held in.
    pub(super) fn prepare(&self, keys: &[ArrayRef]) -> Result<BatchKeys> {
        Ok(match (&self.keys, keys) {
            (Keys::Integers(_), [only]) => BatchKeys::Integers(integers(only)?),
            (Keys::Integers(_), _) => return internal_err!("one column of keys is expected"),
            (Keys::Encoded(encoded), _) => {
                let nulls = keys.iter().map(Array::logical_nulls);
                let with_key =
                    nulls.fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()));
                let keys: Vec<_> = keys.iter().map(one_zero).collect();
                BatchKeys::Encoded(encoded.encode(&keys, with_key.filter(|_| !self.nulls))?)
            }
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match &self.keys {
            Keys::Integers(integers) => integers.len(),
            Keys::Encoded(encoded) => encoded.len(),
        }
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        match &self.keys {
            Keys::Integers(integers) => integers.size(),
            Keys::Encoded(encoded) => encoded.size(),
        }
    }

    /// Bytes held at most while these are added.
    pub(super) fn size_with(&self, batch: &BatchKeys) -> usize {
        match (&self.keys, batch) {
            (Keys::Integers(integers), BatchKeys::Integers(values)) => integers.size_with(values),
            (Keys::Encoded(encoded), BatchKeys::Encoded(rows)) => encoded.size_with(rows),
            _ => self.size(),
        }
    }

    /// Adds those of the rows where `wanted` is set, or of all.
    pub(super) fn add(&mut self, batch: &BatchKeys, wanted: Option<&BooleanBuffer>) -> Result<()> {
        match (&mut self.keys, batch) {
            (Keys::Integers(integers), BatchKeys::Integers(values)) => {
                match values.nulls().filter(|_| !self.nulls).map(NullBuffer::inner) {
                    None => integers.add(values, wanted),
                    Some(with_key) => {
                        let wanted = wanted.map_or_else(|| with_key.clone(), |own| own & with_key);
                        integers.add(values, Some(&wanted));
                    }
                }
            }
            (Keys::Encoded(encoded), BatchKeys::Encoded(rows)) => encoded.add(rows, wanted),
            _ => return internal_err!("keys of another set"),
        }
        Ok(())
    }

    /// Which of the rows have a key that was added.
    pub(super) fn has(&self, batch: &BatchKeys) -> Result<BooleanBuffer> {
        Ok(match (&self.keys, batch) {
            (Keys::Integers(integers), BatchKeys::Integers(values)) => integers.has(values),
            (Keys::Encoded(encoded), BatchKeys::Encoded(rows)) => encoded.has(rows),
            _ => return internal_err!("keys of another set"),
        })
    }

    /// Its columns, in batches.
    pub(super) fn into_batches(self) -> Box<dyn Iterator<Item = Result<Vec<ArrayRef>>> + Send> {
        match self.keys {
            Keys::Encoded(encoded) => Box::new(encoded.into_columns(BATCH_ROWS)),
            Keys::Integers(integers) => {
                let (mut values, schema) = (integers.into_values().peekable(), self.schema);
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

/// Integers as values of their own type.
fn of_type(values: &Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Date32 => cast(&cast(values, &DataType::Int32)?, data_type)?,
        DataType::Timestamp(..) | DataType::Date64 => {
            let data = values.to_data().into_builder().data_type(data_type.clone()).build()?;
            arrow_array::make_array(data)
        }
        _ => cast(&(Arc::new(values.clone()) as ArrayRef), data_type)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking")]
mod tests {
    use std::collections::HashSet;

    use arrow_array::StringViewArray;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_schema::{Field, Schema};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn random() -> ChaCha8Rng {
        let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(rand::random);
        println!("SEED={seed}");
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// Integers of some range, which may be narrow, wide, or at an end of all.
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

    /// The columns of a key: the integer, with a text of its own beside it if there are two.
    fn columns(values: &[Option<i64>], width: usize) -> Vec<ArrayRef> {
        let integers: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        let text = |value: &Option<i64>| value.map(|value| format!("text {}", value / 2));
        let texts: ArrayRef = Arc::new(values.iter().map(text).collect::<StringViewArray>());
        [integers, texts].into_iter().take(width).collect()
    }

    #[test]
    fn sets_have_the_keys_that_were_added() {
        let mut rng = random();
        let fields = [("k0", DataType::Int64), ("k1", DataType::Utf8View)];
        for _ in 0..400 {
            let (width, nulls) = (rng.random_range(1..=2), rng.random_bool(0.5));
            let own =
                fields[..width].iter().map(|(name, own)| Field::new(*name, own.clone(), true));
            let schema = Arc::new(Schema::new(own.collect::<Vec<_>>()));
            let mut set = KeySet::new(schema, nulls, &DefaultHashBuilder::default()).unwrap();
            let mut expected = HashSet::new();
            let is_key = |value: &Option<i64>| nulls || value.is_some();
            for _ in 0..rng.random_range(0..6) {
                let len = rng.random_range(0..600);
                let added = values(&mut rng, len);
                let batch = set.prepare(&columns(&added, width)).unwrap();
                let most = set.size_with(&batch);
                let wanted: Vec<bool> = added.iter().map(|_| rng.random_bool(0.8)).collect();
                let all = rng.random_bool(0.5);
                let mask = BooleanBuffer::from(wanted.clone());
                set.add(&batch, (!all).then_some(&mask)).unwrap();
                assert!(set.size() <= most, "{} bytes, {most} were counted", set.size());
                let own = added.iter().zip(&wanted).filter(|(_, wanted)| all || **wanted);
                expected.extend(own.map(|(value, _)| *value).filter(is_key));
                // Some that are there, and some that may not be.
                let mut asked = values(&mut rng, 50);
                asked.extend(&added);
                let batch = set.prepare(&columns(&asked, width)).unwrap();
                let found: Vec<bool> = set.has(&batch).unwrap().iter().collect();
                let wanted: Vec<bool> =
                    asked.iter().map(|value| expected.contains(value)).collect();
                assert_eq!(found, wanted);
                assert_eq!(set.len(), expected.len());
            }
            let mut left = vec![];
            for columns in set.into_batches() {
                left.extend(columns.unwrap()[0].as_primitive::<Int64Type>().iter());
            }
            assert_eq!(left.len(), expected.len());
            assert_eq!(left.into_iter().collect::<HashSet<_>>(), expected);
        }
    }
}
