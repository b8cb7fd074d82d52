//! The effects of one damaged file.
//!
//! Each seed determines one workload, which ends in a kill or a power loss, and several damaged
//! copies of its root. In each copy, one file has a flipped bit, a lost block or a truncated end,
//! or is missing. Opening the copy must succeed. A damaged pointer or manifest must have no visible
//! effect. A table that is not reported as damaged must contain exactly its rows from before the
//! damage. A damaged table may reject reads but must never return wrong rows. It rejects writes,
//! and it can be dropped.

use std::sync::Arc;

use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tidemark_storage::{Change, CommitMode, Storage, StorageOptions};
use tidemark_types::ErrorCode;
use tidemark_vfs::{SimVfs, Vfs};

use crate::crash::{Failure, small_options};
use crate::model::{Model, ModelTable};
use crate::workload::{Client, History};

/// Number of damaged copies per root.
const COPIES: usize = 6;

/// Counts and failures of a damage run.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of damaged roots in which every guarantee held.
    pub passed: u64,
    /// Damaged roots in which a guarantee was broken.
    pub failures: Vec<Failure>,
    /// Number of roots in which a pointer or manifest was repaired.
    pub repaired: u64,
    /// Number of roots with a damaged table.
    pub isolated: u64,
}

/// Runs workloads with consecutive seeds, starting with `seed`, until `states` damaged roots have
/// been checked.
#[must_use]
pub fn run(seed: u64, states: u64) -> Report {
    let mut report = Report::default();
    let mut next = seed;
    while report.passed + (report.failures.len() as u64) < states {
        run_one(next, &mut report);
        next += 1;
    }
    report
}

/// Runs one seed's workload.
pub fn run_one(seed: u64, report: &mut Report) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mode = *[CommitMode::Sync, CommitMode::Async, CommitMode::NoSync]
        .choose(&mut rng)
        .unwrap_or(&CommitMode::Sync);
    let options = small_options(mode);
    let (image, history) = work(&mut rng, &options);
    let baseline = match open(&image.kill(seed), &options) {
        Ok(storage) => Model::read(&storage.snapshot()),
        Err(error) => Err(error),
    };
    let baseline = match baseline {
        Ok(baseline) => baseline,
        Err(error) => {
            report.failures.push(Failure { seed, what: format!("no baseline: {}", error.message) });
            return;
        }
    };
    for _ in 0..COPIES {
        let copy = image.kill(rng.random());
        let Some((path, how)) = corrupt(&copy, &mut rng) else { continue };
        let case = Case { path: &path, options: &options, baseline: &baseline, history: &history };
        match case.check(&copy, report) {
            Ok(()) => report.passed += 1,
            Err(what) => {
                let what = format!("{path} {how}, {mode:?}: {what}");
                report.failures.push(Failure { seed, what });
            }
        }
    }
}

fn open(vfs: &SimVfs, options: &StorageOptions) -> tidemark_types::EngineResult<Arc<Storage>> {
    Storage::open(Arc::new(vfs.clone()), options.clone())
}

/// Runs a client for a while and returns the disk and the history.
fn work(rng: &mut ChaCha8Rng, options: &StorageOptions) -> (SimVfs, History) {
    let vfs = SimVfs::new(rng.random());
    let mut history = History::new();
    for _ in 0..rng.random_range(1..3) {
        let Ok(storage) = open(&vfs, options) else { break };
        let mut client =
            Client { storage: &storage, rng: &mut *rng, history: &mut history, pinned: None };
        for _ in 0..client.rng.random_range(5..40) {
            let _ = client.act();
        }
    }
    let image = if rng.random() { vfs.power_loss(rng.random()) } else { vfs.kill(rng.random()) };
    (image, history)
}

/// Damages one file. Returns its path and the kind of damage.
fn corrupt(vfs: &SimVfs, rng: &mut ChaCha8Rng) -> Option<(String, String)> {
    // Chooses each kind of file with equal probability, regardless of the number of such files.
    let kinds = ["db/CURRENT", "db/FORMAT", "db/manifest.", "db/log/", ".seg", "/sym."];
    let kind = kinds.choose(rng)?;
    let files = vfs.files();
    let files: Vec<&String> = files.iter().filter(|path| path.contains(kind)).collect();
    let path = (*files.choose(rng)?).clone();
    let how = match rng.random_range(0..4) {
        0 => {
            vfs.unlink(&path).ok()?;
            return Some((path, "removed".to_owned()));
        }
        1 => {
            let mut len = 0;
            vfs.corrupt(&path, |bytes| {
                len = rng.random_range(0..=bytes.len());
                bytes.truncate(len);
            })
            .ok()?;
            format!("cut to {len}")
        }
        2 => {
            let mut at = 0;
            vfs.corrupt(&path, |bytes| {
                at = rng.random_range(0..=bytes.len()) / 512 * 512;
                let end = bytes.len().min(at + 512);
                bytes[at..end].fill(0);
            })
            .ok()?;
            format!("zeroed from {at}")
        }
        _ => {
            let mut at = 0;
            vfs.corrupt(&path, |bytes| {
                if !bytes.is_empty() {
                    at = rng.random_range(0..bytes.len());
                    bytes[at] ^= 1 << rng.random_range(0..8);
                }
            })
            .ok()?;
            format!("with a bit flipped at {at}")
        }
    };
    Some((path, how))
}

struct Case<'a> {
    path: &'a str,
    options: &'a StorageOptions,
    baseline: &'a Model,
    history: &'a History,
}

impl Case<'_> {
    fn check(&self, vfs: &SimVfs, report: &mut Report) -> Result<(), String> {
        let storage = open(vfs, self.options)
            .map_err(|error| format!("the storage cannot be opened:  {}", error.message))?;
        let sound = self.compare(&storage)?;
        let damages = storage.snapshot().damages();
        report.repaired += u64::from(!storage.repairs().is_empty());
        report.isolated += u64::from(!damages.is_empty());
        if !damages.is_empty() && !self.concerns_tables() {
            return Err(format!("a table is damaged: {}", damages[0].what));
        }
        for damage in &damages {
            let Some(table) = storage.snapshot().table_by_id(damage.table_id) else { continue };
            let change = Change::ReplaceSchema(table.schema().as_ref().clone());
            match storage.commit(vec![change]) {
                Err(error) if error.code == ErrorCode::Damaged => {}
                other => return Err(format!("a damaged table accepts writes: {other:?}")),
            }
        }
        self.check_usable(vfs, storage, &sound)
    }

    fn concerns_tables(&self) -> bool {
        self.path.starts_with("db/t/") || self.path.starts_with("db/log/")
    }

    /// Whether an older state is acceptable. If the log is truncated, its last commits appear never
    /// to have happened. Without syncs, damage to a segment that no checkpoint references has the
    /// same effect.
    fn may_be_older(&self) -> bool {
        let synced = self.options.commit_mode == CommitMode::Sync;
        self.path.starts_with("db/log/") || (self.path.rsplit('.').next() == Some("seg") && !synced)
    }

    /// Compares every table with its content before the damage. Returns the undamaged tables.
    fn compare(&self, storage: &Storage) -> Result<Vec<(String, ModelTable)>, String> {
        let snapshot = storage.snapshot();
        let mut sound = Vec::new();
        for table in snapshot.tables() {
            let name = &table.schema().name;
            let read = ModelTable::read(table);
            let damaged = snapshot.damage(table).is_some();
            match read {
                Ok(read) if damaged => self.has_no_wrong_row(name, &read)?,
                Ok(read) => {
                    self.is_right(name, &read)?;
                    sound.push((name.clone(), read));
                }
                Err(error) if error.code == ErrorCode::Damaged && damaged => {}
                Err(error) => return Err(format!("{name} cannot be read: {}", error.message)),
            }
        }
        let damages = snapshot.damages();
        let missing = self.baseline.tables.keys().find(|name| snapshot.table(name).is_none());
        match missing {
            Some(name) if !self.may_be_older() && damages.is_empty() => {
                Err(format!("{name} is missing"))
            }
            _ => Ok(sound),
        }
    }

    fn is_right(&self, name: &str, read: &ModelTable) -> Result<(), String> {
        let same = |model: &Model| model.tables.get(name).is_some_and(|t| t.in_order() == *read);
        let earlier = || self.may_be_older() && self.history.past.iter().any(same);
        if same(self.baseline) || earlier() {
            return Ok(());
        }
        let expected = self.baseline.tables.get(name).map(ModelTable::in_order);
        let expected = expected.unwrap_or_default();
        let pairs = read.rows.iter().zip(&expected.rows);
        let unlike = pairs.into_iter().find(|(read, expected)| read != expected);
        Err(format!(
            "{name} has {} of {} rows and is not reported as damaged; difference: {unlike:?}",
            read.rows.len(),
            expected.rows.len()
        ))
    }

    /// Checks that a damaged table shows only rows that were written. Rows may be missing.
    fn has_no_wrong_row(&self, name: &str, read: &ModelTable) -> Result<(), String> {
        let models = self.history.past.iter().chain([&self.history.model, self.baseline]);
        let known: std::collections::HashSet<_> = models
            .filter_map(|model| model.tables.get(name))
            .flat_map(|t| t.rows.iter().chain(&t.detached))
            .collect();
        match read.rows.iter().chain(&read.detached).find(|row| !known.contains(row)) {
            Some(row) => Err(format!("{name} shows {row:?}, which was never written")),
            None => Ok(()),
        }
    }

    /// Checks that the database remains usable. A checkpoint and a restart must succeed, and after
    /// the damaged table is dropped no table may be damaged.
    fn check_usable(
        &self,
        vfs: &SimVfs,
        storage: Arc<Storage>,
        sound: &[(String, ModelTable)],
    ) -> Result<(), String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: tidemark_types::EngineError| format!("{what}: {}", error.message)
        };
        storage.checkpoint().map_err(failed("checkpoint"))?;
        let snapshot = storage.snapshot();
        let mut drops = Vec::new();
        for damage in snapshot.damages() {
            if snapshot.table_by_id(damage.table_id).is_some() {
                drops.push(Change::DropTable(damage.table_id));
            }
        }
        let put = Change::PutRecord { kind: "test".into(), key: "k".into(), value: vec![1] };
        drops.push(put);
        storage.commit(drops).map_err(failed("drop"))?;
        storage.close().map_err(failed("close"))?;
        drop((snapshot, storage));
        let storage = open(vfs, self.options).map_err(failed("second start"))?;
        let snapshot = storage.snapshot();
        for (name, before) in sound {
            let Some(table) = snapshot.table(name) else {
                return Err(format!("{name} is missing after the second start"));
            };
            let read = ModelTable::read(&table).map_err(failed("second start"))?;
            if read != *before {
                return Err(format!("{name} differs after the second start"));
            }
        }
        if let Some(what) = storage.repairs().first() {
            return Err(format!("the second start repairs: {what}"));
        }
        Ok(())
    }
}
