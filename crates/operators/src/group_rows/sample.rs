//! At planning time, estimates from a sample whether a scan's rows have many keys.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::concat_batches;
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use hashbrown::HashSet;

use super::spread::hashes;
use crate::operator::Input;
use crate::plan_node::{PlanNode, scan_of};
use crate::scan::exec::SliceScan;
use crate::scan::kind::Scan;
use crate::scan::rows::read;

/// Minimum number of rows at which partitioning pays off.
const MIN_ROWS: usize = 2 << 20;
/// Number of sampled rows, and number of units they are read from.
const ROWS: usize = 2_048;
const UNITS: usize = 8;
/// Maximum number of sampled rows whose key already occurs in the sample. With about ten thousand
/// keys or more, a sample stays below this number.
const MAX_EQUAL: usize = 160;

/// Whether a hash table of groups with these keys would exceed the cache.
pub(super) fn has_many_keys(input: &Input, keys: &[Arc<dyn PhysicalExpr>]) -> bool {
    let Some(scan) = scan_below(input) else { return false };
    if scan.is_cut_small() {
        return true;
    }
    // Errors are ignored here, because they will occur again if the query reads these rows.
    scan.row_count() >= MIN_ROWS && are_different(input, keys).unwrap_or(false)
}

/// Returns the scan below row-by-row operators.
fn scan_below(input: &Input) -> Option<&SliceScan> {
    match PlanNode::of(input.as_ref()) {
        PlanNode::Filter(filter) => scan_below(filter.input()),
        PlanNode::Projection(projection) => scan_below(projection.input()),
        _ => scan_of(input).map(Scan::table),
    }
}

fn are_different(input: &Input, keys: &[Arc<dyn PhysicalExpr>]) -> Result<bool> {
    let sample = rows_of(input)?;
    let keys = keys.iter().map(|key| key.evaluate(&sample)?.into_array(sample.num_rows()));
    let hashes = hashes(&keys.collect::<Result<Vec<_>>>()?, sample.num_rows())?;
    let different = hashes.iter().collect::<HashSet<_>>().len();
    Ok(sample.num_rows() >= ROWS / 2 && different + MAX_EQUAL >= sample.num_rows())
}

/// Returns sample rows from an input, without applying filters.
fn rows_of(input: &Input) -> Result<RecordBatch> {
    match PlanNode::of(input.as_ref()) {
        PlanNode::Filter(filter) => {
            let rows = rows_of(filter.input())?;
            Ok(match filter.projection() {
                Some(columns) => rows.project(columns)?,
                None => rows,
            })
        }
        PlanNode::Projection(projection) => {
            let rows = rows_of(projection.input())?;
            let columns = projection.expr().iter();
            let columns = columns.map(|own| own.expr.evaluate(&rows)?.into_array(rows.num_rows()));
            let count = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            let columns = columns.collect::<Result<_>>()?;
            Ok(RecordBatch::try_new_with_options(input.schema(), columns, &count)?)
        }
        _ => {
            let Some(scan) = scan_of(input) else {
                return internal_err!("expected the rows of a scan");
            };
            let rows = sample(scan.table())?;
            match scan {
                Scan::Table(_) => Ok(rows),
                Scan::Filtered(filtered) => Ok(rows.project(filtered.columns())?),
            }
        }
    }
}

/// Samples widely spaced rows from a scan. Skips Parquet files, which are read page by page.
fn sample(scan: &SliceScan) -> Result<RecordBatch> {
    let units: Vec<_> = scan.units().filter(|unit| unit.slice.is_plain()).collect();
    let required = units.iter().step_by(units.len().div_ceil(UNITS).max(1));
    let rows: usize = required.clone().map(|unit| unit.rows.len()).sum();
    let mut sample = vec![];
    for unit in required {
        for row in unit.rows.clone().step_by(rows.div_ceil(ROWS).max(1)) {
            sample.push(read(&unit.slice, scan.projection(), row..row + 1, scan.schema())?);
        }
    }
    Ok(concat_batches(scan.schema(), &sample)?)
}
