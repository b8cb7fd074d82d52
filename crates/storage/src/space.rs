//! Room on the disk: writes stop before it is full and go on by themselves when there is room
//! again; a reserve lets the last checkpoint finish.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, Vfs};

use crate::layout::RESERVE;

/// The disk is asked at most this often.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Writes go on above so many tenths of the watermark: not to and fro at its edge.
const RESUME_TENTHS: u64 = 14;
/// The watermark by default: this share of the disk in percent, and at most so many bytes.
const WATERMARK_PERCENT: u64 = 5;
const WATERMARK_BYTES: u64 = 1 << 30;
/// The reserve takes at most this share of the disk.
const RESERVE_SHARE: u64 = 50;

/// What is known of the room.
#[derive(Debug)]
pub(crate) struct Space {
    /// Free bytes below which nothing is written; by default 5 % of the disk or 1 GiB, whichever
    /// is less.
    watermark: Option<u64>,
    reserve: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    asked: Option<Instant>,
    /// Free bytes when writes stopped.
    low: Option<u64>,
}

impl Space {
    pub(crate) fn new(watermark: Option<u64>, reserve: u64) -> Self {
        Self { watermark, reserve, state: Mutex::new(State { asked: None, low: None }) }
    }

    /// Refuses writes while there is too little room. A disk that does not answer has room: the
    /// write itself will say otherwise.
    pub(crate) fn refuse_when_low(&self, vfs: &dyn Vfs) -> EngineResult<()> {
        let mut state = self.state.lock();
        if state.asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
            state.asked = Some(Instant::now());
            if let Ok(space) = vfs.space() {
                let share = space.total / 100 * WATERMARK_PERCENT;
                let mark = self.watermark.unwrap_or(share.min(WATERMARK_BYTES));
                let resume = mark.saturating_mul(RESUME_TENTHS) / 10;
                let is_low = space.free < if state.low.is_some() { resume } else { mark };
                state.low = is_low.then_some(space.free);
            }
        }
        match state.low {
            None => Ok(()),
            Some(free) => Err(EngineError::new(
                ErrorCode::DiskFull,
                format!("disk full: {} MiB are free, writes have stopped", free >> 20),
            )
            .with_hint("free some room: writes go on by themselves then; see disk.watermark")),
        }
    }

    /// Takes the room that a checkpoint may need when there is no other. Best effort.
    pub(crate) fn reserve(&self, vfs: &dyn Vfs) {
        let Ok(space) = vfs.space() else { return };
        let bytes = self.reserve.min(space.total / RESERVE_SHARE);
        // Never what writes would miss at once.
        if bytes == 0 || space.free / 4 < bytes || vfs.open(RESERVE, OpenMode::Read).is_ok() {
            return;
        }
        let taken = vfs.open(RESERVE, OpenMode::CreateNew).and_then(|file| file.allocate(bytes));
        if taken.is_err() {
            let _ = vfs.unlink(RESERVE);
        }
    }

    /// Gives the reserved room back; whether there was any.
    pub(crate) fn release(vfs: &dyn Vfs) -> bool {
        vfs.unlink(RESERVE).is_ok()
    }
}
