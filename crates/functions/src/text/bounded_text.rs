//! A text while it is written. It asks before it grows, and where the query may hold no more it
//! stops growing: its writers need not check, the caller that takes it does.

use std::fmt;

use tidemark_types::{EngineError, EngineResult, ErrorCode, account};

/// Bytes up to which a text grows without asking.
const FREE_BYTES: usize = 64 << 10;
/// Bytes of a text, at most: what protocols carry in one value.
const MAX_BYTES: usize = 1 << 30;

/// A text that is no longer than the query may hold.
#[derive(Debug, Default)]
pub(crate) struct BoundedText {
    text: String,
    refused: Option<EngineError>,
}

impl BoundedText {
    /// Whether so many bytes more are too many. The text calls it before it grows, and so does a
    /// caller that makes a text of that size to add it.
    pub(crate) fn refuses(&mut self, more: usize) -> bool {
        if self.refused.is_some() {
            return true;
        }
        let needed = self.text.len().saturating_add(more);
        if needed <= self.text.capacity() {
            return false;
        }
        let wanted = needed.max(2 * self.text.capacity());
        if wanted > FREE_BYTES {
            let asked = if needed > MAX_BYTES { Err(too_long()) } else { account::room(wanted) };
            self.refused = asked.err();
            if self.refused.is_some() {
                return true;
            }
        }
        self.text.reserve_exact(wanted - self.text.len());
        false
    }

    /// Adds a text.
    #[inline]
    pub(crate) fn push_str(&mut self, more: &str) {
        if !self.refuses(more.len()) {
            self.text.push_str(more);
        }
    }

    /// Adds a character.
    #[inline]
    pub(crate) fn push(&mut self, more: char) {
        if !self.refuses(more.len_utf8()) {
            self.text.push(more);
        }
    }

    /// Adds a text and changes it where it is.
    #[inline]
    pub(crate) fn push_changed(&mut self, more: &str, change: fn(&mut str)) {
        if !self.refuses(more.len()) {
            let start = self.text.len();
            self.text.push_str(more);
            change(&mut self.text[start..]);
        }
    }

    /// The text, unless it would have become too long.
    pub(crate) fn get(&self) -> EngineResult<&str> {
        match &self.refused {
            None => Ok(&self.text),
            Some(error) => Err(error.clone()),
        }
    }

    /// Bytes that it holds.
    pub(crate) fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
    }
}

fn too_long() -> EngineError {
    let message = format!("a text may have at most {} MiB", MAX_BYTES >> 20);
    EngineError::new(ErrorCode::ResourceLimit, message)
}

impl Extend<char> for BoundedText {
    fn extend<I: IntoIterator<Item = char>>(&mut self, more: I) {
        for letter in more {
            if self.refuses(letter.len_utf8()) {
                return;
            }
            self.text.push(letter);
        }
    }
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_up_to_the_querys_share() {
        let account = account::Account::new(1 << 20, || None);
        let _entered = account.enter();
        let mut text = BoundedText::default();
        for _ in 0..100 {
            text.push_str(&"x".repeat(1 << 20));
        }
        // Without a counting allocator only what is asked for at once counts: it doubles.
        assert!(text.get().unwrap_err().message.contains("query.memory.limit"));
        assert!(text.capacity() <= 33 << 20, "{}", text.capacity());
        text.push('y');
        assert!(text.get().is_err());
    }
}
