//! Memory used by committed rows that are not yet in a segment. Writes are slowed as this memory
//! runs low and refused when it runs out, until a checkpoint has written the rows. A monitor of the
//! whole process may also slow or refuse writes.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// Maximum delay of a write at the low mark: long enough for checkpoints to catch up.
const SLOW_DOWN: Duration = Duration::from_millis(200);
/// Maximum time a write waits at the high mark before it is refused.
const PATIENCE: Duration = Duration::from_secs(5);
/// Polling interval for a waiting write.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Memory pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pressure {
    /// Enough memory.
    None,
    /// Writes are slowed.
    Low,
    /// Writes are refused.
    High,
}

/// Memory use and its limit.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Size in bytes of the log records whose rows no checkpoint has written to segments yet. The
    /// rows in memory are about the same size.
    unwritten: AtomicU64,
    /// Writes are slowed above half of this limit and refused above it.
    limit: u64,
    /// Pressure reported for the whole process.
    outside: AtomicU8,
    /// Whether a checkpoint can run while a write waits.
    may_wait: bool,
    lock: Mutex<()>,
    relieved: Condvar,
}

impl Memory {
    pub(crate) fn new(limit: u64, may_wait: bool) -> Self {
        Self {
            unwritten: AtomicU64::new(0),
            limit,
            outside: AtomicU8::new(Pressure::None as u8),
            may_wait,
            lock: Mutex::new(()),
            relieved: Condvar::new(),
        }
    }

    /// Size in bytes of rows that are only in memory and in the log.
    pub(crate) fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.unwritten.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts bytes that a checkpoint wrote.
    pub(crate) fn remove(&self, bytes: u64) {
        self.unwritten.fetch_sub(bytes, Ordering::Relaxed);
        let _guard = self.lock.lock();
        self.relieved.notify_all();
    }

    pub(crate) fn set_outside(&self, pressure: Pressure) {
        self.outside.store(pressure as u8, Ordering::Relaxed);
    }

    fn own(&self) -> Pressure {
        match self.unwritten() {
            bytes if bytes >= self.limit => Pressure::High,
            bytes if bytes >= self.limit / 2 => Pressure::Low,
            _ => Pressure::None,
        }
    }

    fn pressure(&self) -> Pressure {
        let outside = match self.outside.load(Ordering::Relaxed) {
            0 => Pressure::None,
            1 => Pressure::Low,
            _ => Pressure::High,
        };
        outside.max(self.own())
    }

    /// Admits a write that allocates memory. Delays or refuses it while memory is short.
    /// `make_room` requests a checkpoint.
    pub(crate) fn admit(&self, make_room: impl Fn()) -> EngineResult<()> {
        let mut began = None;
        loop {
            let pressure = self.pressure();
            if pressure == Pressure::None {
                return Ok(());
            }
            let max = if pressure == Pressure::High { PATIENCE } else { SLOW_DOWN };
            let waited = began.get_or_insert_with(Instant::now).elapsed();
            if !self.may_wait || waited >= max {
                return if pressure == Pressure::Low { Ok(()) } else { Err(self.refusal()) };
            }
            make_room();
            self.relieved.wait_for(&mut self.lock.lock(), POLL_INTERVAL);
        }
    }

    fn refusal(&self) -> EngineError {
        let message = if self.own() == Pressure::High {
            let (unwritten, limit) = (self.unwritten() >> 20, self.limit >> 20);
            format!(
                "memory is full: {unwritten} MiB of rows are not yet written to segments, and at \
                 most {limit} MiB are allowed; writes are paused"
            )
        } else {
            "memory is full: the server is using nearly all of its memory; writes are paused"
                .to_owned()
        };
        EngineError::new(ErrorCode::OutOfMemory, message).with_hint(
            "retry later: writes resume automatically; see cairo.unwritten.limit and memory.limit",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn writes_are_throttled_then_refused_then_accepted_again() {
        let memory = Memory::new(100, true);
        memory.add(49);
        memory.admit(|| panic!("memory is sufficient")).unwrap();
        memory.add(1);
        let began = Instant::now();
        memory.admit(|| ()).unwrap();
        assert!(began.elapsed() >= SLOW_DOWN, "slowed");
        memory.add(50);
        let error = memory.admit(|| ()).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutOfMemory);
        assert!(error.retryable && error.message.starts_with("memory is full: 0 MiB of rows"));
        let requested = Cell::new(0);
        let make_room = || {
            requested.set(requested.get() + 1);
            memory.remove(90);
        };
        memory.admit(make_room).unwrap();
        assert_eq!(
            (requested.get(), memory.unwritten()),
            (1, 10),
            "the write is accepted once memory is free"
        );
    }

    #[test]
    fn writes_are_also_refused_under_process_memory_pressure() {
        let memory = Memory::new(100, false);
        memory.set_outside(Pressure::Low);
        memory.admit(|| ()).unwrap();
        memory.set_outside(Pressure::High);
        let error = memory.admit(|| ()).unwrap_err();
        assert!(error.message.starts_with("memory is full: the server is using"), "{error}");
        memory.set_outside(Pressure::None);
        memory.admit(|| ()).unwrap();
    }
}
