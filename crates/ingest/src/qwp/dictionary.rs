//! A connection's symbols, keyed by the ids that the client assigned.

use super::QwpFailure;
use super::QwpStatus;
use super::bytes::Bytes;
use super::options::QwpOptions;

/// Maximum number of entries in a connection's or column's dictionary.
pub(super) const MAX_ENTRIES: usize = 2_000_000;

#[derive(Debug, Default)]
pub(super) struct Dictionary {
    texts: String,
    ends: Vec<usize>,
    /// For each entry, the last column that used it, and the entry's key in that column. Used by
    /// [`Self::compact`].
    last_uses: Vec<(u32, i32)>,
    column: u32,
}

/// Symbols of one column: the entries that the column contains, and the key of each value.
pub(super) struct Compact {
    pub(super) keys: Vec<i32>,
    /// Ids in the dictionary.
    pub(super) entries: Vec<u32>,
}

impl Dictionary {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the dictionary's memory use in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.texts.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.last_uses.capacity() * size_of::<(u32, i32)>()
    }

    pub(super) fn get(&self, entry: u32) -> &str {
        let at = entry as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.texts[start..self.ends[at]]
    }

    /// Adds a message's new entries. The message may repeat known entries unchanged.
    pub(super) fn extend(
        &mut self,
        bytes: &mut Bytes<'_>,
        options: &QwpOptions,
    ) -> Result<(), QwpFailure> {
        let start = bytes.varint("first dictionary entry")?;
        let count = bytes.count("dictionary entries", MAX_ENTRIES, "limit")?;
        let known = self.len() as u64;
        if start > known {
            return Err(QwpFailure::refused(
                QwpStatus::DictionaryGap,
                format!("the dictionary has {known} entries, but the new entries start at {start}"),
            ));
        }
        let start = start as usize;
        if start + count > MAX_ENTRIES {
            let reason = format!("the dictionary is full [entries={MAX_ENTRIES}]");
            return Err(bytes.malformed(reason).into());
        }
        for at in start..start + count {
            let text = bytes.text("dictionary entry")?;
            if at < self.len() {
                if self.get(at as u32) != text {
                    let reason = format!("dictionary entry {at} already has a different value");
                    return Err(bytes.malformed(reason).into());
                }
            } else {
                self.add(bytes, text, options)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        bytes: &Bytes<'_>,
        text: &str,
        options: &QwpOptions,
    ) -> Result<(), QwpFailure> {
        let limit = options.max_dictionary_bytes;
        if self.texts.len() + text.len() > limit {
            let reason = format!("the dictionary is too large [qwp.max.dictionary.size={limit}]");
            return Err(bytes.malformed(reason).into());
        }
        self.push(text);
        Ok(())
    }

    /// Adds an entry. Its memory must have been reserved.
    pub(super) fn push(&mut self, text: &str) {
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
    }

    /// Compacts the symbols of one column. All its ids must be known entries.
    pub(super) fn compact(&mut self, column: &[u32]) -> Compact {
        self.last_uses.resize(self.len(), (0, 0));
        self.column = self.column.wrapping_add(1);
        if self.column == 0 {
            // After the counter wraps around, old entries would appear to be current.
            self.last_uses.fill((0, 0));
            self.column = 1;
        }
        let mut entries = Vec::new();
        let mut position = |entry: u32| {
            let position = &mut self.last_uses[entry as usize];
            if position.0 != self.column {
                *position = (self.column, entries.len() as i32);
                entries.push(entry);
            }
            position.1
        };
        let keys = column.iter().map(|entry| position(*entry)).collect();
        Compact { keys, entries }
    }
}
