//! Converts CSV options from TypeScript into CSV reader options.

use tidemark_border::CsvTextSpec;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

pub(crate) fn delimiter(csv: &CsvTextSpec) -> EngineResult<u8> {
    u8::try_from(csv.delimiter).map_err(|_| {
        EngineError::new(ErrorCode::InvalidValue, "the delimiter must be an ASCII character")
    })
}

/// Parses a type such as `GEOHASH(5c)`.
pub(crate) fn parse_type(text: &str) -> EngineResult<SqlType> {
    SqlType::parse_text(text).ok_or_else(|| {
        EngineError::new(ErrorCode::InvalidValue, format!("unsupported column type '{text}'"))
    })
}
