//! What clients declare a parameter to be.

use tidemark_types::SqlType;

/// What a parameter is to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A value of a type.
    Value(SqlType),
    /// An array of `PostgreSQL`, whose text is read here: `OID[]`, `TEXT[]`, ….
    Array(&'static str),
    /// A number with any places before and after its point: NUMERIC without a precision.
    Number,
}

/// Arrays of `PostgreSQL` that a parameter may be.
const ARRAYS: &[&str] = &[
    "BOOLEAN[]",
    "NAME[]",
    "SHORT[]",
    "INT[]",
    "LONG[]",
    "OID[]",
    "TEXT[]",
    "VARCHAR[]",
    "DOUBLE[]",
    "TIMESTAMP[]",
    "UUID[]",
];

impl ParameterType {
    /// The type that a client declared.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == "DECIMAL" {
            return Some(Self::Number);
        }
        match ARRAYS.iter().find(|array| **array == name) {
            Some(array) => Some(Self::Array(array)),
            None => SqlType::parse_text(name).map(Self::Value),
        }
    }

    /// The type's text.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Value(sql_type) => sql_type.name(),
            Self::Array(name) => name.to_owned(),
            Self::Number => "DECIMAL".to_owned(),
        }
    }
}
