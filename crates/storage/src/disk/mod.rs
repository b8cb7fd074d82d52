//! The storage's file system, and how its data is verified.

pub(crate) mod file;
pub(crate) mod layout;
pub(crate) mod space;
pub(crate) mod suspicion;

use std::ops::Deref;
use std::sync::Arc;

use tidemark_vfs::Vfs;

use crate::options::Verify;

/// A file system below a root.
#[derive(Debug)]
pub(crate) struct Disk {
    vfs: Arc<dyn Vfs>,
    pub(crate) verify: Verify,
}

impl Disk {
    pub(crate) fn new(vfs: Arc<dyn Vfs>, verify: Verify) -> Arc<Self> {
        Arc::new(Self { vfs, verify })
    }

    /// The underlying file system.
    pub(crate) fn system(&self) -> &dyn Vfs {
        &*self.vfs
    }
}

impl Deref for Disk {
    type Target = dyn Vfs;

    fn deref(&self) -> &Self::Target {
        &*self.vfs
    }
}
