//! Whether damage has ever been found on disk.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process has ever found a damaged file. Until one is found, no checks for damage
/// run.
static SUSPECT: AtomicBool = AtomicBool::new(false);

/// Enables the checks for damage.
pub(crate) fn suspect() {
    SUSPECT.store(true, Ordering::Relaxed);
}

/// Whether the checks for damage are enabled.
pub(crate) fn is_suspect() -> bool {
    SUSPECT.load(Ordering::Relaxed) || tidemark_vfs::faults() > 0
}
