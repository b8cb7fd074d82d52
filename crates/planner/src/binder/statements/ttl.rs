//! TTL, and the ages in a storage policy.

use tidemark_ast::Name;
use tidemark_types::{EngineResult, ErrorCode, PartitionBy};

use crate::binder::catalog::catalog_rows::ttl_fits;
use crate::binder::error;

/// Parses `30d` or `4 WEEKS`. A positive result is in hours, a negative result in months.
pub(crate) fn parse_ttl(ttl: &Name, partition_by: PartitionBy) -> EngineResult<i64> {
    let text = ttl.text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let invalid = || {
        error::at(
            ErrorCode::InvalidValue,
            "missing argument, should be <number> <unit> or <number_with_unit>",
            ttl.span,
        )
    };
    let count: i64 = text[..digits].parse().map_err(|_| invalid())?;
    let word = text[digits..].trim();
    let value = match (word, word.to_ascii_uppercase().as_str()) {
        ("M", _) | (_, "MONTH" | "MONTHS") => -count,
        (_, "H" | "HOUR" | "HOURS") => count,
        (_, "D" | "DAY" | "DAYS") => count.saturating_mul(24),
        (_, "W" | "WEEK" | "WEEKS") => count.saturating_mul(24 * 7),
        (_, "Y" | "YEAR" | "YEARS") => count.saturating_mul(-12),
        _ => return Err(invalid()),
    };
    if value == 0 {
        return Ok(0);
    }
    if partition_by == PartitionBy::None {
        return Err(error::at(
            ErrorCode::NotSupported,
            "cannot set TTL on a non-partitioned table",
            ttl.span,
        ));
    }
    if !ttl_fits(value, partition_by) {
        return Err(error::at(
            ErrorCode::InvalidValue,
            "TTL value must be an integer multiple of partition size",
            ttl.span,
        ));
    }
    Ok(value)
}
