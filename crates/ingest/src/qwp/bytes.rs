//! Reads a message with bounds checks.

/// An error in a message, and its position.
#[derive(Debug)]
pub(super) struct Malformed {
    pub(super) at: usize,
    pub(super) reason: String,
}

pub(super) type Read<T> = Result<T, Malformed>;

/// A message that is read sequentially.
#[derive(Debug)]
pub(super) struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
    /// Memory in bytes that decoding the message may still allocate.
    memory: usize,
    limit: usize,
}

impl<'a> Bytes<'a> {
    /// Creates a reader that may allocate at most `memory` bytes.
    pub(super) fn new(all: &'a [u8], memory: usize) -> Self {
        Self { all, at: 0, memory, limit: memory }
    }

    pub(super) fn left(&self) -> usize {
        self.all.len() - self.at
    }

    #[cold]
    pub(super) fn malformed(&self, reason: impl Into<String>) -> Malformed {
        Malformed { at: self.at, reason: reason.into() }
    }

    /// Reserves memory for a declared number of values before these values are allocated.
    pub(super) fn reserve(&mut self, count: usize, width: usize) -> Read<()> {
        let required = count.saturating_mul(width);
        if required > self.memory {
            let limit = self.limit;
            return Err(self.malformed(format!(
                "uncommitted rows need too much memory [qwp.max.uncommitted.size={limit}]"
            )));
        }
        self.memory -= required;
        Ok(())
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize, what: &str) -> Read<&'a [u8]> {
        if count > self.left() {
            let left = self.left();
            return Err(self.malformed(format!("{what}: expected {count} bytes, found {left}")));
        }
        let bytes = &self.all[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    /// Returns the remaining bytes without consuming them.
    pub(super) fn remaining(&self) -> &'a [u8] {
        &self.all[self.at..]
    }

    /// Reads `count` values of `width` bytes each.
    pub(super) fn take_values(&mut self, count: usize, width: usize) -> Read<&'a [u8]> {
        self.take(count.saturating_mul(width), "values")
    }

    #[inline]
    pub(super) fn byte(&mut self, what: &str) -> Read<u8> {
        Ok(self.take(1, what)?[0])
    }

    pub(super) fn array<const SIZE: usize>(&mut self, what: &str) -> Read<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        bytes.copy_from_slice(self.take(SIZE, what)?);
        Ok(bytes)
    }

    /// Reads an unsigned LEB128 number of up to ten bytes.
    #[inline]
    pub(super) fn varint(&mut self, what: &str) -> Read<u64> {
        // Fast path for short numbers, because symbol ids are short and frequent.
        let (value, length) = match self.remaining() {
            [low @ ..0x80, ..] => (u64::from(*low), 1),
            [low, high @ ..0x80, ..] => (u64::from(low & 0x7f) | u64::from(*high) << 7, 2),
            _ => return self.long_varint(what),
        };
        self.at += length;
        Ok(value)
    }

    fn long_varint(&mut self, what: &str) -> Read<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.malformed(format!("{what}: number is longer than 64 bits")))
    }

    /// Reads a count and checks that it does not exceed its limit.
    pub(super) fn count(&mut self, what: &str, limit: usize, key: &str) -> Read<usize> {
        let count = self.varint(what)?;
        match usize::try_from(count) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(self.malformed(format!("{what}: {count} exceeds the limit [{key}={limit}]"))),
        }
    }

    /// Reads a length-prefixed string.
    pub(super) fn text(&mut self, what: &str) -> Read<&'a str> {
        let length = usize::try_from(self.varint(what)?).unwrap_or(usize::MAX);
        let bytes = self.take(length, what)?;
        std::str::from_utf8(bytes).map_err(|_| self.malformed(format!("{what} is not valid UTF-8")))
    }
}
