//! What a start finds: damages, and a checkpoint to restore.

use tidemark_border as border;
use tidemark_storage::Damage;
use tidemark_types::EngineResult;
use tidemark_vfs::Vfs;

use crate::log::{self, Level};

/// A damage as it crosses the border.
pub(crate) fn damage_report(damage: Damage) -> border::Damage {
    border::Damage { table: damage.table, what: damage.what }
}

/// Puts the copy that CHECKPOINT CREATE made in the database's place, where `_restore` asks for
/// it. An interrupted restore goes on at the next start.
pub(crate) fn restore_if_asked(vfs: &dyn Vfs) -> EngineResult<()> {
    if tidemark_storage::restore_if_asked(vfs)? {
        log::write(Level::Warn, "engine", "restored", serde_json::json!({ "from": ".checkpoint" }));
    }
    Ok(())
}
