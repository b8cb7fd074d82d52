//! Lowers a logical plan to a physical plan. Each node is converted into its operator once, in a
//! single walk.
//!
//! The walk passes down the requirements of the node above ([`Requirements`]: columns, rows, order)
//! and returns the operator with its column names ([`Planned`]). Each operator receives its inputs
//! in the order and partitioning that it requires (`inputs`) before the walk returns to the node
//! above.

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
