//! Parameter values as bound by a client.

use std::borrow::Cow;

use crate::{ParameterItems, SqlType};

/// A parameter value. Text represents a value of the parameter's type; a binary value keeps the
/// type that it was sent in.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue<'b> {
    /// Null.
    Null,
    /// A value of any type in text form.
    Text(Cow<'b, str>),
    /// A boolean.
    Boolean(bool),
    /// A 16-bit integer.
    Short(i16),
    /// A 32-bit integer; never the minimum, which is null.
    Int(i32),
    /// A 64-bit integer; never the minimum, which is null.
    Long(i64),
    /// A finite number.
    Float(f32),
    /// A finite number.
    Double(f64),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// A UUID, with the bytes in the order of the text form.
    Uuid([u8; 16]),
    /// Bytes.
    Binary(Cow<'b, [u8]>),
    /// A one-dimensional array. Operators that do not read its items read the text form.
    Items(ParameterItems),
}

impl<'b> ParameterValue<'b> {
    /// Creates a value in text form.
    pub fn text(text: impl Into<Cow<'b, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the type in which the value was sent.
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

    /// Returns the value with owned data.
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
