//! Parameters: `$1`, `$2`, …. A parameter has the type that the client declared. Without a
//! declaration, it has the type that its first use requires, or VARCHAR if none is required.

use tidemark_types::SqlType;

use crate::{BindContext, ParameterType};

/// Types of the parameters found so far.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    types: Vec<Option<SqlType>>,
    /// Parameters that have a `PostgreSQL` array type.
    arrays: Vec<(u32, &'static str)>,
    /// Parameters that are numbers of any precision and scale.
    numbers: Vec<u32>,
}

/// Minimum precision and scale of a number compared with a DECIMAL.
const NUMBER: (u8, u8) = (38, 18);
/// Maximum precision of a DECIMAL.
const MAX_DIGITS: u8 = 76;

impl Parameters {
    pub(crate) fn new(context: &BindContext) -> Self {
        let mut own = Self::default();
        for (declared, index) in context.parameter_types.iter().zip(1..) {
            own.types.push(match declared {
                Some(ParameterType::Array(name)) => {
                    own.arrays.push((index, name));
                    Some(SqlType::Varchar)
                }
                Some(ParameterType::Value(sql_type)) => Some(*sql_type),
                Some(ParameterType::Number) => {
                    own.numbers.push(index);
                    None
                }
                None => None,
            });
        }
        own
    }

    /// Whether the parameter is a string or can become a string.
    pub(crate) fn is_text(&mut self, index: u32) -> bool {
        !self.is_array(index) && self.slot(index).is_none_or(SqlType::is_text)
    }

    /// Whether the parameter is a `PostgreSQL` array.
    pub(crate) fn is_array(&self, index: u32) -> bool {
        self.arrays.iter().any(|(own, _)| *own == index)
    }

    /// The element type of a parameter that is a `PostgreSQL` array.
    pub(crate) fn items_of(&self, index: u32) -> Option<SqlType> {
        let (_, array) = self.arrays.iter().find(|(own, _)| *own == index)?;
        Some(match array.trim_end_matches("[]") {
            "OID" => SqlType::Long,
            item => SqlType::parse(item, &[], 0)
                .filter(|item| *item != SqlType::String)
                .unwrap_or(SqlType::Varchar),
        })
    }

    /// Makes the parameter a `PostgreSQL` array.
    pub(crate) fn make_array(&mut self, index: u32, array: &'static str) {
        self.arrays.push((index, array));
    }

    /// The parameter's type, if known.
    pub(crate) fn slot(&mut self, index: u32) -> &mut Option<SqlType> {
        let position = (index as usize).saturating_sub(1);
        if self.types.len() <= position {
            self.types.resize(position + 1, None);
        }
        &mut self.types[position]
    }

    /// Sets a parameter's type unless it has one, and returns its type.
    pub(crate) fn settle(&mut self, index: u32, target: SqlType) -> SqlType {
        let is_number = self.numbers.contains(&index);
        let target = if is_number { of_number(target) } else { target };
        *self.slot(index).get_or_insert(match target {
            // Values arrive as strings: clients see SYMBOL and CHAR as strings.
            SqlType::Null | SqlType::Symbol | SqlType::Char => SqlType::Varchar,
            other => other,
        })
    }

    /// The parameters' types; unknown types become VARCHAR.
    pub(crate) fn types(&self) -> Vec<ParameterType> {
        let of = |(known, index): (&Option<SqlType>, u32)| {
            let array = self.arrays.iter().find(|(own, _)| *own == index);
            let is_open = known.is_none();
            match array {
                Some((_, name)) => ParameterType::Array(name),
                None if is_open && self.numbers.contains(&index) => ParameterType::Number,
                None => ParameterType::Value(known.unwrap_or(SqlType::Varchar)),
            }
        };
        self.types.iter().zip(1..).map(of).collect()
    }
}

/// The type of a numeric parameter that is used as `target`. Its value may have more digits than
/// `target` allows.
fn of_number(target: SqlType) -> SqlType {
    match target {
        SqlType::Byte
        | SqlType::Short
        | SqlType::Int
        | SqlType::Long
        | SqlType::Float
        | SqlType::Null => SqlType::Double,
        SqlType::Decimal(precision, scale) => {
            let places = scale.max(NUMBER.1);
            let digits = (precision - scale).saturating_add(places).max(NUMBER.0);
            SqlType::Decimal(digits.min(MAX_DIGITS), places)
        }
        other => other,
    }
}
