//! Information that the binder requests before it can finish.

use tidemark_border::TextFormatRequest;

use crate::access::Access;

/// Information that the binder lacks. The statement is bound again once the answers are known.
#[derive(Debug, Clone, Default)]
pub struct BindRequests {
    /// Accesses for which the user's permission is unknown.
    pub accesses: Vec<Access>,
    /// Text files whose schema is unknown.
    pub texts: Vec<TextFormatRequest>,
}

impl BindRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.texts.is_empty()
    }
}
