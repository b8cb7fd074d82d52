//! The value of a parameter, as a client bound it.

use std::borrow::Cow;

use crate::{ParameterItems, SqlType};

/// One value. Texts are in the parameter's own type; what a client sent in binary has the type
/// that it was sent as.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue<'b> {
    /// No value.
    Null,
    /// Text of a value of any type.
    Text(Cow<'b, str>),
    /// A truth value.
    Boolean(bool),
    /// 16 bits.
    Short(i16),
    /// 32 bits; never the least one, which is null.
    Int(i32),
    /// 64 bits; never the least one, which is null.
    Long(i64),
    /// Finite.
    Float(f32),
    /// Finite.
    Double(f64),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// The bytes in the order of their text.
    Uuid([u8; 16]),
    /// Bytes.
    Binary(Cow<'b, [u8]>),
    /// An array of one dimension: where no operator reads its items, the text that they are.
    Items(ParameterItems),
}

impl<'b> ParameterValue<'b> {
    /// Text of a value.
    pub fn text(text: impl Into<Cow<'b, str>>) -> Self {
        Self::Text(text.into())
    }

    /// The type that the value came in.
    #[must_use]
    pub fn sql_type(&self) -> SqlType {
        match self {
            Self::Null => SqlType::Null,
            Self::Text(_) | Self::Items(_) => SqlType::Varchar,
            Self::Boolean(_) => SqlType::Boolean,
            Self::Short(_) => SqlType::Short,
            Self::Int(_) => SqlType::Int,
            Self::Long(_) => SqlType::Long,
            Self::Float(_) => SqlType::Float,
            Self::Double(_) => SqlType::Double,
            Self::Timestamp(_) => SqlType::Timestamp,
            Self::Uuid(_) => SqlType::Uuid,
            Self::Binary(_) => SqlType::Binary,
        }
    }

    /// The same value without what it was read from.
    #[must_use]
    pub fn into_owned(self) -> ParameterValue<'static> {
        match self {
            Self::Null => ParameterValue::Null,
            Self::Text(text) => ParameterValue::Text(Cow::Owned(text.into_owned())),
            Self::Boolean(value) => ParameterValue::Boolean(value),
            Self::Short(value) => ParameterValue::Short(value),
            Self::Int(value) => ParameterValue::Int(value),
            Self::Long(value) => ParameterValue::Long(value),
            Self::Float(value) => ParameterValue::Float(value),
            Self::Double(value) => ParameterValue::Double(value),
            Self::Timestamp(micros) => ParameterValue::Timestamp(micros),
            Self::Uuid(bytes) => ParameterValue::Uuid(bytes),
            Self::Binary(bytes) => ParameterValue::Binary(Cow::Owned(bytes.into_owned())),
            Self::Items(items) => ParameterValue::Items(items),
        }
    }
}
