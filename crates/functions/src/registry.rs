//! Function registry: all families, lookup by name, and overload resolution.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion_expr::Volatility;
use tidemark_types::SqlType;

use crate::array::array_functions;
use crate::json::{self, json_build};
use crate::listing::{FunctionDoc, FunctionKind, other, shown_of, written_forms};
use crate::native::Kernel;
use crate::number::{decimal, division, numeric};
use crate::reference;
use crate::resolve::{Argument, ResolveError, ResolvedAggregate, ResolvedScalar, types_of};
use crate::signature::{Body, Bound, Function, ResultType, bind, mismatch, resolved, written};
use crate::text::{self, hash};
use crate::{aggregate, conditional, datetime, geo, meta, postgres, random};

const FAMILIES: &[(&str, &[Function])] = &[
    ("numeric", numeric::FUNCTIONS),
    ("numeric", division::FUNCTIONS),
    ("array", array_functions::FUNCTIONS),
    ("text", text::functions::FUNCTIONS),
    ("text", text::formatted::FUNCTIONS),
    ("text", text::edited::FUNCTIONS),
    ("text", text::similar::FUNCTIONS),
    ("datetime", datetime::FUNCTIONS),
    ("conditional", conditional::FUNCTIONS),
    ("geo", geo::FUNCTIONS),
    ("hash", hash::FUNCTIONS),
    ("random", random::FUNCTIONS),
    ("json", json::read::FUNCTIONS),
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

fn signatures(function: &Function) -> Vec<String> {
    let forms = shown_of(function.name).map_or("", |shown| shown.forms);
    let bound = function.overloads.iter().map(|overload| written(function.name, overload));
    let decimal = decimal::signature(function.name);
    bound.chain(written_forms(function.name, forms)).chain(decimal).collect()
}

/// Returns every function, sorted by name.
pub fn all_functions() -> &'static [FunctionDoc] {
    &DOCS
}

/// Whether a scalar function has this name.
pub fn is_scalar(name: &str) -> bool {
    BY_NAME.contains_key(&name.to_ascii_lowercase())
}

/// Binds a scalar function.
pub fn resolve_scalar(name: &str, arguments: &[Argument]) -> Result<ResolvedScalar, ResolveError> {
    let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let plain = match arguments.first().and_then(Argument::text) {
        // Seconds since 1970 do not fit in INT, the result type for the other fields.
        Some(field) if plain.eq_ignore_ascii_case("extract") && field == "epoch" => "extract_epoch",
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
        return Err(mismatch(
            name,
            function.overloads.iter().map(|o| o.parameters.len()),
            arguments,
        ));
    };
    let returns = match overload.result {
        ResultType::Is(sql_type) | ResultType::Bounded(sql_type, _) => sql_type,
        ResultType::SameAs(index) => types.get(index).copied().unwrap_or(SqlType::Null),
        ResultType::Decided(_, decide) => decide(&types, arguments),
    };
    let kernel: Kernel = match overload.body {
        Body::Direct(run) => Arc::new(run),
        Body::PerCall(make) => make(&Bound { types: &types, arguments, returns })?,
    };
    let created = resolved(function.name, function.volatility, types, returns, arguments, kernel);
    Ok(match overload.result {
        ResultType::Bounded(_, range) => created.within(range(arguments)),
        _ => created,
    })
}

/// Binds an aggregate to its argument types.
pub fn resolve_aggregate(
    name: &str,
    distinct: bool,
    arguments: &[Argument],
) -> Result<ResolvedAggregate, ResolveError> {
    if aggregate::is_aggregate_call(name, arguments.len()) {
        aggregate::resolve(name, distinct, arguments)
    } else {
        Err(unknown(name, arguments))
    }
}

/// Returns the error for an unknown function name, suggesting the most similar name.
fn unknown(name: &str, arguments: &[Argument]) -> ResolveError {
    let lower = name.to_ascii_lowercase();
    let near = DOCS
        .iter()
        .map(|doc| (distance(&lower, &doc.name.to_ascii_lowercase()), doc.name))
        .filter(|(distance, _)| *distance > 0 && *distance <= (lower.chars().count() / 3).min(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name);
    let is_named = |other: &&reference::Other| other.shown.name == lower;
    let hint = if reference::WINDOWS.iter().any(|other| is_named(&other)) {
        Some(format!(": it is a window function; write {lower}(…) OVER (…)"))
    } else if reference::TABLES.iter().any(|other| is_named(&other)) {
        Some(format!(": it is a table function; write FROM {lower}(…)"))
    } else {
        near.map(|near| format!(", did you mean '{near}'?"))
    };
    ResolveError::Unknown { name: name.into(), types: types_of(arguments), hint }
}

/// Returns the edit distance between two words. The edits are insertions, deletions, replacements
/// and swaps of neighbouring characters.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        rows.rotate_left(1);
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut min = (rows[1][j + 1] + 1).min(row[j] + 1);
            min = min.min(rows[1][j] + usize::from(a != b));
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                min = min.min(rows[0][j - 1] + 1);
            }
            row.push(min);
        }
        rows[2] = row;
    }
    rows[2].last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, types: &[SqlType]) -> String {
        let arguments: Vec<Argument> = types.iter().map(|&t| Argument::column(t)).collect();
        resolve_scalar(name, &arguments).unwrap_err().message()
    }

    #[test]
    fn error_messages_match_questdb() {
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
    fn the_closest_signature_is_selected() {
        let returns = |name: &str, sql_type| {
            resolve_scalar(name, &[Argument::column(sql_type)]).unwrap().return_type
        };
        assert_eq!(returns("abs", SqlType::Int), SqlType::Int);
        assert_eq!(returns("ABS", SqlType::Long), SqlType::Long);
        assert_eq!(returns("floor", SqlType::Int), SqlType::Float);
        assert_eq!(returns("floor", SqlType::Double), SqlType::Double);
    }

    #[test]
    fn every_function_has_an_example_and_a_signature() {
        for doc in all_functions() {
            assert!(!doc.example.is_empty() && !doc.signatures.is_empty(), "{}", doc.name);
        }
    }

    #[test]
    fn errors_for_unknown_names_suggest_the_closest_function() {
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
    fn function_names_are_unique() {
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
