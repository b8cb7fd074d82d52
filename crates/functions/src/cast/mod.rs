//! Conversions between types: the supported pairs, and the kernels that run them. Every kernel
//! processes a whole column. It widens the source to 64-bit lanes and then narrows it to the
//! target.

pub(crate) mod convert;
mod expression;
mod joined;
mod mode;
mod number;
mod parsed;
pub(crate) mod shown;
#[cfg(test)]
mod tests;

pub(crate) use self::convert::converted;
pub use self::expression::{cast, cast_value, failing_cast, located_cast};
pub(crate) use self::joined::concatenate;
pub use self::mode::CastMode;
pub(crate) use self::mode::unit_of;
pub use self::parsed::from_texts;
pub(crate) use self::shown::symbols;
