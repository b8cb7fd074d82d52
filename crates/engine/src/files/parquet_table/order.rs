//! Detects whether Parquet files are sorted by a timestamp column.

use std::sync::Arc;

use tidemark_types::Field;

use super::file::ParquetFile;
use super::prune::Value;

/// Returns the timestamp column by which every file declares itself sorted, provided that no row
/// group starts before the previous row group ends.
pub(super) fn sorted_by(files: &[Arc<ParquetFile>], columns: &[Field]) -> Option<usize> {
    let is_time = |at: &usize| columns[*at].sql_type.is_timestamp();
    (0..columns.len()).filter(is_time).find(|at| is_sorted(files, &columns[*at].name))
}

fn is_sorted(files: &[Arc<ParquetFile>], column: &str) -> bool {
    let mut before: Option<Value> = None;
    for file in files {
        let Some(at) = file.column(column).filter(|at| file.is_sorted_by(*at)) else {
            return false;
        };
        for group in 0..file.metadata.metadata().num_row_groups() {
            if file.metadata.metadata().row_group(group).num_rows() == 0 {
                continue;
            }
            let Some(bounds) = file.bounds(group, at) else { return false };
            if before.as_ref().is_some_and(|before| !before.is_at_most(&bounds.low)) {
                return false;
            }
            before = Some(bounds.high);
        }
    }
    !files.is_empty()
}
