//! A set of integers, stored as a hash table, or as a bitmap over their range if that is smaller.

use arrow_array::{Array, Int64Array};
use arrow_buffer::BooleanBuffer;
use hashbrown::HashSet;

use super::table::table_bytes;

const WORD_BITS: usize = u64::BITS as usize;

/// Integers, possibly including null.
#[derive(Default)]
pub(super) struct Integers {
    values: Values,
    has_null: bool,
    /// Minimum and maximum.
    bounds: Option<(i64, i64)>,
}

enum Values {
    Dense(Bits),
    Far(HashSet<i64>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Dense(Bits::default())
    }
}

/// One bit per integer. The first integer is a multiple of the word length.
#[derive(Default)]
struct Bits {
    first: i64,
    words: Vec<u64>,
    len: usize,
}

/// The reallocation needed before integers can be added.
#[derive(Clone, Copy)]
enum Change {
    None,
    /// A bitmap of this many words, starting at this integer.
    Bits(i64, usize),
    /// A hash table with capacity for this many integers.
    Table(usize),
}

impl Change {
    fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Bits(_, words) => words.saturating_mul(size_of::<u64>()),
            Self::Table(len) => table_bytes(len, size_of::<i64>()),
        }
    }
}

impl Integers {
    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.values.len() + usize::from(self.has_null)
    }

    /// Memory used, in bytes.
    pub(super) fn size(&self) -> usize {
        match &self.values {
            Values::Dense(bits) => size_of_val(bits.words.as_slice()),
            Values::Far(table) => table.allocation_size(),
        }
    }

    /// Maximum memory in use while these values are added.
    pub(super) fn size_with(&self, values: &Int64Array) -> usize {
        let change = self.change(joined(self.bounds, bounds(values)), values.len());
        self.size().saturating_add(change.bytes())
    }

    /// Adds the values of all rows, or only of the rows set in `required`.
    pub(super) fn add(&mut self, values: &Int64Array, required: Option<&BooleanBuffer>) {
        let bounds = joined(self.bounds, bounds(values));
        let change = self.change(bounds, values.len());
        self.bounds = bounds;
        self.values.change(change);
        let is_wanted = |row: &usize| required.is_none_or(|required| required.value(*row));
        let is_plain = values.null_count() == 0;
        for row in (0..values.len()).filter(is_wanted) {
            if !is_plain && values.is_null(row) {
                self.has_null = true;
                continue;
            }
            match &mut self.values {
                Values::Dense(bits) => bits.add(values.value(row)),
                Values::Far(table) => {
                    table.insert(values.value(row));
                }
            }
        }
    }

    /// Returns which rows have a value in this set.
    pub(super) fn has(&self, values: &Int64Array) -> BooleanBuffer {
        let own = values.values();
        let found = match &self.values {
            Values::Dense(bits) => BooleanBuffer::collect_bool(own.len(), |row| bits.has(own[row])),
            Values::Far(table) => {
                BooleanBuffer::collect_bool(own.len(), |row| table.contains(&own[row]))
            }
        };
        match values.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => found,
            Some(nulls) if self.has_null => &found | &!nulls.inner(),
            Some(nulls) => &found & nulls.inner(),
        }
    }

    /// Returns all values, with null first.
    pub(super) fn into_values(self) -> Box<dyn Iterator<Item = Option<i64>> + Send> {
        let null = self.has_null.then_some(None).into_iter();
        match self.values {
            Values::Dense(bits) => Box::new(null.chain(bits.into_values().map(Some))),
            Values::Far(table) => Box::new(null.chain(table.into_iter().map(Some))),
        }
    }

    /// Returns the reallocation needed to add `rows` values, given the bounds of all values after
    /// the addition.
    fn change(&self, bounds: Option<(i64, i64)>, rows: usize) -> Change {
        let Some((min, greatest)) = bounds else { return Change::None };
        let len = self.values.len().saturating_add(rows);
        match &self.values {
            Values::Dense(bits) if bits.covers(min, greatest) => return Change::None,
            Values::Far(table) if len <= table.capacity() => return Change::None,
            _ => {}
        }
        let capacity = match &self.values {
            Values::Dense(_) => len,
            Values::Far(table) => len.max(2 * table.capacity()),
        };
        let (bits, table) = (self.values.bits(min, greatest), Change::Table(capacity));
        if bits.bytes() <= table.bytes() { bits } else { table }
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Dense(bits) => bits.len,
            Self::Far(table) => table.len(),
        }
    }

    /// Returns a bitmap for integers between these bounds. If the current bitmap was too short at
    /// its start or end, the new bitmap gets extra space there so that it rarely has to grow.
    fn bits(&self, min: i64, greatest: i64) -> Change {
        let (mut start, mut end) = (min, greatest);
        if let Self::Dense(bits) = self
            && let Some(last) = bits.last()
        {
            let more = i64::try_from(end.abs_diff(start) / 4).unwrap_or(0);
            (start, end) = (start.min(bits.first), end.max(last));
            start = if start < bits.first { start.saturating_sub(more) } else { start };
            end = if end > last { end.saturating_add(more) } else { end };
        }
        start &= !(WORD_BITS as i64 - 1);
        let words = usize::try_from(end.abs_diff(start) / WORD_BITS as u64);
        Change::Bits(start, words.map_or(usize::MAX, |words| words.saturating_add(1)))
    }

    fn change(&mut self, change: Change) {
        match (change, &mut *self) {
            (Change::None, _) => {}
            (Change::Bits(first, words), Self::Dense(bits)) => bits.widen(first, words),
            (Change::Bits(first, words), Self::Far(table)) => {
                let mut bits = Bits { first, words: vec![0; words], len: 0 };
                table.iter().for_each(|&value| bits.add(value));
                *self = Self::Dense(bits);
            }
            (Change::Table(len), Self::Dense(bits)) => {
                let mut table = HashSet::with_capacity(len);
                table.extend(std::mem::take(bits).into_values());
                *self = Self::Far(table);
            }
            (Change::Table(len), Self::Far(table)) => table.reserve(len - table.len()),
        }
    }
}

impl Bits {
    fn covers(&self, min: i64, greatest: i64) -> bool {
        self.last().is_some_and(|last| self.first <= min && greatest <= last)
    }

    /// The last integer the bitmap covers.
    fn last(&self) -> Option<i64> {
        let bits = i64::try_from(self.words.len() * WORD_BITS).ok().filter(|&bits| bits > 0)?;
        Some(self.first.saturating_add(bits - 1))
    }

    fn widen(&mut self, first: i64, words: usize) {
        let mut wider = vec![0; words];
        if !self.words.is_empty() {
            let start = self.first.abs_diff(first) as usize / WORD_BITS;
            let retained = self.words.len().min(words - start);
            wider[start..start + retained].copy_from_slice(&self.words[..retained]);
        }
        (self.first, self.words) = (first, wider);
    }

    fn add(&mut self, value: i64) {
        let (word, bit) = self.bit_position(value);
        if let Some(word) = self.words.get_mut(word) {
            self.len += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    fn has(&self, value: i64) -> bool {
        let (word, bit) = self.bit_position(value);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Returns the word index and bit of a value. The index is out of bounds if the value precedes
    /// the bitmap's first integer.
    fn bit_position(&self, value: i64) -> (usize, u64) {
        let bit = value.wrapping_sub(self.first) as u64;
        ((bit / WORD_BITS as u64) as usize, 1 << (bit % WORD_BITS as u64))
    }

    fn into_values(self) -> impl Iterator<Item = i64> + Send {
        let first = self.first;
        let words = self.words.into_iter().enumerate().filter(|(_, word)| *word != 0);
        words.flat_map(move |(at, word)| {
            let start = first.wrapping_add((at * WORD_BITS) as i64);
            let is_set = move |bit: &usize| word & (1 << bit) != 0;
            (0..WORD_BITS).filter(is_set).map(move |bit| start.wrapping_add(bit as i64))
        })
    }
}

/// Returns the minimum and maximum non-null values.
fn bounds(values: &Int64Array) -> Option<(i64, i64)> {
    let of = |all, value| joined(all, Some((value, value)));
    if values.null_count() == 0 {
        return values.values().iter().copied().fold(None, of);
    }
    values.iter().flatten().fold(None, of)
}

fn joined(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    let both = one.zip(other).map(|(one, other)| (one.0.min(other.0), one.1.max(other.1)));
    both.or(one).or(other)
}
