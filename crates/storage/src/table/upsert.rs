//! DEDUP UPSERT KEYS: a row replaces every earlier row with the same keys.
//!
//! The designated timestamp is always a key, so only rows with equal timestamps can match. Null
//! equals null. A batch is resolved before it is logged. Runs and segments are resolved when they
//! are merged, each by the keys that applied when it was written. Changing a table's keys therefore
//! does not change existing rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::row::{Row, RowConverter, Rows, SortField};
use arrow_array::{Array, ArrayRef, UInt32Array};
use rustc_hash::FxHashSet;
use tidemark_types::key::key_values;
use tidemark_types::{EngineError, EngineResult};

use crate::segment::column::ColumnData;
use crate::table::merge::{SourceRange, merge_order};
use crate::table::schema::{ColumnSchema, TableSchema};

/// Maximum number of rows with equal timestamps that are compared together. Exceeded only if a
/// single timestamp has more rows.
const COMPARED_ROWS: usize = 256 << 10;
/// Up to this many keys are compared one by one; more are hashed.
const FEW: usize = 12;

/// Key columns other than the designated timestamp.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UpsertKeys {
    /// The key columns with their names removed, because only identifier and type define a key.
    columns: Vec<ColumnSchema>,
}

impl UpsertKeys {
    /// Returns the keys; `None` for a table without DEDUP.
    pub(crate) fn of(schema: &TableSchema) -> Option<Arc<Self>> {
        let timestamp = schema.timestamp_column()?.id;
        if schema.dedup_keys.is_empty() {
            return None;
        }
        let is_key = |c: &&ColumnSchema| c.id != timestamp && schema.dedup_keys.contains(&c.id);
        let columns = schema.columns.iter().filter(is_key);
        let columns =
            columns.map(|c| ColumnSchema { id: c.id, ..ColumnSchema::new("", c.sql_type) });
        Some(Arc::new(Self { columns: columns.collect() }))
    }

    pub(crate) fn has(&self, column: u32) -> bool {
        self.columns.iter().any(|key| key.id == column)
    }
}

/// One of several sources to merge, ascending in time.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) times: &'a [i64],
    /// Keys by which the source's rows replace rows of earlier sources, if any.
    pub(crate) upsert: Option<&'a Arc<UpsertKeys>>,
}

/// Returns the positions in `order` of the rows to keep: the last of the rows with equal keys.
/// `order` is ascending in time; rows with equal timestamps are in arrival order.
pub(crate) fn last_of_each(
    schema: &TableSchema,
    columns: &[ArrayRef],
    times: &[i64],
    mut order: Vec<u32>,
) -> EngineResult<Vec<u32>> {
    let Some(keys) = UpsertKeys::of(schema) else { return Ok(order) };
    let time = |position: usize| times[order[position] as usize];
    let mut ties: Vec<Range<usize>> = Vec::new();
    for position in 1..order.len() {
        match ties.last_mut() {
            _ if time(position - 1) != time(position) => {}
            Some(tie) if tie.end == position => tie.end += 1,
            _ => ties.push(position - 1..position + 1),
        }
    }
    let positions = schema.columns.iter().enumerate();
    let positions = positions.filter(|(_, c)| keys.columns.iter().any(|key| key.id == c.id));
    let columns: Vec<&ArrayRef> = positions.map(|(index, _)| &columns[index]).collect();
    let tied: Vec<u32> = ties.iter().flat_map(|tie| &order[tie.clone()]).copied().collect();
    let tied = UInt32Array::from(tied);
    let copied = columns.iter().map(|column| arrow::compute::take(column, &tied, None));
    let encoded = [encode(&copied.collect::<Result<Vec<_>, _>>().map_err(internal)?)?];
    let mut dead = vec![false; order.len()];
    let mut base = 0;
    for tie in ties {
        let mut seen = Seen::of(&encoded);
        for position in tie.clone().rev() {
            dead[position] = seen.meets(base + position - tie.start, Some(0));
        }
        base += tie.len();
    }
    let mut dead = dead.into_iter();
    order.retain(|_| !dead.next().unwrap_or(false));
    Ok(order)
}

/// Like [`merge_order`], but without the rows that a later source replaces. `column` reads a
/// source's key column, and is called only if needed.
pub(crate) fn upsert_order(
    sources: &[Source<'_>],
    column: &dyn Fn(usize, &ColumnSchema) -> EngineResult<ColumnData>,
) -> EngineResult<Vec<SourceRange>> {
    let times: Vec<&[i64]> = sources.iter().map(|source| source.times).collect();
    let order = merge_order(&times);
    if sources.iter().skip(1).all(|source| source.upsert.is_none()) {
        return Ok(order);
    }
    let mut sets: Vec<&Arc<UpsertKeys>> = Vec::new();
    let mut set_of = Vec::with_capacity(sources.len());
    for source in sources {
        set_of.push(source.upsert.map(|keys| {
            sets.iter().position(|known| *known == keys).unwrap_or_else(|| {
                sets.push(keys);
                sets.len() - 1
            })
        }));
    }
    let mut resolver = Resolver {
        sources: sources.len(),
        column,
        sets,
        set_of,
        unresolved: Vec::new(),
        out: Vec::new(),
    };
    let mut tied_rows = 0;
    for item in cut_ties(order, &times) {
        tied_rows += if let Item::Tie(ranges) = &item { rows_of(ranges) } else { 0 };
        resolver.unresolved.push(item);
        if tied_rows >= COMPARED_ROWS {
            resolver.resolve()?;
            tied_rows = 0;
        }
    }
    resolver.resolve()?;
    Ok(resolver.out)
}

/// An element of a merged order.
#[derive(Debug)]
enum Item {
    /// Rows whose timestamps do not occur in any other source.
    Free(SourceRange),
    /// Rows of several sources with the same timestamp, in arrival order.
    Tie(Vec<SourceRange>),
}

fn rows_of(ranges: &[SourceRange]) -> usize {
    ranges.iter().map(|range| range.len).sum()
}

/// Splits a merged order where several sources share a timestamp.
fn cut_ties(order: Vec<SourceRange>, times: &[&[i64]]) -> Vec<Item> {
    let rows = |s: &SourceRange| &times[s.source][s.start..s.start + s.len];
    let mut items = Vec::new();
    let mut rest = order.into_iter().peekable();
    let mut current = rest.next();
    while let Some(range) = current.take() {
        let at = times[range.source][range.start + range.len - 1];
        if rest.peek().is_none_or(|next| rows(next)[0] != at) {
            items.push(Item::Free(range));
            current = rest.next();
            continue;
        }
        let free = rows(&range).partition_point(|&ts| ts < at);
        if free > 0 {
            items.push(Item::Free(SourceRange { len: free, ..range }));
        }
        let (start, len) = (range.start + free, range.len - free);
        let mut tie = vec![SourceRange { start, len, ..range }];
        while let Some(next) = rest.next_if(|next| rows(next)[0] == at) {
            let tied = rows(&next).partition_point(|&ts| ts == at);
            tie.push(SourceRange { len: tied, ..next });
            if tied < next.len {
                let (start, len) = (next.start + tied, next.len - tied);
                current = Some(SourceRange { start, len, ..next });
                break;
            }
        }
        items.push(Item::Tie(tie));
        if current.is_none() {
            current = rest.next();
        }
    }
    items
}

/// Removes replaced rows from ties.
struct Resolver<'a> {
    sources: usize,
    column: &'a dyn Fn(usize, &ColumnSchema) -> EngineResult<ColumnData>,
    /// Distinct sets of key columns.
    sets: Vec<&'a Arc<UpsertKeys>>,
    /// For each source, the index of its set in `sets`.
    set_of: Vec<Option<usize>>,
    /// Items that are not resolved yet.
    unresolved: Vec<Item>,
    out: Vec<SourceRange>,
}

impl Resolver<'_> {
    fn resolve(&mut self) -> EngineResult<()> {
        let items = std::mem::take(&mut self.unresolved);
        let ties = items.iter().filter_map(|item| match item {
            Item::Tie(ranges) => Some(ranges.iter().copied()),
            Item::Free(_) => None,
        });
        let tied: Vec<SourceRange> = ties.flatten().collect();
        // If there are no ties, no key is read.
        let sets = if tied.is_empty() { &[] } else { &self.sets[..] };
        let encoded = sets.iter().map(|keys| self.encode(keys, &tied));
        let encoded = encoded.collect::<EngineResult<Vec<_>>>()?;
        let mut base = 0;
        for item in items {
            match item {
                Item::Free(range) => push(&mut self.out, range),
                Item::Tie(ranges) => {
                    self.resolve_tie(&ranges, base, &encoded);
                    base += rows_of(&ranges);
                }
            }
        }
        Ok(())
    }

    /// Rows of the tie start at `base` in `encoded`.
    fn resolve_tie(&mut self, ranges: &[SourceRange], base: usize, encoded: &[Option<Rows>]) {
        let mut dead = vec![false; rows_of(ranges)];
        let mut seen = Seen::of(encoded);
        let mut end = dead.len();
        for range in ranges.iter().rev() {
            for row in (end - range.len..end).rev() {
                dead[row] = seen.meets(base + row, self.set_of[range.source]);
            }
            end -= range.len;
        }
        let mut dead = dead.into_iter();
        for range in ranges {
            for start in range.start..range.start + range.len {
                if !dead.next().unwrap_or(false) {
                    push(&mut self.out, SourceRange { start, len: 1, ..*range });
                }
            }
        }
    }

    fn encode(&self, keys: &UpsertKeys, tied: &[SourceRange]) -> EngineResult<Option<Rows>> {
        let columns = keys.columns.iter().map(|key| {
            let sources = (0..self.sources).map(|source| (self.column)(source, key));
            let sources: Vec<ColumnData> = sources.collect::<EngineResult<_>>()?;
            Ok(ColumnData::gather(key.sql_type, &sources, tied)?.to_array())
        });
        encode(&columns.collect::<EngineResult<Vec<_>>>()?)
    }
}

/// Appends a range, or extends the last one.
fn push(order: &mut Vec<SourceRange>, range: SourceRange) {
    match order.last_mut() {
        Some(last) if last.source == range.source && last.start + last.len == range.start => {
            last.len += range.len;
        }
        _ => order.push(range),
    }
}

/// Encodes keys as comparable bytes; `None` if the timestamp is the only key.
fn encode(columns: &[ArrayRef]) -> EngineResult<Option<Rows>> {
    if columns.is_empty() {
        return Ok(None);
    }
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
    let converter = RowConverter::new(fields.collect()).map_err(internal)?;
    let keys: Vec<ArrayRef> = columns.iter().map(key_values).collect();
    converter.convert_columns(&keys).map(Some).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> EngineError {
    EngineError::internal(error.to_string())
}

/// For each set of key columns, the keys of the rows visited so far at one timestamp. Rows are
/// visited from the latest to the earliest.
struct Seen<'a> {
    sets: Vec<SeenSet<'a>>,
}

struct SeenSet<'a> {
    encoded: Option<&'a Rows>,
    any: bool,
    few: Vec<Row<'a>>,
    many: FxHashSet<Row<'a>>,
}

impl<'a> Seen<'a> {
    fn of(encoded: &'a [Option<Rows>]) -> Self {
        let set = |rows: &'a Option<Rows>| SeenSet {
            encoded: rows.as_ref(),
            any: false,
            few: Vec::new(),
            many: FxHashSet::default(),
        };
        Self { sets: encoded.iter().map(set).collect() }
    }

    /// Returns whether a later row replaces this row. Also adds this row to `set`. The keys of that
    /// set determine which earlier rows this row replaces.
    fn meets(&mut self, row: usize, set: Option<usize>) -> bool {
        let replaced = self.sets.iter().any(|seen| seen.contains(row));
        if let Some(set) = set {
            self.sets[set].insert(row);
        }
        replaced
    }
}

impl SeenSet<'_> {
    fn contains(&self, row: usize) -> bool {
        match self.encoded {
            None => self.any,
            Some(_) if !self.any => false,
            Some(rows) if self.many.is_empty() => self.few.contains(&rows.row(row)),
            Some(rows) => self.many.contains(&rows.row(row)),
        }
    }

    fn insert(&mut self, row: usize) {
        self.any = true;
        let Some(rows) = self.encoded else { return };
        if self.many.is_empty() && self.few.len() < FEW {
            self.few.push(rows.row(row));
        } else {
            self.many.extend(self.few.drain(..));
            self.many.insert(rows.row(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Float64Array};

    use super::*;

    #[test]
    fn positive_and_negative_zero_are_the_same_key() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, 1.0]));
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![-0.0, 0.0, -1.0]));
        let keys = encode(&[doubles, floats]).unwrap().unwrap();
        let encoded = [Some(keys)];
        let mut seen = Seen::of(&encoded);
        let meets: Vec<bool> = (0..3).map(|row| seen.meets(row, Some(0))).collect();
        assert_eq!(meets, [false, true, false]);
    }
}
