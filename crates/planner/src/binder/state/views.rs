//! Views, while statements that read them are bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_catalog::ViewSource;

use crate::Access;
use crate::binder::state::scope::Relation;

/// What the names in a view's query mean, by the node that names it.
pub(crate) type ViewSources = Arc<BTreeMap<u32, ViewSource>>;

/// A view's rows as they were bound, for its next use.
#[derive(Debug, Clone)]
pub(crate) struct BoundView {
    pub(crate) rows: Relation,
    pub(crate) reads: Vec<Access>,
    /// Sources that one use counts for.
    pub(crate) sources: usize,
}
