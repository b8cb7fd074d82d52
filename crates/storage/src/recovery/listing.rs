//! Lists a root's files.

use std::collections::HashMap;

use tidemark_types::{EngineError, EngineResult};
use tidemark_vfs::{DirEntry, Vfs};

use crate::disk::layout::{LOG, TABLES, damaged, file_number, log_number};

/// Names and lengths of the files in each table directory.
pub(crate) type Listings = HashMap<String, HashMap<String, u64>>;

/// Lists the directories of all tables.
pub(crate) fn table_listings(vfs: &dyn Vfs) -> EngineResult<Listings> {
    let mut listings = Listings::new();
    for entry in list(vfs, TABLES)?.into_iter().filter(|entry| entry.is_dir) {
        let path = format!("{TABLES}/{}", entry.name);
        let files = list(vfs, &path)?.into_iter().map(|entry| (entry.name, entry.len));
        listings.insert(path, files.collect());
    }
    Ok(listings)
}

/// Highest file number in use.
pub(crate) fn highest_file(listings: &Listings) -> u64 {
    let names = listings.values().flat_map(HashMap::keys);
    names.filter_map(|name| file_number(name)).max().unwrap_or(0)
}

/// Fails if a file is missing or its length differs.
pub(crate) fn check_file(listings: &Listings, path: &str, len: u64) -> EngineResult<()> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match listings.get(directory).and_then(|files| files.get(name)) {
        Some(&found) if found == len => Ok(()),
        Some(found) => Err(damaged(path, format!("found {found} bytes, expected {len}"))),
        None => Err(damaged(path, "the file is missing")),
    }
}

/// Numbers of the log files, ascending.
pub(crate) fn list_logs(vfs: &dyn Vfs) -> EngineResult<Vec<u64>> {
    let mut numbers: Vec<u64> =
        list(vfs, LOG)?.iter().filter_map(|entry| log_number(&entry.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

pub(crate) fn list(vfs: &dyn Vfs, path: &str) -> EngineResult<Vec<DirEntry>> {
    vfs.list(path).map_err(|error| EngineError::io(path, &error))
}
/// Removes a directory with its content, if it exists. Files that cannot be removed are left for
/// the next start.
pub(crate) fn remove_tree(vfs: &dyn Vfs, path: &str) {
    if let Ok(entries) = vfs.list(path) {
        for entry in entries {
            let _ = vfs.unlink(&format!("{path}/{}", entry.name));
        }
    }
    let _ = vfs.remove_dir(path);
}
