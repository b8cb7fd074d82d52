//! A queue that records whether a worker is processing it.

use std::collections::VecDeque;

use parking_lot::Mutex;

pub(super) struct Queue<T> {
    waiting: VecDeque<T>,
    is_worked_on: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Mutex<Self> {
        Mutex::new(Self { waiting: VecDeque::new(), is_worked_on: false })
    }

    /// Appends an item; returns true if the caller must start a worker.
    pub(super) fn add(&mut self, one: T) -> bool {
        self.waiting.push_back(one);
        !std::mem::replace(&mut self.is_worked_on, true)
    }

    /// Takes the first item. If the queue is empty, records that the worker has finished.
    pub(super) fn next(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        self.is_worked_on = next.is_some();
        next
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
