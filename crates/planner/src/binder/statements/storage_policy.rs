//! STORAGE POLICY: actions on partitions as they age.

use tidemark_ast::{AlterAction, Name, PolicyStages, Span};
use tidemark_storage::{StoragePolicy, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy};

use crate::binder::error;
use crate::binder::statements::ttl::parse_ttl;

/// Length of the shortest month in hours, for comparing an age in months with an age in hours.
const HOURS_PER_MONTH: i64 = 28 * 24;

/// Validates the stages. Each must be a positive multiple of the partition length, and none may
/// drop data that a later stage would write.
pub(crate) fn policy_of(
    stages: &PolicyStages,
    schema: &TableSchema,
    now_micros: i64,
) -> EngineResult<StoragePolicy> {
    let PolicyStages { to_parquet, to_remote, drop_local } = stages;
    let age = |stage: &Option<Name>, words: &str| {
        let Some(age) = stage else { return Ok(0) };
        let refuse = |code, message: String| Err(error::at(code, message, age.span));
        if schema.partition_by == PartitionBy::None {
            let message = "cannot set a storage policy on a non-partitioned table".to_owned();
            return refuse(ErrorCode::NotSupported, message);
        }
        match parse_ttl(age, schema.partition_by)? {
            0 => refuse(ErrorCode::InvalidValue, format!("'{words}' must be positive")),
            age => Ok(age),
        }
    };
    let policy = StoragePolicy {
        to_parquet: age(to_parquet, "TO PARQUET")?,
        to_remote: age(to_remote, "TO REMOTE")?,
        drop_local: age(drop_local, "DROP LOCAL")?,
        is_disabled: false,
        changed_micros: now_micros,
    };
    let written =
        [("TO PARQUET", to_parquet, policy.to_parquet), ("TO REMOTE", to_remote, policy.to_remote)];
    for (words, stage, age) in written {
        if let Some(stage) = stage
            && policy.drop_local != 0
            && shortest_hours(age) > shortest_hours(policy.drop_local)
        {
            let message = format!("'{words}' must not come later than 'DROP LOCAL'");
            return Err(error::at(ErrorCode::InvalidValue, message, stage.span));
        }
    }
    Ok(policy)
}

fn shortest_hours(hours_or_months: i64) -> i64 {
    if hours_or_months >= 0 {
        hours_or_months
    } else {
        hours_or_months.saturating_mul(-HOURS_PER_MONTH)
    }
}

/// Applies SET, ENABLE, DISABLE and DROP STORAGE POLICY.
pub(crate) fn alter_policy(
    schema: &mut TableSchema,
    (table, action): (&Name, &AlterAction),
    now_micros: i64,
) -> EngineResult<()> {
    match action {
        AlterAction::SetPolicy { policy } => {
            if schema.ttl_hours_or_months != 0 {
                let message = "Cannot set storage policy, please, remove TTL settings";
                return Err(error::at(ErrorCode::NotSupported, message, table.span));
            }
            schema.policy = Some(policy_of(policy, schema, now_micros)?);
        }
        AlterAction::SwitchPolicy { enabled, span } => {
            let policy = schema.policy.as_mut();
            let policy = policy.ok_or_else(|| no_policy(&table.text, *span))?;
            if policy.is_disabled == *enabled {
                policy.is_disabled = !enabled;
                policy.changed_micros = now_micros;
            }
        }
        AlterAction::DropPolicy => {
            let dropped = schema.policy.take();
            dropped.ok_or_else(|| no_policy(&table.text, table.span))?;
        }
        _ => return Err(EngineError::internal("unexpected action on a storage policy")),
    }
    Ok(())
}

fn no_policy(table: &str, at: Span) -> EngineError {
    let message = format!("storage policy does not exist [table={table}]");
    error::at(ErrorCode::InvalidValue, message, at)
}

/// Rejects a TTL on a table with a policy.
pub(crate) fn refuse_ttl(schema: &TableSchema, ttl: &Name) -> EngineResult<()> {
    if schema.ttl_hours_or_months == 0 || schema.policy.is_none() {
        return Ok(());
    }
    let message = "the table has a storage policy: use DROP LOCAL instead of a TTL";
    Err(error::at(ErrorCode::NotSupported, message, ttl.span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_months_with_hours_assumes_the_shortest_month() {
        assert!(shortest_hours(-1) < shortest_hours(24 * 29));
        assert!(shortest_hours(24 * 28) <= shortest_hours(-1));
        assert_eq!(shortest_hours(i64::MIN), i64::MAX);
    }
}
