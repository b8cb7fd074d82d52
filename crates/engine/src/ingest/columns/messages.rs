//! Messages between the socket that brings them and the thread that reads them. They stay on this
//! side of the border: JavaScript only knows how many there are.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;

/// Messages of one connection that are not read yet, in their order.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
}

impl Messages {
    /// Adds those that came.
    pub fn add(&self, messages: impl IntoIterator<Item = Bytes>) {
        let mut waiting = self.0.lock();
        for message in messages {
            waiting.bytes += message.len();
            waiting.messages.push_back(message);
        }
    }

    /// How many there are, and their bytes.
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
