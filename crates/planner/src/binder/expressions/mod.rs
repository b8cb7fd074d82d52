//! Expressions: their types, constants, conditions, calls and sub-queries.

pub(crate) mod array;
pub(crate) mod call;
pub(crate) mod case;
pub(crate) mod constant;
pub(crate) mod expression;
pub(crate) mod literal;
pub(crate) mod membership;
pub(crate) mod parameter;
pub(crate) mod predicate;
pub(crate) mod restriction;
pub(crate) mod subquery;
pub(crate) mod time_range;
pub(crate) mod typing;
pub(crate) mod unify;
