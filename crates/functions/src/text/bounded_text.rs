//! A string builder with a memory limit.
//!
//! It reserves memory before it grows and stops growing at the query's limit. Code that appends
//! does not check the limit; the caller that reads the string does.

use std::fmt;

use tidemark_types::{EngineError, EngineResult, ErrorCode, account};

/// Size in bytes a string may reach without a reservation.
const FREE_BYTES: usize = 64 << 10;
/// Maximum size of a string in bytes, which is also the largest value that protocols can transfer.
const MAX_BYTES: usize = 1 << 30;

/// A string that cannot exceed the query's memory limit.
#[derive(Debug, Default)]
pub(crate) struct BoundedText {
    text: String,
    refused: Option<EngineError>,
}

impl BoundedText {
    /// Whether the string cannot grow by `more` bytes. Called before the string grows, and by
    /// callers before they build a string of that size in order to append it.
    pub(crate) fn refuses(&mut self, more: usize) -> bool {
        if self.refused.is_some() {
            return true;
        }
        let needed = self.text.len().saturating_add(more);
        if needed <= self.text.capacity() {
            return false;
        }
        let required = needed.max(2 * self.text.capacity());
        if required > FREE_BYTES {
            let requested = if needed > MAX_BYTES {
                Err(too_long())
            } else {
                account::check_allocation(required)
            };
            self.refused = requested.err();
            if self.refused.is_some() {
                return true;
            }
        }
        self.text.reserve_exact(required - self.text.len());
        false
    }

    /// Appends a string.
    #[inline]
    pub(crate) fn push_str(&mut self, more: &str) {
        if !self.refuses(more.len()) {
            self.text.push_str(more);
        }
    }

    /// Appends a character.
    #[inline]
    pub(crate) fn push(&mut self, more: char) {
        if !self.refuses(more.len_utf8()) {
            self.text.push(more);
        }
    }

    /// Appends a string and modifies the appended bytes in place.
    #[inline]
    pub(crate) fn push_changed(&mut self, more: &str, change: fn(&mut str)) {
        if !self.refuses(more.len()) {
            let start = self.text.len();
            self.text.push_str(more);
            change(&mut self.text[start..]);
        }
    }

    /// Returns the string, or an error if it would have exceeded the limit.
    pub(crate) fn get(&self) -> EngineResult<&str> {
        match &self.refused {
            None => Ok(&self.text),
            Some(error) => Err(error.clone()),
        }
    }

    /// Returns the number of allocated bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Clears the string.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
    }
}

fn too_long() -> EngineError {
    let message = format!("the string is too long: at most {} MiB are allowed", MAX_BYTES >> 20);
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
    fn a_string_can_grow_up_to_the_query_memory_limit() {
        let account = account::Account::new(1 << 20, || None);
        let _entered = account.enter();
        let mut text = BoundedText::default();
        for _ in 0..100 {
            text.push_str(&"x".repeat(1 << 20));
        }
        // Without a counting allocator, only the size of each reservation is compared with the
        // limit. Each reservation is twice as large as the one before.
        assert!(text.get().unwrap_err().message.contains("query.memory.limit"));
        assert!(text.capacity() <= 33 << 20, "{}", text.capacity());
        text.push('y');
        assert!(text.get().is_err());
    }
}
