//! Assigns indexes to distinct 64-bit values in order of first appearance.

use crate::Validity;

/// An empty slot.
const EMPTY: u32 = u32::MAX;
/// Initial number of slots; the number of slots is always a power of two.
const FIRST_SLOTS: usize = 1 << 10;
/// Hash multiplier: an odd number with an irregular bit pattern.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Distinct values found so far, including null.
#[derive(Debug)]
pub struct NumberTable {
    /// Index of a value in `keys`, or [`EMPTY`]. At most half of the slots are occupied.
    slots: Vec<u32>,
    keys: Vec<u64>,
    null: Option<u32>,
    seed: u64,
}

impl NumberTable {
    /// Creates an empty table. Clients do not know the seed, so they cannot construct colliding
    /// values.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { slots: vec![EMPTY; FIRST_SLOTS], keys: vec![], null: None, seed }
    }

    /// Returns the values in index order; null is stored as zero.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Returns the index of null, if it occurred.
    #[must_use]
    pub fn null(&self) -> Option<u32> {
        self.null
    }

    /// Returns the memory used in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.keys.capacity() * size_of::<u64>()
    }

    /// Appends the index of each value to `key_numbers`, and the row of each new value to
    /// `new_rows`.
    pub fn assign(
        &mut self,
        numbers: &[u64],
        validity: Option<Validity<'_>>,
        key_numbers: &mut Vec<u32>,
        new_rows: &mut Vec<u32>,
    ) {
        key_numbers.reserve(numbers.len());
        for (row, &number) in numbers.iter().enumerate() {
            let known = self.keys.len();
            let key_number = match validity {
                Some(validity) if !validity.is_valid(row) => self.null_number(),
                _ => self.number(number),
            };
            if self.keys.len() > known {
                new_rows.push(row as u32);
            }
            key_numbers.push(key_number);
        }
    }

    fn null_number(&mut self) -> u32 {
        let next = self.keys.len() as u32;
        *self.null.get_or_insert_with(|| {
            self.keys.push(0);
            next
        })
    }

    #[inline]
    fn number(&mut self, number: u64) -> u32 {
        let mut slot = self.slot(number);
        loop {
            match self.slots[slot] {
                EMPTY => break,
                key_number
                    if self.keys[key_number as usize] == number
                        && self.null != Some(key_number) =>
                {
                    return key_number;
                }
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
        let place = self.keys.len() as u32;
        self.slots[slot] = place;
        self.keys.push(number);
        if 2 * self.keys.len() > self.slots.len() {
            self.grow();
        }
        place
    }

    /// Returns the first slot to probe for a value.
    #[inline]
    fn slot(&self, number: u64) -> usize {
        let product = u128::from(number ^ self.seed) * u128::from(SPREAD);
        ((product >> 64) as usize ^ product as usize) & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![EMPTY; 4 * self.slots.len()];
        for key_number in 0..self.keys.len() as u32 {
            if self.null == Some(key_number) {
                continue;
            }
            let mut slot = self.slot(self.keys[key_number as usize]);
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = key_number;
        }
    }
}
