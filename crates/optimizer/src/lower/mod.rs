//! From a logical plan to a physical one: each node becomes its operator once, in one walk.
//!
//! The walk carries down what the reader of a node wants ([`Wanted`]: columns, rows, order) and
//! hands up the operator with the names of its columns ([`Planned`]). Each operator gets its inputs
//! in the order and the partitions that it requires (`inputs`) before the node above is looked at.

mod check;
mod group;
mod inputs;
mod join;
mod nodes;
mod other_scans;
mod plain;
mod planned;
mod scan;
mod sides;
mod sort;
mod subqueries;
mod walk;
mod window;

pub(crate) use check::check;
pub(crate) use nodes::lowered;
pub(crate) use other_scans::OtherScans;
pub(crate) use plain::is_plain;
pub(crate) use scan::condition;
