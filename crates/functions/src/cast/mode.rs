//! Conversion modes and the type families they distinguish.

use tidemark_types::SqlType;
use tidemark_types::timestamp::TimestampUnit;

/// The context in which a value is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastMode {
    /// `CAST` and `::` on a column. A value that cannot be converted becomes null.
    Explicit,
    /// Inserted by the binder to give operands a common type. Text that cannot be converted is an
    /// error.
    Implicit,
    /// Assignment to a stored column. Failures are errors, and fewer conversions are allowed.
    Insert,
    /// `CAST` and `::` on a constant. Like Explicit, but a null number is converted to a string.
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
