//! Aggregates over many ranges of one column. A range's cost is logarithmic in its length.
//!
//! Nothing is subtracted, so sums of doubles do not accumulate errors as they would in a moving
//! window.

/// Number of entries that are combined into one entry at the next level.
const FAN_OUT: usize = 16;

/// Combines two neighbouring values into one.
pub trait Combine: Send + Sync + 'static {
    /// Type of the values.
    type Value: Copy + Send + Sync + 'static;
    /// The identity element, which represents null.
    const NEUTRAL: Self::Value;
    /// Combines the earlier value with the later one.
    fn combine(earlier: Self::Value, later: Self::Value) -> Self::Value;
}

/// The sum of doubles.
#[derive(Debug)]
pub struct SumOfDoubles;

impl Combine for SumOfDoubles {
    type Value = f64;
    const NEUTRAL: f64 = 0.0;

    #[inline]
    fn combine(earlier: f64, later: f64) -> f64 {
        earlier + later
    }
}

macro_rules! extreme {
    ($name:ident, $of:ty, $neutral:expr, $better:tt, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug)]
        pub struct $name;

        impl Combine for $name {
            type Value = $of;
            const NEUTRAL: $of = $neutral;

            #[inline(always)]
            fn combine(earlier: $of, later: $of) -> $of {
                if later $better earlier { later } else { earlier }
            }
        }
    };
}

extreme!(LeastInteger, i64, i64::MAX, <, "The least integer.");
extreme!(GreatestInteger, i64, i64::MIN, >, "The greatest integer.");
extreme!(LeastDouble, f64, f64::INFINITY, <, "The least double.");
extreme!(GreatestDouble, f64, f64::NEG_INFINITY, >, "The greatest double.");

/// A column and its levels of combined values; each level is shorter than the one below.
#[derive(Debug)]
pub struct RangeTree<C: Combine> {
    levels: Vec<Vec<C::Value>>,
}

impl<C: Combine> RangeTree<C> {
    /// Builds a tree over `values`; nulls must be [`Combine::NEUTRAL`].
    #[must_use]
    pub fn new(values: Vec<C::Value>) -> Self {
        let mut levels = vec![values];
        while let Some(level) = levels.last().filter(|level| level.len() > FAN_OUT) {
            let above = level.chunks(FAN_OUT).map(fold::<C>).collect();
            levels.push(above);
        }
        Self { levels }
    }

    /// Combines the values in `start..end`. An end beyond the column is treated as the column's
    /// end.
    #[must_use]
    pub fn over(&self, start: usize, end: usize) -> C::Value {
        let mut total = C::NEUTRAL;
        let (mut start, mut end) = (start, end.min(self.levels[0].len()));
        for level in &self.levels {
            if end <= start {
                return total;
            }
            // A short remainder does not justify another level.
            if end - start <= 2 * FAN_OUT {
                return C::combine(total, fold::<C>(&level[start..end]));
            }
            let (above_start, above_end) = (start.div_ceil(FAN_OUT), end / FAN_OUT);
            let head = fold::<C>(&level[start..above_start * FAN_OUT]);
            let tail = fold::<C>(&level[above_end * FAN_OUT..end]);
            total = C::combine(total, C::combine(head, tail));
            (start, end) = (above_start, above_end);
        }
        total
    }

    /// Returns the memory used in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<C::Value>()).sum()
    }
}

#[inline]
fn fold<C: Combine>(values: &[C::Value]) -> C::Value {
    values.iter().fold(C::NEUTRAL, |total, &value| C::combine(total, value))
}
