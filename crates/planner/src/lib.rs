//! Binds a statement's tree to a plan. This is the only crate that implements the dialect's
//! semantics.
//!
//! [`Planner::bind`] binds a [`Tree`](tidemark_ast::Tree) against one catalog snapshot and returns
//! a [`BoundStatement`]. For a query, this is a logical plan with its output columns in SQL types;
//! for other statements, it is the changes to make. Only this crate resolves names and decides
//! implicit GROUP BY, output names, null logic, coercions and time ranges. Every error carries the
//! span of the token that caused it.
//!
//! The crate does no I/O. A plan contains the snapshot that it was bound against. A statement that
//! runs again on a newer snapshot is therefore bound again; this costs tens of microseconds for a
//! small statement.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access;
mod answering;
mod bind_requests;
mod binder;
mod bound;
mod context;
mod parameter_type;
mod sequence_values;
mod visibility;

pub use access::Access;
pub use answering::AnsweringViews;
pub use bind_requests::BindRequests;
pub use binder::Planner;
pub use binder::expressions::restriction::Restriction;
pub use binder::state::conditions::Conditions;
pub use binder::statements::defaults::Defaults;
pub use binder::statements::incremental::buckets::Buckets;
pub use binder::statements::incremental::misfit::Misfit;
pub use binder::statements::incremental::reach::LiveReach;
pub use binder::statements::incremental::{IncrementalRows, ViewShape};
pub use binder::statements::insert_values::InsertTemplate;
pub use binder::statements::returning::Returning;
pub use bound::{
    BoundConversion, BoundCreateTable, BoundDelete, BoundExplain, BoundFormat, BoundIncremental,
    BoundInsert, BoundMaintenance, BoundPartitions, BoundQuery, BoundSchemaChange, BoundStatement,
    BoundUpdate, BoundViewChange, IncrementalAction, InsertSource, MaintenanceAction,
};
pub use context::{
    Action, BindContext, ExternalSources, ExternalTable, FileRoot, ListedFile, LiveRepair,
    LiveSettings, TextRequest, TextRows, ViewProgress,
};
pub use parameter_type::ParameterType;
pub use sequence_values::SequenceValues;
pub use visibility::{Lists, Visibility};
