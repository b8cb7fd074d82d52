//! In-memory rows, sorted in ranges.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SortOptions;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use tidemark_kernels::{Ranges, Spread, pack, unpack};
use tidemark_types::account;

use super::keys::{SymbolRanks, numbers};
use crate::error::engine_error;
use crate::materialize::{Materialized, MaterializedBatch, begin, pause};
use crate::scan::rows::BATCH_ROWS;

/// Approximate number of rows in a range, chosen so that a range can be sorted within the CPU
/// cache.
const RANGE_ROWS: usize = 32 * 1024;
/// Number of rows per initial sorted run.
const RUN_ROWS: usize = 2 * RANGE_ROWS;
/// One row in this many is sampled to determine the ranges.
const SAMPLE: usize = 256;
/// Maximum number of combinations of leading symbols that are given separate ranges.
pub(super) const MAX_GROUPS: usize = 1 << 16;

/// Size of a row in bytes, excluding its cells: entry, range, group and keys.
pub(super) fn row_bytes(keys: usize) -> usize {
    size_of::<u128>() + 2 * size_of::<u32>() + size_of::<u64>() * keys.max(1)
}

/// A batch's sort keys.
struct Numbers {
    /// The values of the leading symbols, combined into one number per row; empty if there are no
    /// leading symbols.
    groups: Vec<u32>,
    /// The first key outside the groups. It usually decides the order.
    first: Vec<u64>,
    other_keys: Vec<Vec<u64>>,
}

/// Rows with their sort keys.
pub(super) struct Order {
    pub(super) materialized: Materialized,
    ranges: Ranges,
    spreads: Vec<Spread>,
    /// The keys after the first, for each batch.
    other_keys: Vec<Vec<Vec<u64>>>,
    groups: usize,
    /// Number of leading keys that form groups.
    leading: usize,
}

/// Properties of the keys that are known before the rows' sort keys are computed.
struct Plan {
    options: Vec<SortOptions>,
    symbol_ranks: Vec<Option<SymbolRanks>>,
    leading: usize,
}

impl Plan {
    /// Analyses the keys. At most `most_leading` leading keys form groups.
    fn new(
        materialized: &Materialized,
        keys: &[PhysicalSortExpr],
        most_leading: usize,
    ) -> Result<Self> {
        let ranks = (0..keys.len()).map(|key| {
            SymbolRanks::new(materialized.partitions().flatten().map(|batch| &batch.keys[key]))
        });
        let ranks = ranks.collect::<Result<Vec<_>>>()?;
        let (mut leading, mut groups) = (0, 1_usize);
        for ranks in ranks.iter().map_while(Option::as_ref).take(most_leading) {
            groups = groups.saturating_mul(ranks.count());
            if groups > MAX_GROUPS {
                break;
            }
            leading += 1;
        }
        let options = keys.iter().map(|key| key.options).collect();
        Ok(Self { options, symbol_ranks: ranks, leading })
    }

    fn groups(&self) -> usize {
        let leading = self.symbol_ranks[..self.leading].iter().flatten();
        leading.map(SymbolRanks::count).product()
    }

    fn numbers(&self, batch: &MaterializedBatch<Vec<ArrayRef>>) -> Result<Numbers> {
        let rows = batch.rows.num_rows();
        let mut groups = if self.leading == 0 { vec![] } else { vec![0_u32; rows] };
        let mut words = Vec::with_capacity(self.options.len());
        for (key, (values, &options)) in batch.keys.iter().zip(&self.options).enumerate() {
            match &self.symbol_ranks[key] {
                Some(symbol_ranks) if key < self.leading => {
                    let count = symbol_ranks.count() as u32;
                    let of = symbol_ranks.of(values, options);
                    groups
                        .iter_mut()
                        .zip(of)
                        .for_each(|(group, own)| *group = *group * count + own);
                }
                Some(symbol_ranks) => {
                    words.push(symbol_ranks.of(values, options).map(u64::from).collect());
                }
                None => words.push(numbers(values, options)?),
            }
        }
        let others = if words.is_empty() { vec![] } else { words.split_off(1) };
        let first = words.pop().unwrap_or_else(|| vec![0; rows]);
        Ok(Numbers { groups, first, other_keys: others })
    }
}

impl Order {
    /// Prepares to order the rows by these keys. Symbols among the first `leading` keys form
    /// groups.
    pub(super) async fn new(
        materialized: Materialized,
        keys: &[PhysicalSortExpr],
        leading: usize,
    ) -> Result<Self> {
        let plan = Arc::new(Plan::new(&materialized, keys, leading)?);
        let materialized = Arc::new(materialized);
        let partition_count = materialized.partitions().count();
        let numbered = for_each_partition(partition_count, |partition| {
            number(Arc::clone(&materialized), partition, Arc::clone(&plan))
        });
        let numbered = numbered.await?;
        let mut sample = vec![];
        for batch in numbered.iter().flatten() {
            let group = |row| batch.groups.get(row).copied().unwrap_or(0);
            let own = batch.first.iter().enumerate().step_by(SAMPLE);
            sample.extend(own.map(|(row, &key)| (group(row), key)));
        }
        let groups = plan.groups();
        let ranges = Arc::new(Ranges::new(sample, groups, RANGE_ROWS / SAMPLE));
        let mut others = vec![];
        let mut batches = 0;
        let mut numbered = numbered.into_iter().map(|partition| {
            let first = batches;
            batches += partition.len();
            let (retained, keys): (Vec<_>, Vec<_>) = partition
                .into_iter()
                .map(|batch| (batch.other_keys, (batch.groups, batch.first)))
                .unzip();
            others.extend(retained);
            (first, keys)
        });
        let numbered: Vec<_> = numbered.by_ref().collect();
        let mut numbered = numbered.into_iter();
        let spreads = for_each_partition(partition_count, |_| {
            let (first, keys) = numbered.next().unwrap_or_default();
            spread(Arc::clone(&ranges), first, keys)
        });
        let spreads = spreads.await?;
        let (materialized, ranges) = (Arc::into_inner(materialized), Arc::into_inner(ranges));
        let whole = materialized.zip(ranges);
        let Some((materialized, ranges)) = whole else {
            return datafusion::common::internal_err!("rows are still being read");
        };
        Ok(Self {
            materialized,
            ranges,
            spreads,
            other_keys: others,
            groups,
            leading: plan.leading,
        })
    }

    /// Number of leading keys that form groups.
    pub(super) fn leading(&self) -> usize {
        self.leading
    }

    /// Maximum number of groups.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the ranges of a group.
    pub(super) fn of_group(&self, group: usize) -> Range<usize> {
        self.ranges.of_group(group)
    }

    /// Number of rows in a range.
    pub(super) fn rows_of(&self, range: usize) -> usize {
        self.spreads.iter().map(|spread| spread.range(range).len()).sum()
    }

    /// Whether two entries in a range have equal keys.
    pub(super) fn is_tie(&self, one: u128, other: u128) -> bool {
        one >> 64 == other >> 64 && self.compare_other_keys(one, other) == Ordering::Equal
    }

    fn compare_other_keys(&self, one: u128, other: u128) -> Ordering {
        let (one, other) = (unpack(one as u64), unpack(other as u64));
        let keys = self.other_keys[one.0].iter().zip(&self.other_keys[other.0]);
        keys.map(|(a, b)| a[one.1].cmp(&b[other.1]))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Returns a range's sorted entries; the lower half of each entry is its batch and row. Checks
    /// for cancellation even within long ranges of equal keys.
    pub(super) fn sorted(&self, range: usize) -> Result<Vec<u128>> {
        let runs: Vec<&[u128]> = self.spreads.iter().map(|spread| spread.range(range)).collect();
        let entries = runs.concat();
        let is_only_key = self.other_keys.first().is_none_or(Vec::is_empty);
        if is_only_key {
            return sorted_by(entries, u128::cmp);
        }
        sorted_by(entries, |one, other| {
            let first = (one >> 64).cmp(&(other >> 64));
            first.then_with(|| self.compare_other_keys(*one, *other)).then(one.cmp(other))
        })
    }

    /// Divides ranges into groups of consecutive ranges, each containing about one batch of rows.
    pub(super) fn batch_ranges(&self, ranges: Range<usize>) -> Vec<Range<usize>> {
        let (mut batches, mut start, mut rows) = (vec![], ranges.start, 0);
        for range in ranges.clone() {
            rows += self.rows_of(range);
            if rows >= BATCH_ROWS {
                batches.push(start..range + 1);
                (start, rows) = (range + 1, 0);
            }
        }
        if rows > 0 {
            batches.push(start..ranges.end);
        }
        batches
    }

    /// Returns all ranges.
    pub(super) fn ranges(&self) -> Range<usize> {
        0..self.ranges.count()
    }
}

/// Sorts distinct entries. It first sorts runs of `RUN_ROWS` entries and then merges them in pairs.
fn sorted_by(
    mut entries: Vec<u128>,
    compare: impl Fn(&u128, &u128) -> Ordering,
) -> Result<Vec<u128>> {
    for run in entries.chunks_mut(RUN_ROWS) {
        account::check().map_err(engine_error)?;
        run.sort_unstable_by(&compare);
    }
    let mut run = RUN_ROWS;
    let mut merged = Vec::with_capacity(if run < entries.len() { entries.len() } else { 0 });
    while run < entries.len() {
        for two in entries.chunks(2 * run) {
            let (mut one, mut other) = two.split_at(run.min(two.len()));
            while let ([first, one_left @ ..], [second, other_left @ ..]) = (one, other) {
                if merged.len().is_multiple_of(RUN_ROWS) {
                    account::check().map_err(engine_error)?;
                }
                if compare(first, second).is_le() {
                    merged.push(*first);
                    one = one_left;
                } else {
                    merged.push(*second);
                    other = other_left;
                }
            }
            merged.extend_from_slice(one);
            merged.extend_from_slice(other);
        }
        std::mem::swap(&mut entries, &mut merged);
        merged.clear();
        run *= 2;
    }
    Ok(entries)
}

/// Runs the same work for every partition concurrently.
async fn for_each_partition<T: Send + 'static, F>(
    partition_count: usize,
    mut work: impl FnMut(usize) -> F,
) -> Result<Vec<T>>
where
    F: Future<Output = Result<T>> + Send + 'static,
{
    let tasks: Vec<_> = (0..partition_count)
        .map(|partition| begin(partition_count == 1, work(partition)))
        .collect();
    let mut done = Vec::with_capacity(partition_count);
    for task in tasks {
        done.push(task.await?);
    }
    Ok(done)
}

async fn number(
    materialized: Arc<Materialized>,
    partition: usize,
    plan: Arc<Plan>,
) -> Result<Vec<Numbers>> {
    let mut numbered = vec![];
    for batch in materialized.partitions().nth(partition).unwrap_or_default() {
        pause().await?;
        numbered.push(plan.numbers(batch)?);
    }
    Ok(numbered)
}

async fn spread(
    ranges: Arc<Ranges>,
    first: usize,
    keys: Vec<(Vec<u32>, Vec<u64>)>,
) -> Result<Spread> {
    let mut spread = Spread::default();
    for (groups, keys) in &keys {
        pause().await?;
        spread.count(&ranges, groups, keys);
    }
    spread.begin();
    for (number, (_, keys)) in (first..).zip(keys) {
        pause().await?;
        spread.place(&keys, pack(number, 0));
    }
    Ok(spread)
}
