//! Room on the disk: writes stop before it is full and go on by themselves when there is room
//! again; a reserve lets what frees room be logged, and the checkpoint after it finish.
//!
//! States of the reserve: held (a file that takes its bytes) → spent (given back, for a commit or
//! a checkpoint that found no other room) → held again once there is room for it. While it is
//! spent nothing that grows is taken: its room is for what frees some.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, Vfs};

use crate::disk::layout::RESERVE;

/// The disk is asked at most this often.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Writes go on above so many tenths of the watermark: not to and fro at its edge.
const RESUME_TENTHS: u64 = 14;
/// The watermark by default: this share of the disk in percent, and at most so many bytes.
const WATERMARK_PERCENT: u64 = 5;
const WATERMARK_BYTES: u64 = 1 << 30;
/// The reserve takes at most one part in so many of the disk.
const RESERVE_SHARE: u64 = 32;
/// A checkpoint is due once the log has one part in so many of what is free: what it writes must
/// find room, however fast the disk fills.
const LOG_SHARE: u64 = 8;
/// It is not due before the log has so many bytes, however little is free.
const MIN_LOG_BYTES: u64 = 1 << 20;

/// What is known of the room.
#[derive(Debug)]
pub(crate) struct Space {
    /// Free bytes below which nothing is written; by default 5 % of the disk or 1 GiB, whichever
    /// is less.
    watermark: Option<u64>,
    reserve: u64,
    /// Bytes that the next checkpoint has to write anew, and that nothing else may take.
    promised: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    asked: Option<Instant>,
    /// Free bytes at the last look; unknown where the disk did not answer.
    free: Option<u64>,
    /// Whether there was too little.
    low: bool,
    /// Bytes of the reserve that are to be taken again.
    missing: u64,
    /// Whether the reserve was given back and no checkpoint succeeded since.
    spent: bool,
}

impl Space {
    pub(crate) fn new(watermark: Option<u64>, reserve: u64) -> Self {
        let state = State { asked: None, free: None, low: false, missing: 0, spent: false };
        Self { watermark, reserve, promised: AtomicU64::new(0), state: Mutex::new(state) }
    }

    fn mark(&self, total: u64) -> u64 {
        self.watermark.unwrap_or((total / 100 * WATERMARK_PERCENT).min(WATERMARK_BYTES))
    }

    /// Asks the disk, unless it was asked just now. One that does not answer has room: the write
    /// itself will say otherwise.
    fn look(&self, vfs: &dyn Vfs, state: &mut State) {
        if state.asked.is_some_and(|asked| asked.elapsed() < ASK_EVERY) {
            return;
        }
        state.asked = Some(Instant::now());
        let space = vfs.space().ok();
        state.free = space.map(|space| space.free);
        if let Some(space) = space {
            let mark = self.mark(space.total);
            let resume = mark.saturating_mul(RESUME_TENTHS) / 10;
            let least = if state.low { resume } else { mark };
            let kept = state.missing.saturating_add(self.promised());
            state.low = space.free < least.saturating_add(kept);
        }
    }

    /// Whether there is too little room to write what grows.
    pub(crate) fn is_low(&self, vfs: &dyn Vfs) -> bool {
        let mut state = self.state.lock();
        self.look(vfs, &mut state);
        state.low || state.spent
    }

    /// Refuses writes while there is too little room.
    pub(crate) fn refuse_when_low(&self, vfs: &dyn Vfs) -> EngineResult<()> {
        let mut state = self.state.lock();
        self.look(vfs, &mut state);
        if state.low || state.spent {
            return Err(full(state.free.unwrap_or(0)));
        }
        Ok(())
    }

    /// Refuses to write so many bytes at once where they would leave less than the watermark.
    pub(crate) fn refuse_beyond(&self, vfs: &dyn Vfs, bytes: u64) -> EngineResult<()> {
        let missing = {
            let state = self.state.lock();
            if state.spent {
                return Err(full(state.free.unwrap_or(0)));
            }
            state.missing
        };
        match vfs.space() {
            Ok(space) => {
                let kept = self.mark(space.total).saturating_add(missing + self.promised());
                let fits = space.free.saturating_sub(bytes) >= kept;
                if fits { Ok(()) } else { Err(full(space.free)) }
            }
            Err(_) => Ok(()),
        }
    }

    /// The next checkpoint has to write so many bytes anew.
    pub(crate) fn promise(&self, bytes: u64) {
        self.promised.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It did.
    pub(crate) fn keep_promise(&self, bytes: u64) {
        self.promised.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn promised(&self) -> u64 {
        self.promised.load(Ordering::Relaxed)
    }

    /// Bytes of the log after which a checkpoint is due.
    pub(crate) fn most_log(&self, vfs: &dyn Vfs, wanted: u64) -> u64 {
        let mut state = self.state.lock();
        self.look(vfs, &mut state);
        let share = state.free.map_or(wanted, |free| (free / LOG_SHARE).max(MIN_LOG_BYTES));
        wanted.min(share)
    }

    /// Takes the room that is kept for what frees some, where it is not held and there is room
    /// for it above the watermark. Best effort.
    pub(crate) fn reserve(&self, vfs: &dyn Vfs) {
        let Ok(space) = vfs.space() else { return };
        let bytes = self.reserve.min(space.total / RESERVE_SHARE);
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
        (state.asked, state.missing) = (None, missing);
    }

    /// Takes the reserve again once there is room for it.
    pub(crate) fn mend_reserve(&self, vfs: &dyn Vfs) {
        let (spent, missing) = {
            let state = self.state.lock();
            (state.spent, state.missing)
        };
        if missing > 0 && !spent {
            self.reserve(vfs);
        }
    }

    /// Gives the reserved room back for what frees some; whether there was any.
    pub(crate) fn spend(&self, vfs: &dyn Vfs) -> bool {
        let spent = vfs.unlink(RESERVE).is_ok();
        if spent {
            self.state.lock().spent = true;
        }
        spent
    }

    /// Whether the reserve was given back and a checkpoint has to follow.
    pub(crate) fn is_spent(&self) -> bool {
        self.state.lock().spent
    }

    /// A checkpoint succeeded: what was to be freed is.
    pub(crate) fn restore(&self, vfs: &dyn Vfs) {
        self.state.lock().spent = false;
        self.reserve(vfs);
    }
}

fn full(free: u64) -> EngineError {
    let message = format!("disk full: {} MiB are free, writes have stopped", free >> 20);
    EngineError::new(ErrorCode::DiskFull, message).with_hint(
        "free some room, for instance by DROP or TRUNCATE: writes go on by themselves then; see \
         disk.watermark",
    )
}
