//! Functions, operators and casts of the dialect: the tables that say which exist for which
//! types, and the vectorised kernels behind them.
//!
//! The binder asks `resolve_scalar`, `resolve_aggregate`, `resolve_operator` and `cast`, and gets
//! `DataFusion` expressions back. Every result is canonical: a null has its validity bit cleared,
//! and no valid slot holds a value that the dialect reads as null; BOOLEAN, BYTE and SHORT are
//! never null. This crate knows no table and no plan.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod aggregate;
mod arithmetic;
mod array;
mod array_functions;
mod array_select;
mod bounded_text;
mod cast;
mod column;
mod comparison;
mod conditional;
mod datetime;
mod decimal;
mod geo;
mod hash;
pub mod interval;
mod json;
mod json_build;
mod meta;
mod native;
mod numeric;
mod operator;
mod parse;
mod pattern;
mod postgres;
mod predicate;
mod random;
mod reference;
mod registry;
mod resolve;
#[cfg(test)]
mod tests;
mod text;
mod text_array;
mod wide;

pub use aggregate::{is_aggregate, is_aggregate_call, resolve_aggregate};
pub use array::resolve_array;
pub use array_select::{Selector, resolve_index};
pub use cast::{CastMode, cast, cast_value, from_texts};
pub use comparison::{DOUBLE_COMPARISONS, DOUBLE_TOLERANCE, SYMBOL_EQUAL, common_type};
pub use datetime::in_nanoseconds;
pub use json::resolve_json;
pub use meta::{pages_text, row_bytes};
pub use numeric::size_text;
pub use operator::{BinaryOp, BuildUnary, UnaryOp, resolve_operator, resolve_unary};
pub use postgres::SETTINGS;
pub use predicate::{between, in_list, is_null, value_type};
pub use registry::{FunctionDoc, FunctionKind, all_functions, is_scalar, resolve_scalar};
pub use resolve::{
    Argument, BuildOperator, ResolveError, ResolvedAggregate, ResolvedOperator, ResolvedScalar,
};
pub use text_array::text_array;
pub use wide::{in_64_bits, is_long_chain};
