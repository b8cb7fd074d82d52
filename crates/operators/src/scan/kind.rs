//! A table scan, with or without a filter.

use std::fmt;
use std::ops::Range;
use std::time::Instant;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use tidemark_storage::{LastRow, Slice};
use tidemark_types::account;

use super::exec::SliceScan;
use super::filtered::FilteredScan;
use super::pace::{Step, Yields};
use super::rows::read;
use super::symbol_test::PassingKeys;
use crate::error::engine_error;

/// A table scan.
#[derive(Debug)]
pub enum Scan {
    Table(SliceScan),
    Filtered(FilteredScan),
}

impl Scan {
    /// Returns the underlying table scan.
    pub fn table(&self) -> &SliceScan {
        match self {
            Self::Table(scan) => scan,
            Self::Filtered(filtered) => filtered.scan(),
        }
    }

    /// Returns the scan, unless it has a filter.
    pub fn unfiltered(&self) -> Option<&SliceScan> {
        match self {
            Self::Table(scan) => Some(scan),
            Self::Filtered(_) => None,
        }
    }

    /// Whether the same rows pass in every execution.
    pub(crate) fn is_stable(&self) -> bool {
        match self {
            Self::Table(_) => true,
            Self::Filtered(filtered) => filtered.is_stable(),
        }
    }

    /// Maximum number of rows per partition, if the output is limited in addition to the rows read.
    pub fn fetch(&self) -> Option<usize> {
        match self {
            Self::Table(_) => None,
            Self::Filtered(filtered) => filtered.fetch(),
        }
    }

    /// Returns the column of [`Self::table`] that an output column is derived from.
    pub fn column(&self, output: usize) -> Option<usize> {
        match self {
            Self::Table(_) => Some(output),
            Self::Filtered(filtered) => filtered.column(output),
        }
    }

    /// Returns the symbol keys that can occur, if a filter restricts them.
    pub(crate) fn passing_keys(&self, output: usize) -> Option<PassingKeys> {
        match self {
            Self::Table(_) => None,
            Self::Filtered(filtered) => filtered.passing_keys(output),
        }
    }

    /// Returns a symbol column of [`Self::table`] for which only a few keys can pass, along with
    /// these keys.
    fn few_keys(&self) -> Option<(usize, &[i32])> {
        match self {
            Self::Table(_) => None,
            Self::Filtered(filtered) => filtered.few_keys(),
        }
    }

    /// Returns some of a slice's rows, oldest first; `None` if a filter drops all of them.
    pub fn read(&self, slice: &Slice, rows: Range<usize>) -> Result<Option<RecordBatch>> {
        match self {
            Self::Table(scan) => read(slice, scan.projection(), rows, scan.schema()).map(Some),
            Self::Filtered(filtered) => filtered.read(slice, rows),
        }
    }

    /// Reads the slices from the end for as long as `take` requests more rows. Rows in a batch are
    /// oldest first, so they do not have to be reversed. If a symbol's last row is known, the rows
    /// after it are skipped.
    pub(crate) async fn read_from_end(
        &self,
        mut requested: Requested,
        mut take: impl FnMut(RecordBatch) -> Result<Requested>,
    ) -> Result<()> {
        let few = self.few_keys();
        if few.is_some_and(|(_, keys)| keys.is_empty()) {
            return Ok(());
        }
        let (mut step, mut turns) = (Step::short_at_first(), Yields::short_at_first());
        for unit in self.table().units().rev() {
            let mut rows = unit.rows.clone();
            loop {
                // Checks for cancellation at every unit, because looking up the metadata of many
                // units takes time as well.
                account::check().map_err(engine_error)?;
                turns.yield_when_over().await;
                let keys = match &requested {
                    Requested::Nothing => return Ok(()),
                    Requested::Rows => few,
                    Requested::Keys { column, keys } => Some((*column, keys.as_slice())),
                };
                let Some((next, is_found)) = self.next_from_end(&unit.slice, &rows, keys, &step)
                else {
                    break;
                };
                rows.end = next.start;
                let started = Instant::now();
                if let Some(batch) = self.read(&unit.slice, next)? {
                    requested = take(batch)?;
                }
                if !is_found {
                    step.took(started.elapsed());
                }
            }
        }
        Ok(())
    }

    /// Returns which of a slice's remaining rows to read next, and whether they are exactly the
    /// requested row. Returns `None` if none of the remaining rows can match.
    fn next_from_end(
        &self,
        slice: &Slice,
        rows: &Range<usize>,
        keys: Option<(usize, &[i32])>,
        step: &Step,
    ) -> Option<(Range<usize>, bool)> {
        let found = match keys {
            Some((column, keys)) => {
                let column = *self.table().projection().get(column)?;
                slice.last_row(column, keys, rows.clone(), step.rows)
            }
            None => LastRow::Before(rows.end),
        };
        match found {
            LastRow::At(row) => Some((row..row + 1, true)),
            LastRow::Before(end) if end > rows.start => {
                Some((end.saturating_sub(step.rows).max(rows.start)..end, false))
            }
            LastRow::Before(_) | LastRow::Nowhere => None,
        }
    }
}

/// Rows requested from a scan that is read from its end.
pub(crate) enum Requested {
    Nothing,
    /// Any row.
    Rows,
    /// Rows with one of these keys in a symbol column of [`Scan::table`].
    Keys {
        column: usize,
        keys: Vec<i32>,
    },
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(scan) => write!(f, "{scan}"),
            Self::Filtered(filtered) => write!(f, "{filtered}"),
        }
    }
}
