//! A checkpoint that a start restores.

use tidemark_types::EngineResult;
use tidemark_vfs::Vfs;

use crate::runtime::log::{self, Level};

/// Puts the copy that CHECKPOINT CREATE made in the database's place, where `_restore` asks for
/// it. An interrupted restore goes on at the next start.
pub(crate) fn restore_if_asked(vfs: &dyn Vfs) -> EngineResult<()> {
    if tidemark_storage::restore_if_asked(vfs)? {
        log::write(Level::Warn, "engine", "restored", serde_json::json!({ "from": ".checkpoint" }));
    }
    Ok(())
}
