//! What the binder asks and what it gets back.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion_expr::{AggregateUDF, Expr, ScalarUDF, Volatility};
use tidemark_types::{EngineError, ErrorCode, SqlType};

use crate::native::Native;

/// An argument as far as resolution needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its SQL type; `Null` for the untyped NULL.
    pub sql_type: SqlType,
    /// Its value when the binder knows it.
    pub constant: Option<ScalarValue>,
    /// Whether its text is JSON.
    pub json: bool,
}

impl Argument {
    /// An argument that varies by row, or that is only known at run time.
    #[must_use]
    pub fn column(sql_type: SqlType) -> Self {
        Self { sql_type, constant: None, json: false }
    }

    /// An argument the binder knows.
    #[must_use]
    pub fn constant(sql_type: SqlType, value: ScalarValue) -> Self {
        Self { sql_type, constant: Some(value), json: false }
    }

    /// Whether the argument is known to be null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.sql_type == SqlType::Null || self.constant.as_ref().is_some_and(ScalarValue::is_null)
    }

    /// Whether the argument may be null in some row.
    #[must_use]
    pub fn may_be_null(&self) -> bool {
        self.sql_type.is_nullable() && self.constant.as_ref().is_none_or(ScalarValue::is_null)
    }

    /// The text of a constant text or CHAR argument.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self.constant.as_ref()? {
            ScalarValue::Utf8(text)
            | ScalarValue::Utf8View(text)
            | ScalarValue::LargeUtf8(text) => text.clone(),
            ScalarValue::Dictionary(_, value) => {
                Self::constant(self.sql_type, value.as_ref().clone()).text()
            }
            ScalarValue::UInt16(unit) => {
                unit.and_then(|unit| char::from_u32(u32::from(unit))).map(String::from)
            }
            _ => None,
        }
    }

    /// The value of a constant number.
    #[must_use]
    pub fn double(&self) -> Option<f64> {
        let value = self.constant.as_ref()?.cast_to(&arrow::datatypes::DataType::Float64).ok()?;
        match value {
            ScalarValue::Float64(value) => value,
            _ => None,
        }
    }

    /// The value of a constant INT or LONG argument.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match self.constant.as_ref()? {
            ScalarValue::Int32(value) => value.map(i64::from),
            ScalarValue::Int64(value) => *value,
            _ => None,
        }
    }
}

/// A scalar function bound to its argument types.
#[derive(Debug, Clone)]
pub struct ResolvedScalar {
    /// The function; call it with the arguments cast to `argument_types`.
    pub udf: Arc<ScalarUDF>,
    /// What to cast each argument to.
    pub argument_types: Vec<SqlType>,
    /// The SQL type of the result.
    pub return_type: SqlType,
    native: Arc<Native>,
}

impl ResolvedScalar {
    pub(crate) fn new(native: Native, argument_types: Vec<SqlType>, return_type: SqlType) -> Self {
        let native = Arc::new(native);
        let udf = Arc::new(ScalarUDF::new_from_shared_impl(Arc::clone(&native) as _));
        Self { udf, argument_types, return_type, native }
    }

    /// The same function, which gives numbers of this range alone.
    pub(crate) fn within(self, range: Option<(i64, i64)>) -> Self {
        Self::new(self.native.within(range), self.argument_types, self.return_type)
    }

    /// Whether every row may get another value.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.udf.signature().volatility == Volatility::Volatile
    }

    /// The same function with random numbers that `seed` decides.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self::new(self.native.seeded(seed), self.argument_types, self.return_type)
    }
}

/// An aggregate function bound to its argument types.
#[derive(Debug, Clone)]
pub struct ResolvedAggregate {
    /// The function; call it with the arguments cast to `argument_types`.
    pub udaf: Arc<AggregateUDF>,
    /// What to cast each argument to.
    pub argument_types: Vec<SqlType>,
    /// The SQL type of the result.
    pub return_type: SqlType,
    /// Whether the result depends on row order: give the call an ORDER BY of the designated
    /// timestamp, unless the input is known to arrive in that order in one piece.
    pub order_sensitive: bool,
    /// Whether the call is to be made with IGNORE NULLS.
    pub ignore_nulls: bool,
    /// Whether the call is to be made with DISTINCT.
    pub distinct: bool,
}

/// How an operator's operands become its expression.
pub type BuildOperator = Arc<dyn Fn(Expr, Expr) -> Expr + Send + Sync>;

/// An operator bound to its operand types.
#[derive(Clone)]
pub struct ResolvedOperator {
    /// What to cast the left operand to.
    pub left_type: SqlType,
    /// What to cast the right operand to.
    pub right_type: SqlType,
    /// The SQL type of the result.
    pub return_type: SqlType,
    /// Makes the expression of the two cast operands.
    pub build: BuildOperator,
}

/// Why a call or a cast cannot be bound. `message` has the reference's words; the position is the
/// binder's to add.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub enum ResolveError {
    /// No function has this name.
    Unknown {
        /// Name as written.
        name: String,
        /// Types of the arguments.
        types: Vec<SqlType>,
        /// What to write instead, behind the words of the reference.
        hint: Option<String>,
    },
    /// The name is known, the types are not.
    NoOverload {
        /// Name as written.
        name: String,
        /// Types of the arguments.
        types: Vec<SqlType>,
    },
    /// No operator takes these types.
    NoOperator {
        /// The operator's sign.
        sign: &'static str,
        /// Type of the left operand.
        left: SqlType,
        /// Type of the right operand.
        right: SqlType,
    },
    /// The function's one signature has another number of arguments.
    WrongArity {
        /// Name as written.
        name: String,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        provided: usize,
    },
    /// No argument was given to a function that needs some.
    NoArguments {
        /// Name as written.
        name: String,
    },
    /// No value of the one type is one of the other.
    InconvertibleTypes {
        /// The source type.
        from: SqlType,
        /// The target type.
        to: SqlType,
    },
    /// A constant that does not convert.
    InconvertibleValue {
        /// The constant's text.
        value: String,
        /// Its type.
        from: SqlType,
        /// The target type.
        to: SqlType,
    },
    /// A constant argument that the function refuses.
    InvalidArgument {
        /// Which argument, from 0.
        index: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A constant pattern that is none.
    InvalidPattern {
        /// Which argument, from 0.
        index: usize,
        /// The character of the pattern at which it breaks.
        offset: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Anything a constant can have wrong that is not tied to an argument.
    Invalid {
        /// What is wrong.
        message: String,
    },
}

impl ResolveError {
    /// The reference's words.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Unknown { name, types, hint } => {
                let hint = hint.as_deref().unwrap_or_default();
                format!("unknown function name: {name}({}){hint}", list(types, ","))
            }
            Self::NoOverload { name, types } => format!(
                "there is no matching function `{name}` with the argument types: ({})",
                list(types, ", ")
            ),
            Self::NoOperator { sign, left, right } => format!(
                "there is no matching operator `{sign}` with the argument types: {} {sign} {}",
                left.name(),
                right.name()
            ),
            Self::WrongArity { name, expected, provided } => format!(
                "wrong number of arguments for function `{name}`; expected: {expected}, \
                 provided: {provided}"
            ),
            Self::NoArguments { name } => format!("function `{name}` requires arguments"),
            Self::InconvertibleTypes { from, to } => {
                format!("inconvertible types: {} -> {}", from.name(), to.name())
            }
            Self::InconvertibleValue { value, from, to } => inconvertible_value(value, *from, *to),
            Self::InvalidArgument { message, .. }
            | Self::InvalidPattern { message, .. }
            | Self::Invalid { message } => message.clone(),
        }
    }

    /// The argument the error is about, when it is about one.
    #[must_use]
    pub fn argument(&self) -> Option<usize> {
        match self {
            Self::InvalidArgument { index, .. } | Self::InvalidPattern { index, .. } => {
                Some(*index)
            }
            _ => None,
        }
    }

    /// The character within a literal argument that the error is about, the quote counted.
    #[must_use]
    pub fn offset(&self) -> usize {
        match self {
            Self::InvalidPattern { offset, .. } => offset + 1,
            _ => 0,
        }
    }
}

impl From<ResolveError> for EngineError {
    fn from(error: ResolveError) -> Self {
        let code = match &error {
            ResolveError::Unknown { .. } => ErrorCode::FunctionNotFound,
            ResolveError::InconvertibleValue { .. }
            | ResolveError::InvalidArgument { .. }
            | ResolveError::InvalidPattern { .. }
            | ResolveError::Invalid { .. } => ErrorCode::InvalidValue,
            _ => ErrorCode::TypeMismatch,
        };
        Self::new(code, error.message())
    }
}

/// `inconvertible value: …` in the reference's words.
pub(crate) fn inconvertible_value(value: &str, from: SqlType, to: SqlType) -> String {
    let quote = if from.is_text() { "`" } else { "" };
    format!("inconvertible value: {quote}{value}{quote} [{} -> {}]", from.name(), to.name())
}

fn list(types: &[SqlType], separator: &str) -> String {
    types.iter().map(|sql_type| sql_type.name()).collect::<Vec<_>>().join(separator)
}

pub(crate) fn types_of(arguments: &[Argument]) -> Vec<SqlType> {
    arguments.iter().map(|argument| argument.sql_type).collect()
}
