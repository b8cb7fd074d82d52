//! Joins a batch from the other side with the materialized rows.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{filter, take};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;

use super::build_side::{BuildSide, KeyRows};
use crate::bounded::bytes::{cell_bytes, has_lists};
use crate::equi_join::join::{EquiJoin, Kind, OutputColumn};
use crate::keys::ABSENT;
use crate::keys::numbers::KnownTexts;
use crate::materialize::with_schema;
use crate::scan::rows::BATCH_ROWS;

/// Approximate maximum size in bytes of the lists in a batch of pairs.
const PAIR_BYTES: usize = 4 << 20;

/// A worker's access to the build side.
pub(super) struct Prober {
    join: Arc<EquiJoin>,
    build_side: Arc<BuildSide>,
    schema: SchemaRef,
    known: KnownTexts,
    /// Whether rows arrive in reverse order. If so, each row's matches are reversed as well.
    backward: bool,
}

/// Matching rows from a batch and from the build side. A null in `build_rows` means there is no
/// match.
struct Pairs {
    /// Rows of the batch; `None` means that each row occurs once, in order.
    rows: Option<UInt32Array>,
    build_rows: UInt32Array,
}

impl Prober {
    pub(super) fn new(
        join: Arc<EquiJoin>,
        build: Arc<BuildSide>,
        schema: SchemaRef,
        backward: bool,
    ) -> Self {
        Self { join, build_side: build, schema, known: KnownTexts::default(), backward }
    }

    /// Joins a batch. Returns one batch, or several if its rows have many matches.
    pub(super) fn join(&mut self, batch: RecordBatch) -> Result<Joined> {
        let evaluate =
            |key: &Arc<dyn PhysicalExpr>| key.evaluate(&batch)?.into_array(batch.num_rows());
        let keys = self.join.keys.iter().map(|(probe, _)| evaluate(probe));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let numbers = self.build_side.keys.find(&keys, &mut self.known)?;
        Ok(Joined {
            join: Arc::clone(&self.join),
            build_side: Arc::clone(&self.build_side),
            schema: Arc::clone(&self.schema),
            batch,
            numbers,
            next: Some((0, 0)),
            backward: self.backward,
            has_lists: has_lists(self.schema.fields()),
        })
    }
}

/// Joined rows of one batch.
pub(super) struct Joined {
    join: Arc<EquiJoin>,
    build_side: Arc<BuildSide>,
    schema: SchemaRef,
    batch: RecordBatch,
    /// Key ID of each row.
    numbers: Vec<u32>,
    /// The next row, and how many of its pairs have already been returned.
    next: Option<(usize, usize)>,
    backward: bool,
    has_lists: bool,
}

impl Iterator for Joined {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next?;
        let in_pairs = self.has_lists || matches!(self.build_side.key_rows, KeyRows::Lists { .. });
        if in_pairs {
            let pairs = self.pairs()?;
            return Some(self.rows_of(pairs));
        }
        self.next = None;
        Some(self.single())
    }
}

impl Joined {
    /// Joins rows that each have at most one match.
    fn single(&mut self) -> Result<RecordBatch> {
        let numbers = std::mem::take(&mut self.numbers);
        if !numbers.contains(&ABSENT) {
            return self.rows_of(Pairs { rows: None, build_rows: UInt32Array::from(numbers) });
        }
        if self.join.kind == Kind::Outer {
            let found = numbers.iter().map(|&number| number != ABSENT).collect::<NullBuffer>();
            let build_rows = UInt32Array::new(numbers.into(), Some(found));
            return self.rows_of(Pairs { rows: None, build_rows });
        }
        let found = |row: usize| numbers[row] != ABSENT;
        let mask = BooleanArray::new(BooleanBuffer::collect_bool(numbers.len(), found), None);
        let build_rows = numbers.iter().copied().filter(|&number| number != ABSENT).collect();
        let build_rows = UInt32Array::new(build_rows, None);
        if self.join.filter.is_none() {
            return self
                .output(|column| Ok(filter(self.batch.column(column), &mask)?), &build_rows);
        }
        let rows = (0..numbers.len()).filter(|&row| found(row)).map(|row| row as u32).collect();
        self.rows_of(Pairs { rows: Some(UInt32Array::new(rows, None)), build_rows })
    }

    /// Returns the materialized rows that match a row.
    fn found(&self, row: usize) -> &[u32] {
        match (&self.numbers[row], &self.build_side.key_rows) {
            (&ABSENT, _) => &[],
            (number, KeyRows::Single) => std::slice::from_ref(number),
            (&number, KeyRows::Lists { offsets, rows }) => {
                let number = number as usize;
                &rows[offsets[number] as usize..offsets[number + 1] as usize]
            }
        }
    }

    /// Returns the next pairs, at most one batch of rows. The size of lists is limited as well,
    /// because lists are copied.
    fn pairs(&mut self) -> Option<Pairs> {
        let outer = self.join.kind == Kind::Outer;
        let (mut row, mut done) = self.next?;
        let (mut rows, mut build_rows, mut found) = (vec![], vec![], vec![]);
        let mut budget = PAIR_BYTES;
        while row < self.numbers.len() && rows.len() < BATCH_ROWS && budget > 0 {
            let own = self.found(row);
            if own.is_empty() && outer {
                rows.push(row as u32);
                build_rows.push(0);
                found.push(false);
                budget = budget.saturating_sub(self.bytes_of(row, &[]));
            }
            let max = own.len().min(done + BATCH_ROWS - rows.len().min(BATCH_ROWS));
            let mut next = done;
            while next < max && budget > 0 {
                let position = if self.backward { own.len() - 1 - next } else { next };
                build_rows.push(own[position]);
                budget = budget.saturating_sub(self.bytes_of(row, &own[position..=position]));
                next += 1;
            }
            rows.resize(build_rows.len(), row as u32);
            found.resize(build_rows.len(), true);
            (row, done) = if next < own.len() { (row, next) } else { (row + 1, 0) };
        }
        self.next = (row < self.numbers.len()).then_some((row, done));
        let found = found.contains(&false).then(|| NullBuffer::from(found));
        let build_rows = UInt32Array::new(build_rows.into(), found);
        Some(Pairs { rows: Some(UInt32Array::from(rows)), build_rows })
    }

    /// Returns the size in bytes of the lists in a row and in its materialized rows.
    fn bytes_of(&self, row: usize, build_rows: &[u32]) -> usize {
        if !self.has_lists {
            return 0;
        }
        let of_held = |&row: &u32| cell_bytes(&self.build_side.rows.slice(row as usize, 1));
        let of_held: usize = build_rows.iter().map(of_held).sum();
        cell_bytes(&self.batch.slice(row, 1)) + of_held
    }

    /// Returns the output for the pairs that satisfy the condition.
    fn rows_of(&self, mut pairs: Pairs) -> Result<RecordBatch> {
        if let Some(condition) = &self.join.filter {
            let column = |is_first: bool, column: usize| {
                Ok(match &pairs.rows {
                    _ if !is_first => {
                        take(self.build_side.rows.column(column), &pairs.build_rows, None)?
                    }
                    Some(rows) => take(self.batch.column(column), rows, None)?,
                    None => Arc::clone(self.batch.column(column)),
                })
            };
            let mask = self.join.passing(condition, pairs.build_rows.len(), column)?;
            let retained = |column: &UInt32Array| -> Result<UInt32Array> {
                Ok(UInt32Array::from(filter(column, &mask)?.to_data()))
            };
            let rows = match &pairs.rows {
                Some(rows) => retained(rows)?,
                None => retained(&(0..pairs.build_rows.len() as u32).collect())?,
            };
            pairs = Pairs { rows: Some(rows), build_rows: retained(&pairs.build_rows)? };
        }
        let probe = |column: usize| match &pairs.rows {
            Some(rows) => Ok(take(self.batch.column(column), rows, None)?),
            None => Ok(Arc::clone(self.batch.column(column))),
        };
        self.output(probe, &pairs.build_rows)
    }

    /// Returns the output columns from the batch and from these materialized rows.
    fn output(
        &self,
        probe: impl Fn(usize) -> Result<ArrayRef>,
        build_rows: &UInt32Array,
    ) -> Result<RecordBatch> {
        let columns = self.join.output.iter().map(|column| match *column {
            OutputColumn::First(column) => probe(column),
            OutputColumn::Other(column) => {
                Ok(take(self.build_side.rows.column(column), build_rows, None)?)
            }
            OutputColumn::Mark => internal_err!("unexpected mark column in a join"),
        });
        with_schema(&self.schema, columns.collect::<Result<_>>()?, build_rows.len())
    }
}
