//! Views, while statements that read them are bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_catalog::{Owner, ViewSource};

use crate::Access;
use crate::binder::state::accesses::Accesses;
use crate::binder::state::scope::Relation;

/// What the names in a view's query mean, by the node that names it.
pub(crate) type ViewSources = Arc<BTreeMap<u32, ViewSource>>;

/// Where a view is read: what was read before it, by whose right it reads itself.
#[derive(Debug)]
pub(crate) struct ViewPlace {
    pub(crate) before: Accesses,
    pub(crate) view: String,
    pub(crate) owner: Owner,
}

/// A view's rows as they were bound, for its next use.
#[derive(Debug, Clone)]
pub(crate) struct BoundView {
    pub(crate) rows: Relation,
    pub(crate) reads: Vec<Access>,
    /// Sources that one use counts for.
    pub(crate) sources: usize,
}
