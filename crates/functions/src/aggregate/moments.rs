//! Variance, skewness, kurtosis and the geometric mean, computed from central moments in one pass.

use std::sync::Arc;

use datafusion_expr::AggregateUDF;
use tidemark_types::SqlType;

use super::fold::{Fold, udaf};

/// Returns the aggregate with this name. It reads one numeric column.
pub(crate) fn find(name: &str) -> Option<Arc<AggregateUDF>> {
    macro_rules! shaped {
        ($name:literal, $shape:ident) => {
            Some(udaf::<Shaped<{ Shape::$shape as u8 }>>($name, "DOUBLE", SqlType::Double))
        };
    }
    match name {
        "var_samp" | "variance" => shaped!("var_samp", VarianceSample),
        "var_pop" => shaped!("var_pop", VariancePopulation),
        "stddev" | "stddev_samp" => shaped!("stddev_samp", DeviationSample),
        "stddev_pop" => shaped!("stddev_pop", DeviationPopulation),
        "skewness" | "skewness_samp" => shaped!("skewness_samp", SkewnessSample),
        "skewness_pop" => shaped!("skewness_pop", SkewnessPopulation),
        "kurtosis" | "kurtosis_samp" => shaped!("kurtosis_samp", KurtosisSample),
        "kurtosis_pop" => shaped!("kurtosis_pop", KurtosisPopulation),
        "geomean" => Some(udaf::<GeometricMean>("geomean", "DOUBLE", SqlType::Double)),
        _ => None,
    }
}

#[repr(u8)]
enum Shape {
    VarianceSample,
    VariancePopulation,
    DeviationSample,
    DeviationPopulation,
    SkewnessSample,
    SkewnessPopulation,
    KurtosisSample,
    KurtosisPopulation,
}

/// Count, mean and central moments 2 to 4, updated and merged with Pébay's formulas.
#[derive(Debug, Default, Clone)]
struct Moments {
    count: f64,
    mean: f64,
    second: f64,
    third: f64,
    fourth: f64,
}

impl Moments {
    fn merge(&mut self, other: &Self) {
        if other.count == 0.0 {
            return;
        }
        let count = self.count + other.count;
        let delta = other.mean - self.mean;
        let (a, b) = (self.count, other.count);
        let step = delta / count;
        let product = a * b * delta * step;
        self.fourth += other.fourth
            + product * step * step * (a * a - a * b + b * b)
            + 6.0 * step * step * (a * a * other.second + b * b * self.second)
            + 4.0 * step * (a * other.third - b * self.third);
        self.third += other.third
            + product * step * (a - b)
            + 3.0 * step * (a * other.second - b * self.second);
        self.second += other.second + product;
        self.mean += b * step;
        self.count = count;
    }

    fn variance(&self, divisor: f64) -> Option<f64> {
        (divisor > 0.0).then(|| self.second / divisor)
    }

    fn skewness_population(&self) -> Option<f64> {
        let spread = self.second > 0.0;
        spread.then(|| self.count.sqrt() * self.third / self.second.powf(1.5))
    }

    fn kurtosis_population(&self) -> Option<f64> {
        let spread = self.second > 0.0;
        spread.then(|| self.count * self.fourth / (self.second * self.second) - 3.0)
    }
}

#[derive(Debug, Default, Clone)]
struct Shaped<const SHAPE: u8>(Moments);

impl<const SHAPE: u8> Fold for Shaped<SHAPE> {
    const COLUMNS: usize = 1;
    const STATE: usize = 5;

    fn add(&mut self, row: &[f64]) {
        self.0.merge(&Moments { count: 1.0, mean: row[0], ..Moments::default() });
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn to_state(&self) -> Vec<f64> {
        let Moments { count, mean, second, third, fourth } = self.0;
        vec![count, mean, second, third, fourth]
    }

    fn from_state(state: &[f64]) -> Self {
        Self(Moments {
            count: state[0],
            mean: state[1],
            second: state[2],
            third: state[3],
            fourth: state[4],
        })
    }

    fn finish(&self) -> Option<f64> {
        let moments = &self.0;
        let n = moments.count;
        match SHAPE {
            s if s == Shape::VarianceSample as u8 => moments.variance(n - 1.0),
            s if s == Shape::VariancePopulation as u8 => moments.variance(n),
            s if s == Shape::DeviationSample as u8 => moments.variance(n - 1.0).map(f64::sqrt),
            s if s == Shape::DeviationPopulation as u8 => moments.variance(n).map(f64::sqrt),
            s if s == Shape::SkewnessPopulation as u8 => moments.skewness_population(),
            s if s == Shape::SkewnessSample as u8 => moments
                .skewness_population()
                .filter(|_| n >= 3.0)
                .map(|g| g * (n * (n - 1.0)).sqrt() / (n - 2.0)),
            s if s == Shape::KurtosisPopulation as u8 => moments.kurtosis_population(),
            _ => moments
                .kurtosis_population()
                .filter(|_| n >= 4.0)
                .map(|g| (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * g + 6.0)),
        }
    }
}

#[derive(Debug, Default, Clone)]
struct GeometricMean {
    count: f64,
    logarithms: f64,
}

impl Fold for GeometricMean {
    const COLUMNS: usize = 1;
    const STATE: usize = 2;

    fn add(&mut self, row: &[f64]) {
        self.count += 1.0;
        // A value of zero or less makes the sum NaN or infinite, so the result becomes null.
        self.logarithms += row[0].ln();
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.logarithms += other.logarithms;
    }

    fn to_state(&self) -> Vec<f64> {
        vec![self.count, self.logarithms]
    }

    fn from_state(state: &[f64]) -> Self {
        Self { count: state[0], logarithms: state[1] }
    }

    fn finish(&self) -> Option<f64> {
        let mean = self.logarithms / self.count;
        (self.count > 0.0 && mean.is_finite()).then(|| mean.exp())
    }
}
