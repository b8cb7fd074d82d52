//! Selects the requested rows of the result (skip, take, last) and counts the other rows.

use std::collections::VecDeque;

use arrow::record_batch::RecordBatch;

/// Applies `skip` and `take` to a sequence of batches, and counts the rows.
#[derive(Debug)]
pub(crate) struct RowWindow {
    skip: u64,
    take: u64,
    count_all: bool,
    /// Number of input rows.
    read: u64,
    /// Number of output rows.
    returned: u64,
}

impl RowWindow {
    pub(crate) fn new(skip: u64, take: Option<u64>, count_all: bool) -> Self {
        Self { skip, take: take.unwrap_or(u64::MAX), count_all, read: 0, returned: 0 }
    }

    /// Returns the rows of `batch` inside the window, if any.
    pub(crate) fn cut(&mut self, batch: &RecordBatch) -> Option<RecordBatch> {
        let rows = batch.num_rows() as u64;
        let leading = self.skip.saturating_sub(self.read).min(rows);
        self.read += rows;
        let required = (rows - leading).min(self.take - self.returned);
        if required == 0 {
            return None;
        }
        self.returned += required;
        Some(batch.slice(leading as usize, required as usize))
    }

    /// True once further batches cannot change the result.
    pub(crate) fn is_complete(&self) -> bool {
        self.returned == self.take && !self.count_all
    }

    pub(crate) fn returned(&self) -> u64 {
        self.returned
    }

    pub(crate) fn read(&self) -> u64 {
        self.read
    }
}

/// Retains only the last `limit` rows of a sequence of batches.
#[derive(Debug)]
pub(crate) struct LastRows {
    limit: u64,
    rows: u64,
    batches: VecDeque<RecordBatch>,
}

impl LastRows {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, rows: 0, batches: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows() as u64;
        self.batches.push_back(batch);
        while let Some(first) = self.batches.front() {
            let first_rows = first.num_rows() as u64;
            if self.rows - first_rows < self.limit {
                break;
            }
            self.rows -= first_rows;
            self.batches.pop_front();
        }
    }

    /// Returns the batches that contain exactly the last rows.
    pub(crate) fn into_batches(mut self) -> Vec<RecordBatch> {
        let surplus = self.rows.saturating_sub(self.limit) as usize;
        if let Some(first) = self.batches.front_mut() {
            *first = first.slice(surplus, first.num_rows() - surplus);
        }
        self.batches.into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(values: std::ops::Range<i64>) -> RecordBatch {
        let column = Arc::new(Int64Array::from_iter_values(values));
        RecordBatch::try_from_iter([("x", column as _)]).unwrap()
    }

    fn values(batches: &[RecordBatch]) -> Vec<i64> {
        let column = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().clone();
        batches.iter().flat_map(|batch| column(batch).values().to_vec()).collect()
    }

    #[test]
    fn skip_and_take_apply_across_batches() {
        let mut window = RowWindow::new(2, Some(3), false);
        let out: Vec<_> = [batch(0..3), batch(3..4), batch(4..9)]
            .iter()
            .filter_map(|batch| window.cut(batch))
            .collect();
        assert_eq!(values(&out), [2, 3, 4]);
        assert!(window.is_complete());
        assert_eq!((window.returned(), window.read()), (3, 9));
    }

    #[test]
    fn count_all_never_completes_early() {
        let mut window = RowWindow::new(0, Some(1), true);
        assert!(window.cut(&batch(0..5)).is_some());
        assert!(!window.is_complete());
        assert!(window.cut(&batch(5..8)).is_none());
        assert_eq!(window.read(), 8);
    }

    #[test]
    fn only_the_last_rows_up_to_the_limit_are_returned() {
        for limit in 0..12 {
            let mut last = LastRows::new(limit);
            for part in [batch(0..4), batch(4..5), batch(5..10)] {
                last.push(part);
            }
            let expected: Vec<i64> = (10 - limit.min(10) as i64..10).collect();
            assert_eq!(values(&last.into_batches()), expected, "limit {limit}");
        }
    }
}
