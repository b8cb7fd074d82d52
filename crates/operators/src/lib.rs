//! Time-series operators as `DataFusion` nodes: table scan, SAMPLE BY and GROUP BY, FILL, ASOF, LT,
//! SPLICE, WINDOW and HORIZON JOIN, LATEST ON.
//!
//! There is one folder per operator: `node` describes it, `exec` plans it and reports its
//! properties (`operator`), and `stream` executes it. Planning rules are in `tidemark-optimizer`,
//! and inner loops are in `tidemark-kernels`. This crate depends on storage snapshots but not on
//! SQL text.
#![forbid(unsafe_code)]

mod asof;
mod bounded;
mod branchless_case;
mod bucket;
mod cost;
mod equi_join;
mod error;
mod fill;
mod foreign;
mod grid;
mod group_rows;
mod hash_partition;
mod horizon;
mod immediate;
mod key;
mod keys;
mod last_rows;
mod latest_on;
mod logical;
mod lowering;
mod materialize;
mod measured;
mod operator;
mod order;
mod ordered_join;
mod plan_node;
mod properties;
mod sample_by;
mod scan;
mod shared_rows;
mod sort;
mod splice;
mod state_memory;
mod symbols;
mod unnest;
mod window;
mod window_join;

pub use asof::node::{AsofJoinNode, AsofKind};
pub use bounded::candidates::candidates;
pub use bounded::paced::paced;
pub use bounded::stream::in_bounds;
pub use bounded::{InternLiterals, cell_bytes, rows_of_bytes};
pub use bucket::{Alignment, Bucket, BucketSpec, StepUnit};
pub use cost::{ends_early, rows_read};
pub use equi_join::select_operator::{equi_join, with_files};
pub use error::{check_stop, not_supported};
pub use fill::exec::plan_fill;
pub use fill::node::{FillNode, FillValue};
pub use foreign::{MEMORY, from_datafusion};
pub use group_rows::exec::GroupRows;
pub use horizon::node::{Horizon, HorizonJoinNode, HorizonSide};
pub use immediate::is_immediate;
pub use key::as_key;
pub use last_rows::exec::plan_last_rows;
pub use last_rows::node::{LastRows, LastRowsNode};
pub use latest_on::exec::plan_latest_on;
pub use latest_on::node::LatestOnNode;
pub use logical::LogicalNode;
pub use lowering::{Inputs, Lower, Lowering};
pub use measured::{Analyze, measured};
pub use operator::{Facts, OperatorExec};
pub use order::{TimeConcat, follows_scan_order, reversed};
pub use ordered_join::node::OrderedJoinNode;
pub use plan_node::{
    PlanNode, filtered_scan, first_step, has_values, in_one_step, is_right_join, scan_of,
    with_first_input,
};
pub use sample_by::exec::plan_sample_by;
pub use sample_by::group_cache::GroupCache;
pub use sample_by::node::SampleByNode;
pub use sample_by::plan::SampleByPlan;
pub use scan::exec::{PartitionRows, ScanPartitioning, SliceScan};
pub use scan::filtered::FilteredScan;
pub use scan::kind::Scan;
pub use scan::provider::{ROW_ID, SnapshotTable};
pub use scan::rows::{Rows, Test};
pub use scan::symbol_test::renamed;
pub use shared_rows::exec::SharedRows;
pub use shared_rows::node::SharedRowsNode;
pub use sort::exec::SortRows;
pub use sort::rank::RankRows;
pub use sort::top::TopRows;
pub use splice::node::SpliceJoinNode;
pub use state_memory::StateMemory;
pub use symbols::origin;
pub use tidemark_types::zone::Zone;
pub use unnest::node::{JsonField, JsonKind, UnnestItem, UnnestNode, UnnestValues};
pub use window::cache::WindowCache;
pub use window::node::WindowNode;
pub use window::spec::PERIOD_NUMBER;
pub use window_join::node::{WindowBound, WindowJoinExprs, WindowJoinNode, WindowRange};
