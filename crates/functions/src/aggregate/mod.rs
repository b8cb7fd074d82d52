//! Aggregate functions, resolved by name and argument types.
//!
//! The operators recognise the most frequent aggregates (count, sum, avg, min, max, first, last) by
//! name and type and run them on specialised kernels. This module contains the general
//! implementations, which are used with joins and windows.
//!
//! Nulls are skipped. An aggregate of no values is null unless its entry states otherwise.

mod arrays;
mod change;
mod decimal;
mod distinct;
mod edge;
mod fold;
mod integer;
mod moments;
mod native;
mod pairs;
mod path;
mod shape;
mod sorted;
mod text;
mod values;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion_expr::AggregateUDF;
use tidemark_types::SqlType;

use self::shape::{is_number, ordered, reads_as_double, unordered};
use crate::listing::{FunctionDoc, FunctionKind, shown_of};
use crate::resolve::{Argument, ResolveError, ResolvedAggregate, types_of};

/// All aggregates, each with its signature and a summary.
pub(crate) const AGGREGATES: &[(&str, &str, &str)] = &[
    ("any_value", "(any)", "any non-null value"),
    (
        "approx_count_distinct",
        "(any [, precision])",
        "number of distinct values; always exact, the precision is ignored",
    ),
    ("approx_median", "(number [, digits])", "median of non-negative values, to n digits"),
    (
        "approx_percentile",
        "(number, p [, digits])",
        "percentile p (0 to 1) of non-negative values, to n digits",
    ),
    ("arg_max", "(value, key)", "value in the row with the largest key"),
    ("arg_min", "(value, key)", "value in the row with the smallest key"),
    ("array_agg", "(number) | (array) | (text)", "values in row order; arrays are concatenated"),
    ("array_elem_avg", "(array)", "mean at each array position, across all rows"),
    ("array_elem_max", "(array)", "maximum at each array position, across all rows"),
    ("array_elem_min", "(array)", "minimum at each array position, across all rows"),
    ("array_elem_sum", "(array)", "sum at each array position, across all rows"),
    ("avg", "(number) | (decimal, places)", "arithmetic mean"),
    ("bit_and", "(integer)", "bitwise AND of all values"),
    ("bit_or", "(integer)", "bitwise OR of all values"),
    ("bit_xor", "(integer)", "bitwise XOR of all values"),
    ("bool_and", "(boolean)", "whether all values are true; false if there are no rows"),
    ("bool_or", "(boolean)", "whether any value is true"),
    ("corr", "(y, x)", "Pearson correlation"),
    ("count", "() | (any)", "number of rows, or of non-null values"),
    ("count_distinct", "(any)", "number of distinct non-null values"),
    ("covar_pop", "(y, x)", "population covariance"),
    ("covar_samp", "(y, x)", "sample covariance; null for fewer than 2 pairs"),
    ("delta", "(value [, timestamp])", "last value minus the first value"),
    (
        "derivative",
        "(value [, timestamp])",
        "change in value per second, from the first row to the last",
    ),
    ("every", "(boolean)", "alias of bool_and"),
    ("first", "(any)", "value in the earliest row, which can be null"),
    ("first_not_null", "(any)", "earliest non-null value"),
    ("geomean", "(number)", "geometric mean; null if any value is not positive"),
    ("haversine_dist_deg", "(lat, lon, timestamp)", "length in km of a path through points"),
    (
        "increase",
        "(counter [, timestamp])",
        "increase in a counter; a decrease is treated as a reset to 0",
    ),
    ("integral", "(value [, timestamp])", "area under the curve, in value units times seconds"),
    ("isOrdered", "(number) | (timestamp)", "whether the values are in ascending order"),
    ("json_agg", "(any)", "JSON array of the values in row order, including nulls"),
    ("jsonb_agg", "(any)", "alias of json_agg"),
    ("ksum", "(number)", "compensated sum (Kahan)"),
    ("kurtosis", "(number)", "bias-corrected excess kurtosis; null for fewer than 4 values"),
    ("kurtosis_pop", "(number)", "population excess kurtosis"),
    ("kurtosis_samp", "(number)", "alias of kurtosis"),
    ("last", "(any)", "value in the latest row, which can be null"),
    ("last_not_null", "(any)", "latest non-null value"),
    ("max", "(any)", "maximum value"),
    ("max_by", "(value, key)", "alias of arg_max"),
    ("median", "(number)", "exact median"),
    ("min", "(any)", "minimum value"),
    ("min_by", "(value, key)", "alias of arg_min"),
    (
        "mode",
        "(any) | (any, descending)",
        "most frequent value; on a tie, the first found or the first in sort order; also mode() \
         WITHIN GROUP (ORDER BY value)",
    ),
    ("nsum", "(number)", "compensated sum (Neumaier)"),
    ("percentile", "(number, p)", "exact percentile p (0 to 1), linearly interpolated"),
    (
        "percentile_cont",
        "(number, p)",
        "alias of percentile; also percentile_cont(p) WITHIN GROUP (ORDER BY number)",
    ),
    ("percentile_disc", "(value, p)", "percentile p (0 to 1), always one of the values"),
    ("rate", "(counter [, timestamp])", "increase in a counter per second"),
    ("regr_intercept", "(y, x)", "intercept of the regression line"),
    ("regr_r2", "(y, x)", "coefficient of determination"),
    ("regr_slope", "(y, x)", "slope of the regression line"),
    ("skewness", "(number)", "bias-corrected skewness; null for fewer than 3 values"),
    ("skewness_pop", "(number)", "population skewness"),
    ("skewness_samp", "(number)", "alias of skewness"),
    (
        "sparkline",
        "(number) | (number, min, max, width)",
        "chart of the values in row order, one block per value",
    ),
    ("stddev", "(number)", "sample standard deviation; null for fewer than 2 values"),
    ("stddev_pop", "(number)", "population standard deviation"),
    ("stddev_samp", "(number)", "alias of stddev"),
    ("string_agg", "(text, separator)", "values joined with a separator"),
    ("string_distinct_agg", "(text, separator)", "distinct values joined in order of appearance"),
    ("sum", "(number)", "sum; integers wrap around on overflow"),
    (
        "time_weight",
        "(value [, timestamp]) | (value, timestamp, method)",
        "time-weighted mean, with linear interpolation ('linear') or steps ('locf')",
    ),
    ("twap", "(price [, timestamp])", "time-weighted mean; each value holds until the next row"),
    ("var_pop", "(number)", "population variance"),
    ("var_samp", "(number)", "sample variance; null for fewer than 2 values"),
    ("variance", "(number)", "alias of var_samp"),
    ("vwap", "(price, volume)", "volume-weighted mean"),
    ("weighted_avg", "(value, weight)", "weighted mean"),
    ("weighted_stddev", "(value, weight)", "standard deviation with reliability weights"),
    ("weighted_stddev_freq", "(value, weight)", "standard deviation with frequency weights"),
    ("weighted_stddev_rel", "(value, weight)", "alias of weighted_stddev"),
];

/// Returns the function list entries for the aggregates.
pub(crate) fn docs() -> Vec<FunctionDoc> {
    let doc = |(name, signature, summary): &(&'static str, &str, &'static str)| FunctionDoc {
        name,
        family: "aggregate",
        kind: FunctionKind::Aggregate,
        signatures: signature.split(" | ").map(|form| format!("{name}{form}")).collect(),
        summary,
        changes: false,
        example: shown_of(name).map_or("", |shown| shown.example),
    };
    AGGREGATES.iter().map(doc).collect()
}

/// Whether the name, ignoring case, is an aggregate function.
#[must_use]
pub fn is_aggregate(name: &str) -> bool {
    is_aggregate_call(name, 0)
}

/// Whether a call with this many arguments is an aggregate. `array_elem_sum(a)` is an aggregate
/// because it adds up the arrays in all rows. `array_elem_sum(a, b)` is not, because it adds up the
/// arguments within one row.
#[must_use]
pub fn is_aggregate_call(name: &str, arguments: usize) -> bool {
    let name = without_schema(name);
    let by_position = name.get(..11).is_some_and(|start| start.eq_ignore_ascii_case("array_elem_"));
    (!by_position || arguments == 1)
        && AGGREGATES.iter().any(|(known, ..)| known.eq_ignore_ascii_case(name))
}

/// Returns a function name without a leading `pg_catalog.`.
#[must_use]
pub fn without_schema(name: &str) -> &str {
    const SCHEMA: &str = "pg_catalog.";
    match name.split_at_checked(SCHEMA.len()) {
        Some((schema, bare)) if schema.eq_ignore_ascii_case(SCHEMA) => bare,
        _ => name,
    }
}

/// Whether an aggregate also reads each row's time. This is derived from its signature.
#[must_use]
pub fn reads_time(name: &str) -> bool {
    AGGREGATES.iter().any(|(known, signature, _)| {
        known.eq_ignore_ascii_case(name) && signature.contains("[, timestamp]")
    })
}

/// Binds an aggregate to its argument types.
pub(crate) fn resolve(
    name: &str,
    distinct: bool,
    arguments: &[Argument],
) -> Result<ResolvedAggregate, ResolveError> {
    let lower = name.to_ascii_lowercase();
    let types = types_of(arguments);
    if arguments.is_empty() && lower != "count" {
        return Err(ResolveError::NoArguments { name: name.to_owned() });
    }
    if distinct && let Some(found) = of_distinct(&lower, arguments)? {
        return Ok(found);
    }
    let found = match lower.as_str() {
        "count" => count(distinct, &types),
        "approx_count_distinct" => count(true, &approximate(arguments)?),
        "count_distinct" => count(true, &types),
        "sum" | "avg"
            if types.first().is_some_and(|first| matches!(first, SqlType::Decimal(..))) =>
        {
            decimal::resolve(&lower, arguments)
        }
        "sum" | "avg" | "ksum" | "nsum" => sum(&lower, &types),
        "array_agg" | "array_elem_avg" | "array_elem_max" | "array_elem_min" | "array_elem_sum" => {
            arrays::resolve(&lower, false, &types)
        }
        "sparkline" => values::sparkline(arguments)?,
        "haversine_dist_deg" => path::length(&types),
        "isordered" => path::is_ordered(&types),
        "min" | "max" => extreme(&lower, &types),
        "first" | "last" | "first_not_null" | "last_not_null" | "any_value" => edge(&lower, &types),
        "arg_min" | "arg_max" | "min_by" | "max_by" => argument_of_extreme(&lower, &types),
        "bit_and" | "bit_or" | "bit_xor" => bits(&lower, &types),
        "bool_and" | "bool_or" | "every" => booleans(&lower, &types),
        "mode" => mode(arguments),
        "string_agg" | "string_distinct_agg" => text(&lower, arguments)?,
        "median" | "approx_median" | "percentile" | "percentile_cont" | "percentile_disc"
        | "approx_percentile" => values::percentile(&lower, arguments)?,
        "twap" => pairs::twap(&types),
        "time_weight" => change::time_weight(arguments)?,
        "delta" | "derivative" | "increase" | "integral" | "rate" => change::find(&lower, &types),
        _ => numeric(&lower, name, &types)?,
    };
    found.ok_or_else(|| ResolveError::NoOverload { name: name.to_owned(), types: types.clone() })
}

/// Resolves a DISTINCT aggregate; `None` if duplicates do not affect the result or the aggregate
/// removes them itself.
fn of_distinct(
    name: &str,
    arguments: &[Argument],
) -> Result<Option<ResolvedAggregate>, ResolveError> {
    let types = types_of(arguments);
    let read = match types.as_slice() {
        [only] if only.is_integer() => Some(SqlType::Long),
        [only] if is_number(*only) || reads_as_double(*only) => Some(SqlType::Double),
        _ => None,
    };
    let found = match (name, read) {
        (
            "any_value"
            | "approx_count_distinct"
            | "bit_and"
            | "bit_or"
            | "bool_and"
            | "bool_or"
            | "count"
            | "count_distinct"
            | "every"
            | "max"
            | "min"
            | "string_distinct_agg",
            _,
        ) => return Ok(None),
        ("string_agg", _) => text("string_distinct_agg", arguments)?,
        ("array_agg", _) => arrays::resolve(name, true, &types),
        ("sum", Some(read)) if !is_decimal(&types) => Some(unordered(sum_udaf(), vec![read], read)),
        ("avg", Some(_)) if !is_decimal(&types) => {
            Some(unordered(avg_udaf(), vec![SqlType::Double], SqlType::Double))
        }
        _ => {
            let message = format!(
                "{name}(DISTINCT …) is not supported: select the distinct values in a sub-query"
            );
            return Err(ResolveError::Invalid { message });
        }
    };
    let distinct = !matches!(name, "string_agg" | "array_agg");
    Ok(found.map(|found| ResolvedAggregate { distinct, ..found }))
}

fn is_decimal(types: &[SqlType]) -> bool {
    matches!(types, [SqlType::Decimal(..), ..])
}

fn count(distinct: bool, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let resolved = match types {
        [] if !distinct => unordered(count_udaf(), Vec::new(), SqlType::Long),
        [SqlType::Boolean] => return None,
        [only] => {
            // Distinct keys can be counted only if each string has exactly one key. This is true
            // within one dictionary, but a computed symbol may arrive with several dictionaries.
            // Distinct symbols are therefore counted as strings.
            let is_text = matches!(only, SqlType::Null) || (distinct && *only == SqlType::Symbol);
            let read = if is_text { SqlType::Varchar } else { *only };
            let is_text = read.arrow_type() == DataType::Utf8View;
            let udaf = if distinct && is_text { distinct::count_texts() } else { count_udaf() };
            unordered(udaf, vec![read], SqlType::Long)
        }
        _ => return None,
    };
    Some(ResolvedAggregate { distinct, ..resolved })
}

/// Checks that the precision is a constant from 4 to 18 and returns the types of all other
/// arguments.
fn approximate(arguments: &[Argument]) -> Result<Vec<SqlType>, ResolveError> {
    let mut types = types_of(arguments);
    let [_, precision] = arguments else { return Ok(types) };
    if !precision.integer().is_some_and(|precision| (4..=18).contains(&precision)) {
        let message = "precision must be between 4 and 18".to_owned();
        return Err(ResolveError::InvalidArgument { index: 1, message });
    }
    types.truncate(1);
    Ok(types)
}

fn sum(name: &str, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [only] = types else { return None };
    Some(match (name, *only) {
        ("sum", SqlType::Byte | SqlType::Short | SqlType::Int | SqlType::Long) => {
            unordered(integer::sum(*only), vec![*only], SqlType::Long)
        }
        ("sum", SqlType::Float) => {
            unordered(fold::sum(*only, SqlType::Float), vec![*only], SqlType::Float)
        }
        (name, number) if is_number(number) && !matches!(number, SqlType::Decimal(..)) => {
            let udaf = match name {
                "avg" => fold::average(number),
                "ksum" => fold::kahan_sum(number),
                "nsum" => fold::neumaier_sum(number),
                _ => fold::sum(number, SqlType::Double),
            };
            unordered(udaf, vec![number], SqlType::Double)
        }
        (name, other) if reads_as_double(other) => {
            return sum(name, &[SqlType::Double]);
        }
        _ => return None,
    })
}

fn extreme(name: &str, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [only] = types else { return None };
    let read = match only {
        SqlType::Byte | SqlType::Short => SqlType::Int,
        SqlType::Boolean => SqlType::Double,
        SqlType::Symbol | SqlType::Null => SqlType::String,
        SqlType::Uuid
        | SqlType::Long256
        | SqlType::Binary
        | SqlType::Geohash(_)
        | SqlType::DoubleArray(_)
        | SqlType::Interval
        | SqlType::Period => return None,
        other => *other,
    };
    let udaf = if name == "min" { min_udaf() } else { max_udaf() };
    Some(unordered(udaf, vec![read], read))
}

fn edge(name: &str, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [only] = types else { return None };
    let read = if *only == SqlType::Null { SqlType::String } else { *only };
    Some(ordered(edge::edge(name, read), vec![read], read))
}

fn argument_of_extreme(name: &str, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [value, key] = types else { return None };
    let (value, key) = (concrete(*value), concrete(*key));
    Some(unordered(edge::argument_of_extreme(name, value, key), vec![value, key], value))
}

/// Returns the given type, or STRING for an untyped NULL.
fn concrete(sql_type: SqlType) -> SqlType {
    if sql_type == SqlType::Null { SqlType::String } else { sql_type }
}

fn bits(name: &str, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [only] = types else { return None };
    if !only.is_integer() {
        return None;
    }
    let udaf = match name {
        "bit_and" => bit_and_udaf(),
        "bit_or" => bit_or_udaf(),
        _ => bit_xor_udaf(),
    };
    Some(unordered(udaf, vec![*only], *only))
}

fn booleans(name: &str, types: &[SqlType]) -> Option<ResolvedAggregate> {
    matches!(types, [SqlType::Boolean])
        .then(|| unordered(integer::boolean(name), vec![SqlType::Boolean], SqlType::Boolean))
}

/// Resolves `mode`, which returns one of the most frequent values. `mode(value)` returns the first
/// of these values in row order. `mode(value, descending)` returns the first in sort order, like
/// `mode() WITHIN GROUP (ORDER BY value DESC)`.
fn mode(arguments: &[Argument]) -> Option<ResolvedAggregate> {
    let (value, tie) = match arguments {
        [value] => (value, values::Tie::FirstFound),
        [value, Argument { constant: Some(ScalarValue::Boolean(Some(descends))), .. }] => {
            (value, if *descends { values::Tie::Greatest } else { values::Tie::Min })
        }
        _ => return None,
    };
    let read = match &value.sql_type {
        SqlType::Byte | SqlType::Short | SqlType::Int => SqlType::Long,
        SqlType::Float => SqlType::Double,
        SqlType::Null => SqlType::String,
        other => *other,
    };
    let mut types = vec![read];
    types.extend((arguments.len() > 1).then_some(SqlType::Boolean));
    let udaf = values::mode(read, tie);
    Some(match tie {
        values::Tie::FirstFound => ordered(udaf, types, read),
        _ => unordered(udaf, types, read),
    })
}

fn text(name: &str, arguments: &[Argument]) -> Result<Option<ResolvedAggregate>, ResolveError> {
    let [value, separator] = arguments else { return Ok(None) };
    let textual =
        |sql_type: SqlType| sql_type.is_text() || matches!(sql_type, SqlType::Char | SqlType::Null);
    if !textual(value.sql_type) || !textual(separator.sql_type) {
        return Ok(None);
    }
    let Some(separator) = separator.text() else {
        let message = "constant separator expected".to_owned();
        return Err(ResolveError::InvalidArgument { index: 1, message });
    };
    let returns =
        if value.sql_type == SqlType::Varchar { SqlType::Varchar } else { SqlType::String };
    let distinct = name == "string_distinct_agg";
    let udaf = text::join(distinct, separator, returns);
    Ok(Some(ordered(udaf, vec![returns, SqlType::Varchar], returns)))
}

/// Resolves functions that read one or two columns as DOUBLE.
fn numeric(
    lower: &str,
    name: &str,
    types: &[SqlType],
) -> Result<Option<ResolvedAggregate>, ResolveError> {
    let (udaf, arity): (Arc<AggregateUDF>, usize) = match moments::find(lower) {
        Some(udaf) => (udaf, 1),
        None => match pairs::find(lower) {
            Some(udaf) => (udaf, 2),
            None => return Ok(None),
        },
    };
    if types.len() != arity {
        return Err(ResolveError::WrongArity {
            name: name.to_owned(),
            expected: arity,
            provided: types.len(),
        });
    }
    if !types.iter().all(|sql_type| reads_as_double(*sql_type)) {
        return Ok(None);
    }
    Ok(Some(unordered(udaf, vec![SqlType::Double; arity], SqlType::Double)))
}

#[cfg(test)]
mod tests;
