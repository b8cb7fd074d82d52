//! Time-series operators as `DataFusion` nodes: table scan, SAMPLE BY and GROUP BY, FILL, ASOF, LT,
//! SPLICE, WINDOW and HORIZON JOIN, LATEST ON, sub-queries as joins, and the rules that keep rows
//! in timestamp order.
//!
//! One folder per operator: `node` says what, `exec` how it is planned and what it answers of
//! itself ([`operator`]), `stream` polls. Rules are in `rules`, inner loops in
//! `tidemark-kernels`. Knows storage's snapshots; knows no SQL text.
#![forbid(unsafe_code)]

mod asof;
mod bounded;
mod bucket;
mod conditions;
mod cost;
mod error;
mod fill;
mod foreign;
mod grid;
mod horizon;
mod immediate;
mod latest_on;
mod logical;
mod lowering;
mod measured;
mod one_table;
mod operator;
mod order;
mod other_rows;
mod plan_node;
mod planner;
mod properties;
mod rules;
mod sample_by;
mod scan;
mod session;
mod size;
mod sorted_input;
mod splice;
mod symbols;
mod unnest;
mod window;
mod window_join;

pub use asof::node::{AsofJoinNode, AsofKind};
pub use bounded::{ShareLiterals, cell_bytes, rows_of_bytes};
pub use bucket::{Alignment, Bucket, BucketSpec, StepUnit};
pub use conditions::{all_of, any_of};
pub use cost::rows_read;
pub use fill::node::{FillNode, FillValue};
pub use foreign::{MEMORY, from_datafusion};
pub use horizon::node::{Horizon, HorizonJoinNode, HorizonSide};
pub use immediate::is_immediate;
pub use latest_on::node::LatestOnNode;
pub use measured::Analyze;
pub use planner::TidemarkExtensionPlanner;
pub use rules::bound::Bound;
pub use rules::decorrelate::{captured, captured_mut, has_subquery, uncorrelated_clause};
pub use rules::fence::fenced;
pub use sample_by::node::SampleByNode;
pub use scan::provider::{ROW_ID, SnapshotTable};
pub use scan::rows::Rows;
pub use session::{
    PlanSession, SessionOptions, analyzer_rules, optimizer_rules, physical_optimizer_rules,
    session_state,
};
pub use size::{
    MOST_PLAN_DEPTH, MOST_PLAN_NODES, PlanSize, check_latest_keys, check_lookups,
    check_time_windows, check_windows, too_many_nodes,
};
pub use splice::node::SpliceJoinNode;
pub use tidemark_types::zone::Zone;
pub use unnest::node::{JsonField, JsonKind, UnnestItem, UnnestNode};
pub use window::node::WindowNode;
pub use window_join::node::{WindowBound, WindowJoinExprs, WindowJoinNode, WindowRange};
