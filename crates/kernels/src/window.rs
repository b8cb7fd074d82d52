//! Window functions over ordered rows, computed in one pass with one state per partition. Every row
//! enters a frame once and leaves it once, whatever the frame's length.

use std::collections::VecDeque;

use crate::Validity;

/// A frame that ends at or before the current row. Both bounds are distances back from the current
/// row, in rows or in the unit of the given times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Distance to the frame's first row; `None` if the frame starts at the partition's first row.
    pub from: Option<i64>,
    /// Distance to the frame's last row; never negative.
    pub to: i64,
}

impl Reach {
    /// A frame from the first row to the current row.
    pub const CUMULATIVE: Self = Self { from: None, to: 0 };
}

/// Input rows, in order.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Partition of each row; empty if there is only one partition.
    pub partitions: &'a [u32],
    /// Timestamp of each row, for time frames; ascending within a partition.
    pub times: Option<&'a [i64]>,
    /// Bitmap of the rows that have a value.
    pub validity: Option<Validity<'a>>,
    /// Number of rows.
    pub count: usize,
}

impl Rows<'_> {
    /// Calls `step` with each row's index, its partition's state, and whether it has a value.
    #[inline]
    fn walk<S: Default>(&self, states: &mut Vec<S>, mut step: impl FnMut(usize, &mut S, bool)) {
        let max = self.partitions.iter().max().map_or(0, |&last| last as usize);
        if states.len() <= max {
            states.resize_with(max + 1, S::default);
        }
        for row in 0..self.count {
            let partition = self.partitions.get(row).map_or(0, |&partition| partition as usize);
            let valid = self.validity.is_none_or(|validity| validity.is_valid(row));
            step(row, &mut states[partition], valid);
        }
    }

    /// Returns a row's position in its partition: its timestamp, or its row number, counted in
    /// `passed`.
    #[inline]
    fn position(&self, row: usize, passed: &mut i64) -> i64 {
        *passed += 1;
        self.times.map_or(*passed, |times| times[row])
    }
}

/// Queued values with their positions. The first `entered` values are in the frame; the remaining
/// values have not entered it yet.
#[derive(Debug, Clone)]
struct Queue<T> {
    values: VecDeque<(i64, T)>,
    entered: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { values: VecDeque::new(), entered: 0 }
    }
}

impl<T: Copy> Queue<T> {
    /// Returns the next value to enter the frame of the row at `at`.
    #[inline]
    fn enter(&mut self, at: i64, reach: Reach) -> Option<T> {
        let &(position, value) = self.values.get(self.entered)?;
        if position > at.saturating_sub(reach.to) {
            return None;
        }
        self.entered += 1;
        Some(value)
    }

    /// Returns the next value to leave the frame of the row at `at`.
    #[inline]
    fn leave(&mut self, at: i64, reach: Reach) -> Option<T> {
        let &(position, value) = self.values.front()?;
        if self.entered == 0 || position >= at.saturating_sub(reach.from?) {
            return None;
        }
        self.drop_front();
        Some(value)
    }

    #[inline]
    fn drop_front(&mut self) {
        self.values.pop_front();
        self.entered -= 1;
    }
}

/// Sum and count of a partition.
#[derive(Debug, Clone, Default)]
pub struct SumState {
    queue: Queue<f64>,
    passed: i64,
    sum: f64,
    /// Accumulated rounding error of `sum`.
    lost: f64,
    count: i64,
}

impl SumState {
    /// Returns the number of queued values.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.values.len()
    }

    /// Returns the sum of the frame's values.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum + self.lost
    }

    /// Returns the number of values in the frame.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Adds a value with Neumaier summation, so that the sum of the remaining values does not lose
    /// digits when a value leaves the frame.
    #[inline]
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }
}

/// Appends the sum and count of each row's frame.
///
/// Frames from the first row to the current row use plain addition. Values leave all other frames,
/// so the sums of these frames compensate for rounding errors.
pub fn frame_sums(
    rows: Rows<'_>,
    values: &[f64],
    reach: Reach,
    states: &mut Vec<SumState>,
    sums: &mut Vec<f64>,
    counts: &mut Vec<i64>,
) {
    sums.reserve(rows.count);
    counts.reserve(rows.count);
    let plain = rows.partitions.is_empty() && rows.times.is_none() && rows.validity.is_none();
    if plain && reach == Reach::CUMULATIVE && rows.count > 0 {
        states.resize_with(states.len().max(1), SumState::default);
        cumulative_sums(&mut states[0], &values[..rows.count], sums, counts);
        return;
    }
    if let (true, Some(from), 0) = (plain, reach.from, reach.to)
        && let Ok(before) = usize::try_from(from)
        && before < rows.count
    {
        let head = Rows { count: before + 1, ..rows };
        frame_sums_by_row(head, values, reach, states, sums, counts);
        sums_of_last(&mut states[0], &values[..rows.count], before + 1, sums);
        counts.resize(counts.len() + rows.count - before - 1, from + 1);
        return;
    }
    frame_sums_by_row(rows, values, reach, states, sums, counts);
}

/// Sums frames from the first row to the current row, for one partition without nulls.
fn cumulative_sums(
    state: &mut SumState,
    values: &[f64],
    sums: &mut Vec<f64>,
    counts: &mut Vec<i64>,
) {
    let (mut sum, lost) = (state.sum, state.lost);
    sums.extend(values.iter().map(|value| {
        sum += value;
        sum + lost
    }));
    state.sum = sum;
    let before = state.count;
    state.count += values.len() as i64;
    counts.extend(before + 1..=state.count);
}

/// Sums frames of the last `width` rows, starting at the first row whose frame lies entirely within
/// `values`. The value leaving a frame is read from `values`.
fn sums_of_last(state: &mut SumState, values: &[f64], width: usize, sums: &mut Vec<f64>) {
    for (&entering, &leaving) in values[width..].iter().zip(values) {
        state.add(entering);
        state.add(-leaving);
        sums.push(state.sum());
    }
    state.passed += (values.len() - width) as i64;
    let first = state.passed - width as i64 + 1;
    let last = values[values.len() - width..].iter();
    state.queue.values.clear();
    state.queue.values.extend((first..).zip(last.copied()));
    state.queue.entered = width;
}

fn frame_sums_by_row(
    rows: Rows<'_>,
    values: &[f64],
    reach: Reach,
    states: &mut Vec<SumState>,
    sums: &mut Vec<f64>,
    counts: &mut Vec<i64>,
) {
    rows.walk(states, |row, state, valid| {
        if reach == Reach::CUMULATIVE {
            if valid {
                state.count += 1;
                state.sum += values[row];
            }
        } else {
            let at = rows.position(row, &mut state.passed);
            slide_sum(state, at, valid.then(|| values[row]), reach);
        }
        sums.push(state.sum());
        counts.push(state.count);
    });
}

#[inline]
fn slide_sum(state: &mut SumState, at: i64, value: Option<f64>, reach: Reach) {
    if let Some(value) = value {
        state.queue.values.push_back((at, value));
    }
    while let Some(value) = state.queue.enter(at, reach) {
        state.add(value);
        state.count += 1;
        if reach.from.is_none() {
            state.queue.drop_front();
        }
    }
    while let Some(value) = state.queue.leave(at, reach) {
        state.add(-value);
        state.count -= 1;
    }
    if state.count == 0 {
        (state.sum, state.lost) = (0.0, 0.0);
    }
}

/// Minimum or maximum of a partition.
#[derive(Debug, Clone)]
pub struct ExtremeState<T> {
    ahead: Queue<T>,
    /// Values in the frame, each better than all values after it.
    best: VecDeque<(i64, T)>,
    passed: i64,
}

impl<T> Default for ExtremeState<T> {
    fn default() -> Self {
        Self { ahead: Queue::default(), best: VecDeque::new(), passed: 0 }
    }
}

impl<T: Copy> ExtremeState<T> {
    /// Returns the number of queued values.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.ahead.values.len() + self.best.len()
    }

    /// Returns the best value in the frame.
    #[must_use]
    pub fn value(&self) -> Option<T> {
        self.best.front().map(|&(_, value)| value)
    }
}

/// Appends the minimum or maximum of each row's frame.
pub fn frame_extremes<T: PartialOrd + Copy>(
    rows: Rows<'_>,
    values: &[T],
    reach: Reach,
    greatest: bool,
    states: &mut Vec<ExtremeState<T>>,
    found: &mut Vec<Option<T>>,
) {
    let beats = |one: T, other: T| if greatest { one >= other } else { one <= other };
    rows.walk(states, |row, state, valid| {
        let at = rows.position(row, &mut state.passed);
        if valid {
            state.ahead.values.push_back((at, values[row]));
        }
        while let Some(&(position, value)) = state.ahead.values.front() {
            if position > at.saturating_sub(reach.to) {
                break;
            }
            state.ahead.values.pop_front();
            while state.best.back().is_some_and(|&(_, last)| beats(value, last)) {
                state.best.pop_back();
            }
            // If the frame starts at the first row, no value leaves it, so only the best value is
            // needed.
            if reach.from.is_some() || state.best.is_empty() {
                state.best.push_back((position, value));
            }
        }
        if let Some(from) = reach.from {
            while state.best.front().is_some_and(|&(index, _)| index < at.saturating_sub(from)) {
                state.best.pop_front();
            }
        }
        found.push(state.value());
    });
}

/// The row of a frame to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The first row.
    First,
    /// The last row.
    Last,
    /// The nth row, counted from 1.
    Nth(usize),
    /// The row this many rows before the current row, regardless of the frame.
    Back(usize),
}

/// Rows in a partition that may be picked for the current row or a later row.
#[derive(Debug, Clone, Default)]
pub struct PickState {
    queue: Queue<u64>,
    passed: i64,
}

impl PickState {
    /// Returns the number of queued row numbers.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.values.len()
    }

    /// Returns the oldest row that may still be picked.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.queue.values.front().map(|&(_, row)| row)
    }

    /// Returns the row numbers that may still be picked, so the caller can renumber them.
    pub fn rows(&mut self) -> impl Iterator<Item = &mut u64> {
        self.queue.values.iter_mut().map(|(_, row)| row)
    }

    /// Sets the state as of the last row of `rows`. The rows must cover the look-back distance.
    pub fn resume_after(&mut self, rows: std::ops::Range<u64>) {
        self.queue.values.clear();
        self.queue.values.extend(rows.map(|row| (0, row)));
    }

    /// Returns the row picked from the current frame.
    #[must_use]
    pub fn picked(&self, pick: Pick) -> Option<u64> {
        let index = match pick {
            Pick::First => 0,
            Pick::Nth(n) => n.checked_sub(1)?,
            Pick::Last | Pick::Back(_) => self.queue.entered.checked_sub(1)?,
        };
        let within = index < self.queue.entered;
        self.queue.values.get(index).filter(|_| within).map(|&(_, row)| row)
    }
}

/// Appends the row picked from each row's frame. Rows are numbered starting at `first_row`. Rows
/// without a value are skipped.
pub fn frame_picks(
    rows: Rows<'_>,
    first_row: u64,
    reach: Reach,
    pick: Pick,
    states: &mut Vec<PickState>,
    found: &mut Vec<Option<u64>>,
) {
    rows.walk(states, |row, state, valid| {
        let number = first_row + row as u64;
        if let Pick::Back(distance) = pick {
            found.push(step_back(&mut state.queue.values, number, valid, distance));
            return;
        }
        let at = rows.position(row, &mut state.passed);
        let queue = &mut state.queue;
        if valid {
            queue.values.push_back((at, number));
        }
        while queue.enter(at, reach).is_some() {
            if reach.from.is_some() {
                continue;
            }
            // In a frame that starts at the first row, rows that can no longer be picked are
            // dropped.
            let retained = match pick {
                Pick::Nth(n) => n,
                _ => 1,
            };
            if queue.entered > retained {
                if pick == Pick::Last {
                    queue.drop_front();
                } else {
                    queue.entered -= 1;
                    queue.values.remove(queue.entered);
                }
            }
        }
        while queue.leave(at, reach).is_some() {}
        found.push(state.picked(pick));
    });
}

/// Returns the row `distance` rows before the current row, and queues the current row.
#[inline]
fn step_back(
    queue: &mut VecDeque<(i64, u64)>,
    number: u64,
    valid: bool,
    distance: usize,
) -> Option<u64> {
    if distance == 0 {
        return Some(number);
    }
    let found = queue.len().checked_sub(distance).map(|index| queue[index].1);
    if valid {
        if queue.len() == distance {
            queue.pop_front();
        }
        queue.push_back((0, number));
    }
    found
}

#[cfg(test)]
mod tests {
    use rand::Rng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::tests::random;

    struct Case {
        partitions: Vec<u32>,
        times: Vec<i64>,
        values: Vec<i64>,
        valid: Vec<bool>,
        bits: Vec<u8>,
        by_time: bool,
        reach: Reach,
    }

    impl Case {
        fn random(rng: &mut ChaCha8Rng) -> Self {
            let count = rng.random_range(0..60);
            let one = rng.random_bool(0.3);
            let partitions = if one {
                vec![0; count]
            } else {
                (0..count).map(|_| rng.random_range(0..3)).collect()
            };
            let mut times: Vec<i64> = (0..count).map(|_| rng.random_range(0..40)).collect();
            times.sort_unstable();
            let values = (0..count).map(|_| rng.random_range(-9..10)).collect();
            let all = rng.random_bool(0.4);
            let valid: Vec<bool> = (0..count).map(|_| all || rng.random_bool(0.8)).collect();
            let mut bits = vec![0_u8; count / 8 + 1];
            for (row, _) in valid.iter().enumerate().filter(|(_, valid)| **valid) {
                bits[row / 8] |= 1 << (row % 8);
            }
            let to = if rng.random_bool(0.6) { 0 } else { rng.random_range(0..5) };
            let from = rng.random_bool(0.7).then(|| to + rng.random_range(0..7));
            let by_time = rng.random_bool(0.5);
            Self { partitions, times, values, valid, bits, by_time, reach: Reach { from, to } }
        }

        fn rows(&self, range: std::ops::Range<usize>) -> Rows<'_> {
            let one = self.partitions.iter().all(|&partition| partition == 0);
            let all = self.valid.iter().all(|&valid| valid);
            let partitions = if one { &[] } else { &self.partitions[range.clone()] };
            Rows {
                partitions,
                times: self.by_time.then_some(&self.times[range.clone()]),
                validity: (!all).then(|| Validity::new(&self.bits, range.start)),
                count: range.len(),
            }
        }

        /// Returns the rows in a row's frame that have a value, derived directly from the
        /// definition.
        fn frame(&self, row: usize) -> Vec<usize> {
            let own = |other: &usize| self.partitions[*other] == self.partitions[row];
            let before: Vec<usize> = (0..=row).filter(own).collect();
            let distance = |index: usize| {
                if self.by_time {
                    self.times[row] - self.times[before[index]]
                } else {
                    (before.len() - 1 - index) as i64
                }
            };
            let inside = |index: &usize| {
                let distance = distance(*index);
                distance >= self.reach.to && self.reach.from.is_none_or(|from| distance <= from)
            };
            let rows = (0..before.len()).filter(inside).map(|index| before[index]);
            rows.filter(|row| self.valid[*row]).collect()
        }
    }

    fn cases(check: impl Fn(&Case, std::ops::Range<usize>, std::ops::Range<usize>)) {
        let mut rng = random();
        for _ in 0..3_000 {
            let case = Case::random(&mut rng);
            let count = case.values.len();
            let cut = rng.random_range(0..=count);
            check(&case, 0..cut, cut..count);
        }
    }

    #[test]
    fn window_sums_match_their_definition() {
        cases(|case, first, second| {
            let values: Vec<f64> = case.values.iter().map(|&value| value as f64).collect();
            let (mut states, mut sums, mut counts) = (vec![], vec![], vec![]);
            for half in [first, second] {
                let (rows, values) = (case.rows(half.clone()), &values[half]);
                let (states, out) = (&mut states, (&mut sums, &mut counts));
                frame_sums(rows, values, case.reach, states, out.0, out.1);
            }
            for row in 0..values.len() {
                let frame = case.frame(row);
                let sum: f64 = frame.iter().map(|&row| values[row]).sum();
                assert_eq!((sums[row], counts[row]), (sum, frame.len() as i64));
            }
        });
    }

    #[test]
    fn window_minimum_and_maximum_match_their_definition() {
        cases(|case, first, second| {
            for greatest in [false, true] {
                let (mut states, mut found) = (vec![], vec![]);
                for half in [first.clone(), second.clone()] {
                    let (rows, values) = (case.rows(half.clone()), &case.values[half]);
                    let out = (&mut states, &mut found);
                    frame_extremes(rows, values, case.reach, greatest, out.0, out.1);
                }
                for (row, found) in found.iter().enumerate() {
                    let values = case.frame(row).into_iter().map(|row| case.values[row]);
                    assert_eq!(*found, if greatest { values.max() } else { values.min() });
                }
            }
        });
    }

    #[test]
    fn first_last_nth_lag_and_lead_match_their_definition() {
        cases(|case, first, second| {
            for pick in [Pick::First, Pick::Last, Pick::Nth(2), Pick::Back(1), Pick::Back(3)] {
                let (mut states, mut found) = (vec![], vec![]);
                for rows in [first.clone(), second.clone()] {
                    let start = rows.start as u64;
                    let out = (&mut states, &mut found);
                    frame_picks(case.rows(rows), start, case.reach, pick, out.0, out.1);
                }
                for (row, found) in found.iter().enumerate() {
                    let frame = case.frame(row);
                    let own = |other: &usize| case.partitions[*other] == case.partitions[row];
                    let before: Vec<usize> =
                        (0..row).filter(own).filter(|row| case.valid[*row]).collect();
                    let expected = match pick {
                        Pick::First => frame.first(),
                        Pick::Last => frame.last(),
                        Pick::Nth(n) => frame.get(n - 1),
                        Pick::Back(n) => {
                            before.len().checked_sub(n).and_then(|index| before.get(index))
                        }
                    };
                    assert_eq!(*found, expected.map(|&row| row as u64), "{pick:?} {row}");
                }
            }
        });
    }

    #[test]
    fn values_that_leave_a_window_frame_do_not_reduce_precision() {
        let rows = Rows { partitions: &[], times: None, validity: None, count: 4 };
        let (mut sums, mut counts) = (vec![], vec![]);
        let reach = Reach { from: Some(1), to: 0 };
        let values = [1e18, 0.5, 0.25, 0.125];
        frame_sums(rows, &values, reach, &mut vec![], &mut sums, &mut counts);
        assert_eq!(sums, [1e18, 1e18, 0.75, 0.375]);
    }
}
