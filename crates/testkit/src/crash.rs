//! Crash states derived from seeds.
//!
//! Each seed determines one workload, which a power loss interrupts at some operation. Several disk
//! images are built from that state. Each image is recovered and compared with the history. Some
//! recoveries are interrupted by another power loss. In other cases, the process is only killed: a
//! new process continues, and later loses power. Every comparison counts as one state.
//!
//! In a quarter of the workloads, the client also creates backups and skips segments as if they
//! were damaged. In these workloads, each disk is also restored from its backup. The same seed
//! always produces the same states.

use std::fmt;
use std::sync::Arc;

use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tidemark_storage::{CommitMode, PlantedFault, Storage, StorageOptions, restore_if_requested};
use tidemark_vfs::{OpenMode, SimFault, SimVfs, Vfs};

use crate::model::Model;
use crate::workload::{Client, History};

/// An injected fault, which proves that the harness detects such faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutant {
    /// A fault in the storage protocol itself.
    Protocol(PlantedFault),
    /// Syncs of these files have no effect.
    SkipSync(&'static str),
    /// Syncs of this directory have no effect.
    SkipDirSync(&'static str),
    /// The first file is overwritten in place. Normally a rename replaces it.
    InPlace(&'static str, &'static str),
}

/// Faults that the harness must detect. `PlantedFault::IgnoreGroupBinding` is not listed: it has an
/// effect so rarely that a separate storage test covers it.
pub const MUTANTS: &[Mutant] = &[
    Mutant::Protocol(PlantedFault::IgnoreLogChecksum),
    Mutant::Protocol(PlantedFault::IgnoreLogSequence),
    Mutant::Protocol(PlantedFault::NoResyncAfterReplay),
    Mutant::Protocol(PlantedFault::EarlyUnlink),
    Mutant::Protocol(PlantedFault::AcknowledgeBeforeSync),
    Mutant::Protocol(PlantedFault::EarlyLogRecycle),
    Mutant::Protocol(PlantedFault::TrustAdoptedSegments),
    Mutant::Protocol(PlantedFault::ForgetSymbols),
    Mutant::Protocol(PlantedFault::SkipAdoptedSync),
    Mutant::Protocol(PlantedFault::TrustFailedSync),
    Mutant::Protocol(PlantedFault::ReuseFailedLog),
    Mutant::Protocol(PlantedFault::ResyncSegment),
    Mutant::Protocol(PlantedFault::IgnoreVoid),
    Mutant::Protocol(PlantedFault::ForgetRotatedFile),
    Mutant::Protocol(PlantedFault::AdoptBeforeMove),
    Mutant::Protocol(PlantedFault::RemoveManifestFiles),
    Mutant::Protocol(PlantedFault::ForgetFileNumbers),
    Mutant::Protocol(PlantedFault::ForgetBackupNames),
    Mutant::Protocol(PlantedFault::RemoveBackupInPlace),
    Mutant::InPlace("db/CURRENT.tmp", "db/CURRENT"),
    Mutant::SkipSync("FORMAT"),
    Mutant::SkipSync(".log"),
    Mutant::SkipSync(".seg"),
    Mutant::SkipSync("sym."),
    Mutant::SkipSync("manifest."),
    Mutant::SkipSync("CURRENT.tmp"),
    Mutant::SkipDirSync(""),
    Mutant::SkipDirSync("db"),
    Mutant::SkipDirSync("db/log"),
    Mutant::SkipDirSync("db/t"),
    Mutant::SkipDirSync("db/t/"),
];

/// Faults whose effects no client could observe, each with the reason.
pub const EQUIVALENT: &[(Mutant, &str)] = &[(
    Mutant::Protocol(PlantedFault::ReplayAllLogs),
    "transactions in the manifest have numbers below the next one and are skipped",
)];

/// Counts and failures of a crash run.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of states in which every guarantee held.
    pub passed: u64,
    /// States in which a guarantee was broken, with the seed that reproduces them.
    pub failures: Vec<Failure>,
    /// Number of states after a crash during recovery.
    pub double_crashes: u64,
    /// Number of states after a kill, a restart and a power loss.
    pub kills: u64,
    /// Number of states after a restored backup, half of them after a power loss during the
    /// restore.
    pub restores: u64,
    /// Number of segments that were skipped as damaged.
    pub given_up: u64,
    /// Number of workloads by commit mode: sync, async, nosync.
    pub modes: [u64; 3],
}

/// A broken guarantee.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The workload's seed.
    pub seed: u64,
    /// How the state differs from the expected state.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.what)
    }
}

impl Report {
    /// Total number of states.
    #[must_use]
    pub fn states(&self) -> u64 {
        self.passed + self.failures.len() as u64
    }
}

/// Runs workloads with consecutive seeds, starting with `seed`, until `states` states have been
/// compared. With `stop_at_failure`, stops at the first failure.
#[must_use]
pub fn run(seed: u64, states: u64, mutant: Option<&Mutant>, stop_at_failure: bool) -> Report {
    let mut report = Report::default();
    let mut next = seed;
    while report.states() < states && (!stop_at_failure || report.failures.is_empty()) {
        run_one(next, mutant, &mut report);
        next += 1;
    }
    report
}

/// Returns storage options with sizes so small that a few rows fill files, segments and runs.
pub(crate) fn small_options(mode: CommitMode) -> StorageOptions {
    StorageOptions {
        commit_mode: mode,
        log_file_bytes: 32 << 10,
        log_prewrite_bytes: 8 << 10,
        run_rows: 40,
        segment_rows: 25,
        bulk_memory_bytes: 1_500,
        background: false,
        ..StorageOptions::default()
    }
}

fn options(mode: CommitMode, mutant: Option<&Mutant>) -> StorageOptions {
    let planted = match mutant {
        Some(Mutant::Protocol(fault)) => Some(*fault),
        _ => None,
    };
    StorageOptions { planted, ..small_options(mode) }
}

/// One in this many seeds also creates backups and skips damage.
const MAINTAINED: u64 = 4;

/// One workload and all states that are derived from it.
struct Case<'a> {
    seed: u64,
    rng: ChaCha8Rng,
    mutant: Option<&'a Mutant>,
    report: &'a mut Report,
}

/// Runs one seed's workload.
pub fn run_one(seed: u64, mutant: Option<&Mutant>, report: &mut Report) {
    let rng = ChaCha8Rng::seed_from_u64(seed);
    Case { seed, rng, mutant, report }.run();
}

impl Case<'_> {
    fn run(&mut self) {
        let modes = [CommitMode::Sync, CommitMode::Async, CommitMode::NoSync];
        let index = self.rng.random_range(0..modes.len());
        self.report.modes[index] += 1;
        let options = options(modes[index], self.mutant);
        let vfs = SimVfs::new(self.rng.random());
        match self.mutant {
            Some(Mutant::SkipSync(path)) => {
                vfs.plant(SimFault::SkipSync { path: (*path).to_owned() });
            }
            Some(Mutant::SkipDirSync(path)) => {
                vfs.plant(SimFault::SkipDirSync { path: (*path).to_owned() });
            }
            Some(Mutant::InPlace(from, to)) => {
                let (from, to) = ((*from).to_owned(), (*to).to_owned());
                vfs.plant(SimFault::InPlace { from, to });
            }
            Some(Mutant::Protocol(_)) | None => {}
        }
        let mut history = History::new();
        let at = self.rng.random_range(1..400);
        self.work(&vfs, &options, &mut history, at, 60);
        self.report.given_up += history.given_up;
        for _ in 0..3 {
            self.power_loss(&vfs, &options, &history);
        }
        self.double_crash(&vfs, &options, &history);
        self.kill_then_power_loss(&vfs, &options, history);
    }

    /// Runs a client until the power fails at operation `at`.
    fn work(
        &mut self,
        vfs: &SimVfs,
        options: &StorageOptions,
        history: &mut History,
        at: u64,
        actions: usize,
    ) {
        let at = vfs.operations() + at;
        if self.rng.random_bool(0.2) {
            let path = [".log", ".seg", "manifest", "sym."].choose(&mut self.rng);
            let path = (*path.unwrap_or(&".log")).to_owned();
            vfs.plant(SimFault::FailSync { path, at: self.rng.random_range(0..at) });
        }
        vfs.plant(SimFault::PowerLoss { at });
        let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
        let Ok(storage) = Storage::open(shared, options.clone()) else { return };
        let mut client = Client { storage: &storage, rng: &mut self.rng, history, pinned: None };
        let maintains = self.seed.is_multiple_of(MAINTAINED);
        for _ in 0..actions {
            // An action may fail without affecting later actions.
            let _ = client.act();
            if maintains && client.rng.random_bool(0.3) {
                let _ = client.copy_or_release();
            }
            if maintains && client.rng.random_bool(0.05) {
                let _ = client.skip(vfs);
            }
            if vfs.power_is_off() {
                break;
            }
        }
    }

    fn open(vfs: &SimVfs, options: &StorageOptions) -> Result<(Arc<Storage>, Model), String> {
        let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
        let storage = Storage::open(shared, options.clone())
            .map_err(|error| format!("the storage cannot be opened:  {}", error.message))?;
        let model = Model::read(&storage.snapshot())
            .map_err(|error| format!("the database cannot be read: {}", error.message))?;
        // A crash is not damage, so no crash state may be reported as damage.
        if let Some(what) = storage.repairs().first() {
            return Err(format!("opening repaired damage: {what}"));
        }
        if let Some(damage) = storage.snapshot().damages().first() {
            return Err(format!("a table is damaged: {}", damage.what));
        }
        Ok((storage, model))
    }

    fn check(&mut self, kind: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.report.passed += 1,
            Err(what) => {
                let what = format!("{kind}: {what}");
                self.report.failures.push(Failure { seed: self.seed, what });
            }
        }
    }

    fn compare(model: &Model, history: &History, at_least: usize) -> Result<(), String> {
        let fingerprint = model.fingerprint();
        if history.allows(fingerprint, at_least) {
            return Ok(());
        }
        let earlier = history.states.iter().rposition(|state| *state == fingerprint);
        Err(match earlier {
            Some(index) => format!(
                "{} of {} transactions remain, but {at_least} were durable",
                index,
                history.acknowledged()
            ),
            None => format!(
                "no earlier state matches; difference from the last state: {}",
                model.difference(&history.model)
            ),
        })
    }

    fn power_loss(&mut self, vfs: &SimVfs, options: &StorageOptions, history: &History) {
        let image = vfs.power_loss(self.rng.random());
        let copied = image.kill(0);
        let outcome = Self::open(&image, options)
            .and_then(|(_, model)| Self::compare(&model, history, history.durable));
        self.check(&format!("power loss in {:?}", options.commit_mode), outcome);
        if self.seed.is_multiple_of(MAINTAINED) {
            self.restore(&copied, options, history);
        }
    }

    /// Restores a disk's database from the backup. In some cases a power loss interrupts the
    /// restore.
    fn restore(&mut self, vfs: &SimVfs, options: &StorageOptions, history: &History) {
        let entries = vfs.list("").unwrap_or_default();
        if !entries.iter().any(|entry| entry.name == ".checkpoint") {
            if !history.copies.contains(&None) {
                self.check("copy", Err("the backup is missing".to_owned()));
            }
            return;
        }
        let ask = |vfs: &SimVfs| {
            let file = vfs.open("_restore", OpenMode::Replace)?;
            file.sync()?;
            vfs.sync_dir("")
        };
        let as_text = |error: &dyn fmt::Display| format!("the backup cannot be restored: {error}");
        let mut outcome = ask(vfs).map_err(|error| as_text(&error));
        let mut image = vfs.clone();
        if self.rng.random() {
            image.plant(SimFault::PowerLoss {
                at: image.operations() + self.rng.random_range(1..40),
            });
            if restore_if_requested(&image).is_ok() {
                let _ = Self::open(&image, options);
            }
            image = image.power_loss(self.rng.random());
        }
        outcome = outcome.and_then(|()| {
            restore_if_requested(&image).map_err(|error| as_text(&error.message))?;
            let (_, model) = Self::open(&image, options)?;
            let found = model.fingerprint();
            if history.copies.contains(&Some(found)) {
                return Ok(());
            }
            Err(format!("the restored backup differs: {}", model.difference(&history.model)))
        });
        self.report.restores += 1;
        self.check("restore", outcome);
    }

    /// Interrupts the recovery from a power loss with another power loss.
    fn double_crash(&mut self, vfs: &SimVfs, options: &StorageOptions, history: &History) {
        let image = vfs.power_loss(self.rng.random());
        image.plant(SimFault::PowerLoss { at: self.rng.random_range(1..25) });
        let first = Self::open(&image, options).map(|(_, model)| model);
        let again = image.power_loss(self.rng.random());
        let outcome = Self::open(&again, options).and_then(|(_, model)| {
            // The state that the first recovery exposed to readers must be durable.
            match first {
                Ok(shown) if shown != model => Err("it differs from the earlier state".to_owned()),
                _ => Self::compare(&model, history, history.durable),
            }
        });
        self.report.double_crashes += 1;
        self.check("double crash", outcome);
    }

    /// Kills the process, lets a new process continue, and then cuts the power.
    fn kill_then_power_loss(
        &mut self,
        vfs: &SimVfs,
        options: &StorageOptions,
        mut history: History,
    ) {
        self.report.kills += 1;
        let killed = vfs.kill(self.rng.random());
        let opened = Self::open(&killed, options);
        let outcome = opened.and_then(|(storage, model)| {
            drop(storage);
            let at_least = history.after_kill(vfs.sync_has_failed());
            Self::compare(&model, &history, at_least).map(|()| model)
        });
        let model = match outcome {
            Ok(model) => model,
            Err(what) => return self.check("kill", Err(what)),
        };
        history.restart(model);
        let at = self.rng.random_range(1..150);
        self.work(&killed, options, &mut history, at, 12);
        let image = killed.power_loss(self.rng.random());
        let outcome = Self::open(&image, options)
            .and_then(|(_, model)| Self::compare(&model, &history, history.durable));
        self.check("kill, then power loss", outcome);
    }
}
