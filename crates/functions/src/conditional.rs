//! `coalesce`, `nullif`, `concat` and `typeOf`: functions whose types depend on all of their
//! arguments.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{is_not_null, nullif};
use arrow::datatypes::{Float64Type, Int64Type, IntervalMonthDayNanoType};
use datafusion::common::Result;
use datafusion_expr::{ColumnarValue, Volatility};
use tidemark_types::SqlType;
use tidemark_types::period::Period;

use crate::cast::convert::convert;
use crate::cast::{CastMode, concatenate};
use crate::column::{Call, build_text, definite};
use crate::native::Kernel;
use crate::operator::comparison::{DOUBLE_TOLERANCE, common_type};
use crate::operator::predicate::value_type;
use crate::resolve::{Argument, ResolveError, ResolvedScalar, types_of};
use crate::signature::{Function, mismatch, resolved, special};

type Resolved = std::result::Result<ResolvedScalar, ResolveError>;

/// Expands an argument into a full column.
fn column(call: &Call<'_>, index: usize) -> Result<ArrayRef> {
    match call.arguments.get(index) {
        Some(ColumnarValue::Scalar(value)) => value.to_array_of_size(call.rows),
        _ => Ok(call.array(index)?.0),
    }
}

fn coalesce(name: &str, arguments: &[Argument]) -> Resolved {
    if arguments.is_empty() {
        return Err(ResolveError::NoArguments { name: name.into() });
    }
    // The search ends at the first argument that cannot be null (BYTE or SHORT).
    let returns = match value_type(&beside_lengths(arguments))? {
        SqlType::Symbol => SqlType::String,
        other => other,
    };
    let stops: Vec<bool> = arguments.iter().map(|a| !a.sql_type.is_nullable()).collect();
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let mut result = column(call, call.arguments.len() - 1)?;
        for index in (0..call.arguments.len() - 1).rev() {
            let candidate = column(call, index)?;
            if stops[index] || candidate.null_count() == 0 {
                result = candidate;
            } else if let Some(ColumnarValue::Scalar(_)) = call.arguments.get(index) {
                // A null constant contributes nothing.
            } else {
                result = zip(&is_not_null(&candidate)?, &candidate, &result)?;
            }
        }
        Ok(result)
    });
    let types = vec![returns; arguments.len()];
    Ok(resolved("coalesce", Volatility::Immutable, types, returns, arguments, kernel))
}

/// Returns the argument types that determine the common type. Constant text next to a PERIOD counts
/// as a PERIOD.
fn beside_lengths(arguments: &[Argument]) -> Vec<SqlType> {
    let has_length = arguments.iter().any(|argument| argument.sql_type == SqlType::Period);
    let read = |argument: &Argument| match argument.text() {
        Some(_) if has_length => SqlType::Period,
        _ => argument.sql_type,
    };
    arguments.iter().map(read).collect()
}

fn null_if(name: &str, arguments: &[Argument]) -> Resolved {
    let [first, second] = arguments else {
        return Err(mismatch(name, std::iter::once(2), arguments));
    };
    let none = || mismatch(name, [1, 2, 3].into_iter(), arguments);
    let common = common_type(first.sql_type, second.sql_type)
        .filter(|common| !matches!(common, SqlType::DoubleArray(_)))
        .ok_or_else(none)?;
    let returns = match (first.sql_type, common) {
        (SqlType::Char, SqlType::Char) => SqlType::Char,
        (_, SqlType::Varchar) => SqlType::String,
        (SqlType::Byte | SqlType::Short, _) => SqlType::Int,
        (SqlType::Null, common) => common,
        (own, _) => own,
    };
    // The values are compared in the common type, but the first value is returned unchanged.
    let compared = common_type(returns, common).ok_or_else(none)?;
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let (left, right) = (column(call, 0)?, column(call, 1)?);
        let wide = if returns == compared {
            Arc::clone(&left)
        } else {
            let arguments = [ColumnarValue::Array(Arc::clone(&left))];
            let one = Call { arguments: &arguments, ..*call };
            convert(&one, returns, compared, CastMode::Implicit)?
        };
        let equal = equal_values(&wide, &right, compared)?;
        Ok(nullif(&left, &definite(&equal))?)
    });
    let types = vec![returns, compared];
    Ok(resolved("nullif", Volatility::Immutable, types, returns, arguments, kernel))
}

/// Returns a bitmap of the rows where two columns of the same type are equal, with the semantics of
/// `=`.
fn equal_values(left: &ArrayRef, right: &ArrayRef, of: SqlType) -> Result<BooleanArray> {
    match of {
        SqlType::Double => {
            let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive());
            let right: &Float64Array = right;
            let is_equal = |(left, right): (Option<f64>, Option<f64>)| match (left, right) {
                (Some(left), Some(right)) => (left - right).abs() < DOUBLE_TOLERANCE,
                (None, None) => true,
                _ => false,
            };
            Ok(left.iter().zip(right).map(is_equal).map(Some).collect())
        }
        SqlType::Period => {
            let order = |array: &ArrayRef| {
                let lengths = array.as_primitive::<IntervalMonthDayNanoType>();
                lengths.unary::<_, Int64Type>(|length| Period::from(length).order())
            };
            Ok(not_distinct(&order(left), &order(right))?)
        }
        _ => Ok(not_distinct(left, right)?),
    }
}

fn concat(name: &str, arguments: &[Argument]) -> Resolved {
    if arguments.is_empty() {
        return Err(ResolveError::NoArguments { name: name.into() });
    }
    let types = types_of(arguments);
    let kernel_types = types.clone();
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| concatenate(call, &kernel_types));
    Ok(resolved("concat", Volatility::Immutable, types, SqlType::String, arguments, kernel))
}

fn type_of(name: &str, arguments: &[Argument]) -> Resolved {
    let [argument] = arguments else {
        return Err(mismatch(name, std::iter::once(1), arguments));
    };
    let shown = match argument.sql_type {
        SqlType::Null => "NULL".to_owned(),
        sql_type => sql_type.name(),
    };
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        build_text(call.rows, |_, out| {
            out.push_str(&shown);
            true
        })
    });
    let types = types_of(arguments);
    // A VARCHAR argument yields a VARCHAR result; any other argument yields a STRING.
    let returns = match argument.sql_type {
        SqlType::Varchar => SqlType::Varchar,
        _ => SqlType::String,
    };
    Ok(resolved("typeOf", Volatility::Immutable, types, returns, arguments, kernel))
}

pub(crate) const FUNCTIONS: &[Function] = &[
    special("coalesce", coalesce, "first non-null argument"),
    special("nullif", null_if, "null if both arguments are equal, otherwise the first argument"),
    special("concat", concat, "concatenates the arguments as strings; also written ||"),
    special("typeOf", type_of, "name of the argument's type"),
];
