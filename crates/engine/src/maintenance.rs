//! The database as a whole: copies, checks, and what to do about a map that went bad.

use std::path::Path;
use std::sync::Arc;

use tidemark_planner::{BoundMaintenance, MaintenanceAction};
use tidemark_storage::Damage;
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
use tidemark_vfs::{RealVfs, Vfs};

use crate::database::Database;
use crate::log::{self, Level};

/// The file whose presence asks for the copy in `.checkpoint` at the next start.
const RESTORE: &str = "_restore";
const LIVE: &str = "db";
const COPY: &str = ".checkpoint";
/// What the copy replaced; kept until somebody removes it.
const REPLACED: &str = "db.replaced";

/// Runs CHECKPOINT CREATE, CHECKPOINT RELEASE or CHECK. Blocks.
pub(crate) fn run(database: &Database, statement: &BoundMaintenance) -> EngineResult<()> {
    failpoint::hit("engine.maintenance")?;
    database.check_open()?;
    let storage = &database.storage;
    match statement.action {
        MaintenanceAction::CheckpointCreate => storage.create_backup(),
        MaintenanceAction::CheckpointRelease => storage.release_backup(),
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

fn shown(damage: &Damage) -> String {
    if damage.table.is_empty() {
        damage.what.clone()
    } else {
        format!("table '{}': {}", damage.table, damage.what)
    }
}

/// Checks a root that nobody uses. Fails with `RootLocked` when somebody does.
pub fn check_root(root: &Path) -> EngineResult<Vec<Damage>> {
    if !root.join(LIVE).is_dir() {
        let message = format!("there is no database in '{}'", root.display());
        return Err(EngineError::new(ErrorCode::InvalidValue, message));
    }
    let vfs = RealVfs::new(root)
        .map_err(|error| EngineError::io(format!("cannot use {}", root.display()), &error))?;
    let vfs: Arc<dyn Vfs> = Arc::new(vfs);
    let _lock = vfs.lock("lock")?;
    tidemark_storage::check_root(&vfs)
}

/// Fails when a mapped file could not be read since: zeros may stand for what was in it. Which
/// query read it nobody knows, so each that ran then fails; tried again, those that read other
/// files succeed.
pub(crate) fn check_faults(before: u64) -> EngineResult<()> {
    if tidemark_vfs::faults() == before {
        return Ok(());
    }
    let message = "a file could not be read while the statement ran";
    Err(EngineError::new(ErrorCode::Damaged, message)
        .with_hint("try again; if it comes again, CHECK DATABASE names the file"))
}

/// Puts the copy that CHECKPOINT CREATE made in the database's place, where `_restore` asks for
/// it. An interrupted restore goes on at the next start.
pub(crate) fn restore_if_asked(root: &Path) -> EngineResult<()> {
    let (asked, copy) = (root.join(RESTORE), root.join(COPY));
    if !asked.exists() {
        return Ok(());
    }
    let failed = |error: &std::io::Error| EngineError::io("cannot restore the checkpoint", error);
    if copy.join(LIVE).exists() {
        if root.join(LIVE).exists() {
            if root.join(REPLACED).exists() {
                std::fs::remove_dir_all(root.join(REPLACED)).map_err(|e| failed(&e))?;
            }
            std::fs::rename(root.join(LIVE), root.join(REPLACED)).map_err(|e| failed(&e))?;
        }
        std::fs::rename(copy.join(LIVE), root.join(LIVE)).map_err(|e| failed(&e))?;
        std::fs::remove_dir_all(&copy).map_err(|e| failed(&e))?;
    } else if !root.join(LIVE).exists() {
        let message = "'_restore' is there, and no '.checkpoint' to restore";
        return Err(EngineError::new(ErrorCode::InvalidValue, message));
    }
    std::fs::remove_file(&asked).map_err(|error| failed(&error))?;
    std::fs::File::open(root).and_then(|file| file.sync_all()).map_err(|error| failed(&error))?;
    log::write(Level::Warn, "engine", "restored", serde_json::json!({ "from": COPY }));
    Ok(())
}
