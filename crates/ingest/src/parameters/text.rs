//! Values sent in text format.

use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// Parses `PostgreSQL`'s boolean words.
pub(crate) fn truth(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["t", "true", "y", "yes", "on", "1"]) {
        return Some(true);
    }
    is(&["f", "false", "n", "no", "off", "0"]).then_some(false)
}

/// Validates wire-protocol text, which must be UTF-8 without NUL bytes.
pub(super) fn text_of(bytes: &[u8]) -> EngineResult<&str> {
    let text = std::str::from_utf8(bytes).ok().filter(|_| !bytes.contains(&0));
    text.ok_or_else(|| {
        let what = if bytes.contains(&0) { ": 0x00" } else { "" };
        EngineError::new(
            ErrorCode::InvalidEncoding,
            format!("invalid byte sequence for encoding \"UTF8\"{what}"),
        )
    })
}
