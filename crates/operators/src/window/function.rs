//! Executes a single window function. It receives batches and returns a column for each batch,
//! either immediately or at the end.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;
use datafusion::arrow::compute::{cast, concat, interleave};
use datafusion::common::{Result, ScalarValue, internal_err};
use tidemark_kernels::{
    ExtremeState, Pick, PickState, Reach, Rows, SumState, Validity, frame_extremes, frame_picks,
    frame_sums,
};

use super::spec::{Kind, Spec};

/// Maximum number of value batches cached between executions.
const MAX_BATCHES: usize = 32;
/// Size of a value queued in a frame, in bytes.
const QUEUED_BYTES: usize = 16;
/// Number of bits in a row number that identify the row within its batch.
const ROW_BITS: u32 = 32;

/// The state of one function.
#[derive(Clone)]
pub(crate) struct Function {
    kind: Kind,
    reach: Option<Reach>,
    by_time: bool,
    state: State,
}

#[derive(Clone)]
enum State {
    Sums(Vec<SumState>),
    Floats(Vec<ExtremeState<f64>>),
    Integers(Vec<ExtremeState<i64>>),
    Ranks(Vec<Rank>),
    Periods(Vec<Period>),
    Picks(Vec<PickState>, RetainedValues),
    Ahead { waiting: Vec<VecDeque<u64>>, found: Vec<Vec<Option<u64>>>, retained: RetainedValues },
}

/// The value of a partition's last row, and the number of the run of equal values it belongs to; 0
/// before the first row.
#[derive(Default, Clone)]
struct Period {
    value: Option<i64>,
    number: i64,
}

/// A partition's row count so far, and its row count before the current time.
#[derive(Default, Clone)]
struct Rank {
    rows: u64,
    time: Option<i64>,
    position: u64,
    dense: u64,
}

/// A function's input: the rows of one batch.
pub(crate) struct Input<'a> {
    pub(crate) batch: usize,
    pub(crate) rows: usize,
    pub(crate) argument: Option<&'a ArrayRef>,
    pub(crate) partitions: &'a [u32],
    pub(crate) times: Option<&'a [i64]>,
}

impl Function {
    /// Creates the function. `nanos_per_tick` is the length of the timestamp unit in nanoseconds.
    pub(crate) fn new(spec: &Spec, argument: Option<&DataType>, nanos_per_tick: i64) -> Self {
        let state = match &spec.kind {
            Kind::RowNumber | Kind::Sum | Kind::Average | Kind::Count => State::Sums(vec![]),
            Kind::Rank | Kind::DenseRank => State::Ranks(vec![]),
            Kind::Period => State::Periods(vec![]),
            Kind::Extreme { .. } if argument == Some(&DataType::Float64) => State::Floats(vec![]),
            Kind::Extreme { .. } => State::Integers(vec![]),
            Kind::Pick { default, .. } => State::Picks(vec![], RetainedValues::new(default)),
            Kind::Ahead { default, .. } => State::Ahead {
                waiting: vec![],
                found: vec![],
                retained: RetainedValues::new(default),
            },
        };
        let ticks = |nanos: i64| if spec.by_time { nanos / nanos_per_tick } else { nanos };
        let reach = spec.reach.map(|reach| Reach {
            from: reach.from.map(ticks),
            // Rounds up: a distance that ends between two ticks reaches back to the earlier tick.
            to: if spec.by_time {
                (reach.to + nanos_per_tick - 1) / nanos_per_tick
            } else {
                reach.to
            },
        });
        Self { kind: spec.kind.clone(), reach, by_time: spec.by_time, state }
    }

    /// Approximate memory used, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let (count, each, queued): (usize, usize, &dyn Fn() -> usize) = match &self.state {
            State::Sums(states) => {
                (states.len(), size_of::<SumState>(), &|| sum(states, SumState::queued))
            }
            State::Floats(states) => (states.len(), size_of::<ExtremeState<f64>>(), &|| {
                sum(states, ExtremeState::queued)
            }),
            State::Integers(states) => (states.len(), size_of::<ExtremeState<i64>>(), &|| {
                sum(states, ExtremeState::queued)
            }),
            State::Ranks(states) => (states.len(), size_of::<Rank>(), &|| 0),
            State::Periods(states) => (states.len(), size_of::<Period>(), &|| 0),
            State::Picks(states, _) => {
                (states.len(), size_of::<PickState>() + 64, &|| sum(states, PickState::queued))
            }
            State::Ahead { .. } => return usize::MAX,
        };
        let queued = match self.reach.and_then(|reach| reach.from) {
            None => 0,
            // A time span may contain any number of rows.
            Some(_) if self.by_time => queued(),
            Some(rows) => usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(count),
        };
        count.saturating_mul(each).saturating_add(queued.saturating_mul(QUEUED_BYTES))
    }

    /// Releases data that is no longer needed after `batches` batches.
    pub(crate) fn settle(&mut self, batches: usize) {
        if let State::Picks(states, retained) = &mut self.state
            && retained.arrays.len() >= MAX_BATCHES
        {
            retained.settle(states, batches);
        }
    }

    /// Returns a copy of the state after `batches` batches. The copy does not share any data with
    /// these batches.
    pub(crate) fn copy(&self, batches: usize) -> Self {
        let mut copy = self.clone();
        if let State::Picks(states, retained) = &mut copy.state {
            retained.settle(states, batches);
        }
        copy
    }

    /// Processes a batch. Returns its column, unless the column depends on later rows.
    pub(crate) fn push(&mut self, input: &Input<'_>) -> Result<Option<ArrayRef>> {
        let reach = self.reach.unwrap_or(Reach::CUMULATIVE);
        let times = if self.by_time { input.times } else { None };
        let nulls = input.argument.and_then(|argument| argument.nulls());
        let validity = nulls.map(|nulls| Validity::new(nulls.validity(), nulls.offset()));
        let (partitions, count) = (input.partitions, input.rows);
        let rows = Rows { partitions, times, validity, count };
        let now = self.reach.is_some();
        let kind = self.kind.clone();
        match (&mut self.state, &kind) {
            (State::Sums(states), kind) => {
                let (mut sums, mut counts) = (vec![], vec![]);
                // Values are not needed for counting.
                let zeros = vec![0.0; if needs_values(kind) { 0 } else { count }];
                let values = match input.argument.filter(|_| needs_values(kind)) {
                    Some(argument) => argument.as_primitive::<Float64Type>().values(),
                    None => zeros.as_slice(),
                };
                let rows = match kind {
                    Kind::RowNumber => Rows { validity: None, ..rows },
                    _ => rows,
                };
                frame_sums(rows, values, reach, states, &mut sums, &mut counts);
                Ok(now.then(|| summed(kind, sums, counts)))
            }
            (State::Floats(states), Kind::Extreme { greatest }) => {
                let mut found = Vec::with_capacity(count);
                let values = numbers::<Float64Type>(input.argument)?;
                frame_extremes(rows, values, reach, *greatest, states, &mut found);
                Ok(now.then(|| Arc::new(Float64Array::from(found)) as ArrayRef))
            }
            (State::Integers(states), Kind::Extreme { greatest }) => {
                let mut found = Vec::with_capacity(count);
                let Some(argument) = input.argument else { return internal_err!("no argument") };
                let values = cast(argument, &DataType::Int64)?;
                let values = values.as_primitive::<Int64Type>().values();
                frame_extremes(rows, values, reach, *greatest, states, &mut found);
                let found = Int64Array::from(found);
                Ok(if now { Some(cast(&found, argument.data_type())?) } else { None })
            }
            (State::Ranks(states), kind) => {
                Ok(Some(ranks(states, input, *kind == Kind::DenseRank)))
            }
            (State::Periods(states), Kind::Period) => {
                let Some(values) =
                    input.argument.and_then(|argument| argument.as_primitive_opt::<Int64Type>())
                else {
                    return internal_err!("a period has no value");
                };
                Ok(Some(period_numbers(states, input, values)))
            }
            (State::Picks(states, retained), Kind::Pick { pick, ignore_nulls, .. }) => {
                let rows = if *ignore_nulls { rows } else { Rows { validity: None, ..rows } };
                picked(input, rows, (reach, *pick, now), states, retained)
            }
            (State::Ahead { waiting, found, retained }, Kind::Ahead { distance, .. }) => {
                let Some(argument) = input.argument else { return internal_err!("no argument") };
                retained.arrays.push_back(Arc::clone(argument));
                found.push(vec![None; count]);
                look_ahead(waiting, found, input, *distance);
                Ok(None)
            }
            _ => internal_err!("the state belongs to a different window function"),
        }
    }

    /// Returns the column of an earlier batch, after all batches have been processed.
    pub(crate) fn finish(
        &self,
        batch: usize,
        rows: usize,
        partitions: &[u32],
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let of = |row: usize| partitions.get(row).map_or(0, |&partition| partition as usize);
        let each = 0..rows;
        match (&self.state, &self.kind) {
            (State::Sums(states), kind) => {
                let sums = each.clone().map(|row| states[of(row)].sum()).collect::<Vec<_>>();
                let counts = each.map(|row| states[of(row)].count()).collect();
                Ok(summed(kind, sums, counts))
            }
            (State::Floats(states), _) => {
                Ok(Arc::new(each.map(|row| states[of(row)].value()).collect::<Float64Array>()))
            }
            (State::Integers(states), _) => {
                let found: Int64Array = each.map(|row| states[of(row)].value()).collect();
                Ok(cast(&found, data_type)?)
            }
            (State::Picks(states, retained), Kind::Pick { pick, .. }) => {
                let found: Vec<_> = each.map(|row| states[of(row)].picked(*pick)).collect();
                retained.values(&found)
            }
            (State::Ahead { found, retained, .. }, _) => retained.values(&found[batch]),
            _ => internal_err!("the values of this window function are not deferred"),
        }
    }
}

fn sum<T>(states: &[T], of: impl Fn(&T) -> usize) -> usize {
    states.iter().map(of).sum()
}

/// Returns the values from other rows, unless they depend on later rows.
fn picked(
    input: &Input<'_>,
    rows: Rows<'_>,
    (reach, pick, now): (Reach, Pick, bool),
    states: &mut Vec<PickState>,
    retained: &mut RetainedValues,
) -> Result<Option<ArrayRef>> {
    let Some(argument) = input.argument else { return internal_err!("no argument") };
    retained.add(argument, states);
    if let Pick::Back(distance) = pick
        && let Some(column) = moved(input, rows, distance, states, retained)?
    {
        return Ok(Some(column));
    }
    let mut found = Vec::with_capacity(rows.count);
    let first = (input.batch as u64) << ROW_BITS;
    frame_picks(rows, first, reach, pick, states, &mut found);
    if now { retained.values(&found).map(Some) } else { Ok(None) }
}

/// Returns the column of an unpartitioned `lag`: earlier rows, followed by the batch shifted by
/// `distance`. Returns `None` if rows are skipped or if there are partitions.
fn moved(
    input: &Input<'_>,
    rows: Rows<'_>,
    distance: usize,
    states: &mut Vec<PickState>,
    retained: &RetainedValues,
) -> Result<Option<ArrayRef>> {
    let (Some(argument), count) = (input.argument, rows.count) else { return Ok(None) };
    if !rows.partitions.is_empty() || rows.validity.is_some() || distance >= count {
        return Ok(None);
    }
    let first = (input.batch as u64) << ROW_BITS;
    let head = Rows { count: distance, ..rows };
    let mut found = Vec::with_capacity(distance);
    frame_picks(head, first, Reach::CUMULATIVE, Pick::Back(distance), states, &mut found);
    let rest = argument.slice(0, count - distance);
    let column = concat(&[retained.values(&found)?.as_ref(), rest.as_ref()])?;
    let last = first + count as u64;
    states.resize_with(1, PickState::default);
    states[0].resume_after(last - distance as u64..last);
    Ok(Some(column))
}

fn needs_values(kind: &Kind) -> bool {
    matches!(kind, Kind::Sum | Kind::Average)
}

fn numbers<T: arrow_array::ArrowPrimitiveType>(
    argument: Option<&ArrayRef>,
) -> Result<&[T::Native]> {
    if let Some(values) = argument.and_then(|argument| argument.as_primitive_opt::<T>()) {
        Ok(values.values())
    } else {
        internal_err!("unexpected argument type for a window function")
    }
}

fn summed(kind: &Kind, sums: Vec<f64>, counts: Vec<i64>) -> ArrayRef {
    let values = match kind {
        Kind::RowNumber => {
            let numbers = counts.iter().map(|&count| count as u64);
            return Arc::new(UInt64Array::from_iter_values(numbers));
        }
        Kind::Count => return Arc::new(Int64Array::from(counts)),
        Kind::Average => {
            sums.iter().zip(&counts).map(|(&sum, &count)| sum / count as f64).collect()
        }
        _ => sums,
    };
    // Both passes are vectorised, and usually no value is null.
    let is_counted = |count: &i64| *count > 0;
    let all = counts.iter().fold(true, |all, count| all & is_counted(count))
        & values.iter().fold(true, |all, value| all & value.is_finite());
    // A sum that overflows is null, as in other aggregates.
    let is_known = |row: usize| counts[row] > 0 && values[row].is_finite();
    let nulls =
        (!all).then(|| NullBuffer::new(BooleanBuffer::collect_bool(values.len(), is_known)));
    Arc::new(Float64Array::new(values.into(), nulls))
}

/// Rows with the same time share a rank.
fn ranks(states: &mut Vec<Rank>, input: &Input<'_>, dense: bool) -> ArrayRef {
    let max = input.partitions.iter().max().map_or(0, |&last| last as usize);
    if states.len() <= max {
        states.resize(max + 1, Rank::default());
    }
    let ranks = (0..input.rows).map(|row| {
        let partition = input.partitions.get(row).map_or(0, |&partition| partition as usize);
        let state = &mut states[partition];
        let time = input.times.map(|times| times[row]);
        state.rows += 1;
        if state.rows == 1 || state.time != time {
            (state.time, state.position) = (time, state.rows);
            state.dense += 1;
        }
        if dense { state.dense } else { state.position }
    });
    Arc::new(UInt64Array::from_iter_values(ranks.collect::<Vec<_>>()))
}

/// Consecutive rows of a partition with the same value share a number.
fn period_numbers(states: &mut Vec<Period>, input: &Input<'_>, values: &Int64Array) -> ArrayRef {
    let max = input.partitions.iter().max().map_or(0, |&last| last as usize);
    if states.len() <= max {
        states.resize(max + 1, Period::default());
    }
    let numbers = (0..input.rows).map(|row| {
        let partition = input.partitions.get(row).map_or(0, |&partition| partition as usize);
        let state = &mut states[partition];
        let value = values.is_valid(row).then(|| values.value(row));
        if state.number == 0 || state.value != value {
            state.value = value;
            state.number += 1;
        }
        state.number
    });
    Arc::new(Int64Array::from_iter_values(numbers.collect::<Vec<_>>()))
}

/// Records each row as the result for the row that is `distance` rows before it.
fn look_ahead(
    waiting: &mut Vec<VecDeque<u64>>,
    found: &mut [Vec<Option<u64>>],
    input: &Input<'_>,
    distance: usize,
) {
    let max = input.partitions.iter().max().map_or(0, |&last| last as usize);
    if waiting.len() <= max {
        waiting.resize_with(max + 1, VecDeque::new);
    }
    for row in 0..input.rows {
        let partition = input.partitions.get(row).map_or(0, |&partition| partition as usize);
        let number = ((input.batch as u64) << ROW_BITS) + row as u64;
        let queue = &mut waiting[partition];
        queue.push_back(number);
        if queue.len() > distance
            && let Some(before) = queue.pop_front()
        {
            let (batch, row) = locate(before);
            found[batch][row] = Some(number);
        }
    }
}

/// Returns the batch and row for a row number.
fn locate(number: u64) -> (usize, usize) {
    ((number >> ROW_BITS) as usize, (number & ((1 << ROW_BITS) - 1)) as usize)
}

/// Argument values from the batches that may still be needed.
#[derive(Clone)]
struct RetainedValues {
    default: ScalarValue,
    /// Number of the first batch in `arrays`.
    first: usize,
    arrays: VecDeque<ArrayRef>,
    /// Number of arrays at which unneeded arrays are removed.
    full: usize,
}

impl RetainedValues {
    fn new(default: &ScalarValue) -> Self {
        Self { default: default.clone(), first: 0, arrays: VecDeque::new(), full: 16 }
    }

    fn add(&mut self, array: &ArrayRef, states: &[PickState]) {
        if self.arrays.len() >= self.full {
            let oldest = states.iter().filter_map(PickState::oldest).min();
            let needed = oldest.map_or(self.first + self.arrays.len(), |row| locate(row).0);
            while self.first < needed && self.arrays.pop_front().is_some() {
                self.first += 1;
            }
            self.full = 2 * self.arrays.len() + 16;
        }
        self.arrays.push_back(Arc::clone(array));
    }

    /// Copies the values that are still needed so that the batches, which may be slices of files,
    /// can be released.
    fn settle(&mut self, states: &mut [PickState], batches: usize) {
        if batches == 0 {
            return;
        }
        let rows = states.iter_mut().flat_map(PickState::rows);
        let required: Vec<Option<u64>> = rows.map(|row| Some(*row)).collect();
        let Ok(values) = self.values(&required) else { return };
        let begin = ((batches - 1) as u64) << ROW_BITS;
        for (row, number) in states.iter_mut().flat_map(PickState::rows).zip(begin..) {
            *row = number;
        }
        self.first = batches - 1;
        self.arrays = VecDeque::from([values]);
        self.full = 16;
    }

    /// Returns the values of rows, or the default if a row does not exist.
    fn values(&self, rows: &[Option<u64>]) -> Result<ArrayRef> {
        let default = self.default.to_array_of_size(1)?;
        let mut sources: Vec<&dyn Array> = vec![default.as_ref()];
        sources.extend(self.arrays.iter().map(|array| array.as_ref() as &dyn Array));
        let index = |row: &Option<u64>| match row {
            Some(number) => {
                let (batch, row) = locate(*number);
                (batch - self.first + 1, row)
            }
            None => (0, 0),
        };
        let indexes: Vec<(usize, usize)> = rows.iter().map(index).collect();
        Ok(interleave(&sources, &indexes)?)
    }
}
