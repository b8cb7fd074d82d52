//! Requests that a client may send during a handoff, by protocol, and how to answer them.

use tidemark_border::{Conversation, HandoffStatement, HttpHandoff, PgHandoff};
use tidemark_ingest::are_texts;
use tidemark_types::{EngineError, EngineResult};
use tidemark_wire::{BindPattern, RequestPattern};

use super::shape::Shapes;

/// Permitted requests and how to answer them.
#[expect(clippy::large_enum_variant, reason = "allocated once per handoff")]
pub(super) enum Terms {
    Pg(PgTerms),
    Http(HttpTerms),
}

impl Terms {
    pub(super) fn new(conversation: Conversation) -> EngineResult<Self> {
        Ok(match conversation {
            Conversation::Pg(handoff) => Self::Pg(PgTerms::new(handoff)?),
            Conversation::Http(handoff) => Self::Http(HttpTerms::new(*handoff)?),
        })
    }

    /// Number of statements in the specification.
    pub(super) fn statements(&self) -> usize {
        match self {
            Self::Pg(terms) => terms.statements(),
            Self::Http(terms) => terms.statements(),
        }
    }
}

/// Permitted wire protocol requests.
pub(super) struct PgTerms {
    pub(super) handoff: PgHandoff,
    pub(super) patterns: Vec<BindPattern>,
}

impl PgTerms {
    fn new(handoff: PgHandoff) -> EngineResult<Self> {
        let pattern = |of: &HandoffStatement| {
            let is_text = are_texts(&of.header)?;
            Ok(BindPattern { head: of.head.clone(), tail: of.tail.clone(), is_text })
        };
        let patterns = handoff.statements.iter().map(pattern).collect::<EngineResult<_>>()?;
        Ok(Self { handoff, patterns })
    }

    fn statements(&self) -> usize {
        self.patterns.len()
    }
}

/// Permitted HTTP requests.
pub(super) struct HttpTerms {
    pub(super) handoff: HttpHandoff,
    pub(super) pattern: RequestPattern,
    pub(super) shapes: Shapes,
    statements: usize,
}

impl HttpTerms {
    fn new(mut handoff: HttpHandoff) -> EngineResult<Self> {
        let queries = std::mem::take(&mut handoff.queries);
        let pattern = RequestPattern {
            before: handoff.before.clone().into_bytes(),
            after: handoff.after.clone().into_bytes(),
            max_bytes: handoff.max_request_bytes,
        };
        if pattern.before.is_empty() || pattern.after.is_empty() {
            return Err(EngineError::internal("the request pattern of a handoff is incomplete"));
        }
        let statements = queries.len();
        Ok(Self { handoff, pattern, shapes: Shapes::new(queries), statements })
    }

    fn statements(&self) -> usize {
        self.statements
    }
}
