//! Which snapshots readers still hold: what keeps old files from being removed.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::snapshot::Snapshot;
use crate::table::TableSnapshot;

/// A snapshot that is held.
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
    /// How long it has not been the newest one, microseconds.
    pub age_micros: i64,
    /// Bytes of files that the newest one needs no more.
    pub held_bytes: u64,
}

#[derive(Debug)]
struct Pin {
    snapshot: Weak<Snapshot>,
    published_micros: i64,
    superseded_micros: i64,
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
        let superseded_micros = now_micros();
        let published_micros = std::mem::replace(&mut known.newest_micros, superseded_micros);
        // One is the caller's.
        if Arc::strong_count(old) > 1 {
            // Dropped ones go before the list would have to grow.
            if known.pins.len() == known.pins.capacity() {
                known.pins.retain(|pin| pin.snapshot.strong_count() > 0);
            }
            let snapshot = Arc::downgrade(old);
            known.pins.push(Pin { snapshot, published_micros, superseded_micros });
        }
    }
}

/// Bytes of the files that `old` reads and `new` does not.
fn held_bytes(old: &Snapshot, new: &Snapshot) -> u64 {
    let mut bytes = 0;
    for table in old.tables() {
        let same = new.tables.get(&table.schema().id);
        if same.is_some_and(|same| Arc::ptr_eq(same, table)) {
            continue;
        }
        let known = same.map_or_else(Vec::new, |same| files(same));
        let known: HashSet<String> = known.into_iter().map(|(path, _)| path).collect();
        let gone = files(table).into_iter().filter(|(path, _)| !known.contains(path));
        bytes += gone.map(|(_, len)| len).sum::<u64>();
    }
    bytes
}

/// Path and length of every file of a table's rows.
fn files(table: &TableSnapshot) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    for partition in table.kept_partitions() {
        let segments = partition.segments.iter();
        files.extend(
            segments.map(|segment| (segment.file.path().to_owned(), segment.meta.file_len)),
        );
    }
    files
}

impl Snapshot {
    /// The snapshots that are held, oldest first. The caller counts as a reader of this
    /// one.
    pub fn pinned(self: &Arc<Self>) -> Vec<PinnedSnapshot> {
        let known = self.pins.0.lock();
        let older = known.pins.iter().filter_map(|pin| {
            let snapshot = pin.snapshot.upgrade()?;
            // One is ours. Without others it was dropped meanwhile.
            let readers = Arc::strong_count(&snapshot) - 1;
            let (epoch, lsn) = (snapshot.epoch(), snapshot.lsn());
            (readers > 0).then(|| PinnedSnapshot {
                epoch,
                lsn,
                published_micros: pin.published_micros,
                readers,
                age_micros: now_micros().saturating_sub(pin.superseded_micros).max(0),
                held_bytes: held_bytes(&snapshot, self),
            })
        });
        let mut pinned: Vec<_> = older.collect();
        if pinned.iter().all(|pin| pin.epoch != self.epoch()) {
            // The newest: the storage holds it too.
            let (epoch, lsn, published_micros) = (self.epoch(), self.lsn(), known.newest_micros);
            let readers = Arc::strong_count(self).saturating_sub(1).max(1);
            let (age_micros, held_bytes) = (0, 0);
            pinned.push(PinnedSnapshot {
                epoch,
                lsn,
                published_micros,
                readers,
                age_micros,
                held_bytes,
            });
        }
        pinned
    }
}
