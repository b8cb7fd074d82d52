//! Converts between UTC and time zones.

use std::sync::Arc;

use datafusion::common::Result;
use tidemark_types::zone::Zone;

use super::times::{KernelResult, build_times, times};
use crate::column::{Call, Texts, invalid};
use crate::resolve::{Argument, ResolveError};
use crate::signature::Bound;

fn bad_zone(index: usize, name: &str) -> ResolveError {
    ResolveError::InvalidArgument { index, message: format!("invalid timezone: {name}") }
}

pub(super) fn zone_argument(
    bound: &Bound<'_>,
    index: usize,
) -> std::result::Result<Option<Zone>, ResolveError> {
    match bound.arguments.get(index).and_then(Argument::text) {
        None => Ok(None),
        Some(name) => Zone::parse(&name).map(Some).ok_or_else(|| bad_zone(index, &name)),
    }
}

/// Each row's time zone, or a single zone if it is constant.
pub(super) struct Zones {
    known: Option<Zone>,
    names: Texts,
}

impl Zones {
    pub(super) fn new(call: &Call<'_>, index: usize, known: Option<Zone>) -> Result<Self> {
        let names = call.texts(index)?;
        let constant = if names.scalar { names.get(0).map(str::to_owned) } else { None };
        let known = match (known, constant) {
            (None, Some(name)) => Some(
                Zone::parse(&name).ok_or_else(|| invalid(format!("invalid timezone: {name}")))?,
            ),
            (known, _) => known,
        };
        Ok(Self { known, names })
    }

    pub(super) fn get(&self, row: usize) -> Option<Zone> {
        self.known.or_else(|| Zone::parse(self.names.get(row)?))
    }
}

/// Converts between UTC and a zone's local time. `arguments` contains the indexes of the time
/// argument and the zone argument.
pub(super) fn in_zone(bound: &Bound<'_>, arguments: (usize, usize), to_utc: bool) -> KernelResult {
    let (time, zone) = arguments;
    let known = zone_argument(bound, zone)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, time)?;
        let zones = Zones::new(call, zone, known)?;
        let per_second = unit.per_second();
        Ok(build_times(call.rows, unit, |row| {
            let (zone, value) = (zones.get(row)?, at(row)?);
            Some(if to_utc {
                zone.to_utc(value, per_second)
            } else {
                zone.to_local(value, per_second)
            })
        }))
    }))
}
