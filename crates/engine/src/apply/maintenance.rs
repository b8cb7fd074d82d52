//! Database-wide operations: backup copies, checks, and recovery of damaged tables.

use std::path::Path;
use std::sync::Arc;

use tidemark_border as border;
use tidemark_planner::{BoundMaintenance, MaintenanceAction};
use tidemark_storage::{Damage, LostData, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
use tidemark_vfs::{RealVfs, Vfs};

use crate::database::Database;
use crate::database::damage_report;
use crate::runtime::log::{self, Level};

const LIVE: &str = "db";

/// Executes CHECKPOINT CREATE, CHECKPOINT RELEASE, CHECK or RECOVER. Blocks.
pub(crate) fn run(database: &Database, statement: &BoundMaintenance) -> EngineResult<()> {
    failpoint::hit("engine.maintenance")?;
    database.check_open()?;
    let storage = &database.storage;
    match statement.action {
        MaintenanceAction::CheckpointCreate => storage.create_backup(),
        MaintenanceAction::CheckpointRelease => storage.release_backup(),
        MaintenanceAction::ShowLosses => {
            let table = recovered(statement)?;
            show_losses(&table.name, &storage.lost_data(table.id)?)
        }
        MaintenanceAction::SkipDamage => {
            let table = recovered(statement)?;
            for lost in storage.skip_damage(table.id)? {
                let what = serde_json::json!({ "table": table.name, "lost": lost.to_string() });
                log::write(Level::Warn, "engine", "skipped", what);
            }
            Ok(())
        }
        MaintenanceAction::Check => {
            let table = statement.table.as_ref().map(|table| table.schema().id);
            let damages = storage.check(table)?;
            match &damages[..] {
                [] => Ok(()),
                [first, ..] => {
                    let more = damages.len() - 1;
                    let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
                    let all: Vec<String> = damages.iter().map(shown).collect();
                    let message = format!("{}{more}", shown(first));
                    Err(EngineError::new(ErrorCode::Damaged, message).with_detail(all.join("\n")))
                }
            }
        }
    }
}

fn recovered(statement: &BoundMaintenance) -> EngineResult<&TableSchema> {
    let table = statement.table.as_ref().map(|table| &**table.schema());
    table.ok_or_else(|| EngineError::internal("RECOVER TABLE requires a table name"))
}

/// Fails if RECOVER TABLE would discard data. The error lists that data.
fn show_losses(table: &str, lost: &[LostData]) -> EngineResult<()> {
    if lost.is_empty() {
        return Ok(());
    }
    let rows: u64 = lost.iter().map(|part| part.rows).sum();
    let descriptions: Vec<String> = lost.iter().map(ToString::to_string).collect();
    let message = format!(
        "table '{table}' is damaged; recovery would discard {rows} rows: {}",
        descriptions.join("; ")
    );
    Err(EngineError::new(ErrorCode::Damaged, message)
        .with_detail(descriptions.join("\n"))
        .with_hint(format!(
            "run RECOVER TABLE '{table}' SKIP to discard them, or restore a backup"
        )))
}

fn shown(damage: &Damage) -> String {
    if damage.table.is_empty() {
        damage.what.clone()
    } else {
        format!("table '{}': {}", damage.table, damage.what)
    }
}

/// Checks a root directory that is not in use. Fails with `RootLocked` if a process is using it.
pub fn check_root(root: &Path) -> EngineResult<Vec<border::Damage>> {
    if !root.join(LIVE).is_dir() {
        let message = format!("no database found in '{}'", root.display());
        return Err(EngineError::new(ErrorCode::InvalidValue, message));
    }
    let vfs = RealVfs::new(root)
        .map_err(|error| EngineError::io(format!("cannot use {}", root.display()), &error))?;
    let vfs: Arc<dyn Vfs> = Arc::new(vfs);
    let _lock = vfs.lock("lock")?;
    let damages = tidemark_storage::check_root(&vfs)?;
    Ok(damages.into_iter().map(damage_report).collect())
}
