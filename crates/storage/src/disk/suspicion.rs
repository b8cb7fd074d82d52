//! Whether anything on disk was ever found damaged.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether any file of this process was ever found damaged: before, damage is not looked for.
static SUSPECT: AtomicBool = AtomicBool::new(false);

/// From now on damage is looked for.
pub(crate) fn suspect() {
    SUSPECT.store(true, Ordering::Relaxed);
}

/// Whether damage is to be looked for.
pub(crate) fn is_suspect() -> bool {
    SUSPECT.load(Ordering::Relaxed) || tidemark_vfs::faults() > 0
}
