//! What binding asks before it is done.

use tidemark_border::TextAsk;

use crate::access::Access;

/// What must be known before a statement can be bound: it is bound again with the answers.
#[derive(Debug, Clone, Default)]
pub struct Questions {
    /// What must be granted, and is not known to be.
    pub accesses: Vec<Access>,
    /// The texts whose shape is not known.
    pub texts: Vec<TextAsk>,
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.texts.is_empty()
    }
}
