//! Fails every file system call once.
//!
//! A scripted client uses every storage feature. Call number k fails, for every k up to the number
//! of calls in the script, in every commit mode, and with every error that the system can return.
//! No failure may cause a panic, and readers must always see exactly the acknowledged state. After
//! a restart, even after a power loss, all acknowledged data must exist and the database must work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tidemark_storage::{CommitMode, Storage, StorageOptions};
use tidemark_vfs::{SimVfs, Vfs};

use crate::crash::small_options;
use crate::faulty::{Failure, FaultyVfs};
use crate::model::Model;
use crate::workload::{Action, Client, History};

/// Counts and failures of a fault run.
#[derive(Debug, Default)]
pub struct FaultReport {
    /// Number of runs in which every guarantee held.
    pub passed: u64,
    /// Runs in which a guarantee was broken, with the arguments that reproduce them.
    pub failures: Vec<String>,
    /// Number of calls in the longest script.
    pub calls: u64,
}

/// The call that fails in one run, and the error that it returns.
#[derive(Debug, Clone, Copy)]
struct Fault {
    seed: u64,
    mode: CommitMode,
    at: u64,
    failure: Failure,
    name: &'static str,
    lasting: bool,
}

/// Fails every `stride`-th call, in every mode and with every error. With `only`, fails just that
/// call.
#[must_use]
pub fn run(seed: u64, stride: u64, only: Option<u64>) -> FaultReport {
    let mut report = FaultReport::default();
    for mode in [CommitMode::Sync, CommitMode::Async, CommitMode::NoSync] {
        for (failure, name) in Failure::ALL {
            for lasting in [false, true] {
                let fault = Fault { seed, mode, at: 0, failure, name, lasting };
                every_call(fault, stride, only, &mut report);
            }
        }
    }
    report
}

fn every_call(fault: Fault, stride: u64, only: Option<u64>, report: &mut FaultReport) {
    // The number of the first failing call depends on the kind of run, so that all runs together
    // cover every call despite the stride.
    let kind = report.passed + report.failures.len() as u64;
    let mut at = only.unwrap_or(1 + kind % stride.max(1));
    loop {
        let fault = Fault { at, ..fault };
        let outcome = catch_unwind(AssertUnwindSafe(|| one(fault)));
        let outcome = outcome.unwrap_or_else(|_| Err("the storage panicked".to_owned()));
        let reached = match outcome {
            Ok(calls) => {
                report.passed += 1;
                report.calls = report.calls.max(calls);
                calls >= at
            }
            Err(what) => {
                let Fault { seed, mode, at, name, lasting, .. } = fault;
                let from = if lasting { " and all later ones" } else { "" };
                report.failures.push(format!(
                    "call {at}{from} {name} in {mode:?}: {what} (--seed {seed} --only {at})"
                ));
                at < 10_000
            }
        };
        if !reached || only.is_some() {
            return;
        }
        at += stride.max(1);
    }
}

/// Runs the script with one fault. Returns the number of calls made before the disk was healed.
fn one(fault: Fault) -> Result<u64, String> {
    let disk = SimVfs::new(fault.seed);
    let faulty = FaultyVfs::new(disk, fault.at, fault.failure, fault.lasting);
    let options = small_options(fault.mode);
    let mut rng = ChaCha8Rng::seed_from_u64(fault.seed);
    let mut history = History::new();
    let mut client_rng = ChaCha8Rng::seed_from_u64(fault.seed + 1);
    // Runs two sessions, so that the fault may also hit the recovery of a filled root.
    for _ in 0..2 {
        session(&faulty, &options, &mut client_rng, &mut history)?;
    }
    let calls = faulty.calls();
    faulty.heal();
    let killed = faulty.disk().kill(fault.seed);
    let at_least = history.after_kill(faulty.disk().sync_has_failed());
    restart(&killed, &options, &history, at_least, &mut rng)
        .map_err(|what| format!("after a restart: {what}"))?;
    let image = faulty.disk().power_loss(fault.seed);
    restart(&image, &options, &history, history.durable, &mut rng)
        .map_err(|what| format!("after a power loss: {what}"))?;
    Ok(calls)
}

/// Opens the root, runs the script and closes the root. Each step may fail.
fn session(
    faulty: &FaultyVfs,
    options: &StorageOptions,
    rng: &mut ChaCha8Rng,
    history: &mut History,
) -> Result<(), String> {
    let shared: Arc<dyn Vfs> = Arc::new(faulty.clone());
    // Opening or reading may fail, but must have no other effect.
    let Ok(storage) = Storage::open(shared, options.clone()) else { return Ok(()) };
    let Ok(opened) = Model::read(&storage.snapshot()) else { return Ok(()) };
    let at_least = history.after_kill(faulty.disk().sync_has_failed());
    if !history.allows(opened.fingerprint(), at_least) {
        return Err(format!("after reopening: {}", opened.difference(&history.model)));
    }
    history.restart(opened);
    let mut client = Client { storage: &storage, rng, history, pinned: None };
    for action in Action::SCRIPT {
        let outcome = client.perform(*action);
        // The fault may also hit a reader. A read that succeeds must return the acknowledged state.
        if let Ok(seen) = Model::read(&client.storage.snapshot())
            && seen.fingerprint() != client.history.model.fingerprint()
        {
            let difference = seen.difference(&client.history.model);
            return Err(format!("{action:?} returned {outcome:?}, then: {difference}"));
        }
    }
    drop(client);
    // A single fault can make at most one of two reads fail, because it must not break readers
    // permanently.
    let reads = || Model::read(&storage.snapshot());
    if !faulty.lasts()
        && let (Err(error), Err(_)) = (reads(), reads())
    {
        return Err(format!("reads keep failing: {}", error.message));
    }
    if storage.close().is_ok() {
        history.durable = history.acknowledged();
    }
    Ok(())
}

/// Checks on a healed disk that everything guaranteed exists and that the database works.
fn restart(
    disk: &SimVfs,
    options: &StorageOptions,
    history: &History,
    at_least: usize,
    rng: &mut ChaCha8Rng,
) -> Result<(), String> {
    let shared: Arc<dyn Vfs> = Arc::new(disk.clone());
    let storage = Storage::open(Arc::clone(&shared), options.clone())
        .map_err(|error| format!("the storage cannot be opened:  {}", error.message))?;
    let read = |storage: &Storage| {
        Model::read(&storage.snapshot()).map_err(|error| format!("unreadable: {}", error.message))
    };
    let model = read(&storage)?;
    if !history.allows(model.fingerprint(), at_least) {
        let (difference, repairs) = (model.difference(&history.model), storage.repairs());
        return Err(format!(
            "{at_least} transactions were guaranteed: {difference}; repaired: {repairs:?}"
        ));
    }
    let mut after = history.clone();
    after.restart(model);
    let mut client = Client { storage: &storage, rng, history: &mut after, pinned: None };
    for action in [Action::Create, Action::Append, Action::Bulk, Action::Checkpoint] {
        client.perform(action).map_err(|error| format!("{action:?}: {}", error.message))?;
    }
    storage.close().map_err(|error| format!("closing: {}", error.message))?;
    drop(storage);
    let storage = Storage::open(shared, options.clone())
        .map_err(|error| format!("the storage cannot be opened again:  {}", error.message))?;
    let again = read(&storage)?;
    if again.fingerprint() == after.model.fingerprint() {
        Ok(())
    } else {
        Err(format!("after reopening again: {}", again.difference(&after.model)))
    }
}
