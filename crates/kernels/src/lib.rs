//! Inner loops of the operators: plain functions on slices, without Arrow, async code or plans.
//!
//! Each kernel is written so that the compiler vectorises it: it uses fixed lanes and, where
//! possible, no branch per row. Tests compare each kernel with a naive loop on seeded random input.

mod aggregate;
mod asof;
mod compact;
mod equal;
mod gather;
mod keyed;
mod latest;
mod matching;
mod moments;
mod native;
mod numbers;
mod order;
mod range_tree;
mod search;
mod validity;
mod views;
mod widest;
mod window;

#[cfg(test)]
mod tests;

pub use aggregate::{maximum, minimum, sum_float, sum_integer};
pub use asof::{Cursor, NO_MATCH, RightChunk, UNKNOWN, match_keyed, match_unkeyed, pack, unpack};
pub use compact::{choose, compact};
pub use equal::{EqualCursor, EqualPairs, NO_ROW, match_equal};
pub use gather::{SourceRange, gather};
pub use keyed::{
    GroupSink, assign_groups, count_by, distances, last_by, maximum_by, minimum_by, sum_float_by,
    sum_integer_by,
};
pub use latest::{note_last_rows, pick_latest};
pub use matching::{matching, matching_keys};
pub use moments::{Moments, moments_by};
pub use native::Native;
pub use numbers::NumberTable;
pub use order::{Ranges, Spread, double_order, integer_order};
pub use range_tree::{
    Combine, GreatestDouble, GreatestInteger, LeastDouble, LeastInteger, RangeTree, SumOfDoubles,
};
pub use search::{run_end, upper_bound};
pub use validity::Validity;
pub use views::{Case, append_views, is_long_view, recase_view, subview, view_len, view_of};
pub use window::{
    ExtremeState, Pick, PickState, Reach, Rows, SumState, frame_extremes, frame_picks, frame_sums,
};
