//! Time-series operators as DataFusion nodes: table scan, SAMPLE BY and GROUP BY, FILL, ASOF and
//! LT JOIN, LATEST ON, and the rules that keep rows in timestamp order.
//!
//! One folder per operator: `node` says what, `exec` how it is planned, `stream` polls. The
//! inner loops are in `tidemark-kernels`. Knows storage's snapshots; knows no SQL text.
#![forbid(unsafe_code)]

mod asof;
mod bucket;
mod fill;
mod latest_on;
mod sample_by;

pub use asof::node::{AsofJoinNode, AsofKind};
pub use bucket::{Alignment, Bucket, BucketSpec, StepUnit, Zone};
pub use fill::node::{FillNode, FillValue};
pub use latest_on::node::LatestOnNode;
pub use sample_by::node::SampleByNode;
