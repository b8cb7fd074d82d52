//! New cells for existing rows: the result of an UPDATE until a checkpoint writes it to a segment.

use std::sync::OnceLock;

use tidemark_types::{EngineResult, SqlType};

use crate::segment::column::ColumnData;
use crate::table::merge::SourceRange;

/// Consecutive rows of a run or segment, and the position of their new cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// First row.
    pub(crate) row: usize,
    /// Number of rows.
    pub(crate) len: usize,
    /// Index of the first row's cell within the new cells.
    pub(crate) cell: usize,
}

impl Placed {
    fn end(&self) -> usize {
        self.row + self.len
    }
}

/// New cells of one column in one segment.
#[derive(Debug)]
pub(crate) struct Patch {
    sql_type: SqlType,
    /// Ascending and disjoint.
    placed: Vec<Placed>,
    cells: ColumnData,
    /// The whole column, assembled on first access.
    patched: OnceLock<EngineResult<ColumnData>>,
}

impl Patch {
    pub(crate) fn new(sql_type: SqlType, placed: Vec<Placed>, cells: ColumnData) -> Self {
        Self { sql_type, placed, cells, patched: OnceLock::new() }
    }

    /// Combines both patches; `newer` wins.
    pub(crate) fn under(&self, newer: &Self) -> EngineResult<Self> {
        let (order, placed) = layered(&self.placed, &newer.placed);
        let sources = [self.cells.clone(), newer.cells.clone()];
        let cells = ColumnData::gather(self.sql_type, &sources, &order)?;
        Ok(Self::new(self.sql_type, placed, cells))
    }

    /// Returns the column of `rows` rows with the new cells. Calls `base` at most once.
    pub(crate) fn column(
        &self,
        rows: usize,
        base: impl FnOnce() -> EngineResult<ColumnData>,
    ) -> EngineResult<ColumnData> {
        let patched = || match self.placed[..] {
            [Placed { row: 0, len, cell }] if len == rows => Ok(self.cells.slice(cell, len)),
            _ => patched(self.sql_type, &base()?, &self.placed, &self.cells),
        };
        self.patched.get_or_init(patched).clone()
    }
}

/// Returns a column with some cells replaced.
pub(crate) fn patched(
    sql_type: SqlType,
    base: &ColumnData,
    placed: &[Placed],
    cells: &ColumnData,
) -> EngineResult<ColumnData> {
    let whole = [Placed { row: 0, len: base.len(), cell: 0 }];
    let (order, _) = layered(&whole, placed);
    ColumnData::gather(sql_type, &[base.clone(), cells.clone()], &order)
}

/// Merges the rows of `lower` and `upper`; `upper` wins where both have a row. Returns the cells to
/// read (source 0 or 1), and the positions of the merged rows.
fn layered(lower: &[Placed], upper: &[Placed]) -> (Vec<SourceRange>, Vec<Placed>) {
    let mut all: Vec<(usize, Placed)> = upper.iter().map(|placed| (1, *placed)).collect();
    let mut above = upper.iter().peekable();
    for placed in lower {
        let mut rest = *placed;
        while above.next_if(|over| over.end() <= rest.row).is_some() {}
        let mut over = above.clone();
        while let Some(next) = over.next_if(|over| over.row < rest.end()) {
            if next.row > rest.row {
                all.push((0, Placed { len: next.row - rest.row, ..rest }));
            }
            let end = rest.end();
            let start = next.end().min(end).max(rest.row);
            rest = Placed { row: start, len: end - start, cell: rest.cell + (start - rest.row) };
        }
        if rest.len > 0 {
            all.push((0, rest));
        }
    }
    all.sort_unstable_by_key(|(_, placed)| placed.row);
    let mut order = Vec::with_capacity(all.len());
    let mut result: Vec<Placed> = Vec::with_capacity(all.len());
    let mut cells = 0;
    for (source, placed) in all {
        order.push(SourceRange { source, start: placed.cell, len: placed.len });
        match result.last_mut() {
            Some(last) if last.end() == placed.row => last.len += placed.len,
            _ => result.push(Placed { cell: cells, ..placed }),
        }
        cells += placed.len;
    }
    (order, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cell of each row as `(source, index)`; `None` if neither layer has the row.
    fn naive(rows: usize, layers: [&[Placed]; 2]) -> Vec<Option<(usize, usize)>> {
        let mut cells = vec![None; rows];
        for (source, layer) in layers.into_iter().enumerate() {
            for placed in layer {
                for index in 0..placed.len {
                    cells[placed.row + index] = Some((source, placed.cell + index));
                }
            }
        }
        cells
    }

    #[test]
    fn merged_layers_match_updating_the_cells_one_by_one() {
        let mut seed = 11_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % bound) as usize
        };
        for _ in 0..2_000 {
            let mut layer = || {
                let (mut row, mut cell, mut placed) = (0, 0, Vec::new());
                for _ in 0..random(5) {
                    row += random(4);
                    let len = 1 + random(5);
                    placed.push(Placed { row, len, cell });
                    (row, cell) = (row + len, cell + len);
                }
                placed
            };
            let (lower, upper) = (layer(), layer());
            let (order, placed) = layered(&lower, &upper);
            let used: Vec<(usize, usize)> = order
                .iter()
                .flat_map(|s| (s.start..s.start + s.len).map(|cell| (s.source, cell)))
                .collect();
            let mut found = vec![None; 60];
            for placed_range in &placed {
                for index in 0..placed_range.len {
                    found[placed_range.row + index] = Some(used[placed_range.cell + index]);
                }
            }
            assert_eq!(found, naive(60, [&lower, &upper]), "{lower:?} {upper:?}");
            assert!(placed.is_sorted_by(|a, b| a.end() < b.row));
        }
    }
}
