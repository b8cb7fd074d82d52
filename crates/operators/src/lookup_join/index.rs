//! The keys of the held side, numbered in the order in which they first appear.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array};
use arrow_schema::{DataType, TimeUnit};
use datafusion::arrow::compute::cast;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use hashbrown::HashMap;
use tidemark_types::key::key_values;

use crate::scan::rows::BATCH_ROWS;

/// The number of a key that the held side has not.
pub(super) const ABSENT: u32 = u32::MAX;

/// Fewest entries that a table of its own is worth; above, it has at most so many for each key.
const SMALL_TABLE: usize = 1 << 16;
const ENTRIES_PER_KEY: usize = 8;

/// The numbers of keys of one or several columns.
#[derive(Debug)]
pub(super) struct KeyIndex {
    columns: Vec<ColumnIndex>,
    /// How the numbers of the first columns and the next one's become one.
    pairs: Vec<PairIndex>,
    /// Different keys.
    len: usize,
}

/// The values of a column, numbered.
#[derive(Debug)]
struct ColumnIndex {
    values: Values,
    null: u32,
    len: u32,
}

#[derive(Debug)]
enum Values {
    Texts(HashMap<Box<str>, u32>),
    /// Integers from the least one on.
    Dense {
        least: i64,
        numbers: Vec<u32>,
    },
    Integers(HashMap<i64, u32>),
    Bytes {
        converter: RowConverter,
        numbers: HashMap<Box<[u8]>, u32>,
    },
}

/// Pairs of numbers, numbered.
#[derive(Debug)]
enum PairIndex {
    /// The entry of a pair is the first number times `width`, and the second.
    Dense {
        width: usize,
        numbers: Vec<u32>,
    },
    Hashed(HashMap<u64, u32>),
}

/// Numbers of the texts of each column's dictionary, kept from one batch to the next.
#[derive(Debug, Default)]
pub(super) struct KnownTexts(Vec<Option<Dictionary>>);

/// A dictionary that rows had.
#[derive(Debug)]
struct Dictionary {
    texts: ArrayRef,
    /// The rows that had it: as many as it has texts are worth a table.
    rows: usize,
    numbers: Vec<u32>,
}

/// Takes how many bytes are held, and fails where the work may not go on.
type Hold<'a> = &'a dyn Fn(usize) -> Result<()>;

/// Counts, once for each batch of rows, what may be held before the next: tables double.
fn hold_at(row: usize, hold: Hold<'_>, bytes: usize) -> Result<()> {
    if row.is_multiple_of(BATCH_ROWS) { hold(2 * bytes) } else { Ok(()) }
}

/// How keys of a type are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Integer,
    Bytes,
}

impl Form {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Dictionary(key, values) if **key == DataType::Int32 => match **values {
                DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => Self::Text,
                _ => Self::Bytes,
            },
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => Self::Text,
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::Date32
            | DataType::Date64
            | DataType::Timestamp(_, None) => Self::Integer,
            _ => Self::Bytes,
        }
    }
}

/// Whether values of the two types are compared as they are.
pub(crate) fn is_comparable(one: &DataType, other: &DataType) -> bool {
    let (form, same) = (Form::of(one), Form::of(other));
    form == same && (one == other || form == Form::Text)
}

/// Whether [`integers`] has the values of a type.
pub(crate) fn is_integer(data_type: &DataType) -> bool {
    Form::of(data_type) == Form::Integer
}

impl KeyIndex {
    /// Numbers the keys of the held rows; and each row's number. `nulls`: whether a null equals
    /// another. `hold` takes how many bytes are held, and may fail.
    pub(super) fn new(keys: &[ArrayRef], nulls: bool, hold: Hold<'_>) -> Result<(Self, Vec<u32>)> {
        let Some((first, others)) = keys.split_first() else {
            return internal_err!("a join by keys without keys");
        };
        let (first, mut numbers) = ColumnIndex::new(first, nulls, hold)?;
        let mut len = first.len as usize;
        let mut held = first.size();
        let (mut columns, mut pairs) = (vec![first], vec![]);
        for column in others {
            let (column, second) = ColumnIndex::new(column, nulls, &|more| hold(held + more))?;
            held += column.size();
            let second = (second.as_slice(), column.len as usize);
            let (pair, both) = PairIndex::new((&numbers, len), second, &|more| hold(held + more))?;
            held += pair.size();
            len = both
                .iter()
                .filter(|&&number| number != ABSENT)
                .max()
                .map_or(0, |&most| most as usize + 1);
            numbers = both;
            columns.push(column);
            pairs.push(pair);
        }
        Ok((Self { columns, pairs, len }, numbers))
    }

    /// Different keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The numbers of rows' keys.
    pub(super) fn find(&self, keys: &[ArrayRef], known: &mut KnownTexts) -> Result<Vec<u32>> {
        known.0.resize_with(self.columns.len(), || None);
        let mut columns = self.columns.iter().zip(keys).zip(&mut known.0);
        let Some(((first, keys), known)) = columns.next() else {
            return internal_err!("a join by keys without keys");
        };
        let mut numbers = first.find(keys, known)?;
        for (((column, keys), known), pair) in columns.zip(&self.pairs) {
            let second = column.find(keys, known)?;
            pair.find(&mut numbers, &second);
        }
        Ok(numbers)
    }

    /// Bytes held, about.
    pub(super) fn size(&self) -> usize {
        let columns: usize = self.columns.iter().map(ColumnIndex::size).sum();
        let pairs: usize = self.pairs.iter().map(PairIndex::size).sum();
        columns + pairs
    }
}

impl ColumnIndex {
    fn new(values: &ArrayRef, nulls: bool, hold: Hold<'_>) -> Result<(Self, Vec<u32>)> {
        let mut next = 0;
        let mut number = || {
            next += 1;
            next - 1
        };
        let mut null = ABSENT;
        let mut numbers = Vec::with_capacity(values.len());
        let mut of_null = |number: &mut dyn FnMut() -> u32| {
            if nulls && null == ABSENT {
                null = number();
            }
            null
        };
        let index = match Form::of(values.data_type()) {
            Form::Text => {
                let (mut texts, mut bytes): (HashMap<Box<str>, u32>, _) = (HashMap::new(), 0);
                let views = views(values)?;
                for (row, text) in views.as_string_view().iter().enumerate() {
                    hold_at(row, hold, bytes + texts.capacity() * size_of::<(Box<str>, u32)>())?;
                    numbers.push(match text {
                        None => of_null(&mut number),
                        Some(text) => {
                            if let Some(&known) = texts.get(text) {
                                known
                            } else {
                                bytes += text.len();
                                *texts.entry(text.into()).or_insert_with(&mut number)
                            }
                        }
                    });
                }
                Values::Texts(texts)
            }
            Form::Integer => {
                let integers = integers(values)?;
                let mut known: HashMap<i64, u32> = HashMap::new();
                for (row, value) in integers.iter().enumerate() {
                    hold_at(row, hold, known.capacity() * size_of::<(i64, u32)>())?;
                    numbers.push(match value {
                        None => of_null(&mut number),
                        Some(value) => *known.entry(value).or_insert_with(&mut number),
                    });
                }
                dense(&known).unwrap_or(Values::Integers(known))
            }
            Form::Bytes => {
                let fields = vec![SortField::new(values.data_type().clone())];
                let converter = RowConverter::new(fields)?;
                let rows = converter.convert_columns(&[key_values(values)])?;
                let (mut known, mut held): (HashMap<Box<[u8]>, u32>, _) = (HashMap::new(), 0);
                for (row, bytes) in rows.iter().enumerate() {
                    hold_at(row, hold, held + known.capacity() * size_of::<(Box<[u8]>, u32)>())?;
                    let bytes = bytes.as_ref();
                    numbers.push(if values.is_null(row) {
                        of_null(&mut number)
                    } else if let Some(&known) = known.get(bytes) {
                        known
                    } else {
                        held += bytes.len();
                        *known.entry(bytes.into()).or_insert_with(&mut number)
                    });
                }
                Values::Bytes { converter, numbers: known }
            }
        };
        Ok((Self { values: index, null, len: next }, numbers))
    }

    fn find(&self, keys: &ArrayRef, known: &mut Option<Dictionary>) -> Result<Vec<u32>> {
        Ok(match &self.values {
            Values::Texts(texts) => {
                let of = |text: &str| texts.get(text).copied().unwrap_or(ABSENT);
                if let Some(symbols) = keys.as_dictionary_opt::<Int32Type>() {
                    return self.find_symbols(symbols.keys(), symbols.values(), known);
                }
                let views = views(keys)?;
                let texts = views.as_string_view().iter();
                texts.map(|text| text.map_or(self.null, of)).collect()
            }
            Values::Dense { least, numbers } => {
                let of = |value: i64| {
                    let entry = value.wrapping_sub(*least) as u64;
                    usize::try_from(entry).ok().and_then(|entry| numbers.get(entry)).copied()
                };
                self.find_integers(&integers(keys)?, |value| of(value).unwrap_or(ABSENT))
            }
            Values::Integers(numbers) => self.find_integers(&integers(keys)?, |value| {
                numbers.get(&value).copied().unwrap_or(ABSENT)
            }),
            Values::Bytes { converter, numbers } => {
                let rows = converter.convert_columns(&[key_values(keys)])?;
                let of = |(row, bytes): (usize, &[u8])| {
                    if keys.is_null(row) {
                        return self.null;
                    }
                    numbers.get(bytes).copied().unwrap_or(ABSENT)
                };
                (0..rows.num_rows()).map(|row| of((row, rows.row(row).as_ref()))).collect()
            }
        })
    }

    fn find_integers(&self, keys: &Int64Array, of: impl Fn(i64) -> u32) -> Vec<u32> {
        if keys.null_count() == 0 {
            return keys.values().iter().map(|&value| of(value)).collect();
        }
        keys.iter().map(|value| value.map_or(self.null, &of)).collect()
    }

    /// Each text of a dictionary is looked up once, when as many rows had it as it has texts; until
    /// then those of the rows are.
    fn find_symbols(
        &self,
        codes: &Int32Array,
        texts: &ArrayRef,
        known: &mut Option<Dictionary>,
    ) -> Result<Vec<u32>> {
        if known.as_ref().is_none_or(|known| !Arc::ptr_eq(&known.texts, texts)) {
            *known = Some(Dictionary { texts: Arc::clone(texts), rows: 0, numbers: vec![] });
        }
        let Some(known) = known else { return internal_err!("a dictionary that is not known") };
        known.rows = known.rows.saturating_add(codes.len());
        if known.numbers.len() < texts.len() {
            if known.rows < texts.len() {
                let texts = Arc::clone(texts);
                let used = DictionaryArray::<Int32Type>::try_new(codes.clone(), texts)?;
                return self.find(&cast(&used, &DataType::Utf8View)?, &mut None);
            }
            known.numbers = self.find(texts, &mut None)?;
        }
        let of = |code: i32| known.numbers.get(code as usize).copied().unwrap_or(ABSENT);
        if codes.null_count() == 0 {
            return Ok(codes.values().iter().map(|&code| of(code)).collect());
        }
        Ok(codes.iter().map(|code| code.map_or(self.null, of)).collect())
    }

    fn size(&self) -> usize {
        match &self.values {
            Values::Texts(texts) => {
                let bytes: usize = texts.keys().map(|text| text.len()).sum();
                bytes + texts.capacity() * size_of::<(Box<str>, u32)>()
            }
            Values::Dense { numbers, .. } => numbers.capacity() * size_of::<u32>(),
            Values::Integers(numbers) => numbers.capacity() * size_of::<(i64, u32)>(),
            Values::Bytes { numbers, .. } => {
                let bytes: usize = numbers.keys().map(|bytes| bytes.len()).sum();
                bytes + numbers.capacity() * size_of::<(Box<[u8]>, u32)>()
            }
        }
    }
}

/// A table with an entry for each integer from the least to the greatest, where there are few.
fn dense(known: &HashMap<i64, u32>) -> Option<Values> {
    let (least, greatest) = (*known.keys().min()?, *known.keys().max()?);
    let entries = usize::try_from(greatest.checked_sub(least)?).ok()?.checked_add(1)?;
    if !is_worth(entries, known.len()) {
        return None;
    }
    let mut numbers = vec![ABSENT; entries];
    for (value, &number) in known {
        numbers[usize::try_from(value - least).ok()?] = number;
    }
    Some(Values::Dense { least, numbers })
}

fn is_worth(entries: usize, keys: usize) -> bool {
    entries <= SMALL_TABLE.max(keys.saturating_mul(ENTRIES_PER_KEY))
}

impl PairIndex {
    /// Numbers the pairs of two columns of numbers, each with so many; and each row's number.
    fn new(
        (first, many): (&[u32], usize),
        (second, width): (&[u32], usize),
        hold: Hold<'_>,
    ) -> Result<(Self, Vec<u32>)> {
        let mut next = 0;
        let mut number = || {
            next += 1;
            next - 1
        };
        let mut both = Vec::with_capacity(first.len());
        let pairs = first.iter().zip(second).enumerate();
        let entries = many.checked_mul(width).filter(|&entries| is_worth(entries, first.len()));
        if let Some(entries) = entries {
            hold(entries * size_of::<u32>())?;
            let mut numbers = vec![ABSENT; entries];
            for (row, (&first, &second)) in pairs {
                hold_at(row, hold, entries * size_of::<u32>())?;
                both.push(match entry(first, second, width) {
                    Some(entry) if numbers[entry] == ABSENT => {
                        numbers[entry] = number();
                        numbers[entry]
                    }
                    Some(entry) => numbers[entry],
                    None => ABSENT,
                });
            }
            return Ok((Self::Dense { width, numbers }, both));
        }
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        for (row, (&first, &second)) in pairs {
            hold_at(row, hold, numbers.capacity() * size_of::<(u64, u32)>())?;
            both.push(match pair(first, second) {
                Some(pair) => *numbers.entry(pair).or_insert_with(&mut number),
                None => ABSENT,
            });
        }
        Ok((Self::Hashed(numbers), both))
    }

    /// Makes the first numbers those of the pairs.
    fn find(&self, numbers: &mut [u32], second: &[u32]) {
        for (first, &second) in numbers.iter_mut().zip(second) {
            let found = match self {
                Self::Dense { width, numbers } => {
                    entry(*first, second, *width).and_then(|entry| numbers.get(entry)).copied()
                }
                Self::Hashed(known) => {
                    pair(*first, second).and_then(|pair| known.get(&pair)).copied()
                }
            };
            *first = found.unwrap_or(ABSENT);
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Dense { numbers, .. } => numbers.capacity() * size_of::<u32>(),
            Self::Hashed(known) => known.capacity() * size_of::<(u64, u32)>(),
        }
    }
}

fn entry(first: u32, second: u32, width: usize) -> Option<usize> {
    (first != ABSENT && second != ABSENT).then(|| first as usize * width + second as usize)
}

fn pair(first: u32, second: u32) -> Option<u64> {
    (first != ABSENT && second != ABSENT).then(|| u64::from(first) << 32 | u64::from(second))
}

fn views(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(values, &DataType::Utf8View)?)
}

/// The values of a type of numbers or times as integers.
pub(crate) fn integers(values: &ArrayRef) -> Result<Int64Array> {
    let values = match values.data_type() {
        // Times and dates have the bits of their integers.
        DataType::Date32 => cast(&cast(values, &DataType::Int32)?, &DataType::Int64)?,
        DataType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
            _,
        )
        | DataType::Date64
        | DataType::Int64 => {
            let data = values.to_data().into_builder().data_type(DataType::Int64).build()?;
            return Ok(data.into());
        }
        _ => cast(values, &DataType::Int64)?,
    };
    let integers = values.as_primitive_opt::<arrow_array::types::Int64Type>();
    integers.cloned().ok_or_else(|| internal_datafusion_err!("expected integer keys"))
}
