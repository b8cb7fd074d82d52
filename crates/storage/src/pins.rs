//! Which snapshots readers still hold: what keeps old files from being removed.

use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::snapshot::Snapshot;

/// A snapshot that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedSnapshot {
    /// Its [`Snapshot::epoch`].
    pub epoch: u64,
    /// The last transaction it shows.
    pub lsn: u64,
    /// When it became the newest one, microseconds since 1970.
    pub published_micros: i64,
    /// How many hold it.
    pub readers: usize,
}

#[derive(Debug)]
struct Pin {
    snapshot: Weak<Snapshot>,
    published_micros: i64,
}

#[derive(Debug, Default)]
struct Known {
    /// Snapshots that were held when the next one was published.
    pins: Vec<Pin>,
    /// When the newest snapshot was published.
    newest_micros: i64,
}

/// The snapshots that readers may hold. Shared by all snapshots of a storage.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<Known>);

fn now_micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

impl Pins {
    /// Notes that another snapshot takes this one's place as the newest.
    pub(crate) fn superseded(&self, old: &Arc<Snapshot>) {
        let mut known = self.0.lock();
        let published_micros = std::mem::replace(&mut known.newest_micros, now_micros());
        // One is the caller's.
        if Arc::strong_count(old) > 1 {
            // Dropped ones go before the list would have to grow.
            if known.pins.len() == known.pins.capacity() {
                known.pins.retain(|pin| pin.snapshot.strong_count() > 0);
            }
            known.pins.push(Pin { snapshot: Arc::downgrade(old), published_micros });
        }
    }
}

impl Snapshot {
    /// The snapshots that somebody holds, oldest first. Whoever asks counts as a reader of this
    /// one.
    pub fn pinned(self: &Arc<Self>) -> Vec<PinnedSnapshot> {
        let known = self.pins.0.lock();
        let older = known.pins.iter().filter_map(|pin| {
            let snapshot = pin.snapshot.upgrade()?;
            // One is ours. Without others it was dropped meanwhile.
            let readers = Arc::strong_count(&snapshot) - 1;
            let (epoch, lsn) = (snapshot.epoch(), snapshot.lsn());
            let published_micros = pin.published_micros;
            (readers > 0).then_some(PinnedSnapshot { epoch, lsn, published_micros, readers })
        });
        let mut pinned: Vec<_> = older.collect();
        if pinned.iter().all(|pin| pin.epoch != self.epoch()) {
            // The newest: the storage holds it too.
            let (epoch, lsn, published_micros) = (self.epoch(), self.lsn(), known.newest_micros);
            let readers = Arc::strong_count(self).saturating_sub(1).max(1);
            pinned.push(PinnedSnapshot { epoch, lsn, published_micros, readers });
        }
        pinned
    }
}
