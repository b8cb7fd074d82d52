//! A bulk write syncs its first files while it writes the remaining ones.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_buffer::Buffer;
use tidemark_storage::{BulkTarget, ColumnSchema, Storage, StorageOptions, TableSchema};
use tidemark_types::{EngineResult, PartitionBy, SqlType};
use tidemark_vfs::{DirEntry, OpenMode, SimVfs, Space, Vfs, VfsFile, VfsLock};

/// Counts synced segments; a writer may wait for the first one.
#[derive(Debug, Default)]
struct SyncedSegments {
    opened: AtomicUsize,
    synced: Mutex<usize>,
    changed: Condvar,
    fails: bool,
}

/// A disk that opens the second segment only after the first one is synced.
#[derive(Debug)]
struct Disk(SimVfs, Arc<SyncedSegments>);

#[derive(Debug)]
struct Segment(Arc<dyn VfsFile>, Arc<SyncedSegments>);

impl VfsFile for Segment {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(data, offset)
    }
    fn sync(&self) -> io::Result<()> {
        *self.1.synced.lock().unwrap() += 1;
        self.1.changed.notify_all();
        if self.1.fails {
            return Err(io::Error::other("no"));
        }
        self.0.sync()
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.0.allocate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

impl Vfs for Disk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let file = self.0.open(path, mode)?;
        if !path.contains("/stage/")
            || std::path::Path::new(path).extension().is_none_or(|end| end != "seg")
        {
            return Ok(file);
        }
        if self.1.opened.fetch_add(1, Ordering::SeqCst) == 1 {
            let synced = self.1.synced.lock().unwrap();
            let wait = Duration::from_secs(30);
            let (_synced, time) =
                self.1.changed.wait_timeout_while(synced, wait, |synced| *synced == 0).unwrap();
            assert!(!time.timed_out(), "the first segment waits for the last one");
        }
        Ok(Arc::new(Segment(file, Arc::clone(&self.1))))
    }
    fn map(&self, path: &str, len: u64) -> io::Result<Buffer> {
        self.0.map(path, len)
    }
    fn settle(&self, path: &str) -> io::Result<()> {
        self.0.settle(path)
    }
    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.0.sync_dir(path)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.0.create_dir(path)
    }
    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.0.remove_dir(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn unlink(&self, path: &str) -> io::Result<()> {
        self.0.unlink(path)
    }
    fn list(&self, path: &str) -> io::Result<Vec<DirEntry>> {
        self.0.list(path)
    }
    fn lock(&self, path: &str) -> EngineResult<Box<dyn VfsLock>> {
        self.0.lock(path)
    }
    fn entropy(&self) -> u64 {
        self.0.entropy()
    }
    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.link(from, to)
    }
    fn space(&self) -> io::Result<Space> {
        self.0.space()
    }
}

const DAY: i64 = 86_400_000_000;

fn write(fails: bool) -> (EngineResult<()>, Arc<Storage>, Arc<SyncedSegments>) {
    let seen = Arc::new(SyncedSegments { fails, ..SyncedSegments::default() });
    let disk = Disk(SimVfs::new(1), Arc::clone(&seen));
    let storage = Storage::open(Arc::new(disk), StorageOptions::default()).unwrap();
    let columns =
        vec![ColumnSchema::new("ts", SqlType::Timestamp), ColumnSchema::new("x", SqlType::Long)];
    let schema = TableSchema {
        timestamp: Some(0),
        partition_by: PartitionBy::Day,
        ..TableSchema::new("t", columns)
    };
    let mut bulk = storage.begin_bulk(BulkTarget::Create(schema)).unwrap();
    let times: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from_iter_values((0..3).map(|day| day * DAY)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    bulk.push(RecordBatch::try_from_iter([("ts", times), ("x", numbers)]).unwrap()).unwrap();
    (bulk.finish().map(|_| ()), storage, seen)
}

#[test]
fn segments_are_synced_while_later_ones_are_written() {
    let (written, storage, seen) = write(false);
    written.unwrap();
    assert_eq!(storage.snapshot().table("t").unwrap().row_count().unwrap(), 3);
    assert_eq!(*seen.synced.lock().unwrap(), 3);
}

#[test]
fn a_failed_sync_fails_the_bulk_write() {
    let (written, storage, _) = write(true);
    assert!(written.unwrap_err().message.contains("no"));
    assert!(storage.snapshot().table("t").is_none());
}
