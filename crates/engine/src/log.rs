//! Log lines on their way to TypeScript: queued, never blocking, handed over in batches.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use serde::Serialize;

/// Lines kept while nobody takes them; older ones are dropped and counted.
const MAX_QUEUED_LINES: usize = 10_000;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Someone must act.
    Error,
    /// Degraded.
    Warn,
    /// Lifecycle.
    Info,
    /// Statements.
    Debug,
}

/// One event.
#[derive(Debug, Clone, Serialize)]
pub struct LogLine {
    /// Its level.
    pub level: Level,
    /// The crate or part it comes from.
    pub component: &'static str,
    /// What happened.
    pub event: &'static str,
    /// Ids, durations in milliseconds, names.
    pub fields: serde_json::Value,
}

#[derive(Default)]
struct Queue {
    lines: Mutex<Vec<LogLine>>,
    ready: Condvar,
    dropped: AtomicU64,
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
    let queue = queue();
    let mut lines = queue.lines.lock();
    if lines.len() >= MAX_QUEUED_LINES {
        queue.dropped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    lines.push(LogLine { level, component, event, fields });
    queue.ready.notify_one();
}

/// Waits for lines and takes them all. For one thread of the border.
pub fn take_batch() -> Vec<LogLine> {
    let queue = queue();
    let mut lines = queue.lines.lock();
    while lines.is_empty() {
        queue.ready.wait(&mut lines);
    }
    std::mem::take(&mut *lines)
}

/// Lines lost because nobody took them in time.
pub fn dropped_lines() -> u64 {
    queue().dropped.load(Ordering::Relaxed)
}
