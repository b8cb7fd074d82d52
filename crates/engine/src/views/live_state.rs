//! State that a live view retains between its refreshes.

use tidemark_catalog::{IncrementalState, IncrementalView};
use tidemark_operators::WindowCache;
use tidemark_planner::{Misfit, Planner};
use tidemark_storage::Snapshot;

/// Why a live view over a materialized view becomes permanently invalid.
pub(super) const REBUILT: &str = "full refresh of the base materialized view";

/// The state of a live view's window functions after the last visible row.
#[derive(Debug)]
pub(super) struct WindowState {
    /// The base transaction that the state corresponds to.
    pub(super) position: u64,
    /// The transaction at which the state was first computed, from all rows that the base had at
    /// that time.
    pub(super) begun: u64,
    /// The base's schema version when the state was computed.
    pub(super) version: u64,
    pub(super) windows: WindowCache,
}

impl WindowState {
    pub(super) fn bytes(&self) -> usize {
        self.windows.bytes()
    }
}

/// Whether the recorded validity of a view is outdated, because an invalid view could resume or a
/// valid view no longer matches its base.
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
