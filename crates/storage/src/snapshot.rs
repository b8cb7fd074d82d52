//! Snapshots: immutable committed states that share all unchanged data. Also lists the snapshots
//! that readers still hold, which prevent the removal of old files.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult, ErrorCode, identifier};

use crate::table::TableSnapshot;
use crate::table::schema::TableId;
use crate::table::sharded::ShardedMap;

type OneKind = BTreeMap<String, Arc<[u8]>>;
type Records = BTreeMap<String, Arc<OneKind>>;

/// Version of all records of one kind. Two versions are equal if all their records are the same.
#[derive(Debug, Clone)]
pub struct RecordsVersion(Option<Arc<OneKind>>);

impl PartialEq for RecordsVersion {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // Shared records are never changed in place.
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// The committed state at one point in time.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub(crate) epoch: u64,
    /// Last transaction in the snapshot.
    pub(crate) lsn: u64,
    /// Lower bound for the next table's identifier.
    pub(crate) next_table: TableId,
    pub(crate) tables: ShardedMap<TableId, Arc<TableSnapshot>>,
    pub(crate) names: ShardedMap<String, TableId>,
    pub(crate) records: Arc<Records>,
    pub(crate) pins: Arc<Pins>,
}

impl Snapshot {
    /// Number that increases with every published commit.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Last transaction in this snapshot.
    pub fn lsn(&self) -> u64 {
        self.lsn
    }

    /// Returns the table with this name, ignoring case.
    pub fn table(&self, name: &str) -> Option<Arc<TableSnapshot>> {
        self.table_by_id(*self.names.get(identifier::fold(name).as_str())?)
    }

    /// Returns the table with this identifier.
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<TableSnapshot>> {
        self.tables.get(&id).map(Arc::clone)
    }

    /// All tables, in no particular order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSnapshot>> {
        self.tables.iter().map(|(_, table)| table)
    }

    /// Returns a durable record.
    pub fn record(&self, kind: &str, key: &str) -> Option<&[u8]> {
        self.records.get(kind)?.get(key).map(AsRef::as_ref)
    }

    /// Returns all records of a kind, by key.
    pub fn records(&self, kind: &str) -> impl Iterator<Item = (&str, &[u8])> {
        let records = self.records.get(kind);
        records.into_iter().flat_map(|r| r.iter()).map(|(key, value)| (key.as_str(), &**value))
    }

    /// Version of all records of one kind, for caches derived from them.
    #[must_use]
    pub fn records_version(&self, kind: &str) -> RecordsVersion {
        RecordsVersion(self.records.get(kind).map(Arc::clone))
    }

    pub(crate) fn put_record(&mut self, kind: &str, key: &str, value: Arc<[u8]>) {
        let kinds = Arc::make_mut(&mut self.records);
        let records = kinds.entry(kind.to_owned()).or_default();
        Arc::make_mut(records).insert(key.to_owned(), value);
    }

    pub(crate) fn delete_record(&mut self, kind: &str, key: &str) {
        let kinds = Arc::make_mut(&mut self.records);
        if let Some(records) = kinds.get_mut(kind) {
            Arc::make_mut(records).remove(key);
            if records.is_empty() {
                kinds.remove(kind);
            }
        }
    }
}

pub(crate) fn no_such_table(table: TableId) -> EngineError {
    EngineError::new(ErrorCode::Replan, format!("table {table} does not exist"))
}

pub(crate) fn table_of(snapshot: &Snapshot, id: TableId) -> EngineResult<TableSnapshot> {
    let table = snapshot.tables.get(&id).ok_or_else(|| no_such_table(id))?;
    Ok(TableSnapshot::clone(table))
}

pub(crate) fn put_table(snapshot: &mut Snapshot, mut table: TableSnapshot) {
    // The cached list of partitions is outdated after a change.
    table.listed = std::sync::OnceLock::new();
    snapshot.tables.insert(table.schema().id, Arc::new(table));
}

/// A snapshot that readers hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedSnapshot {
    /// The snapshot's [`Snapshot::epoch`].
    pub epoch: u64,
    /// Last transaction in the snapshot.
    pub lsn: u64,
    /// When the snapshot became the newest, in microseconds since 1970.
    pub published_micros: i64,
    /// Number of readers that hold the snapshot.
    pub readers: usize,
    /// Microseconds since a newer snapshot replaced it.
    pub age_micros: i64,
    /// Size in bytes of files that the newest snapshot no longer needs.
    pub retained_bytes: u64,
}

#[derive(Debug)]
struct Pin {
    snapshot: Weak<Snapshot>,
    published_micros: i64,
    superseded_micros: i64,
}

#[derive(Debug, Default)]
struct Known {
    /// Snapshots that readers held when the next snapshot was published.
    pins: Vec<Pin>,
    /// When the newest snapshot was published.
    newest_micros: i64,
}

/// Snapshots that readers may hold. All snapshots of a storage share this list.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<Known>);

/// Current time in microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

impl Pins {
    /// Records that `old` is no longer the newest snapshot.
    pub(crate) fn superseded(&self, old: &Arc<Snapshot>) {
        let mut known = self.0.lock();
        let superseded_micros = now_micros();
        let published_micros = std::mem::replace(&mut known.newest_micros, superseded_micros);
        // One of the references belongs to the caller.
        if Arc::strong_count(old) > 1 {
            // Removes dropped snapshots before the list would have to grow.
            if known.pins.len() == known.pins.capacity() {
                known.pins.retain(|pin| pin.snapshot.strong_count() > 0);
            }
            let snapshot = Arc::downgrade(old);
            known.pins.push(Pin { snapshot, published_micros, superseded_micros });
        }
    }
}

/// Size in bytes of the files that `old` reads but `new` does not.
fn retained_bytes(old: &Snapshot, new: &Snapshot) -> u64 {
    let mut bytes = 0;
    for table in old.tables() {
        let same = new.tables.get(&table.schema().id);
        if same.is_some_and(|same| Arc::ptr_eq(same, table)) {
            continue;
        }
        let known = same.map_or_else(Vec::new, |same| files(same));
        let known: HashSet<String> = known.into_iter().map(|(path, _)| path).collect();
        let removed = files(table).into_iter().filter(|(path, _)| !known.contains(path));
        bytes += removed.map(|(_, len)| len).sum::<u64>();
    }
    bytes
}

/// Path and length of each segment file of a table.
fn files(table: &TableSnapshot) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    for partition in table.all_partitions() {
        let segments = partition.segments.iter();
        files.extend(
            segments.map(|segment| (segment.file.path().to_owned(), segment.meta.file_len)),
        );
    }
    files
}

impl Snapshot {
    /// Returns the snapshots that readers hold, oldest first. The caller counts as a reader of this
    /// snapshot.
    pub fn pinned(self: &Arc<Self>) -> Vec<PinnedSnapshot> {
        let known = self.pins.0.lock();
        let older = known.pins.iter().filter_map(|pin| {
            let snapshot = pin.snapshot.upgrade()?;
            // One reference belongs to this function. If no other reference exists, the readers
            // have dropped the snapshot in the meantime.
            let readers = Arc::strong_count(&snapshot) - 1;
            let (epoch, lsn) = (snapshot.epoch(), snapshot.lsn());
            (readers > 0).then(|| PinnedSnapshot {
                epoch,
                lsn,
                published_micros: pin.published_micros,
                readers,
                age_micros: now_micros().saturating_sub(pin.superseded_micros).max(0),
                retained_bytes: retained_bytes(&snapshot, self),
            })
        });
        let mut pinned: Vec<_> = older.collect();
        if pinned.iter().all(|pin| pin.epoch != self.epoch()) {
            // The storage also holds the newest snapshot.
            let (epoch, lsn, published_micros) = (self.epoch(), self.lsn(), known.newest_micros);
            let readers = Arc::strong_count(self).saturating_sub(1).max(1);
            let (age_micros, held_bytes) = (0, 0);
            pinned.push(PinnedSnapshot {
                epoch,
                lsn,
                published_micros,
                readers,
                age_micros,
                retained_bytes: held_bytes,
            });
        }
        pinned
    }
}
