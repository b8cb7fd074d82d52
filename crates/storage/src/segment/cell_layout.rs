//! How the cells of each type lie on disk.

use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

/// How the cells of a type lie on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One bit per row.
    Bits,
    /// So many bytes per row. Symbols are keys of four bytes.
    Fixed(usize),
    /// Views of 16 bytes per row, then the texts longer than 12 bytes.
    Text,
    /// Offsets of 8 bytes per row and one more, then the bytes.
    Bytes,
    /// So many lengths of 4 bytes per row, offsets as for `Bytes`, then elements of 8 bytes.
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

    /// Bodies of a column in a log record.
    pub(crate) fn bodies(self) -> usize {
        match self {
            Self::Bits | Self::Fixed(_) => 1,
            Self::Text | Self::Bytes => 2,
            Self::Arrays(_) => 3,
        }
    }
}
