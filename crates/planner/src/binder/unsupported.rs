//! Statements that are parsed but not executed by this crate. The error is positioned at the
//! statement's subject.

use tidemark_ast::{AccessStatement, BackupStatement, CopyStatement, Name, Node, NodeId, Tree};
use tidemark_types::{EngineError, EngineResult};

use super::error;
use crate::BoundStatement;

/// The error for a statement that is parsed but not executed here.
pub(crate) fn statement(tree: &Tree, id: NodeId, node: &Node) -> EngineResult<BoundStatement> {
    let root = tree.span(id);
    let (what, position) = match node {
        Node::Access { access } => {
            ("access control is", principal(access).map_or(root, |name| name.span))
        }
        Node::Copy { copy: CopyStatement::Cancel { id } } => ("COPY is", id.span),
        Node::Copy { copy: CopyStatement::Import { file, .. } } => ("COPY is", file.span),
        Node::Copy { copy: CopyStatement::Export { path, .. } } => ("COPY is", path.span),
        Node::Backup { backup } => (backup_words(backup), root),
        _ => return Err(EngineError::internal("expected a statement, found an expression")),
    };
    Err(error::not_supported(what, position))
}

/// An access control statement's principal.
fn principal(access: &AccessStatement) -> Option<&Name> {
    match access {
        AccessStatement::Create { name, .. }
        | AccessStatement::Drop { name, .. }
        | AccessStatement::Alter { name, .. } => Some(name),
        AccessStatement::AddMember { user, .. } | AccessStatement::RemoveMember { user, .. } => {
            Some(user)
        }
        AccessStatement::Assume { account } => Some(account),
        AccessStatement::Exit { account } => account.as_ref(),
        AccessStatement::Grant { to, .. } => Some(to),
        AccessStatement::Revoke { from, .. } => Some(from),
    }
}

fn backup_words(backup: &BackupStatement) -> &'static str {
    match backup {
        BackupStatement::CheckpointCreate | BackupStatement::CheckpointRelease => "CHECKPOINT is",
        BackupStatement::SnapshotPrepare | BackupStatement::SnapshotComplete => "SNAPSHOT is",
        BackupStatement::Database
        | BackupStatement::Tables { tables: _ }
        | BackupStatement::Abort => "BACKUP is",
    }
}
