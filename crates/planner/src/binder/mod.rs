//! The binder.

use std::sync::Arc;

use tidemark_ast::Tree;
use tidemark_storage::Snapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::{BindContext, BoundStatement};

pub(crate) mod insert;

/// Binds statements.
pub struct Planner;

impl Planner {
    /// Binds a statement against a snapshot.
    pub fn bind(
        tree: &Tree,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<BoundStatement> {
        let _ = (tree, snapshot, context);
        Err(EngineError::new(ErrorCode::NotSupported, "the binder is being written"))
    }
}
