//! Flips single bits in a closed root. Every flip must either be detected or provably have no
//! effect, and no query result may change.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tidemark_storage::{CommitMode, Snapshot, Storage, StorageOptions, check_root};
use tidemark_types::EngineResult;
use tidemark_vfs::{OpenMode, SimVfs, Vfs};

use crate::crash::small_options;
use crate::model::Model;
use crate::workload::{Action, Client, History};

/// Number of client sessions that write to the root. They create several dictionary files and a
/// chain of manifests.
const SESSIONS: usize = 4;
/// Sizes in bytes of a segment's trailer and of each section entry in its footer.
const TRAILER_BYTES: usize = 24;

/// Counts and failures of a bit-rot run.
#[derive(Debug, Default)]
pub struct RotReport {
    /// Number of flips that were reported when the root was opened or read.
    pub detected: u64,
    /// Number of flips in bytes that are never read, by kind of byte.
    pub dead: BTreeMap<&'static str, u64>,
    /// Flips that no check detected, or that changed a query result.
    pub failures: Vec<String>,
    /// Size of the root in bytes.
    pub bytes: u64,
}

/// Flips one bit at each of `flips` random offsets in a root generated from `seed`.
pub fn run(seed: u64, flips: u64) -> Result<RotReport, String> {
    let options = small_options(CommitMode::Sync);
    let disk = SimVfs::new(seed);
    let expected = fill(&disk, &options, seed)?;
    let mut files = files(&disk, "")?;
    files.retain(|(_, bytes)| !bytes.is_empty());
    let mut report = RotReport {
        bytes: files.iter().map(|(_, b)| b.len() as u64).sum(),
        ..RotReport::default()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..flips {
        // Chooses a file before an offset, so that the small pointer file is hit as often as the
        // log.
        let Some((path, bytes)) = files.choose(&mut rng) else { continue };
        let offset = rng.random_range(0..bytes.len());
        let mask = 1 << rng.random_range(0..8);
        let image = disk.kill(seed);
        image.flip(path, offset, mask).map_err(|error| error.to_string())?;
        let outcome = catch_unwind(AssertUnwindSafe(|| read(&image, &options)));
        let what = match outcome {
            Err(_) => "the storage panicked",
            Ok(Err(_)) => {
                report.detected += 1;
                continue;
            }
            Ok(Ok(model)) if model != expected => "the flip changed a query result",
            Ok(Ok(_)) => match dead(path, bytes, offset, mask) {
                Some(kind) => {
                    *report.dead.entry(kind).or_default() += 1;
                    continue;
                }
                None => "the flip was not detected",
            },
        };
        let failure = format!("{path}, byte {offset} of {}, bit {mask:#04x}: {what}", bytes.len());
        report.failures.push(failure);
    }
    Ok(report)
}

/// Runs a client workload and closes the root.
fn fill(disk: &SimVfs, options: &StorageOptions, seed: u64) -> Result<Model, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut history = History::new();
    for _ in 0..SESSIONS {
        let shared: Arc<dyn Vfs> = Arc::new(disk.clone());
        let storage = Storage::open(shared, options.clone()).map_err(|error| error.message)?;
        let history = &mut history;
        let mut client = Client { storage: &storage, rng: &mut rng, history, pinned: None };
        for action in Action::SCRIPT {
            client.perform(*action).map_err(|error| error.message)?;
        }
        client.pinned = None;
        storage.close().map_err(|error| error.message)?;
    }
    read(disk, options)
}

/// Opens the root and reads every column of every row.
fn read(disk: &SimVfs, options: &StorageOptions) -> Result<Model, String> {
    let shared: Arc<dyn Vfs> = Arc::new(disk.clone());
    let found = check_root(&shared).map_err(|error| error.message)?;
    let storage = Storage::open(shared, options.clone()).map_err(|error| error.message)?;
    let snapshot = storage.snapshot();
    read_columns(&snapshot).map_err(|error| error.message)?;
    let model = Model::read(&snapshot).map_err(|error| error.message)?;
    match found.first() {
        Some(damage) => Err(damage.what.clone()),
        None => Ok(model),
    }
}

fn read_columns(snapshot: &Snapshot) -> EngineResult<()> {
    for table in snapshot.tables() {
        let all: Vec<usize> = (0..table.schema().columns.len()).collect();
        for slice in table.slices()?.into_iter().chain(table.detached_slices()?) {
            slice.columns(&all, 0..slice.rows())?;
        }
    }
    Ok(())
}

/// Returns all files with their contents.
fn files(disk: &SimVfs, directory: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut found = Vec::new();
    for entry in disk.list(directory).map_err(|error| error.to_string())? {
        let name = entry.name;
        let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
        if entry.is_dir {
            found.extend(files(disk, &path)?);
            continue;
        }
        let mut bytes = vec![0; entry.len as usize];
        let file = disk.open(&path, OpenMode::Read).map_err(|error| error.to_string())?;
        file.read_at(&mut bytes, 0).map_err(|error| error.to_string())?;
        found.push((path, bytes));
    }
    Ok(found)
}

/// Returns why a byte of a closed root is never read; `None` if it is read.
fn dead(path: &str, bytes: &[u8], offset: usize, mask: u8) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit('.').next();
    if path.starts_with("db/log/") {
        // Closing writes a checkpoint, so the manifest already includes all changes in the log.
        return Some("the log of a closed root");
    }
    if path.starts_with("db/trash/") || path.starts_with("db/stage/") {
        return Some("files put aside");
    }
    if name == "FORMAT" {
        // A file with a lower minor version is read in the same way.
        let older = bytes.get(offset).is_some_and(|byte| byte ^ mask < *byte);
        return older.then_some("an older minor version");
    }
    if extension == Some("seg") {
        let live = segment_bytes(bytes)?;
        return (!live.iter().any(|range| range.contains(&offset)))
            .then_some("padding of segments");
    }
    None
}

/// Returns the byte ranges of a segment that are read: sections, footer, trailer.
fn segment_bytes(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let trailer = bytes.len().checked_sub(TRAILER_BYTES)?;
    let mut input = Input(bytes.get(trailer..)?);
    let (footer, len) = (input.u64()?, input.u32()? as usize);
    let mut live = vec![footer..footer + len, trailer..bytes.len()];
    let mut input = Input(bytes.get(footer..footer + len)?);
    input.u64()?;
    for _ in 0..input.u32()? {
        input.u32()?;
        let name = input.u64()?;
        input.take(name + 1)?;
        for _ in 0..input.u32()? {
            let (start, len) = (input.u64()?, input.u64()?);
            live.push(start..start + len);
            input.u32()?;
        }
    }
    Some(live)
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<usize> {
        self.take(8)?.try_into().ok().map(|bytes| u64::from_le_bytes(bytes) as usize)
    }
}
