//! Numbers: arithmetic, decimals and functions.

pub(crate) mod arithmetic;
pub(crate) mod decimal;
pub(crate) mod division;
pub(crate) mod numeric;
pub(crate) mod pattern;
mod rounding;
pub(crate) mod wide;
