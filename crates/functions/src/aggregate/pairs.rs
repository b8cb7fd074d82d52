//! Aggregates over two columns: covariance, regression and weighted means.

use std::sync::Arc;

use datafusion_expr::AggregateUDF;
use tidemark_types::SqlType;

use super::fold::{Fold, udaf};
use crate::resolve::ResolvedAggregate;

/// Returns the aggregate with this name. It reads two numeric columns.
pub(crate) fn find(name: &str) -> Option<Arc<AggregateUDF>> {
    macro_rules! joint {
        ($name:literal, $shape:ident) => {
            Some(udaf::<Joint<{ Shape::$shape as u8 }>>($name, "DOUBLE", SqlType::Double))
        };
    }
    macro_rules! weighted {
        ($name:literal, $shape:ident) => {
            Some(udaf::<Weighted<{ Weighting::$shape as u8 }>>($name, "DOUBLE", SqlType::Double))
        };
    }
    match name {
        "corr" => joint!("corr", Correlation),
        "covar_pop" => joint!("covar_pop", CovariancePopulation),
        "covar_samp" => joint!("covar_samp", CovarianceSample),
        "regr_slope" => joint!("regr_slope", Slope),
        "regr_intercept" => joint!("regr_intercept", Intercept),
        "regr_r2" => joint!("regr_r2", Determination),
        "vwap" => weighted!("vwap", Volume),
        "weighted_avg" => weighted!("weighted_avg", Mean),
        "weighted_stddev" | "weighted_stddev_rel" => weighted!("weighted_stddev", Reliability),
        "weighted_stddev_freq" => weighted!("weighted_stddev_freq", Frequency),
        _ => None,
    }
}

/// Resolves `twap(price, timestamp)`, the time-weighted mean of a step function. Rows arrive in
/// time order.
pub(crate) fn twap(types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [price, timestamp] = types else { return None };
    if !super::shape::reads_as_double(*price) || !timestamp.is_timestamp() {
        return None;
    }
    let udaf = udaf::<TimeWeighted>("twap", &timestamp.name(), SqlType::Double);
    Some(super::shape::ordered(udaf, vec![SqlType::Double, *timestamp], SqlType::Double))
}

#[repr(u8)]
enum Shape {
    Correlation,
    CovariancePopulation,
    CovarianceSample,
    Slope,
    Intercept,
    Determination,
}

/// Means and co-moments of `(y, x)`.
#[derive(Debug, Default, Clone)]
struct Joint<const SHAPE: u8> {
    count: f64,
    mean_y: f64,
    mean_x: f64,
    yy: f64,
    xx: f64,
    xy: f64,
}

impl<const SHAPE: u8> Fold for Joint<SHAPE> {
    const COLUMNS: usize = 2;
    const STATE: usize = 6;

    fn add(&mut self, row: &[f64]) {
        self.merge(&Self { count: 1.0, mean_y: row[0], mean_x: row[1], ..Self::default() });
    }

    fn merge(&mut self, other: &Self) {
        if other.count == 0.0 {
            return;
        }
        let count = self.count + other.count;
        let (dy, dx) = (other.mean_y - self.mean_y, other.mean_x - self.mean_x);
        let weight = self.count * other.count / count;
        self.yy += other.yy + dy * dy * weight;
        self.xx += other.xx + dx * dx * weight;
        self.xy += other.xy + dx * dy * weight;
        self.mean_y += dy * other.count / count;
        self.mean_x += dx * other.count / count;
        self.count = count;
    }

    fn to_state(&self) -> Vec<f64> {
        vec![self.count, self.mean_y, self.mean_x, self.yy, self.xx, self.xy]
    }

    fn from_state(state: &[f64]) -> Self {
        Self {
            count: state[0],
            mean_y: state[1],
            mean_x: state[2],
            yy: state[3],
            xx: state[4],
            xy: state[5],
        }
    }

    fn finish(&self) -> Option<f64> {
        let (n, spread) = (self.count, self.xx > 0.0);
        match SHAPE {
            s if s == Shape::CovariancePopulation as u8 => (n > 0.0).then(|| self.xy / n),
            s if s == Shape::CovarianceSample as u8 => (n > 1.0).then(|| self.xy / (n - 1.0)),
            s if s == Shape::Correlation as u8 => {
                (spread && self.yy > 0.0).then(|| self.xy / (self.xx.sqrt() * self.yy.sqrt()))
            }
            s if s == Shape::Slope as u8 => spread.then(|| self.xy / self.xx),
            s if s == Shape::Intercept as u8 => {
                spread.then(|| self.mean_y - self.xy / self.xx * self.mean_x)
            }
            _ => match (spread, self.yy > 0.0) {
                (false, _) => None,
                (true, false) => Some(1.0),
                (true, true) => Some(self.xy * self.xy / (self.xx * self.yy)),
            },
        }
    }
}

#[repr(u8)]
enum Weighting {
    Volume,
    Mean,
    Reliability,
    Frequency,
}

/// Weighted mean and spread of `(value, weight)`; rows with weight 0 are skipped.
#[derive(Debug, Default, Clone)]
struct Weighted<const SHAPE: u8> {
    count: f64,
    weights: f64,
    squares: f64,
    mean: f64,
    spread: f64,
}

impl<const SHAPE: u8> Fold for Weighted<SHAPE> {
    const COLUMNS: usize = 2;
    const STATE: usize = 5;

    fn add(&mut self, row: &[f64]) {
        let (value, weight) = (row[0], row[1]);
        let counts = if SHAPE == Weighting::Volume as u8 { weight > 0.0 } else { weight != 0.0 };
        if counts {
            self.merge(&Self {
                count: 1.0,
                weights: weight,
                squares: weight * weight,
                mean: value,
                spread: 0.0,
            });
        }
    }

    fn merge(&mut self, other: &Self) {
        if other.count == 0.0 {
            return;
        }
        let weights = self.weights + other.weights;
        let delta = other.mean - self.mean;
        if weights != 0.0 {
            self.spread += other.spread + delta * delta * self.weights * other.weights / weights;
            self.mean += delta * other.weights / weights;
        }
        self.weights = weights;
        self.squares += other.squares;
        self.count += other.count;
    }

    fn to_state(&self) -> Vec<f64> {
        vec![self.count, self.weights, self.squares, self.mean, self.spread]
    }

    fn from_state(state: &[f64]) -> Self {
        Self {
            count: state[0],
            weights: state[1],
            squares: state[2],
            mean: state[3],
            spread: state[4],
        }
    }

    fn finish(&self) -> Option<f64> {
        let deviation = |divisor: f64| {
            let defined = self.count >= 2.0 && self.weights > 0.0 && divisor > 0.0;
            defined.then(|| (self.spread / divisor).sqrt())
        };
        match SHAPE {
            s if s == Weighting::Reliability as u8 => {
                deviation(self.weights - self.squares / self.weights)
            }
            s if s == Weighting::Frequency as u8 => deviation(self.weights - 1.0),
            _ => (self.weights != 0.0).then_some(self.mean),
        }
    }
}

/// A step function over time: each price holds until the next row.
#[derive(Debug, Default, Clone)]
struct TimeWeighted {
    count: f64,
    prices: f64,
    area: f64,
    first: f64,
    last: f64,
    last_price: f64,
}

impl Fold for TimeWeighted {
    const COLUMNS: usize = 2;
    const STATE: usize = 6;

    fn add(&mut self, row: &[f64]) {
        self.merge(&Self {
            count: 1.0,
            prices: row[0],
            area: 0.0,
            first: row[1],
            last: row[1],
            last_price: row[0],
        });
    }

    fn merge(&mut self, later: &Self) {
        if later.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            self.first = later.first;
        } else {
            self.area += self.last_price * (later.first - self.last);
        }
        self.area += later.area;
        self.count += later.count;
        self.prices += later.prices;
        self.last = later.last;
        self.last_price = later.last_price;
    }

    fn to_state(&self) -> Vec<f64> {
        vec![self.count, self.prices, self.area, self.first, self.last, self.last_price]
    }

    fn from_state(state: &[f64]) -> Self {
        Self {
            count: state[0],
            prices: state[1],
            area: state[2],
            first: state[3],
            last: state[4],
            last_price: state[5],
        }
    }

    fn finish(&self) -> Option<f64> {
        let time = self.last - self.first;
        match (self.count > 0.0, time > 0.0) {
            (false, _) => None,
            (true, false) => Some(self.prices / self.count),
            (true, true) => Some(self.area / time),
        }
    }
}
