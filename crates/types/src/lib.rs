//! Definitions that all other crates share: SQL types and their Arrow counterparts, null sentinels,
//! time, identifiers, partitioning, errors and spans. This crate does not depend on tables, files
//! or plans.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod account;
pub mod bounded;
pub mod calendar;
mod catalog_type;
pub mod double_array;
pub mod duration;
mod error;
pub mod failpoint;
pub mod identifier;
pub mod interval;
pub mod key;
pub mod number_text;
mod offset;
mod parameter;
mod parameter_items;
mod partition;
mod pattern_element;
pub mod period;
mod postgres_pattern;
mod sql_type;
pub mod text_array;
pub mod timestamp;
pub mod timestamp_pattern;
pub mod zone;

pub use catalog_type::CatalogType;
pub use error::{EngineError, EngineResult, ErrorCode, Span};
pub use parameter::ParameterValue;
pub use parameter_items::{ParameterItems, push_item};
pub use partition::PartitionBy;
pub use sql_type::{Field, SourceColumn, SqlType};
pub use timestamp::TimestampUnit;

/// Name of the function for `symbol = string` in a plan. The first argument is the SYMBOL, the
/// second the string. A scan may evaluate the function on the dictionary.
pub const SYMBOL_EQUAL: &str = "symbol_equal";
