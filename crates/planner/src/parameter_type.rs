//! Parameter types declared by clients.

use tidemark_types::SqlType;

/// A parameter's type, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A value of a SQL type.
    Value(SqlType),
    /// A `PostgreSQL` array in text form, which the binder parses: `OID[]`, `TEXT[]`, ….
    Array(&'static str),
    /// A number of any precision and scale: NUMERIC without a precision.
    Number,
}

/// `PostgreSQL` array types that a parameter can have.
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
    /// Parses the type that a client declared.
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

    /// The type's name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Value(sql_type) => sql_type.name(),
            Self::Array(name) => name.to_owned(),
            Self::Number => "DECIMAL".to_owned(),
        }
    }
}
