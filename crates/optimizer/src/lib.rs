//! Converts logical plans into physical plans: enforces size limits, applies rules, converts
//! sub-queries into joins, and preserves the time order from scan to result.
//!
//! [`PlanSession`] is the planner. The logical `rules` rewrite a plan, and `lower` converts each of
//! its nodes into an operator. [`tidemark_operators::Facts`] describes the properties of an
//! operator. This crate does not process SQL text.
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
