//! Strings: functions, patterns, digests and parsing of values.

pub(crate) mod bounded_text;
pub(crate) mod edited;
pub(crate) mod formatted;
pub(crate) mod functions;
pub(crate) mod hash;
pub(crate) mod parse;
pub(crate) mod pattern;
pub(crate) mod similar;
pub(crate) mod text_array;
pub(crate) mod vectorized;
