//! The mean and squared deviations of values, computed in one pass.

/// Count, mean and sum of squared deviations, computed with Welford's formulas. Two states are
/// merged with the formulas of Chan et al.; adding one value is their simplest case.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: f64,
    /// Mean of the values.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub second: f64,
}

impl Moments {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let count = self.count + 1.0;
        let delta = value - self.mean;
        let step = delta / count;
        self.second += self.count * delta * step;
        self.mean += step;
        self.count = count;
    }

    /// Merges another state. The operations are in the same order as when adding a single value.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0.0 {
            return;
        }
        let count = self.count + other.count;
        let delta = other.mean - self.mean;
        let step = delta / count;
        self.second += other.second + self.count * other.count * delta * step;
        self.mean += other.count * step;
        self.count = count;
    }
}

/// Adds each value to its group.
pub fn moments_by(values: &[f64], groups: &[u32], moments: &mut [Moments]) {
    for (&value, &group) in values.iter().zip(groups) {
        moments[group as usize].add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_match_their_definition() {
        let mut seed = 21_u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as f64 / f64::from(1 << 20)
        };
        for rows in [0, 1, 2, 3, 50, 700] {
            let values: Vec<f64> = (0..rows).map(|_| random()).collect();
            let groups: Vec<u32> = (0..rows as u32).map(|row| row % 2).collect();
            let mut halves = [Moments::default(); 2];
            moments_by(&values, &groups, &mut halves);
            let [mut all, odd] = halves;
            all.merge(&odd);
            let count = f64::from(rows);
            let mean = values.iter().sum::<f64>() / count.max(1.0);
            let second: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            assert_eq!(all.count, count);
            assert!((all.mean - mean).abs() < 1e-9, "{} {mean}", all.mean);
            assert!((all.second - second).abs() <= 1e-9 * second, "{} {second}", all.second);
        }
    }
}
