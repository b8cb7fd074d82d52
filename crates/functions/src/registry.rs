//! The table of scalar functions and the choice among a function's signatures.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType;

use crate::column::Call;
use crate::native::{Kernel, Native};
use crate::reference::{self, Other, Shown};
use crate::resolve::{Argument, ResolveError, ResolvedScalar, types_of};
use crate::{
    aggregate, array_functions, conditional, datetime, decimal, geo, hash, json, json_build, meta,
    numeric, postgres, random, text,
};

/// A line of the function list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDoc {
    /// The name, in the letter case the reference prints.
    pub name: &'static str,
    /// The family: `numeric`, `text`, `datetime`, …
    pub family: &'static str,
    /// Where it may stand.
    pub kind: FunctionKind,
    /// Signatures such as `round(DOUBLE, INT) -> DOUBLE`.
    pub signatures: Vec<String>,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Whether its value may differ from one execution to the next.
    pub changes: bool,
    /// What a SELECT of it may say.
    pub example: &'static str,
}

/// Where a function may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// In any expression.
    Scalar,
    /// Over the rows of a group or a window.
    Aggregate,
    /// Before OVER alone.
    Window,
    /// In FROM.
    Table,
}

/// What a signature takes in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Param {
    /// A value of this type, or one that converts to it implicitly.
    Is(SqlType),
    /// Text of any kind, read as VARCHAR.
    Text,
    /// A TIMESTAMP or `TIMESTAMP_NS`; DATE and text are read as TIMESTAMP.
    Time,
    /// An array of any dimensions.
    Array,
    /// Anything, as it is.
    Any,
}

/// The type of a result.
#[derive(Clone, Copy)]
pub(crate) enum Gives {
    Is(SqlType),
    /// The type an argument was cast to.
    SameAs(usize),
    /// What this says of the types the arguments are cast to, and of the arguments.
    Decided(SqlType, fn(&[SqlType], &[Argument]) -> SqlType),
}

/// Where a kernel comes from.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// It needs nothing but its arguments.
    Direct(fn(&Call<'_>) -> Result<ArrayRef>),
    /// It is made for the types and constants of one call.
    Made(fn(&Bound<'_>) -> std::result::Result<Kernel, ResolveError>),
}

/// One call while its kernel is made.
pub(crate) struct Bound<'a> {
    /// Types the arguments are cast to.
    pub(crate) types: &'a [SqlType],
    pub(crate) arguments: &'a [Argument],
    pub(crate) returns: SqlType,
}

pub(crate) struct Overload {
    pub(crate) takes: &'static [Param],
    /// Repeats the last parameter any number of times.
    pub(crate) variadic: bool,
    pub(crate) gives: Gives,
    pub(crate) body: Body,
}

/// A function whose types need more than a table: `coalesce`, `greatest`, …
pub(crate) type Special =
    fn(&str, &[Argument]) -> std::result::Result<ResolvedScalar, ResolveError>;

pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) volatility: Volatility,
    pub(crate) overloads: &'static [Overload],
    pub(crate) special: Option<Special>,
}

/// A signature with a kernel of its own.
pub(crate) const fn direct(
    takes: &'static [Param],
    gives: SqlType,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Overload {
    Overload { takes, variadic: false, gives: Gives::Is(gives), body: Body::Direct(body) }
}

/// A signature whose kernel is made per call.
pub(crate) const fn made(
    takes: &'static [Param],
    gives: Gives,
    body: fn(&Bound<'_>) -> std::result::Result<Kernel, ResolveError>,
) -> Overload {
    Overload { takes, variadic: false, gives, body: Body::Made(body) }
}

/// A function of its arguments alone.
pub(crate) const fn pure(
    name: &'static str,
    overloads: &'static [Overload],
    summary: &'static str,
) -> Function {
    Function { name, summary, volatility: Volatility::Immutable, overloads, special: None }
}

/// A function with rules of its own.
pub(crate) const fn special(name: &'static str, rule: Special, summary: &'static str) -> Function {
    Function {
        name,
        summary,
        volatility: Volatility::Immutable,
        overloads: &[],
        special: Some(rule),
    }
}

/// A function that gives another value in every row.
pub(crate) const fn volatile(
    name: &'static str,
    overloads: &'static [Overload],
    summary: &'static str,
) -> Function {
    Function { name, summary, volatility: Volatility::Volatile, overloads, special: None }
}

const FAMILIES: &[(&str, &[Function])] = &[
    ("numeric", numeric::FUNCTIONS),
    ("array", array_functions::FUNCTIONS),
    ("text", text::FUNCTIONS),
    ("datetime", datetime::FUNCTIONS),
    ("conditional", conditional::FUNCTIONS),
    ("geo", geo::FUNCTIONS),
    ("hash", hash::FUNCTIONS),
    ("random", random::FUNCTIONS),
    ("json", json::FUNCTIONS),
    ("json", json_build::FUNCTIONS),
    ("meta", meta::FUNCTIONS),
    ("meta", postgres::FUNCTIONS),
];

static BY_NAME: LazyLock<HashMap<String, &'static Function>> = LazyLock::new(|| {
    let functions = FAMILIES.iter().flat_map(|(_, functions)| functions.iter());
    functions.map(|function| (function.name.to_ascii_lowercase(), function)).collect()
});

static DOCS: LazyLock<Vec<FunctionDoc>> = LazyLock::new(|| {
    let scalar = FAMILIES.iter().flat_map(|(family, functions)| {
        functions.iter().map(|function| FunctionDoc {
            name: function.name,
            family,
            kind: FunctionKind::Scalar,
            signatures: signatures(function),
            summary: function.summary,
            changes: function.volatility != Volatility::Immutable,
            example: shown_of(function.name).map_or("", |shown| shown.example),
        })
    });
    let windows = reference::WINDOWS.iter().map(|one| other(one, "window", FunctionKind::Window));
    let tables = reference::TABLES.iter().map(|one| other(one, "table", FunctionKind::Table));
    let mut docs: Vec<FunctionDoc> =
        scalar.chain(aggregate::docs()).chain(windows).chain(tables).collect();
    docs.sort_by_key(|doc| doc.name.to_ascii_lowercase());
    docs
});

static SHOWN_BY_NAME: LazyLock<HashMap<&'static str, &'static Shown>> =
    LazyLock::new(|| reference::SHOWN.iter().map(|shown| (shown.name, shown)).collect());

/// What the list shows of a scalar function or an aggregate.
pub(crate) fn shown_of(name: &str) -> Option<&'static Shown> {
    SHOWN_BY_NAME.get(name).copied()
}

fn written_forms(name: &str, forms: &str) -> Vec<String> {
    forms.split("; ").filter(|form| !form.is_empty()).map(|form| format!("{name}{form}")).collect()
}

fn signatures(function: &Function) -> Vec<String> {
    let forms = shown_of(function.name).map_or("", |shown| shown.forms);
    let bound = function.overloads.iter().map(|overload| signature(function.name, overload));
    let decimal = decimal::signature(function.name);
    bound.chain(written_forms(function.name, forms)).chain(decimal).collect()
}

fn other(one: &Other, family: &'static str, kind: FunctionKind) -> FunctionDoc {
    FunctionDoc {
        name: one.shown.name,
        family,
        kind,
        signatures: written_forms(one.shown.name, one.shown.forms),
        summary: one.summary,
        changes: kind == FunctionKind::Table,
        example: one.shown.example,
    }
}

/// Every function, by name.
pub fn all_functions() -> &'static [FunctionDoc] {
    &DOCS
}

/// Whether a scalar function has this name.
pub fn is_scalar(name: &str) -> bool {
    BY_NAME.contains_key(&name.to_ascii_lowercase())
}

fn signature(name: &str, overload: &Overload) -> String {
    let shown = |param: &Param| match param {
        Param::Is(sql_type) => sql_type.name(),
        Param::Text => "VARCHAR".into(),
        Param::Time => "TIMESTAMP".into(),
        Param::Array => "DOUBLE[…]".into(),
        Param::Any => "ANY".into(),
    };
    let takes: Vec<String> = overload.takes.iter().map(shown).collect();
    let gives = match overload.gives {
        Gives::Is(sql_type) => sql_type.name(),
        Gives::SameAs(index) => overload.takes.get(index).map(shown).unwrap_or_default(),
        Gives::Decided(usual, _) => usual.name(),
    };
    let more = if overload.variadic { ", …" } else { "" };
    format!("{name}({}{more}) -> {gives}", takes.join(", "))
}

/// Binds a scalar function.
pub fn resolve_scalar(
    name: &str,
    arguments: &[Argument],
) -> std::result::Result<ResolvedScalar, ResolveError> {
    let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let plain = match arguments.first().and_then(Argument::text) {
        // Seconds since 1970 need more than the INT of the other parts.
        Some(part) if plain.eq_ignore_ascii_case("extract") && part == "epoch" => "extract_epoch",
        _ => plain,
    };
    let Some(function) = BY_NAME.get(&plain.to_ascii_lowercase()) else {
        return Err(unknown(name, arguments));
    };
    if let Some(decimals) = decimal::function(function.name, arguments) {
        return decimals;
    }
    if let Some(rule) = function.special {
        return rule(name, arguments);
    }
    let chosen = function
        .overloads
        .iter()
        .filter_map(|overload| {
            bind(overload, arguments).map(|(cost, types)| (cost, types, overload))
        })
        .min_by_key(|(cost, ..)| *cost);
    let Some((_, types, overload)) = chosen else {
        return Err(mismatch(name, function.overloads.iter().map(|o| o.takes.len()), arguments));
    };
    let returns = match overload.gives {
        Gives::Is(sql_type) => sql_type,
        Gives::SameAs(index) => types.get(index).copied().unwrap_or(SqlType::Null),
        Gives::Decided(_, decide) => decide(&types, arguments),
    };
    let kernel: Kernel = match overload.body {
        Body::Direct(run) => Arc::new(run),
        Body::Made(make) => make(&Bound { types: &types, arguments, returns })?,
    };
    Ok(resolved(function.name, function.volatility, types, returns, arguments, kernel))
}

/// Puts a kernel into its shape. Constants are part of the identity, since a made kernel may have
/// them built in.
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

/// The error for a name that no function has, with the name that comes nearest.
pub(crate) fn unknown(name: &str, arguments: &[Argument]) -> ResolveError {
    let lower = name.to_ascii_lowercase();
    let near = DOCS
        .iter()
        .map(|doc| (distance(&lower, &doc.name.to_ascii_lowercase()), doc.name))
        .filter(|(distance, _)| *distance > 0 && *distance <= (lower.chars().count() / 3).min(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name);
    ResolveError::Unknown { name: name.into(), types: types_of(arguments), near }
}

/// How many characters are to be added, dropped, changed or swapped with their neighbour to get
/// from one word to another.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        rows.rotate_left(1);
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut least = (rows[1][j + 1] + 1).min(row[j] + 1);
            least = least.min(rows[1][j] + usize::from(a != b));
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                least = least.min(rows[0][j - 1] + 1);
            }
            row.push(least);
        }
        rows[2] = row;
    }
    rows[2].last().copied().unwrap_or_default()
}

/// The error for arguments that no signature takes.
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

/// The cost of an overload and the types it casts to; `None` when it does not apply.
fn bind(overload: &Overload, arguments: &[Argument]) -> Option<(u32, Vec<SqlType>)> {
    let (given, taken) = (arguments.len(), overload.takes.len());
    if given < taken || (given > taken && !overload.variadic) {
        return None;
    }
    let mut total = 0;
    let mut types = Vec::with_capacity(given);
    for (index, argument) in arguments.iter().enumerate() {
        let param = overload.takes.get(index).or(overload.takes.last())?;
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
    }
}

/// How far an implicit conversion goes; `None` when there is none.
pub(crate) fn implicit_cost(from: SqlType, to: SqlType) -> Option<u32> {
    use SqlType as T;
    if from == to {
        return Some(0);
    }
    let step = |ladder: &[T]| {
        let at = |wanted: T| ladder.iter().position(|&step| step == wanted);
        match (at(from), at(to)) {
            (Some(low), Some(high)) if low < high => Some((high - low) as u32),
            _ => None,
        }
    };
    step(&[T::Byte, T::Short, T::Int, T::Long, T::Float, T::Double]).or_else(|| match (from, to) {
        // What is never null cannot say that the argument was.
        (T::Null, to) => Some(if to.is_nullable() { 1 } else { 2 }),
        (T::Symbol | T::Varchar | T::Char, T::String) | (T::String, T::Varchar) => Some(1),
        (T::Symbol | T::Char, T::Varchar) | (T::String | T::Varchar, T::Symbol) => Some(2),
        (T::Date, T::Timestamp) | (T::Timestamp, T::TimestampNs) => Some(1),
        (T::Timestamp | T::TimestampNs, T::Date) | (T::TimestampNs, T::Timestamp) => Some(3),
        (T::Date | T::Timestamp | T::TimestampNs, T::Long) => Some(6),
        (T::Date | T::Timestamp | T::TimestampNs, T::Double) => Some(9),
        (integer, T::Date | T::Timestamp | T::TimestampNs) if integer.is_integer() => Some(8),
        (text, T::Timestamp) if text.is_text() => Some(10),
        (text, T::Date | T::TimestampNs | T::Uuid | T::Ipv4) if text.is_text() => Some(11),
        (text, T::Double) if text.is_text() => Some(20),
        (text, T::Long | T::Int | T::Short | T::Byte | T::Float) if text.is_text() => Some(21),
        (T::Char, T::Byte | T::Short | T::Int | T::Long | T::Double) => Some(20),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, types: &[SqlType]) -> String {
        let arguments: Vec<Argument> = types.iter().map(|&t| Argument::column(t)).collect();
        resolve_scalar(name, &arguments).unwrap_err().message()
    }

    #[test]
    fn errors_have_the_references_words() {
        use SqlType::{Int, Long};
        assert_eq!(message("no_such_one", &[Int]), "unknown function name: no_such_one(INT)");
        assert_eq!(message("upper", &[]), "function `upper` requires arguments");
        assert_eq!(
            message("round", &[Int, Int, Int]),
            "there is no matching function `round` with the argument types: (INT, INT, INT)"
        );
        assert_eq!(
            message("strpos", &[Long]),
            "wrong number of arguments for function `strpos`; expected: 2, provided: 1"
        );
    }

    #[test]
    fn the_nearest_signature_wins() {
        let returns = |name: &str, sql_type| {
            resolve_scalar(name, &[Argument::column(sql_type)]).unwrap().return_type
        };
        assert_eq!(returns("abs", SqlType::Int), SqlType::Int);
        assert_eq!(returns("ABS", SqlType::Long), SqlType::Long);
        assert_eq!(returns("floor", SqlType::Int), SqlType::Float);
        assert_eq!(returns("floor", SqlType::Double), SqlType::Double);
    }

    #[test]
    fn every_function_has_an_example_and_signatures() {
        for doc in all_functions() {
            assert!(!doc.example.is_empty() && !doc.signatures.is_empty(), "{}", doc.name);
        }
    }

    #[test]
    fn words_are_near_by_their_letters() {
        assert_eq!(distance("lenght", "length"), 1);
        assert_eq!(distance("sum", "sum"), 0);
        assert_eq!(distance("avgg", "avg"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(
            message("lenght", &[]),
            "unknown function name: lenght(), did you mean 'length'?"
        );
    }

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<String> = FAMILIES
            .iter()
            .flat_map(|(_, list)| list.iter())
            .map(|f| f.name.to_lowercase())
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
