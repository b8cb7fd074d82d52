//! Function signatures and overload resolution.

use arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType;

use crate::column::Call;
use crate::native::{Kernel, Native};
use crate::resolve::{Argument, ResolveError, ResolvedScalar, types_of};

/// A parameter of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Param {
    /// A value of this type, or a value that converts to it implicitly.
    Is(SqlType),
    /// Text of any kind, read as VARCHAR.
    Text,
    /// Any value with a text form, read as VARCHAR.
    Shown,
    /// A number, read as VARCHAR text.
    Number,
    /// A TIMESTAMP or `TIMESTAMP_NS`; DATE and text are read as TIMESTAMP.
    Time,
    /// An array with any number of dimensions.
    Array,
    /// Any value, unchanged.
    Any,
}

/// How the result type is determined.
#[derive(Clone, Copy)]
pub(crate) enum ResultType {
    Is(SqlType),
    /// The type that the argument with this index is cast to.
    SameAs(usize),
    /// A type that the function determines from the cast argument types and the arguments.
    Decided(SqlType, fn(&[SqlType], &[Argument]) -> SqlType),
    /// A numeric type, and a function that returns the minimum and maximum result over all rows. If
    /// the range is small, GROUP BY does not need hashing.
    Bounded(SqlType, fn(&[Argument]) -> Option<(i64, i64)>),
}

/// How a signature's kernel is obtained.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// A kernel that needs only its arguments.
    Direct(fn(&Call<'_>) -> Result<ArrayRef>),
    /// A kernel that is built for the types and constants of a specific call.
    PerCall(fn(&Bound<'_>) -> std::result::Result<Kernel, ResolveError>),
}

/// A call for which a kernel is being built.
pub(crate) struct Bound<'a> {
    /// Types that the arguments are cast to.
    pub(crate) types: &'a [SqlType],
    pub(crate) arguments: &'a [Argument],
    pub(crate) returns: SqlType,
}

pub(crate) struct Overload {
    pub(crate) parameters: &'static [Param],
    /// Whether the last parameter may repeat any number of times.
    pub(crate) variadic: bool,
    pub(crate) result: ResultType,
    pub(crate) body: Body,
}

/// Resolves a function whose types cannot be expressed in a table, such as `coalesce` or
/// `greatest`.
pub(crate) type Special =
    fn(&str, &[Argument]) -> std::result::Result<ResolvedScalar, ResolveError>;

pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) volatility: Volatility,
    pub(crate) overloads: &'static [Overload],
    pub(crate) special: Option<Special>,
}

/// Creates a signature with a ready-made kernel.
pub(crate) const fn direct(
    takes: &'static [Param],
    gives: SqlType,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Overload {
    Overload {
        parameters: takes,
        variadic: false,
        result: ResultType::Is(gives),
        body: Body::Direct(body),
    }
}

/// Like [`direct`], but for a numeric result within a known range.
pub(crate) const fn bounded(
    takes: &'static [Param],
    gives: SqlType,
    range: fn(&[Argument]) -> Option<(i64, i64)>,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Overload {
    let gives = ResultType::Bounded(gives, range);
    Overload { parameters: takes, variadic: false, result: gives, body: Body::Direct(body) }
}

/// Creates a signature whose kernel is built for each call.
pub(crate) const fn per_call(
    takes: &'static [Param],
    gives: ResultType,
    body: fn(&Bound<'_>) -> std::result::Result<Kernel, ResolveError>,
) -> Overload {
    Overload { parameters: takes, variadic: false, result: gives, body: Body::PerCall(body) }
}

/// Creates a function whose result depends only on its arguments.
pub(crate) const fn pure(
    name: &'static str,
    overloads: &'static [Overload],
    summary: &'static str,
) -> Function {
    Function { name, summary, volatility: Volatility::Immutable, overloads, special: None }
}

/// Creates a function with special resolution rules.
pub(crate) const fn special(name: &'static str, rule: Special, summary: &'static str) -> Function {
    Function {
        name,
        summary,
        volatility: Volatility::Immutable,
        overloads: &[],
        special: Some(rule),
    }
}

/// Creates a function whose value differs in every row.
pub(crate) const fn volatile(
    name: &'static str,
    overloads: &'static [Overload],
    summary: &'static str,
) -> Function {
    Function { name, summary, volatility: Volatility::Volatile, overloads, special: None }
}

/// Formats a signature for the function list.
pub(crate) fn written(name: &str, overload: &Overload) -> String {
    let shown = |param: &Param| match param {
        Param::Is(sql_type) => sql_type.name(),
        Param::Text => "VARCHAR".into(),
        Param::Time => "TIMESTAMP".into(),
        Param::Array => "DOUBLE[…]".into(),
        Param::Any | Param::Shown => "ANY".into(),
        Param::Number => "DECIMAL".into(),
    };
    let takes: Vec<String> = overload.parameters.iter().map(shown).collect();
    let gives = match overload.result {
        ResultType::Is(sql_type) | ResultType::Bounded(sql_type, _) => sql_type.name(),
        ResultType::SameAs(index) => overload.parameters.get(index).map(shown).unwrap_or_default(),
        ResultType::Decided(usual, _) => usual.name(),
    };
    let more = if overload.variadic { ", …" } else { "" };
    format!("{name}({}{more}) -> {gives}", takes.join(", "))
}

/// Wraps a kernel as a resolved function. Constants are part of its identity because a kernel may
/// be built specifically for them.
pub(crate) fn resolved(
    name: &'static str,
    volatility: Volatility,
    types: Vec<SqlType>,
    returns: SqlType,
    arguments: &[Argument],
    kernel: Kernel,
) -> ResolvedScalar {
    let constants = arguments.iter().map(|argument| argument.constant.as_ref());
    let variant = format!("{types:?}{:?}", constants.collect::<Vec<_>>());
    let native = Native::new(name, variant, returns, volatility, kernel).taking(types.clone());
    ResolvedScalar::new(native, types, returns)
}

/// Returns the error for arguments that do not match any signature.
pub(crate) fn mismatch(
    name: &str,
    arities: impl Iterator<Item = usize>,
    arguments: &[Argument],
) -> ResolveError {
    let arities: Vec<usize> = arities.collect();
    if arguments.is_empty() && !arities.contains(&0) {
        return ResolveError::NoArguments { name: name.into() };
    }
    match arities.as_slice() {
        [expected] if *expected != arguments.len() => ResolveError::WrongArity {
            name: name.into(),
            expected: *expected,
            provided: arguments.len(),
        },
        _ => ResolveError::NoOverload { name: name.into(), types: types_of(arguments) },
    }
}

/// Returns the cost of an overload and the types to cast to; `None` if the overload does not apply.
pub(crate) fn bind(overload: &Overload, arguments: &[Argument]) -> Option<(u32, Vec<SqlType>)> {
    let (given, accepted) = (arguments.len(), overload.parameters.len());
    if given < accepted || (given > accepted && !overload.variadic) {
        return None;
    }
    let mut total = 0;
    let mut types = Vec::with_capacity(given);
    for (index, argument) in arguments.iter().enumerate() {
        let param = overload.parameters.get(index).or(overload.parameters.last())?;
        let (cost, target) = accept(*param, argument.sql_type)?;
        total += cost;
        types.push(target);
    }
    Some((total, types))
}

fn accept(param: Param, from: SqlType) -> Option<(u32, SqlType)> {
    match param {
        Param::Is(target) => implicit_cost(from, target).map(|cost| (cost, target)),
        Param::Text => {
            let text = from.is_text() || matches!(from, SqlType::Char | SqlType::Null);
            text.then_some((1, SqlType::Varchar))
        }
        Param::Time => match from {
            SqlType::Timestamp | SqlType::TimestampNs => Some((0, from)),
            SqlType::Date | SqlType::Null => Some((1, SqlType::Timestamp)),
            SqlType::Long | SqlType::Int => Some((8, SqlType::Timestamp)),
            text if text.is_text() => Some((10, SqlType::Timestamp)),
            _ => None,
        },
        Param::Array => match from {
            SqlType::DoubleArray(_) => Some((0, from)),
            SqlType::Null => Some((1, SqlType::DoubleArray(1))),
            _ => None,
        },
        Param::Any => Some((5, from)),
        Param::Number => {
            let is_number =
                from.is_integer() || from.is_floating() || matches!(from, SqlType::Decimal(..));
            is_number.then_some((1, SqlType::Varchar))
        }
        Param::Shown => {
            let has_text = !matches!(from, SqlType::Binary | SqlType::DoubleArray(_));
            has_text.then_some((5, SqlType::Varchar))
        }
    }
}

/// Returns the cost of an implicit conversion; `None` if no such conversion exists.
pub(crate) fn implicit_cost(from: SqlType, to: SqlType) -> Option<u32> {
    use SqlType as T;
    if from == to {
        return Some(0);
    }
    let step = |ladder: &[T]| {
        let at = |required: T| ladder.iter().position(|&step| step == required);
        match (at(from), at(to)) {
            (Some(low), Some(high)) if low < high => Some((high - low) as u32),
            _ => None,
        }
    };
    step(&[T::Byte, T::Short, T::Int, T::Long, T::Float, T::Double]).or_else(|| match (from, to) {
        // Converting to a type without null loses the information that the argument was null.
        (T::Null, to) => Some(if to.is_nullable() { 1 } else { 2 }),
        (T::Symbol | T::Varchar | T::Char, T::String) | (T::String, T::Varchar) => Some(1),
        (T::Symbol | T::Char, T::Varchar) | (T::String | T::Varchar, T::Symbol) => Some(2),
        (T::Date, T::Timestamp) | (T::Timestamp, T::TimestampNs) => Some(1),
        (T::Timestamp | T::TimestampNs, T::Date) | (T::TimestampNs, T::Timestamp) => Some(3),
        (T::Date | T::Timestamp | T::TimestampNs, T::Long) => Some(6),
        (T::Date | T::Timestamp | T::TimestampNs, T::Double) => Some(9),
        (integer, T::Date | T::Timestamp | T::TimestampNs) if integer.is_integer() => Some(8),
        (text, T::Timestamp) if text.is_text() => Some(10),
        (text, T::Date | T::TimestampNs | T::Uuid | T::Ipv4 | T::Period) if text.is_text() => {
            Some(11)
        }
        (text, T::Double) if text.is_text() => Some(20),
        (text, T::Long | T::Int | T::Short | T::Byte | T::Float) if text.is_text() => Some(21),
        (T::Char, T::Byte | T::Short | T::Int | T::Long | T::Double) => Some(20),
        _ => None,
    })
}
