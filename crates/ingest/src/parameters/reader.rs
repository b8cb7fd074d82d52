//! Reads bytes, numbers and timestamps from binary values.

use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// The protocol's epoch, 2000-01-01, in microseconds since 1970.
const ORIGIN_MICROS: i64 = 946_684_800_000_000;
pub(super) const DAY_MICROS: i64 = 86_400_000_000;

pub(super) fn malformed() -> EngineError {
    let message = "incorrect binary data format in bind parameter";
    EngineError::new(ErrorCode::InvalidBinary, message)
}

pub(super) fn sized<const N: usize>(bytes: &[u8]) -> EngineResult<[u8; N]> {
    bytes.try_into().map_err(|_| malformed())
}

/// Converts microseconds since 2000 to microseconds since 1970. Fails for infinite timestamps.
pub(super) fn since_1970(since_2000: Option<i64>) -> EngineResult<i64> {
    let is_finite = |micros: &i64| *micros != i64::MIN && *micros != i64::MAX;
    let micros = since_2000.filter(is_finite).and_then(|micros| micros.checked_add(ORIGIN_MICROS));
    micros.ok_or_else(|| EngineError::new(ErrorCode::InvalidValue, "timestamp out of range"))
}

/// Reads a sequence of big-endian numbers.
pub(super) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the unread bytes.
    pub(super) fn left(&self) -> &'b [u8] {
        self.0
    }

    pub(super) fn array<const N: usize>(&mut self) -> EngineResult<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn i16(&mut self) -> EngineResult<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> EngineResult<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn bytes(&mut self, count: usize) -> EngineResult<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(head)
    }
}
