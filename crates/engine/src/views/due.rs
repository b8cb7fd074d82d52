//! Determines the next refresh of a materialized view.

use tidemark_catalog::{
    Every, IncrementalState, IncrementalView, RefreshPeriod, RefreshRequest, RefreshTrigger,
};
use tidemark_operators::{Alignment, BucketSpec, StepUnit, Zone};
use tidemark_types::calendar::MICROS_PER_DAY;

use crate::runtime::registry::now_micros;

/// The kind of refresh to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Computes all rows.
    Full,
    /// Resolves the names in the query again and computes all rows.
    Rebuild,
    /// Computes the changes since the last refresh.
    Changed,
    /// Computes a time range, regardless of changes.
    Range(i64, i64),
}

/// Result of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// The refresh had nothing to commit.
    Nothing,
    /// The refresh only read rows that no earlier refresh had read and that no later refresh will
    /// read.
    Once,
    /// The refresh read or wrote some rows again.
    Again,
}

/// Returns the end of the last complete period. A refresh is due whenever this end changes.
pub(super) fn clock(view: &IncrementalView) -> i64 {
    match &view.period {
        None => 0,
        Some(_) => closed_until(view, &BucketSpec::new(1, StepUnit::Second), now_micros()),
    }
}

/// Returns the refresh that a view needs; `None` if the view is up to date. `touched` is the last
/// transaction that changed the base, if the base is watched.
pub(super) fn due(
    view: &IncrementalView,
    state: &IncrementalState,
    touched: Option<u64>,
    now_micros: i64,
) -> Option<Due> {
    match state.request {
        Some(RefreshRequest::Full) => return Some(Due::Full),
        Some(RefreshRequest::Rebuild) => return Some(Due::Rebuild),
        Some(RefreshRequest::Range(from, to)) => return Some(Due::Range(from, to)),
        Some(RefreshRequest::Incremental) if state.invalid.is_none() => {
            return Some(if state.position.is_some() { Due::Changed } else { Due::Full });
        }
        Some(RefreshRequest::Incremental) | None => {}
    }
    if state.invalid.is_some() {
        return None;
    }
    let last = touched.unwrap_or(u64::MAX);
    let Some(position) = state.position else {
        let begins = match view.trigger {
            _ if !view.deferred => true,
            RefreshTrigger::Immediate => last > view.made_after,
            RefreshTrigger::Manual => false,
            RefreshTrigger::Every(every) => ticked(view, every, None, now_micros),
        };
        return begins.then_some(Due::Full);
    };
    let has_changed = last > position || view.period.is_some();
    let is_time = match view.trigger {
        RefreshTrigger::Immediate => true,
        RefreshTrigger::Manual => false,
        RefreshTrigger::Every(every) => ticked(view, every, state.started_micros, now_micros),
    };
    (is_time && has_changed).then_some(Due::Changed)
}

/// Whether a timer has ticked since a given timestamp. Without a timestamp, whether the timer has
/// ticked at all.
fn ticked(view: &IncrementalView, every: Every, since: Option<i64>, now_micros: i64) -> bool {
    if now_micros < view.start_micros {
        return false;
    }
    let spec =
        BucketSpec { from: Some(view.start_micros), ..calendar(every, view.time_zone.as_deref()) };
    let (tick, _) = spec.around(now_micros, now_micros);
    tick >= view.start_micros && since.is_none_or(|since| since < tick)
}

/// Returns the first base timestamp, in microseconds, that a view with periods does not show yet.
/// This is the end of the last complete period.
pub(super) fn closed_until(view: &IncrementalView, buckets: &BucketSpec, now_micros: i64) -> i64 {
    match &view.period {
        None => i64::MAX,
        Some(RefreshPeriod::SampleByInterval) => {
            let spec = BucketSpec { nanoseconds: false, ..*buckets };
            spec.around(now_micros, now_micros).0
        }
        Some(RefreshPeriod::Length { length, time_zone, delay }) => {
            let now = now_micros.saturating_sub(delay.map_or(0, micros_of));
            calendar(*length, time_zone.as_deref()).around(now, now).0
        }
    }
}

fn calendar(every: Every, zone: Option<&str>) -> BucketSpec {
    let unit = StepUnit::parse(every.unit).unwrap_or(StepUnit::Minute);
    let zone = zone.and_then(Zone::parse);
    let alignment = Alignment::Calendar { zone, offset_micros: 0 };
    BucketSpec { alignment, ..BucketSpec::new(every.count, unit) }
}

/// Returns an interval's length in microseconds. For months and years the length is approximate.
fn micros_of(every: Every) -> i64 {
    match every.unit {
        'M' => (30 * MICROS_PER_DAY).saturating_mul(i64::from(every.count)),
        _ => every.micros(),
    }
}
