//! Disk space: writes stop before the disk is full and resume automatically once space is free. A
//! reserve ensures that transactions that free space can be logged, and that the checkpoint after
//! them can finish.
//!
//! States of the reserve: held (a file occupies its bytes) → spent (released for a commit or a
//! checkpoint that found no other space) → held again once space is free. While the reserve is
//! spent, writes that grow data are refused, because the space is meant for transactions that free
//! space.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, Vfs};

use crate::disk::layout::RESERVE;

/// Minimum interval between free-space queries.
const QUERY_INTERVAL: Duration = Duration::from_millis(100);
/// Writes resume once free space exceeds this many tenths of the watermark. The margin prevents
/// them from stopping and resuming repeatedly.
const RESUME_TENTHS: u64 = 14;
/// Default watermark: this percentage of the disk, but at most `WATERMARK_BYTES`.
const WATERMARK_PERCENT: u64 = 5;
const WATERMARK_BYTES: u64 = 1 << 30;
/// The reserve's size is at most the disk size divided by this number.
const RESERVE_DIVISOR: u64 = 32;
/// A checkpoint is due once the log exceeds the free space divided by this number. The checkpoint's
/// output then fits regardless of how fast the disk fills up.
const LOG_DIVISOR: u64 = 8;
/// Minimum log size in bytes at which low free space triggers a checkpoint.
const MIN_LOG_BYTES: u64 = 1 << 20;

/// Tracks the free disk space.
#[derive(Debug)]
pub(crate) struct Space {
    /// Free bytes below which nothing is written; by default 5 % of the disk or 1 GiB, whichever
    /// is less.
    watermark: Option<u64>,
    reserve: u64,
    /// Number of bytes that the next checkpoint must rewrite; nothing else may use this space.
    promised: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queried_at: Option<Instant>,
    /// Free bytes at the last query; `None` if the query failed.
    free: Option<u64>,
    /// Whether free space was too low at the last query.
    low: bool,
    /// Bytes missing from the reserve, to be allocated again.
    missing: u64,
    /// Whether the reserve was released and no checkpoint has succeeded since.
    is_reserve_released: bool,
}

impl Space {
    pub(crate) fn new(watermark: Option<u64>, reserve: u64) -> Self {
        let state = State {
            queried_at: None,
            free: None,
            low: false,
            missing: 0,
            is_reserve_released: false,
        };
        Self { watermark, reserve, promised: AtomicU64::new(0), state: Mutex::new(state) }
    }

    fn mark(&self, total: u64) -> u64 {
        self.watermark.unwrap_or((total / 100 * WATERMARK_PERCENT).min(WATERMARK_BYTES))
    }

    /// Queries the free space, unless the last query was less than [`QUERY_INTERVAL`] ago. A failed
    /// query is not reported, because the write itself fails if the disk is full.
    fn query(&self, vfs: &dyn Vfs, state: &mut State) {
        if state.queried_at.is_some_and(|at| at.elapsed() < QUERY_INTERVAL) {
            return;
        }
        state.queried_at = Some(Instant::now());
        let space = vfs.space().ok();
        state.free = space.map(|space| space.free);
        if let Some(space) = space {
            let mark = self.mark(space.total);
            let resume = mark.saturating_mul(RESUME_TENTHS) / 10;
            let min = if state.low { resume } else { mark };
            let retained = state.missing.saturating_add(self.promised());
            state.low = space.free < min.saturating_add(retained);
        }
    }

    /// Whether too little space is free for writes that grow data.
    pub(crate) fn is_low(&self, vfs: &dyn Vfs) -> bool {
        let mut state = self.state.lock();
        self.query(vfs, &mut state);
        state.low || state.is_reserve_released
    }

    /// Refuses writes while too little space is free.
    pub(crate) fn refuse_when_low(&self, vfs: &dyn Vfs) -> EngineResult<()> {
        let mut state = self.state.lock();
        self.query(vfs, &mut state);
        if state.low || state.is_reserve_released {
            return Err(full(state.free.unwrap_or(0)));
        }
        Ok(())
    }

    /// Refuses to write this many bytes if less than the watermark would remain free.
    pub(crate) fn check_free(&self, vfs: &dyn Vfs, bytes: u64) -> EngineResult<()> {
        let missing = {
            let state = self.state.lock();
            if state.is_reserve_released {
                return Err(full(state.free.unwrap_or(0)));
            }
            state.missing
        };
        match vfs.space() {
            Ok(space) => {
                let retained = self.mark(space.total).saturating_add(missing + self.promised());
                let fits = space.free.saturating_sub(bytes) >= retained;
                if fits { Ok(()) } else { Err(full(space.free)) }
            }
            Err(_) => Ok(()),
        }
    }

    /// Sets aside free space for bytes that the next checkpoint must rewrite.
    pub(crate) fn promise(&self, bytes: u64) {
        self.promised.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Releases the space set aside for these bytes, after a checkpoint has written them.
    pub(crate) fn keep_promise(&self, bytes: u64) {
        self.promised.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn promised(&self) -> u64 {
        self.promised.load(Ordering::Relaxed)
    }

    /// Returns the log size in bytes above which a checkpoint is due.
    pub(crate) fn max_log_bytes(&self, vfs: &dyn Vfs, configured: u64) -> u64 {
        let mut state = self.state.lock();
        self.query(vfs, &mut state);
        let limit = state.free.map_or(configured, |free| (free / LOG_DIVISOR).max(MIN_LOG_BYTES));
        configured.min(limit)
    }

    /// Allocates the reserve if it is not held and fits above the watermark. Errors are ignored.
    pub(crate) fn reserve(&self, vfs: &dyn Vfs) {
        let Ok(space) = vfs.space() else { return };
        let bytes = self.reserve.min(space.total / RESERVE_DIVISOR);
        let is_held = || vfs.open(RESERVE, OpenMode::Read).is_ok();
        let mut missing = 0;
        if bytes > 0 && !is_held() {
            let fits = space.free.saturating_sub(bytes) >= self.mark(space.total);
            let create = || vfs.open(RESERVE, OpenMode::CreateNew);
            if !fits || create().and_then(|file| file.allocate(bytes)).is_err() {
                let _ = vfs.unlink(RESERVE);
                missing = bytes;
            }
        }
        let mut state = self.state.lock();
        (state.queried_at, state.missing) = (None, missing);
    }

    /// Allocates a missing reserve again once space is free.
    pub(crate) fn mend_reserve(&self, vfs: &dyn Vfs) {
        let (spent, missing) = {
            let state = self.state.lock();
            (state.is_reserve_released, state.missing)
        };
        if missing > 0 && !spent {
            self.reserve(vfs);
        }
    }

    /// Releases the reserve for a transaction that frees space; returns whether there was a
    /// reserve.
    pub(crate) fn release_reserve(&self, vfs: &dyn Vfs) -> bool {
        let spent = vfs.unlink(RESERVE).is_ok();
        if spent {
            self.state.lock().is_reserve_released = true;
        }
        spent
    }

    /// Whether the reserve was released and a checkpoint must follow.
    pub(crate) fn is_reserve_released(&self) -> bool {
        self.state.lock().is_reserve_released
    }

    /// Allocates the reserve again after a successful checkpoint, which has freed the space.
    pub(crate) fn restore(&self, vfs: &dyn Vfs) {
        self.state.lock().is_reserve_released = false;
        self.reserve(vfs);
    }
}

fn full(free: u64) -> EngineError {
    let message = format!("disk full: {} MiB are free; writes are paused", free >> 20);
    EngineError::new(ErrorCode::DiskFull, message).with_hint(
        "free disk space, for example with DROP or TRUNCATE: writes resume automatically; see \
         disk.watermark",
    )
}
