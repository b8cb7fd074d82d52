//! On-disk cell layout of each type.

use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

/// On-disk cell layout of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One bit per row.
    Bits,
    /// This many bytes per row. Symbols are four-byte keys.
    Fixed(usize),
    /// A 16-byte view per row, then the strings longer than 12 bytes.
    Text,
    /// One 8-byte offset per row plus a final one, then the bytes.
    Bytes,
    /// This many 4-byte lengths per row, offsets as for `Bytes`, then 8-byte elements.
    Arrays(u8),
}

impl Layout {
    pub(crate) fn of(sql_type: SqlType) -> EngineResult<Self> {
        Ok(match sql_type {
            SqlType::Boolean => Self::Bits,
            SqlType::Symbol => Self::Fixed(4),
            SqlType::Varchar | SqlType::String => Self::Text,
            SqlType::Binary => Self::Bytes,
            SqlType::Uuid => Self::Fixed(16),
            SqlType::Long256 => Self::Fixed(32),
            SqlType::DoubleArray(dimensions) => Self::Arrays(dimensions),
            other => match other.arrow_type().primitive_width() {
                Some(width) if other.is_storable() => Self::Fixed(width),
                _ => {
                    let message = format!("columns of type {} are not supported", other.name());
                    return Err(EngineError::new(ErrorCode::NotSupported, message));
                }
            },
        })
    }

    /// Number of bodies that a column has in a log record.
    pub(crate) fn bodies(self) -> usize {
        match self {
            Self::Bits | Self::Fixed(_) => 1,
            Self::Text | Self::Bytes => 2,
            Self::Arrays(_) => 3,
        }
    }
}
