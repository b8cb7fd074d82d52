//! Catalog rows about storage policies: `storage_policies()`, SHOW CREATE.

use std::sync::Arc;

use arrow_array::TimestampMicrosecondArray;
use tidemark_storage::{StoragePolicy, TableSnapshot};
use tidemark_types::{EngineResult, SqlType};

use crate::binder::Binder;
use crate::binder::catalog::catalog_rows::{shown_ttl, texts};
use crate::binder::state::scope::Relation;

impl Binder<'_> {
    /// The visible tables' storage policies, sorted by table name.
    pub(crate) fn storage_policies_rows(&mut self) -> EngineResult<Relation> {
        let tables = self.listed_tables();
        let policy = |table: &Arc<TableSnapshot>| -> Option<(String, StoragePolicy)> {
            let schema = table.schema();
            let directory = format!("{}~{}", schema.name, schema.id);
            Some((directory, schema.policy.clone()?))
        };
        let known: Vec<_> = tables.iter().filter_map(policy).collect();
        let text = |of: &dyn Fn(&(String, StoragePolicy)) -> String| {
            texts(known.iter().map(|one| Some(of(one))).collect::<Vec<_>>())
        };
        let status = |policy: &StoragePolicy| if policy.is_disabled { "D" } else { "A" };
        let times = known.iter().map(|(_, policy)| policy.changed_micros);
        let columns = vec![
            ("table_dir_name", SqlType::String, text(&|(directory, _)| directory.clone())),
            ("to_parquet", SqlType::String, text(&|(_, policy)| shown_age(policy.to_parquet))),
            ("to_remote", SqlType::String, text(&|(_, policy)| shown_age(policy.to_remote))),
            ("drop_local", SqlType::String, text(&|(_, policy)| shown_age(policy.drop_local))),
            ("drop_remote", SqlType::String, text(&|_| shown_age(0))),
            ("status", SqlType::String, text(&|(_, policy)| status(policy).to_owned())),
            (
                "last_updated",
                SqlType::Timestamp,
                Arc::new(TimestampMicrosecondArray::from_iter_values(times)),
            ),
        ];
        self.literal_rows(columns)
    }
}

/// Formats an age as `72h`, or as `12m` for months; `0h` if there is no age.
fn shown_age(hours_or_months: i64) -> String {
    if hours_or_months >= 0 {
        format!("{hours_or_months}h")
    } else {
        format!("{}m", -hours_or_months)
    }
}

/// A policy's STORAGE POLICY clause.
pub(crate) fn policy_text(policy: &StoragePolicy) -> String {
    let stages = [
        ("TO PARQUET", policy.to_parquet),
        ("TO REMOTE", policy.to_remote),
        ("DROP LOCAL", policy.drop_local),
    ];
    let stages = stages.into_iter().filter(|(_, age)| *age != 0).map(|(words, age)| {
        let (value, unit) = shown_ttl(age);
        format!("{words} {value} {unit}{}", if value == 1 { "" } else { "S" })
    });
    format!("STORAGE POLICY({})", stages.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_policy_is_shown_as_an_sql_clause() {
        let policy = StoragePolicy {
            to_parquet: 72,
            to_remote: 0,
            drop_local: -1,
            is_disabled: true,
            changed_micros: 0,
        };
        let text = "STORAGE POLICY(TO PARQUET 3 DAYS, DROP LOCAL 1 MONTH)";
        assert_eq!(policy_text(&policy), text);
    }
}
