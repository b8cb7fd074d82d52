//! How a conversion is meant, and the types it tells apart.

use tidemark_types::SqlType;
use tidemark_types::timestamp::TimestampUnit;

/// On whose behalf a value is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastMode {
    /// `CAST` and `::` over a column: what does not convert is null.
    Explicit,
    /// By the binder, to make operands meet: text that does not convert is an error.
    Implicit,
    /// Into a stored column: failures are errors, and fewer conversions exist.
    Insert,
    /// `CAST` and `::` over a constant: as Explicit, but a null number has a text.
    Constant,
}

impl CastMode {
    pub(super) fn strict(self) -> bool {
        matches!(self, Self::Implicit | Self::Insert)
    }
}

pub(crate) fn is_plain_text(sql_type: SqlType) -> bool {
    matches!(sql_type, SqlType::String | SqlType::Varchar)
}

pub(crate) fn is_time(sql_type: SqlType) -> bool {
    unit_of(sql_type).is_some()
}

pub(crate) fn unit_of(sql_type: SqlType) -> Option<TimestampUnit> {
    match sql_type {
        SqlType::Date => Some(TimestampUnit::Millis),
        SqlType::Timestamp => Some(TimestampUnit::Micros),
        SqlType::TimestampNs => Some(TimestampUnit::Nanos),
        _ => None,
    }
}
