//! Message queue between the socket and the reading thread. The messages stay in Rust memory, and
//! JavaScript receives only their count.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;

/// The unread messages of one connection, in order of arrival.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
}

impl Messages {
    /// Appends received messages.
    pub fn add(&self, messages: impl IntoIterator<Item = Bytes>) {
        let mut waiting = self.0.lock();
        for message in messages {
            waiting.bytes += message.len();
            waiting.messages.push_back(message);
        }
    }

    /// Returns the number of unread messages and their total size in bytes.
    pub fn left(&self) -> (usize, usize) {
        let waiting = self.0.lock();
        (waiting.messages.len(), waiting.bytes)
    }

    pub(super) fn next(&self) -> Option<Bytes> {
        let mut waiting = self.0.lock();
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        Some(message)
    }
}
