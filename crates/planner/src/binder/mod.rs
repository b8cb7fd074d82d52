//! The binder's modules, from the lowest layer up: statement state, expressions, sources, query
//! clauses in order of evaluation, and statements other than queries.

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
