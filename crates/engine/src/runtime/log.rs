//! Passes log lines to TypeScript. Lines are queued without blocking and delivered in batches.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
pub use tidemark_border::{LogLevel as Level, LogLine};

/// Maximum number of queued lines. Further lines are dropped and counted.
const MAX_QUEUED_LINES: usize = 10_000;

#[derive(Default)]
struct Lines {
    waiting: Vec<LogLine>,
    /// Number of batches that a reader has taken but not delivered yet.
    on_their_way: usize,
    /// Whether a reader is taking lines.
    is_read: bool,
}

#[derive(Default)]
struct Queue {
    lines: Mutex<Lines>,
    ready: Condvar,
    delivered: Condvar,
    dropped: AtomicU64,
}

impl Queue {
    fn write(&self, line: LogLine) {
        let mut lines = self.lines.lock();
        if lines.waiting.len() >= MAX_QUEUED_LINES {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        lines.waiting.push(line);
        self.ready.notify_one();
    }

    fn take_batch(&self) -> Vec<LogLine> {
        let mut lines = self.lines.lock();
        lines.is_read = true;
        while lines.waiting.is_empty() {
            self.ready.wait(&mut lines);
        }
        lines.on_their_way += 1;
        std::mem::take(&mut lines.waiting)
    }

    fn delivered(&self) {
        self.lines.lock().on_their_way -= 1;
        self.delivered.notify_all();
    }

    fn wait_until_delivered(&self, patience: Duration) -> bool {
        let is_left = |lines: &mut Lines| {
            lines.is_read && (lines.on_their_way > 0 || !lines.waiting.is_empty())
        };
        !self.delivered.wait_while_for(&mut self.lines.lock(), is_left, patience).timed_out()
    }
}

fn queue() -> &'static Queue {
    static QUEUE: OnceLock<Queue> = OnceLock::new();
    QUEUE.get_or_init(Queue::default)
}

/// Queues a line.
pub fn write(
    level: Level,
    component: &'static str,
    event: &'static str,
    fields: serde_json::Value,
) {
    queue().write(LogLine { level, component, event, fields });
}

/// Waits for lines and takes all of them. One thread of the border calls this function, and calls
/// [`delivered`] once per batch.
pub fn take_batch() -> Vec<LogLine> {
    queue().take_batch()
}

/// Records that a batch has been delivered or never will be.
pub fn delivered() {
    queue().delivered();
}

/// Waits until every line written so far is delivered, because undelivered lines are lost when the
/// process exits. Waits at most `patience`; returns false if some lines remain. Returns immediately
/// if there is no reader.
pub fn wait_until_delivered(patience: Duration) -> bool {
    queue().wait_until_delivered(patience)
}

/// Returns the number of lines dropped because no reader took them before the queue was full.
pub fn dropped_lines() -> u64 {
    queue().dropped.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn line(event: &'static str) -> LogLine {
        LogLine { level: Level::Info, component: "test", event, fields: serde_json::Value::Null }
    }

    #[test]
    fn a_line_counts_as_delivered_only_after_the_reader_confirms_it() {
        let queue = Queue::default();
        queue.write(line("first"));
        assert!(queue.wait_until_delivered(SHORT), "there is no reader");
        assert_eq!(queue.take_batch().len(), 1);
        assert!(!queue.wait_until_delivered(SHORT), "the line was taken but not delivered");
        queue.delivered();
        assert!(queue.wait_until_delivered(SHORT));
        queue.write(line("second"));
        assert!(!queue.wait_until_delivered(SHORT), "no reader took the line");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.take_batch();
                std::thread::sleep(SHORT);
                queue.delivered();
            });
            assert!(queue.wait_until_delivered(Duration::from_mins(1)));
        });
    }
}
