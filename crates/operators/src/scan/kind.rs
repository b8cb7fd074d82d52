//! A scan of a table, with or without a filter.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use tidemark_storage::Slice;
use tidemark_types::account;

use super::exec::SliceScan;
use super::filtered::FilteredScan;
use super::pace::{Steps, Turns};
use super::rows::read;
use crate::error::engine_error;

/// What reads a table.
#[derive(Debug)]
pub enum Scan {
    Table(SliceScan),
    Filtered(FilteredScan),
}

impl Scan {
    /// The rows that are looked at.
    pub fn table(&self) -> &SliceScan {
        match self {
            Self::Table(scan) => scan,
            Self::Filtered(filtered) => filtered.scan(),
        }
    }

    /// The scan, if it passes on all rows.
    pub fn unfiltered(&self) -> Option<&SliceScan> {
        match self {
            Self::Table(scan) => Some(scan),
            Self::Filtered(_) => None,
        }
    }

    /// Rows of each partition, at most, if there is a limit beside that of the rows looked at.
    pub fn fetch(&self) -> Option<usize> {
        match self {
            Self::Table(_) => None,
            Self::Filtered(filtered) => filtered.fetch(),
        }
    }

    /// The column of [`Self::table`] behind an output column.
    pub fn column(&self, output: usize) -> Option<usize> {
        match self {
            Self::Table(_) => Some(output),
            Self::Filtered(filtered) => filtered.column(output),
        }
    }

    /// The keys of a symbol that can occur, where a filter leaves some of them; the last entry is
    /// that of null.
    pub fn passing_keys(&self, output: usize) -> Option<Vec<bool>> {
        match self {
            Self::Table(_) => None,
            Self::Filtered(filtered) => filtered.passing_keys(output),
        }
    }

    /// Some rows of a slice, oldest first; `None` if a filter drops them all.
    pub fn read(&self, slice: &Slice, rows: Range<usize>) -> Result<Option<RecordBatch>> {
        match self {
            Self::Table(scan) => read(slice, scan.projection(), rows, scan.schema()).map(Some),
            Self::Filtered(filtered) => filtered.read(slice, rows),
        }
    }

    /// Reads the slices from the end, as long as `take` answers that it wants more. The rows of a
    /// batch are oldest first: they need not be turned around.
    pub(crate) async fn read_from_end(
        &self,
        mut take: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<()> {
        let units = self.table().units().rev();
        let chunks = units.map(|unit| (Arc::clone(&unit.slice), unit.rows.clone()));
        let (mut steps, mut turns) = (Steps::from_end(chunks), Turns::short_at_first());
        while let Some((slice, rows)) = steps.next() {
            let started = Instant::now();
            if let Some(batch) = self.read(&slice, rows)?
                && !take(batch)?
            {
                break;
            }
            steps.took(started.elapsed());
            account::check().map_err(engine_error)?;
            turns.yield_when_over().await;
        }
        Ok(())
    }
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(scan) => write!(f, "{scan}"),
            Self::Filtered(filtered) => write!(f, "{filtered}"),
        }
    }
}
