//! Reads a new segment's rows from their sources.

use std::ops::Range;

use tidemark_types::{EngineError, EngineResult};

use crate::segment::column::ColumnData;
use crate::segment::writer::Columns;
use crate::table::merge::SourceRange;
use crate::table::row_source::RowSource;
use crate::table::schema::ColumnSchema;

/// Maximum number of rows that are copied together while a segment is written.
const GATHER_ROWS: usize = 32 << 10;
/// A range of at least this many rows from one source is written without copying.
const IN_PLACE_ROWS: usize = 4 << 10;

/// Source of cells.
pub(crate) trait Source {
    /// Returns the whole column that is at `position` in the definition.
    fn column(&self, position: usize, column: &ColumnSchema) -> EngineResult<ColumnData>;
}

impl Source for RowSource {
    fn column(&self, _: usize, column: &ColumnSchema) -> EngineResult<ColumnData> {
        self.column(column)
    }
}

/// Ordered rows from several sources that are written as a segment.
pub(crate) struct Gathered<'a, S> {
    schema: &'a [ColumnSchema],
    sources: &'a [S],
    order: &'a [SourceRange],
    /// Ranges that are read together. A long range is read alone, without a copy.
    portions: Vec<Range<usize>>,
    rows: usize,
}

impl<'a, S: Source> Gathered<'a, S> {
    pub(crate) fn new(
        schema: &'a [ColumnSchema],
        sources: &'a [S],
        order: &'a [SourceRange],
    ) -> Self {
        let (mut portions, mut all_rows) = (Vec::new(), 0);
        let (mut start, mut rows) = (0, 0);
        for (index, range) in order.iter().enumerate() {
            let separate = range.len >= IN_PLACE_ROWS;
            if start < index && (separate || rows + range.len > GATHER_ROWS) {
                portions.push(start..index);
                (start, rows) = (index, 0);
            }
            all_rows += range.len;
            rows += range.len;
            if separate {
                portions.push(index..index + 1);
                (start, rows) = (index + 1, 0);
            }
        }
        if start < order.len() {
            portions.push(start..order.len());
        }
        Self { schema, sources, order, portions, rows: all_rows }
    }

    fn cells(&self, position: usize) -> EngineResult<Vec<ColumnData>> {
        let column = self.schema.get(position);
        let column = column.ok_or_else(|| EngineError::internal("no such column"))?;
        self.sources.iter().map(|source| source.column(position, column)).collect()
    }
}

impl<S: Source> Columns for Gathered<'_, S> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn has_nulls(&self, column: usize) -> EngineResult<bool> {
        let cells = self.cells(column)?;
        let nulls = cells.iter().map(|cells| cells.array().nulls().filter(|n| n.null_count() > 0));
        let nulls: Vec<_> = nulls.collect();
        // All nulls may be in omitted rows.
        Ok(nulls.iter().any(Option::is_some)
            && self.order.iter().any(|range| {
                nulls[range.source]
                    .is_some_and(|nulls| nulls.slice(range.start, range.len).null_count() > 0)
            }))
    }

    fn portions(
        &self,
        column: usize,
        sink: &mut dyn FnMut(&ColumnData) -> EngineResult<()>,
    ) -> EngineResult<()> {
        let cells = self.cells(column)?;
        let sql_type = self.schema[column].sql_type;
        for portion in &self.portions {
            match &self.order[portion.clone()] {
                [one] => sink(&cells[one.source].slice(one.start, one.len))?,
                order => sink(&ColumnData::gather(sql_type, &cells, order)?)?,
            }
        }
        Ok(())
    }
}
