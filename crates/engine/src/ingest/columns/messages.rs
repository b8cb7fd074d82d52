//! Message queue between the socket and the reading thread. The messages stay on the Rust side of
//! the border: JavaScript only knows how many there are.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;

/// Unread messages of one connection, in order.
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

    /// Returns how many messages are unread, and their total bytes.
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
