//! The binder, by concern, from the bottom up: the state of a statement, expressions, sources,
//! the clauses of a query in the order they are applied, and statements that are no queries.

mod answers;
mod catalog;
mod clauses;
mod error;
pub(crate) mod expressions;
mod names;
mod notice;
mod planner;
mod sources;
pub(crate) mod state;
pub(crate) mod statements;
mod unsupported;

pub use planner::Planner;
pub(crate) use state::binder::Binder;
pub(crate) use state::typed::Typed;
