//! What is known of a live view between its refreshes.

use tidemark_catalog::{IncrementalState, IncrementalView};
use tidemark_operators::KeptWindows;
use tidemark_planner::{Misfit, Planner};
use tidemark_storage::Snapshot;

/// Why a view whose base is a materialized view does not follow it any more: for good.
pub(super) const REBUILT: &str = "full refresh of the base materialized view";

/// What a live view's functions hold after the rows that it shows.
#[derive(Debug)]
pub(super) struct Kept {
    /// The transaction of the base that they are of.
    pub(super) position: u64,
    /// The transaction up to which they were computed of all rows that the base had then.
    pub(super) begun: u64,
    /// The base's definition that they were computed with.
    pub(super) version: u64,
    pub(super) windows: KeptWindows,
}

impl Kept {
    pub(super) fn bytes(&self) -> usize {
        self.windows.bytes()
    }
}

/// Whether the base of a view fits in another way than is recorded: the view stopped following and
/// could go on, or the other way round.
pub(super) fn is_other(
    view: &IncrementalView,
    state: &IncrementalState,
    snapshot: &Snapshot,
) -> bool {
    if state.invalid.as_deref() == Some(REBUILT) {
        return false;
    }
    match (Planner::live_misfit(view, snapshot), &state.invalid) {
        (None, reason) => reason.is_some(),
        (Some(Misfit::Missing), _) => false,
        (Some(Misfit::Differs(difference)), reason) => reason.as_ref() != Some(&difference),
    }
}
