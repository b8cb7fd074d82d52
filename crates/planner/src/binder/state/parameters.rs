//! Parameters: `$1`, `$2`, …. A parameter's type is what the client declared, else what its
//! first use asks for, else VARCHAR.

use tidemark_types::SqlType;

use crate::{BindContext, ParameterType};

/// Types of the parameters met so far.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    types: Vec<Option<SqlType>>,
    /// Those that are arrays of `PostgreSQL`.
    arrays: Vec<(u32, &'static str)>,
    /// Those that are numbers with any places before and after their point.
    numbers: Vec<u32>,
}

/// Digits of a number beside a DECIMAL, and those behind its point, at least.
const NUMBER: (u8, u8) = (38, 18);
/// Digits of a DECIMAL, at most.
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

    /// Whether it is text, or may become text.
    pub(crate) fn is_text(&mut self, index: u32) -> bool {
        !self.is_array(index) && self.slot(index).is_none_or(SqlType::is_text)
    }

    /// Whether it is an array of `PostgreSQL`.
    pub(crate) fn is_array(&self, index: u32) -> bool {
        self.arrays.iter().any(|(own, _)| *own == index)
    }

    /// The type of the items of one that is an array of `PostgreSQL`.
    pub(crate) fn items_of(&self, index: u32) -> Option<SqlType> {
        let (_, array) = self.arrays.iter().find(|(own, _)| *own == index)?;
        Some(match array.trim_end_matches("[]") {
            "OID" => SqlType::Long,
            item => SqlType::parse(item, &[], 0)
                .filter(|item| *item != SqlType::String)
                .unwrap_or(SqlType::Varchar),
        })
    }

    /// Notes that it is an array of `PostgreSQL`.
    pub(crate) fn make_array(&mut self, index: u32, array: &'static str) {
        self.arrays.push((index, array));
    }

    /// Its type, while that is known.
    pub(crate) fn slot(&mut self, index: u32) -> &mut Option<SqlType> {
        let position = (index as usize).saturating_sub(1);
        if self.types.len() <= position {
            self.types.resize(position + 1, None);
        }
        &mut self.types[position]
    }

    /// Gives a parameter its type unless it has one; returns the type it has.
    pub(crate) fn settle(&mut self, index: u32, wanted: SqlType) -> SqlType {
        let is_number = self.numbers.contains(&index);
        let wanted = if is_number { of_number(wanted) } else { wanted };
        *self.slot(index).get_or_insert(match wanted {
            // Values come as text; what is interned or one character long is text to a client.
            SqlType::Null | SqlType::Symbol | SqlType::Char => SqlType::Varchar,
            other => other,
        })
    }

    /// The types, open ones as VARCHAR.
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

/// The type of a number that is used as one of `wanted`: it may have places that the other has not.
fn of_number(wanted: SqlType) -> SqlType {
    match wanted {
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
