//! Functions, operators and casts of the dialect: tables of the supported forms and types, and the
//! vectorised kernels that compute them.
//!
//! The binder calls `resolve_scalar`, `resolve_aggregate`, `resolve_operator` and `cast` to build
//! `DataFusion` expressions. Every result is canonical: a null has its validity bit cleared, and no
//! valid slot contains a value that represents null in the dialect. BOOLEAN, BYTE and SHORT are
//! never null.
//!
//! This crate does not depend on tables or plans.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod aggregate;
mod array;
mod cast;
mod column;
mod conditional;
mod datetime;
mod geo;
mod json;
mod listing;
mod meta;
mod native;
mod number;
mod operator;
mod postgres;
mod random;
mod reference;
mod registry;
mod resolve;
mod signature;
#[cfg(test)]
mod tests;
mod text;

pub use aggregate::{is_aggregate, is_aggregate_call, reads_time, without_schema};
pub use array::array_functions::joins_arrays;
pub use array::array_select::{Selector, resolve_index};
pub use array::arrays::resolve_array;
pub use array::as_postgres::{array_order, array_text};
pub use cast::{CastMode, cast, cast_value, failing_cast, from_texts, located_cast};
pub use datetime::in_nanoseconds;
pub use datetime::periods::{period_components, period_of_components, period_order};
pub use datetime::times::rounded_time;
pub use json::json_build::is_json;
pub use json::read::resolve_json;
pub use listing::{FunctionDoc, FunctionKind};
pub use meta::{number_of, pages_text, row_bytes};
pub use native::has_computed_length;
pub use number::numeric::size_text;
pub use number::wide::{in_64_bits, is_long_chain, moved_by_constant};
pub use operator::comparison::{DOUBLE_COMPARISONS, DOUBLE_TOLERANCE, common_type};
pub use operator::operand::{BuildUnary, resolve_operator, resolve_unary};
pub use operator::predicate::{between, in_list, is_null, value_type};
pub use operator::times::{is_wide, wide_time};
pub use postgres::SETTINGS;
pub use registry::{all_functions, is_scalar, resolve_aggregate, resolve_scalar};
pub use resolve::{
    Argument, BuildOperator, ResolveError, ResolvedAggregate, ResolvedOperator, ResolvedScalar,
};
