//! The root directory: file system checks, subdirectories, and changes to tables at startup.

use std::path::{Path, PathBuf};

use tidemark_border::OpenOptions;
use tidemark_catalog::due_table_types;
use tidemark_planner::{BindContext, Planner};
use tidemark_storage::Storage;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{FileSystem, RealVfs, Vfs};

use crate::runtime::log::{self, Level};
use crate::runtime::registry::now_micros;

/// Default directory that `read_parquet` may read from, relative to the root.
const IMPORT_DIRECTORY: &str = "import";
/// Default directory for COPY … TO, relative to the root.
const EXPORT_DIRECTORY: &str = "export";
/// Directory for spilled rows, relative to the root.
const SPILL_DIRECTORY: &str = "tmp";
/// Open-file and memory-map limits below which the operator is warned.
const FEW_FILES: u64 = 4_096;
const FEW_MAPS: u64 = 65_530;

/// Checks the root directory. Restores it from a backup copy if that was requested.
pub(super) fn checked(root: &Path) -> EngineResult<RealVfs> {
    let vfs = root_directory(root)?;
    restore_if_requested(&vfs)?;
    check_machine(&vfs)?;
    Ok(vfs)
}

fn root_directory(root: &Path) -> EngineResult<RealVfs> {
    RealVfs::new(root).map_err(|error| {
        let root = root.display();
        EngineError::io(format_args!("cannot use the root directory {root}"), &error)
    })
}

/// Rejects a root on a file system without durability guarantees. Warns of settings that may cause
/// problems later.
fn check_machine(vfs: &RealVfs) -> EngineResult<()> {
    let root = vfs.root().display();
    let warn = |event: &'static str, notice: String| {
        log::write(Level::Warn, "engine", event, serde_json::json!({ "notice": notice }));
    };
    match vfs.file_system().map_err(|error| EngineError::io(&root, &error))? {
        FileSystem::Local => {}
        FileSystem::Network(name) => {
            let message = format!(
                "root directory '{root}' is on a network file system ({name}), which does not \
                 guarantee that committed data is durable"
            );
            return Err(EngineError::new(ErrorCode::NotSupported, message)
                .with_hint("use a directory on a local disk"));
        }
        FileSystem::Layered(name) => {
            let notice = format!(
                "root directory '{root}' is on {name}: durability depends on this file system"
            );
            warn("file_system", notice);
        }
    }
    let limits = tidemark_vfs::limits();
    if limits.open_files < FEW_FILES {
        let files = limits.open_files;
        warn("limits", format!("the limit of open files is {files}: raise it with ulimit -n"));
    }
    if limits.maps < FEW_MAPS {
        let maps = limits.maps;
        warn(
            "limits",
            format!("vm.max_map_count is {maps}: raise it for tables with many partitions"),
        );
    }
    Ok(())
}

/// Returns the default spill limit: a quarter of the free disk space.
pub(super) fn default_spill_limit(vfs: &RealVfs) -> u64 {
    const FALLBACK_BYTES: u64 = 10 << 30;
    vfs.space().map_or(FALLBACK_BYTES, |space| space.free / 4)
}

/// If the file `_restore` exists, replaces the database with the copy made by CHECKPOINT CREATE.
/// The next start resumes an interrupted restore.
fn restore_if_requested(vfs: &dyn Vfs) -> EngineResult<()> {
    if tidemark_storage::restore_if_requested(vfs)? {
        log::write(Level::Warn, "engine", "restored", serde_json::json!({ "from": ".checkpoint" }));
    }
    Ok(())
}

pub(super) fn import_root(options: &OpenOptions) -> EngineResult<PathBuf> {
    match &options.import_root {
        Some(path) => directory(&options.root.join(path)),
        None => directory(&options.root.join(IMPORT_DIRECTORY)),
    }
}

pub(super) fn export_root(options: &OpenOptions) -> PathBuf {
    options.root.join(options.export_root.as_deref().unwrap_or(Path::new(EXPORT_DIRECTORY)))
}

/// Removes spill files left by a crashed process. The root is locked, so no other process uses
/// these files.
pub(super) fn spill_directory(root: &Path) -> EngineResult<PathBuf> {
    let spill = root.join(SPILL_DIRECTORY);
    match std::fs::remove_dir_all(&spill) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EngineError::io(format_args!("cannot delete {}", spill.display()), &error))
        }
        _ => directory(&spill),
    }
}

fn directory(path: &Path) -> EngineResult<PathBuf> {
    std::fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|error| EngineError::io(format_args!("cannot use {}", path.display()), &error))
}

/// Prepares tables and views at startup, before they are used.
pub(super) fn prepare_tables(storage: &Storage) {
    report_damage(storage);
    set_table_types(storage);
    settle_views(storage);
}

/// Applies pending SET TYPE changes. If the write fails, the next start retries it.
fn set_table_types(storage: &Storage) {
    let due = due_table_types(&storage.snapshot());
    if due.is_empty() {
        return;
    }
    if let Err(error) = storage.commit(due) {
        let fields = serde_json::json!({ "message": error.message });
        log::write(Level::Warn, "engine", "table_types", fields);
    }
}

/// Binds views created by older versions to the objects that they name. If the write fails, the
/// next start retries it; until then the names are resolved whenever the view is used.
fn settle_views(storage: &Storage) {
    let context = BindContext { now_micros: now_micros(), ..BindContext::default() };
    let settle = || -> EngineResult<()> {
        loop {
            let due = Planner::settle_views(&storage.snapshot(), &context)?;
            if due.is_empty() {
                return Ok(());
            }
            storage.commit(due)?;
        }
    };
    if let Err(error) = settle() {
        let fields = serde_json::json!({ "message": error.message });
        log::write(Level::Warn, "engine", "views", fields);
    }
}

fn report_damage(storage: &Storage) {
    let error = |event: &'static str, what: &str| {
        log::write(Level::Error, "engine", event, serde_json::json!({ "what": what }));
    };
    for what in storage.repairs() {
        error("damage_at_start", what);
    }
    for damage in storage.snapshot().damages() {
        error("damaged_table", &format!("{}: {}", damage.table, damage.what));
    }
}
