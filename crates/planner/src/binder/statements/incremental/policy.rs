//! A materialized view's refresh policy and partitioning, as specified in statements.

use tidemark_ast::{Name, RefreshPolicy};
use tidemark_catalog::{Every, IncrementalView, RefreshPeriod, RefreshTrigger, ViewForm};
use tidemark_operators::{BucketSpec, StepUnit, Zone};
use tidemark_types::timestamp::parse_fields;
use tidemark_types::{EngineResult, ErrorCode, PartitionBy, TimestampUnit};

use crate::binder::error;

/// Parses PARTITION BY.
pub(crate) fn partitioning(unit: &Name, form: ViewForm) -> EngineResult<PartitionBy> {
    match PartitionBy::parse(&unit.text) {
        Some(PartitionBy::None) => Err(error::at(
            ErrorCode::NotSupported,
            format!("{} has to be partitioned", form.name()),
            unit.span,
        )),
        Some(partition_by) => Ok(partition_by),
        None => Err(error::at(
            ErrorCode::InvalidValue,
            "'HOUR', 'DAY', 'WEEK', 'MONTH' or 'YEAR' expected",
            unit.span,
        )),
    }
}

/// The default partitioning, which depends on the bucket size.
pub(crate) fn usual_partitioning(buckets: &BucketSpec) -> PartitionBy {
    let seconds: u64 = match buckets.unit {
        StepUnit::Nanosecond | StepUnit::Microsecond | StepUnit::Millisecond => 0,
        StepUnit::Second => 1,
        StepUnit::Minute => 60,
        StepUnit::Hour => 3_600,
        StepUnit::Day => 86_400,
        StepUnit::Week => 7 * 86_400,
        StepUnit::Month | StepUnit::Year => 30 * 86_400,
    };
    match seconds.saturating_mul(u64::from(buckets.count)) {
        3_601.. => PartitionBy::Year,
        61.. => PartitionBy::Month,
        _ => PartitionBy::Day,
    }
}

/// Applies the REFRESH clause of CREATE or ALTER.
pub(crate) fn apply_policy(
    view: &mut IncrementalView,
    policy: &RefreshPolicy,
    now_micros: i64,
) -> EngineResult<()> {
    use tidemark_ast::RefreshPeriod as WrittenPeriod;
    use tidemark_ast::RefreshTrigger as WrittenTrigger;
    let RefreshPolicy { trigger, deferred, start, time_zone, period, span: _ } = policy;
    view.trigger = match trigger {
        None | Some(WrittenTrigger::Immediate) => RefreshTrigger::Immediate,
        Some(WrittenTrigger::Manual) => RefreshTrigger::Manual,
        Some(WrittenTrigger::Every { interval }) => {
            let every = interval_of(interval)?;
            if every.unit == 's' {
                let message = "invalid interval: a timer interval must be at least 1m";
                return Err(error::at(ErrorCode::InvalidValue, message, interval.span));
            }
            RefreshTrigger::Every(every)
        }
    };
    view.deferred = *deferred;
    view.time_zone = time_zone.as_ref().map(zone_of).transpose()?;
    view.has_start = start.is_some();
    view.start_micros = match start {
        Some(start) => parse_fields(&start.text)
            .and_then(|parsed| parsed.start(TimestampUnit::Micros))
            .ok_or_else(|| {
                let message = format!("invalid START timestamp: {}", start.text);
                error::at(ErrorCode::InvalidValue, message, start.span)
            })?,
        None => now_micros,
    };
    view.period = match period {
        None => None,
        Some(WrittenPeriod::SampleByInterval) => Some(RefreshPeriod::SampleByInterval),
        Some(WrittenPeriod::Length { length, time_zone, delay }) => Some(RefreshPeriod::Length {
            length: interval_of(length)?,
            time_zone: time_zone.as_ref().map(zone_of).transpose()?,
            delay: delay.as_ref().map(interval_of).transpose()?,
        }),
    };
    Ok(())
}

/// Parses `10m`: a count and one of the units `s m h d w M y`.
pub(crate) fn interval_of(interval: &Name) -> EngineResult<Every> {
    let text = interval.text.as_str();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let count = if digits == 0 { Ok(1) } else { text[..digits].parse() };
    let mut letters = text[digits..].chars();
    let unit = letters.next().filter(|_| letters.next().is_none());
    let unit = unit.filter(|unit| "smhdwMy".contains(*unit));
    if let (Ok(count @ 1..), Some(unit)) = (count, unit) {
        return Ok(Every { count, unit });
    }
    let message =
        format!("invalid interval '{text}': expected a count followed by s, m, h, d, w, M or y");
    Err(error::at(ErrorCode::InvalidValue, message, interval.span))
}

fn zone_of(name: &Name) -> EngineResult<String> {
    if Zone::parse(&name.text).is_some() {
        return Ok(name.text.clone());
    }
    let message = format!("invalid timezone: {}", name.text);
    Err(error::at(ErrorCode::InvalidValue, message, name.span))
}
