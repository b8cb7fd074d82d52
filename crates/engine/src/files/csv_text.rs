//! What TypeScript says of a text of CSV, in the words of its reader.

use tidemark_border::{CsvAtomicity, CsvTextSpec};
use tidemark_ingest::Atomicity;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

pub(crate) fn delimiter(csv: &CsvTextSpec) -> EngineResult<u8> {
    u8::try_from(csv.delimiter).map_err(|_| {
        EngineError::new(ErrorCode::InvalidValue, "the delimiter is not an ASCII character")
    })
}

pub(crate) fn atomicity(of: CsvAtomicity) -> Atomicity {
    match of {
        CsvAtomicity::Abort => Atomicity::Abort,
        CsvAtomicity::AbortLine => Atomicity::AbortLine,
        CsvAtomicity::SkipRow => Atomicity::SkipRow,
        CsvAtomicity::SkipCol => Atomicity::SkipColumn,
    }
}

/// `GEOHASH(5c)` and the like as a type.
pub(crate) fn parse_type(text: &str) -> EngineResult<SqlType> {
    SqlType::parse_text(text).ok_or_else(|| {
        EngineError::new(ErrorCode::InvalidValue, format!("unsupported column type '{text}'"))
    })
}
