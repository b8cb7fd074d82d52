//! Limits the process's resident memory, because the pool does not count all memory.
//!
//! Above the low mark, new queries wait and ingestion is slowed. Above the high mark, ingestion is
//! rejected and the query that uses the most memory is stopped. These restrictions end
//! automatically. Mapped files do not count, because the kernel reclaims their pages when needed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tidemark_storage::{Pressure, Storage};
use tidemark_types::{EngineError, ErrorCode, account};
use tokio::runtime::Handle;

use crate::runtime::log;
use crate::runtime::registry::QueryRegistry;

/// Interval between measurements, normally and when memory use is high. Memory that a thread has
/// freed but still retains counts as free until the next measurement and may be granted to other
/// threads.
const MEASURE_EVERY: Duration = Duration::from_millis(100);
const MEASURE_MUCH_EVERY: Duration = Duration::from_millis(10);
/// Minimum interval between log lines about the same memory level.
const LOG_EVERY: Duration = Duration::from_secs(1);
/// Minimum interval between requests that threads return freed memory. Such a request also requires
/// that retained memory has grown by the limit divided by `RETAINED_GROWTH_DIVISOR`.
const RELEASE_INTERVAL: Duration = Duration::from_secs(1);
const RETAINED_GROWTH_DIVISOR: u64 = 8;
/// Percentage of the limit above which memory use is high.
const MUCH_PERCENT: u64 = 60;
/// Minimum time between stopping two queries, because a stopped query needs time to release its
/// memory.
const PATIENCE: Duration = Duration::from_millis(500);
/// Percentage of the limit above which new queries wait.
const LOW_PERCENT: u64 = 80;
/// Percentage of the limit above which the largest query is stopped.
const HIGH_PERCENT: u64 = 90;

/// Memory use level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    /// Memory is sufficient.
    Normal,
    /// Memory is too low to start new queries.
    Low,
    /// Memory is so low that a query must be stopped.
    High,
}

/// The memory limit and the process's current resident memory.
#[derive(Debug)]
pub(crate) struct ResidentGuard {
    limit: u64,
    resident: AtomicU64,
    level: AtomicU8,
}

impl ResidentGuard {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, resident: AtomicU64::new(0), level: AtomicU8::new(0) })
    }

    /// Creates a guard that measures memory until the database is closed. It acts on the database's
    /// queries and unwritten rows.
    pub(crate) fn watching(
        limit: u64,
        handle: &Handle,
        (registry, storage): (&Arc<QueryRegistry>, &Arc<Storage>),
    ) -> Arc<Self> {
        let guard = Self::new(limit);
        let (queries, rows) = (Arc::downgrade(registry), Arc::downgrade(storage));
        handle.spawn(watch(Arc::clone(&guard), queries, rows));
        guard
    }

    pub(crate) fn level(&self) -> Level {
        match self.level.load(Ordering::Relaxed) {
            0 => Level::Normal,
            1 => Level::Low,
            _ => Level::High,
        }
    }

    /// Resident bytes at the last measurement.
    pub(crate) fn resident(&self) -> u64 {
        self.resident.load(Ordering::Relaxed)
    }

    fn percent(&self, percent: u64) -> u64 {
        self.limit / 100 * percent
    }

    fn note(&self, resident: u64) -> Level {
        let level = match resident {
            bytes if bytes >= self.percent(HIGH_PERCENT) => Level::High,
            bytes if bytes >= self.percent(LOW_PERCENT) => Level::Low,
            _ => Level::Normal,
        };
        self.resident.store(resident, Ordering::Relaxed);
        self.level.store(level as u8, Ordering::Relaxed);
        level
    }

    /// Returns the error for work that must not start now.
    pub(crate) fn refusal(&self) -> EngineError {
        let (resident, limit) = (self.resident() >> 20, self.limit >> 20);
        let message = format!("memory is low: the server is using {resident} of {limit} MiB");
        EngineError::new(ErrorCode::OutOfMemory, message)
            .with_hint("retry later: the server recovers automatically; see memory.limit")
    }

    fn stopped(&self) -> EngineError {
        let (resident, limit) = (self.resident() >> 20, self.limit >> 20);
        let message =
            format!("stopped as the largest query: the server is using {resident} of {limit} MiB");
        EngineError::new(ErrorCode::OutOfMemory, message)
            .with_hint("make the query read fewer rows or groups; see memory.limit")
    }
}

/// Decides when threads must return memory that they have freed but retain: when this memory has
/// grown by an eighth of `memory.limit` since the last return.
#[derive(Debug)]
struct RetainedMemory {
    step: u64,
    /// The smallest number of retained bytes observed since threads last returned memory.
    min: u64,
    requested_at: Option<Instant>,
}

impl RetainedMemory {
    fn new(limit: u64) -> Self {
        Self { step: limit / RETAINED_GROWTH_DIVISOR, min: 0, requested_at: None }
    }

    /// Whether threads must return memory, given the number of bytes that they retain now.
    fn is_too_much(&mut self, retained: u64) -> bool {
        if self.requested_at.is_some_and(|at| at.elapsed() < RELEASE_INTERVAL) {
            return false;
        }
        if self.requested_at.take().is_some() {
            self.min = retained;
        }
        self.min = self.min.min(retained);
        let is_too_much = retained - self.min >= self.step;
        if is_too_much {
            self.requested_at = Some(Instant::now());
        }
        is_too_much
    }
}

/// Wakes idle workers so that they return freed memory before they park again.
fn wake_workers() {
    let handle = Handle::current();
    for _ in 0..handle.metrics().num_workers() {
        handle.spawn(async {});
    }
}

/// Measures repeatedly until the database is closed.
async fn watch(guard: Arc<ResidentGuard>, registry: Weak<QueryRegistry>, storage: Weak<Storage>) {
    let (mut stopped, mut requested) = (None::<Instant>, 0);
    let mut retained = RetainedMemory::new(guard.limit);
    let (mut pause, mut logged) = (Duration::ZERO, None::<(Level, Instant)>);
    loop {
        tokio::time::sleep(pause).await;
        let (Some(registry), Some(storage)) = (registry.upgrade(), storage.upgrade()) else {
            return;
        };
        let before = guard.level();
        let Some(resident) = resident_bytes() else { return };
        account::set_process_limit(guard.limit, resident);
        let level = guard.note(resident);
        storage.set_pressure(match level {
            Level::Normal => Pressure::None,
            Level::Low => Pressure::Low,
            Level::High => Pressure::High,
        });
        let may_log = logged.is_none_or(|(low, at)| level > low || at.elapsed() >= LOG_EVERY);
        if level > before && may_log {
            logged = Some((level, Instant::now()));
            let fields = serde_json::json!({
                "resident_bytes": resident, "limit_bytes": guard.limit, "level": level as u8,
            });
            log::write(log::Level::Warn, "engine", "memory_low", fields);
        }
        if retained.is_too_much(resident.saturating_sub(account::live_bytes())) {
            account::request_release();
        }
        if std::mem::replace(&mut requested, account::release_requests()) != requested {
            wake_workers();
        }
        let may_stop = stopped.is_none_or(|at| at.elapsed() >= PATIENCE);
        if level == Level::High && may_stop && registry.stop_biggest_query(guard.stopped()) {
            stopped = Some(Instant::now());
        }
        let is_much = resident >= guard.percent(MUCH_PERCENT);
        pause = if is_much { MEASURE_MUCH_EVERY } else { MEASURE_EVERY };
    }
}

/// Returns the process's resident memory in bytes, excluding mapped files.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(kib_after(&status, "RssAnon:")? + kib_after(&status, "RssShmem:").unwrap_or(0))
}

/// Returns the process's resident memory in bytes, including mapped files.
pub(crate) fn process_bytes() -> Option<u64> {
    kib_after(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Returns the number of bytes given by a line `name  N kB`.
fn kib_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Returns the memory available to the process: the machine's memory, or less if a control group
/// sets a lower limit.
pub(crate) fn machine_memory() -> u64 {
    const FALLBACK_BYTES: u64 = 2 << 30;
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kib_after(&text, "MemTotal:"));
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group_files(&group)
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    limits.chain(machine).min().unwrap_or(FALLBACK_BYTES)
}

/// Returns the files that may contain the memory limits of the process's control group and its
/// ancestors.
fn group_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
        let (root, file) = match controllers {
            Some("") => ("/sys/fs/cgroup", "memory.max"),
            Some(list) if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(root).join(path.unwrap_or("").trim_start_matches('/'));
        let around = group.ancestors().take_while(|path| path.starts_with(root));
        files.extend(around.map(|path| path.join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_levels_follow_the_measured_memory() {
        let guard = ResidentGuard::new(1_000);
        assert_eq!(guard.level(), Level::Normal);
        for (bytes, level) in [
            (799, Level::Normal),
            (800, Level::Low),
            (900, Level::High),
            (899, Level::Low),
            (10, Level::Normal),
        ] {
            assert_eq!(guard.note(bytes), level);
            assert_eq!(guard.level(), level);
        }
    }

    #[test]
    fn retained_memory_is_released_once_it_grows_too_large() {
        let mut retained = RetainedMemory::new(800);
        assert!(!retained.is_too_much(99));
        assert!(retained.is_too_much(100));
        assert!(!retained.is_too_much(1_000), "threads have just returned memory");
        retained.requested_at = Instant::now().checked_sub(RELEASE_INTERVAL);
        assert!(!retained.is_too_much(300), "the minimum retained since the last return");
        assert!(!retained.is_too_much(250));
        assert!(!retained.is_too_much(349));
        assert!(retained.is_too_much(350));
    }

    #[test]
    fn process_memory_is_measured() {
        let bytes = resident_bytes().unwrap();
        assert!(bytes > 100 << 10 && bytes < machine_memory(), "{bytes}");
    }

    #[test]
    fn cgroup_limits_are_read_from_each_level_up_to_the_root() {
        let files = group_files("12:cpu,memory:/a\n0::/b/c\n3:pids:/x");
        let names: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/b/c/memory.max",
                "/sys/fs/cgroup/b/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
    }
}
