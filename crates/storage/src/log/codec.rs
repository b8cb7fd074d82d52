//! Little-endian encoder and decoder; every read is bounds-checked.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
}

impl Encoder {
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes the length and the bytes.
    pub(crate) fn blob(&mut self, value: &[u8]) {
        self.u64(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.blob(value.as_bytes());
    }

    /// Writes a value as JSON so that definitions can gain fields without a new format version.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) -> EngineResult<()> {
        let json = serde_json::to_vec(value);
        self.blob(&json.map_err(|error| EngineError::internal(error.to_string()))?);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    remaining: &'a [u8],
}

fn short() -> EngineError {
    EngineError::new(ErrorCode::Damaged, "unexpected end of data")
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { remaining: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remaining.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> EngineResult<&'a [u8]> {
        let (head, rest) = self.remaining.split_at_checked(len).ok_or_else(short)?;
        self.remaining = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> EngineResult<[u8; N]> {
        let (head, rest) = self.remaining.split_first_chunk::<N>().ok_or_else(short)?;
        self.remaining = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> EngineResult<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> EngineResult<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> EngineResult<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> EngineResult<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn blob(&mut self) -> EngineResult<&'a [u8]> {
        let len = usize::try_from(self.u64()?).map_err(|_| short())?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> EngineResult<&'a str> {
        std::str::from_utf8(self.blob()?)
            .map_err(|_| EngineError::new(ErrorCode::Damaged, "a string is not valid UTF-8"))
    }

    pub(crate) fn json<T: DeserializeOwned>(&mut self) -> EngineResult<T> {
        serde_json::from_slice(self.blob()?)
            .map_err(|error| EngineError::new(ErrorCode::Damaged, error.to_string()))
    }
}
