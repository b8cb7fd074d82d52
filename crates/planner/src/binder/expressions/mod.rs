//! Expressions: their types, constants, conditions, calls, windows and sub-queries.

pub(crate) mod array;
pub(crate) mod call;
pub(crate) mod case;
pub(crate) mod constant;
pub(crate) mod duration;
pub(crate) mod expression;
pub(crate) mod frame_aggregate;
pub(crate) mod list_call;
pub(crate) mod literal;
pub(crate) mod membership;
pub(crate) mod moving_average;
pub(crate) mod parameter;
pub(crate) mod partition_function;
pub(crate) mod partition_kernel;
pub(crate) mod predicate;
pub(crate) mod registered;
pub(crate) mod restriction;
pub(crate) mod series;
pub(crate) mod sort_key;
pub(crate) mod stand_in;
pub(crate) mod subquery;
pub(crate) mod time_range;
pub(crate) mod typing;
pub(crate) mod unify;
pub(crate) mod window;
pub(crate) mod window_frame;
