//! Infix and prefix operators, comparisons and conditions.

pub(crate) mod comparison;
pub(crate) mod infix;
pub(crate) mod operand;
pub(crate) mod predicate;
pub(crate) mod times;
