//! Benchmarks of the storage engine only, for `docs/benchmarks.md`.
//!
//! `cargo run --release -p tidemark-storage --example figures -- [WHAT] [--rows N] [--root DIR]`
//!
//! WHAT is `append`, `late`, `scan`, `commits`, `memory` or `open`; without it, all of them run.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a development tool")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_buffer::Buffer;
use tempfile::TempDir;
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{EngineResult, PartitionBy, SqlType};
use tidemark_vfs::{DirEntry, OpenMode, RealVfs, Space, Vfs, VfsFile, VfsLock};

const BATCH: usize = 64 << 10;
/// Microseconds between consecutive rows; 20 million rows cover eight days.
const STEP: i64 = 35_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let rows: usize = value("--rows").and_then(|rows| rows.parse().ok()).unwrap_or(20_000_000);
    let parent = value("--root").map_or_else(std::env::temp_dir, PathBuf::from);
    let required = |what: &str| {
        let named =
            |argument: &String| !argument.starts_with("--") && argument.parse::<u64>().is_err();
        let first = arguments.first().filter(|first| named(first));
        first.is_none_or(|first| first == what)
    };
    if required("append") || required("scan") {
        let (root, [seconds, _]) = append(&parent, rows, 0.0);
        if required("append") {
            println!("append, in order: {:.2} M rows/s", rows as f64 / seconds / 1e6);
        }
        if required("scan") {
            scan(root.path());
        }
    }
    if required("late") {
        // Alternates the two variants so that both see the same load from other processes.
        let mut ratios: [Vec<f64>; 2] = Default::default();
        for _ in 0..5 {
            let (_root, late) = append(&parent, rows, 0.05);
            let (_root, in_order) = append(&parent, rows, 0.0);
            for (which, ratios) in ratios.iter_mut().enumerate() {
                ratios.push(late[which] / in_order[which]);
                ratios.sort_by(f64::total_cmp);
            }
        }
        println!(
            "append, 5 % late: {:.2} times the time of the same rows in order, {:.2} times the CPU",
            ratios[0][2], ratios[1][2]
        );
    }
    if required("commits") {
        commits(&parent);
    }
    if required("memory") {
        memory(&parent, rows);
    }
    if required("open") {
        open_many(&parent);
    }
}

fn open(root: &Path, options: StorageOptions) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(root).unwrap());
    Storage::open(vfs, options).unwrap()
}

fn unsynced() -> StorageOptions {
    StorageOptions { commit_mode: CommitMode::NoSync, ..StorageOptions::default() }
}

fn trades() -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("sym", SqlType::Symbol),
        ColumnSchema::new("price", SqlType::Double),
        ColumnSchema::new("amount", SqlType::Double),
        ColumnSchema::new("id", SqlType::Long),
    ];
    let schema = TableSchema::new("trades", columns);
    TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Returns a batch that starts at row `first`. The fraction `late` of its rows arrives up to an
/// hour late.
fn batch(first: usize, rows: usize, late: f64, random: &mut Random) -> RecordBatch {
    let mut symbols = StringDictionaryBuilder::<Int32Type>::new();
    for row in 0..rows {
        symbols.append_value(NAMES[(first + row) % NAMES.len()]);
    }
    let share = (late * 1_000.0) as u64;
    let times = (first..first + rows).map(|row| {
        let back = if random.below(1_000) < share { random.below(3_600_000_000) as i64 } else { 0 };
        Some((row as i64 * STEP - back).max(0))
    });
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ts", Arc::new(times.collect::<TimestampMicrosecondArray>())),
        ("sym", Arc::new(symbols.finish())),
        ("price", Arc::new((0..rows).map(|row| Some(row as f64 / 8.0)).collect::<Float64Array>())),
        ("amount", Arc::new((0..rows).map(|row| Some(row as f64)).collect::<Float64Array>())),
        ("id", Arc::new((first..first + rows).map(|row| Some(row as i64)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

const NAMES: [&str; 8] =
    ["BTC-USD", "ETH-USD", "SOL-USD", "ADA-USD", "DOT-USD", "XRP-USD", "LTC-USD", "UNI-USD"];

/// Measures elapsed time and this thread's CPU time, in seconds.
struct Watch {
    start: Instant,
    cpu: f64,
}

impl Watch {
    fn start() -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds() }
    }

    fn seconds(&self) -> [f64; 2] {
        [self.start.elapsed().as_secs_f64(), cpu_seconds() - self.cpu]
    }
}

/// Returns this thread's CPU time in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Appends through a bulk writer, as the appender does. Batches are generated in portions, outside
/// the timed sections. Returns the writer's elapsed and CPU seconds.
fn append(parent: &Path, rows: usize, late: f64) -> (TempDir, [f64; 2]) {
    let root = TempDir::new_in(parent).unwrap();
    let storage = open(root.path(), StorageOptions { background: false, ..unsynced() });
    let mut bulk = storage.begin_bulk(BulkTarget::Create(trades())).unwrap();
    let mut random = Random(7);
    let mut taken = [0.0; 2];
    let mut take = |watch: &Watch| {
        for (sum, seconds) in taken.iter_mut().zip(watch.seconds()) {
            *sum += seconds;
        }
    };
    let mut next = 0;
    while next < rows {
        let batches: Vec<_> = (0..16)
            .map(|_| {
                let count = BATCH.min(rows - next);
                next += count;
                batch(next - count, count, late, &mut random)
            })
            .filter(|batch| batch.num_rows() > 0)
            .collect();
        let watch = Watch::start();
        for batch in batches {
            bulk.push(batch).unwrap();
        }
        take(&watch);
    }
    let watch = Watch::start();
    bulk.finish().unwrap();
    take(&watch);
    let watch = Watch::start();
    let written = storage.folded_rows();
    storage.checkpoint().unwrap();
    let joined = storage.folded_rows() - written;
    let table = storage.snapshot().table("trades").unwrap();
    let segments: usize = table.partition_list().iter().map(|p| p.segments).sum();
    println!(
        "  {rows} rows, {:.0} % late: {:.2} s, {:.2} s of the processor; checkpoint {:.2} s, \
         {joined} rows written again, {segments} segments",
        late * 100.0,
        taken[0],
        taken[1],
        watch.seconds()[0]
    );
    storage.close().unwrap();
    (root, taken)
}

/// Measures the memory read bandwidth of this number of threads, in bytes per second.
fn memory_bandwidth(threads: usize) -> f64 {
    let words: Vec<u64> = (0..32 << 20).collect();
    let chunk = words.len() / threads;
    let mut best = 0.0_f64;
    for _ in 0..5 {
        let start = Instant::now();
        thread::scope(|scope| {
            for words in words.chunks(chunk) {
                scope.spawn(move || black_box(words.iter().fold(0_u64, |a, b| a.wrapping_add(*b))));
            }
        });
        best = best.max((words.len() * 8) as f64 / start.elapsed().as_secs_f64());
    }
    best
}

/// Sums a DOUBLE column with two threads, from mapped segments in the page cache.
fn scan(root: &Path) {
    let storage = open(root, unsynced());
    let table = storage.snapshot().table("trades").unwrap();
    let slices = table.slices().unwrap();
    let mut best = [0.0_f64; 2];
    for round in 0..6 {
        let start = Instant::now();
        let next = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                        let Some(slice) = slices.get(index) else { break };
                        let columns = slice.columns(&[2], 0..slice.rows()).unwrap();
                        black_box(sum(columns[0].as_primitive::<Float64Type>().values()));
                    }
                });
            }
        });
        let bytes = table.row_count().unwrap() as f64 * 8.0;
        let rate = bytes / start.elapsed().as_secs_f64();
        let which = usize::from(round > 0);
        best[which] = best[which].max(rate);
    }
    let bandwidth = memory_bandwidth(2);
    println!(
        "scan of a column: {:.1} GB/s, {:.1} GB/s on first touch with its checksum; memory {:.1} \
         GB/s: {:.0} %",
        best[1] / 1e9,
        best[0] / 1e9,
        bandwidth / 1e9,
        best[1] / bandwidth * 100.0
    );
}

/// Sums in independent lanes so that memory bandwidth is the bottleneck, not addition latency.
fn sum(values: &[f64]) -> f64 {
    let mut queue = [0.0; 16];
    let chunks = values.chunks_exact(16);
    let rest: f64 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (task, value) in queue.iter_mut().zip(chunk) {
            *task += value;
        }
    }
    rest + queue.iter().sum::<f64>()
}

/// Sync time of the disk that the performance goals assume. On slower disks, no delay is added.
const SYNC: Duration = Duration::from_millis(2);

/// A disk whose syncs take at least [`SYNC`].
#[derive(Debug)]
struct SlowDisk(RealVfs);

#[derive(Debug)]
struct SlowFile(Arc<dyn VfsFile>);

impl VfsFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(data, offset)
    }
    fn sync(&self) -> io::Result<()> {
        let start = Instant::now();
        self.0.sync()?;
        thread::sleep(SYNC.saturating_sub(start.elapsed()));
        Ok(())
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.0.allocate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

impl Vfs for SlowDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(SlowFile(self.0.open(path, mode)?)))
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

/// Measures the median time, in seconds, to sync one rewritten block in a file of constant length.
fn sync_seconds(disk: &SlowDisk) -> f64 {
    let file = disk.open("measured", OpenMode::Replace).unwrap();
    file.write_at(&vec![1; 4 << 20], 0).unwrap();
    file.sync().unwrap();
    let mut times: Vec<f64> = (0..200)
        .map(|block| {
            let start = Instant::now();
            file.write_at(&[2; 4096], block * 4096).unwrap();
            file.sync().unwrap();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Measures one-row commits by 16 writers in `sync` mode.
fn commits(parent: &Path) {
    let root = TempDir::new_in(parent).unwrap();
    let disk = || SlowDisk(RealVfs::new(root.path()).unwrap());
    let storage = Storage::open(Arc::new(disk()), StorageOptions::default()).unwrap();
    storage.commit(vec![Change::CreateTable(trades())]).unwrap();
    let table = storage.snapshot().table("trades").unwrap().schema().id;
    let before = sync_seconds(&disk());
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    thread::scope(|scope| {
        for writer in 0..16 {
            let (storage, stop, count) = (&storage, &stop, &count);
            scope.spawn(move || {
                let mut random = Random(writer as u64 + 1);
                for row in 0.. {
                    let batch = batch(row * 16 + writer, 1, 0.0, &mut random);
                    let append = Change::Append { table, schema_version: 1, batch };
                    storage.commit(vec![append]).unwrap();
                    count.fetch_add(1, Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        thread::sleep(Duration::from_secs(5));
        stop.store(true, Ordering::Relaxed);
    });
    let rate = count.into_inner() as f64 / start.elapsed().as_secs_f64();
    let sync = f64::midpoint(before, sync_seconds(&disk()));
    println!(
        "commits of 16 writers: {rate:.0}/s where one fdatasync takes {:.2} ms: {:.1} per sync, \
         {:.0}/s at 2 ms",
        sync * 1e3,
        rate * sync,
        rate * sync / 0.002
    );
}

/// Returns this process's anonymous memory in bytes.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

/// Measures the peak memory of an import that is at least ten times as large as its memory budget.
fn memory(parent: &Path, rows: usize) {
    let root = TempDir::new_in(parent).unwrap();
    let given = 32 << 20;
    let options = StorageOptions { bulk_memory_bytes: given, ..unsynced() };
    let storage = open(root.path(), options);
    let before = anonymous_bytes();
    let mut peak = before;
    let mut bulk = storage.begin_bulk(BulkTarget::Create(trades())).unwrap();
    let mut random = Random(7);
    for first in (0..rows).step_by(BATCH) {
        bulk.push(batch(first, BATCH.min(rows - first), 0.05, &mut random)).unwrap();
        peak = peak.max(anonymous_bytes());
    }
    bulk.finish().unwrap();
    peak = peak.max(anonymous_bytes());
    println!(
        "memory: {} MiB given, {} MiB ingested, {} MiB of anonymous memory at most",
        given >> 20,
        (rows * 36) >> 20,
        (peak - before) >> 20
    );
}

/// Measures how long a root with 10,000 partitions takes to open.
fn open_many(parent: &Path) {
    let root = TempDir::new_in(parent).unwrap();
    let storage = open(root.path(), unsynced());
    let mut bulk = storage.begin_bulk(BulkTarget::Create(trades())).unwrap();
    let rows = batch(0, 10_000, 0.0, &mut Random(7));
    let days = (0..10_000).map(|day| Some(day * 86_400_000_000));
    let mut columns = rows.columns().to_vec();
    columns[0] = Arc::new(days.collect::<TimestampMicrosecondArray>());
    bulk.push(RecordBatch::try_new(rows.schema(), columns).unwrap()).unwrap();
    bulk.finish().unwrap();
    storage.close().unwrap();
    drop(storage);
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            let storage = open(root.path(), unsynced());
            let seconds = start.elapsed().as_secs_f64();
            assert_eq!(storage.snapshot().table("trades").unwrap().row_count().unwrap(), 10_000);
            storage.close().unwrap();
            seconds
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("opening 10,000 partitions: {:.0} ms", times[2] * 1e3);
}
