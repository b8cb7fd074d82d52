//! View state while a statement that reads views is bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_catalog::{Owner, ViewSource};

use crate::Access;
use crate::binder::state::accesses::Accesses;
use crate::binder::state::scope::Relation;

/// The objects that names in a view's query refer to, keyed by the node that contains the name.
pub(crate) type ViewSources = Arc<BTreeMap<u32, ViewSource>>;

/// The context in which a view is read: the accesses before it, and the owner whose permissions
/// apply within it.
#[derive(Debug)]
pub(crate) struct ViewContext {
    pub(crate) before: Accesses,
    pub(crate) view: String,
    pub(crate) owner: Owner,
}

/// A view's bound rows, which further references reuse.
#[derive(Debug, Clone)]
pub(crate) struct BoundView {
    pub(crate) rows: Relation,
    pub(crate) reads: Vec<Access>,
    /// Number of sources that each reference to the view adds to the statement's total.
    pub(crate) sources: usize,
}
