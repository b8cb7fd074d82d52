//! Arguments and results used in function resolution.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion_expr::{AggregateUDF, Expr, ScalarUDF, Volatility};
use tidemark_types::{EngineError, ErrorCode, SqlType};

use crate::native::Native;

/// The argument properties that function resolution needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The SQL type; `Null` for the untyped NULL.
    pub sql_type: SqlType,
    /// The argument's value, if the binder knows it.
    pub constant: Option<ScalarValue>,
    /// Whether the argument's string is JSON.
    pub json: bool,
}

impl Argument {
    /// Creates an argument that varies by row or is known only at run time.
    #[must_use]
    pub fn column(sql_type: SqlType) -> Self {
        Self { sql_type, constant: None, json: false }
    }

    /// Creates an argument whose value the binder knows.
    #[must_use]
    pub fn constant(sql_type: SqlType, value: ScalarValue) -> Self {
        Self { sql_type, constant: Some(value), json: false }
    }

    /// Whether the argument is known to be null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.sql_type == SqlType::Null || self.constant.as_ref().is_some_and(ScalarValue::is_null)
    }

    /// Whether the argument may be null in any row.
    #[must_use]
    pub fn may_be_null(&self) -> bool {
        self.sql_type.is_nullable() && self.constant.as_ref().is_none_or(ScalarValue::is_null)
    }

    /// Returns the string of a constant text or CHAR argument.
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

    /// Returns the value of a constant number.
    #[must_use]
    pub fn double(&self) -> Option<f64> {
        let value = self.constant.as_ref()?.cast_to(&arrow::datatypes::DataType::Float64).ok()?;
        match value {
            ScalarValue::Float64(value) => value,
            _ => None,
        }
    }

    /// Returns the value of a constant INT or LONG argument.
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
    /// The function, to be called with the arguments cast to `argument_types`.
    pub udf: Arc<ScalarUDF>,
    /// Types to cast the arguments to.
    pub argument_types: Vec<SqlType>,
    /// SQL type of the result.
    pub return_type: SqlType,
    native: Arc<Native>,
}

impl ResolvedScalar {
    pub(crate) fn new(native: Native, argument_types: Vec<SqlType>, return_type: SqlType) -> Self {
        let native = Arc::new(native);
        let udf = Arc::new(ScalarUDF::new_from_shared_impl(Arc::clone(&native) as _));
        Self { udf, argument_types, return_type, native }
    }

    /// Returns the same function with this result range.
    pub(crate) fn within(self, range: Option<(i64, i64)>) -> Self {
        Self::new(self.native.within(range), self.argument_types, self.return_type)
    }

    /// Whether the result may differ from row to row.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.udf.signature().volatility == Volatility::Volatile
    }

    /// Returns the same function with random numbers from `seed`.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self::new(self.native.seeded(seed), self.argument_types, self.return_type)
    }
}

/// An aggregate function bound to its argument types.
#[derive(Debug, Clone)]
pub struct ResolvedAggregate {
    /// The aggregate function, to be called with the arguments cast to `argument_types`.
    pub udaf: Arc<AggregateUDF>,
    /// Types to cast the arguments to.
    pub argument_types: Vec<SqlType>,
    /// SQL type of the result.
    pub return_type: SqlType,
    /// Whether the result depends on row order. If so, the call needs an ORDER BY on the designated
    /// timestamp, unless the input is known to arrive in that order in a single partition.
    pub order_sensitive: bool,
    /// Whether the call needs IGNORE NULLS.
    pub ignore_nulls: bool,
    /// Whether the call needs DISTINCT.
    pub distinct: bool,
}

/// Builds an operator's expression from its operands.
pub type BuildOperator = Arc<dyn Fn(Expr, Expr) -> Expr + Send + Sync>;

/// An operator bound to its operand types.
#[derive(Clone)]
pub struct ResolvedOperator {
    /// Type to cast the left operand to.
    pub left_type: SqlType,
    /// Type to cast the right operand to.
    pub right_type: SqlType,
    /// SQL type of the result.
    pub return_type: SqlType,
    /// Builds the expression from the two cast operands.
    pub build: BuildOperator,
}

/// The reason a call or cast cannot be bound. `message` uses `QuestDB`'s wording, and the binder
/// adds the position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub enum ResolveError {
    /// No function has this name.
    Unknown {
        /// Name as written.
        name: String,
        /// Argument types.
        types: Vec<SqlType>,
        /// A suggested alternative, appended to `QuestDB`'s message.
        hint: Option<String>,
    },
    /// The name is known, but no signature has these types.
    NoOverload {
        /// Name as written.
        name: String,
        /// Argument types.
        types: Vec<SqlType>,
    },
    /// No operator accepts these types.
    NoOperator {
        /// The operator symbol.
        sign: &'static str,
        /// Type of the left operand.
        left: SqlType,
        /// Type of the right operand.
        right: SqlType,
    },
    /// The function's only signature has a different number of arguments.
    WrongArity {
        /// Name as written.
        name: String,
        /// Number of arguments the function accepts.
        expected: usize,
        /// Number of arguments in the call.
        provided: usize,
    },
    /// A call without arguments to a function that requires arguments.
    NoArguments {
        /// Name as written.
        name: String,
    },
    /// No conversion exists between the two types.
    InconvertibleTypes {
        /// The source type.
        from: SqlType,
        /// The target type.
        to: SqlType,
    },
    /// A constant that cannot be converted.
    InconvertibleValue {
        /// The constant as a string.
        value: String,
        /// Type of the constant.
        from: SqlType,
        /// The target type.
        to: SqlType,
    },
    /// A constant argument that the function rejects.
    InvalidArgument {
        /// 0-based index of the argument.
        index: usize,
        /// Error message.
        message: String,
    },
    /// A malformed constant pattern.
    InvalidPattern {
        /// 0-based index of the argument.
        index: usize,
        /// Position of the error within the pattern, in characters.
        offset: usize,
        /// Error message.
        message: String,
    },
    /// Any other error in a constant that is not tied to a single argument.
    Invalid {
        /// Error message.
        message: String,
    },
}

impl ResolveError {
    /// Returns the message in `QuestDB`'s wording.
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

    /// Returns the index of the argument that caused the error, if any.
    #[must_use]
    pub fn argument(&self) -> Option<usize> {
        match self {
            Self::InvalidArgument { index, .. } | Self::InvalidPattern { index, .. } => {
                Some(*index)
            }
            _ => None,
        }
    }

    /// Returns the position of the error within a literal argument, in characters including the
    /// quote.
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

/// Returns the message `inconvertible value: …` in `QuestDB`'s wording.
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
