//! The storage's own thread: flushes in `async` mode, checkpoints when it is time.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tidemark_types::{EngineError, EngineResult};

use crate::storage::{Background, Storage};

/// Longest sleep: bounds how late a time-driven checkpoint starts.
const POLL: Duration = Duration::from_millis(250);

/// How often writing anew is tried again after a failed sync.
const MENDING: Duration = Duration::from_millis(500);

/// How often the clock may end a partition's time to live.
const EXPIRY: Duration = Duration::from_mins(1);

pub(crate) fn start(storage: &Arc<Storage>, background: Arc<Background>) -> EngineResult<()> {
    let weak = Arc::downgrade(storage);
    let flush_after = Duration::from_millis(storage.options().async_flush_ms);
    let checkpoint_after = Duration::from_millis(storage.options().checkpoint_interval_ms);
    let thread = std::thread::Builder::new().name("tidemark-storage".into());
    let spawned = thread.spawn(move || run(&weak, &background, flush_after, checkpoint_after));
    spawned.map(drop).map_err(|error| EngineError::io("the storage thread", &error))
}

/// Holds the storage only while it works for it, so that dropping the last handle closes it.
fn run(
    storage: &Weak<Storage>,
    background: &Background,
    flush_after: Duration,
    checkpoint_after: Duration,
) {
    let mut last_checkpoint = Instant::now();
    let mut last_expiry = Instant::now();
    let mut flush_at: Option<Instant> = None;
    loop {
        let checkpoint = {
            let mut wanted = background.wanted.lock();
            if !(wanted.stop || wanted.checkpoint || wanted.flush) {
                let flush_in = flush_at.map(|at| at.saturating_duration_since(Instant::now()));
                background.wake.wait_for(&mut wanted, flush_in.unwrap_or(POLL).min(POLL));
            }
            if wanted.stop {
                return;
            }
            if std::mem::take(&mut wanted.flush) {
                flush_at.get_or_insert_with(|| Instant::now() + flush_after / 2);
            }
            std::mem::take(&mut wanted.checkpoint)
        };
        let Some(storage) = storage.upgrade() else { return };
        // A failure shows in the next commit: flush and checkpoint refuse writes when they must;
        // otherwise the next round tries again.
        if flush_at.is_some_and(|at| at <= Instant::now()) {
            flush_at = None;
            let _ = storage.flush();
        }
        if last_expiry.elapsed() >= EXPIRY {
            let _ = storage.expire();
            last_expiry = Instant::now();
        }
        let mends = storage.is_suspended() && last_checkpoint.elapsed() >= MENDING;
        if checkpoint || mends || last_checkpoint.elapsed() >= checkpoint_after {
            let _ = storage.checkpoint();
            last_checkpoint = Instant::now();
        }
    }
}
