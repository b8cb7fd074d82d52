//! From a logical plan to a physical one: bounds of its size, the rules, sub-queries as joins, and
//! the order of time kept from scan to result.
//!
//! [`PlanSession`] is the planner. The logical `rules` rewrite a plan, `lower` makes each of its
//! nodes the operator. What they need to know of an operator, they ask it
//! ([`tidemark_operators::Facts`]). Knows no SQL text.
#![forbid(unsafe_code)]

mod conditions;
mod lower;
mod other_rows;
mod rules;
mod session;
mod size;

pub use conditions::{all_of, any_of};
pub use rules::decorrelate::{captured, captured_mut, has_subquery, uncorrelated_clause};
pub use rules::fence::fenced;
pub use session::{PlanSession, SessionOptions};
pub use size::{
    MAX_PLAN_DEPTH, MAX_PLAN_NODES, PlanSize, check_latest_keys, check_lookups, check_time_windows,
    check_windows, too_many_nodes,
};
