//! Information that binding requests before it can finish.

use tidemark_border::TextAsk;

use crate::access::Access;

/// The information required to bind a statement, which is then bound again with the answers.
#[derive(Debug, Clone, Default)]
pub struct Questions {
    /// Accesses whose permission is unknown.
    pub accesses: Vec<Access>,
    /// Text files whose schema is unknown.
    pub texts: Vec<TextAsk>,
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.texts.is_empty()
    }
}
