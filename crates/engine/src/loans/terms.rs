//! What the client of a loan may send, in the words of its protocol, and how it is answered.

use tidemark_border::{Conversation, HttpLoan, LentStatement, PgLoan};
use tidemark_ingest::are_texts;
use tidemark_types::{EngineError, EngineResult};
use tidemark_wire::{BindPattern, RequestPattern};

use super::shape::Shapes;

/// What the client may send, and how it is answered.
#[expect(clippy::large_enum_variant, reason = "one for each loan, behind a pointer")]
pub(super) enum Terms {
    Pg(PgTerms),
    Http(HttpTerms),
}

impl Terms {
    pub(super) fn new(conversation: Conversation) -> EngineResult<Self> {
        Ok(match conversation {
            Conversation::Pg(loan) => Self::Pg(PgTerms::new(loan)?),
            Conversation::Http(loan) => Self::Http(HttpTerms::new(*loan)?),
        })
    }

    /// How many statements they name.
    pub(super) fn statements(&self) -> usize {
        match self {
            Self::Pg(terms) => terms.statements(),
            Self::Http(terms) => terms.statements(),
        }
    }
}

/// What a client of the wire protocol may send.
pub(super) struct PgTerms {
    pub(super) loan: PgLoan,
    pub(super) patterns: Vec<BindPattern>,
}

impl PgTerms {
    fn new(loan: PgLoan) -> EngineResult<Self> {
        let pattern = |of: &LentStatement| {
            let is_text = are_texts(&of.header)?;
            Ok(BindPattern { head: of.head.clone(), tail: of.tail.clone(), is_text })
        };
        let patterns = loan.statements.iter().map(pattern).collect::<EngineResult<_>>()?;
        Ok(Self { loan, patterns })
    }

    fn statements(&self) -> usize {
        self.patterns.len()
    }
}

/// What a client of HTTP may send.
pub(super) struct HttpTerms {
    pub(super) loan: HttpLoan,
    pub(super) pattern: RequestPattern,
    pub(super) shapes: Shapes,
    statements: usize,
}

impl HttpTerms {
    fn new(mut loan: HttpLoan) -> EngineResult<Self> {
        let queries = std::mem::take(&mut loan.queries);
        let pattern = RequestPattern {
            before: loan.before.clone().into_bytes(),
            after: loan.after.clone().into_bytes(),
            longest: loan.longest,
        };
        if pattern.before.is_empty() || pattern.after.is_empty() {
            return Err(EngineError::internal("a loan of requests without an end"));
        }
        let statements = queries.len();
        Ok(Self { loan, pattern, shapes: Shapes::new(queries), statements })
    }

    fn statements(&self) -> usize {
        self.statements
    }
}
