//! Compares each aggregate with its mathematical definition, with the rows in one batch and in two.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringViewArray};
use datafusion::common::ScalarValue;
use datafusion_expr::function::AccumulatorArgs;

use super::*;
use crate::registry::resolve_aggregate;

fn resolve(name: &str, types: &[SqlType]) -> ResolvedAggregate {
    let arguments: Vec<Argument> = types.iter().map(|t| Argument::column(*t)).collect();
    resolve_aggregate(name, false, &arguments).unwrap()
}

/// Aggregates the rows in one batch, then again in two batches that are split at `cut`, merging
/// their states.
fn run(resolved: &ResolvedAggregate, columns: &[ArrayRef], cut: usize) -> [ScalarValue; 2] {
    use arrow::datatypes::{Field, Schema};
    let schema = Schema::empty();
    let field = Arc::new(Field::new("r", resolved.return_type.arrow_type(), true));
    let make = || {
        let args = AccumulatorArgs {
            return_field: Arc::clone(&field),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: "r",
            is_distinct: false,
            exprs: &[],
            expr_fields: &[],
        };
        resolved.udaf.accumulator(args).unwrap()
    };
    let mut whole = make();
    whole.update_batch(columns).unwrap();
    let rows = columns[0].len();
    let mut merged = make();
    for range in [0..cut, cut..rows] {
        let mut partial = make();
        let slices: Vec<ArrayRef> =
            columns.iter().map(|c| c.slice(range.start, range.len())).collect();
        partial.update_batch(&slices).unwrap();
        let state: Vec<ArrayRef> =
            partial.state().unwrap().iter().map(|s| s.to_array().unwrap()).collect();
        merged.merge_batch(&state).unwrap();
    }
    [whole.evaluate().unwrap(), merged.evaluate().unwrap()]
}

fn doubles(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn assert_close(results: &[ScalarValue; 2], expected: Option<f64>) {
    for result in results {
        let ScalarValue::Float64(value) = result else { panic!("{result:?} is not a DOUBLE") };
        match (value, expected) {
            (Some(value), Some(expected)) => {
                assert!((value - expected).abs() < 1e-9 * expected.abs().max(1.0), "{value}");
            }
            (value, expected) => assert_eq!(*value, expected),
        }
    }
}

#[test]
fn statistical_moments_match_their_definitions() {
    let column = doubles(&[Some(2.0), None, Some(4.0), Some(4.0), Some(5.0), Some(9.0)]);
    let mean = 24.0 / 5.0;
    let power =
        |p: i32| [2.0, 4.0, 4.0, 5.0, 9.0].iter().map(|x: &f64| (x - mean).powi(p)).sum::<f64>();
    let expected = [
        ("avg", mean),
        ("sum", 24.0),
        ("ksum", 24.0),
        ("nsum", 24.0),
        ("var_pop", power(2) / 5.0),
        ("var_samp", power(2) / 4.0),
        ("stddev", (power(2) / 4.0).sqrt()),
        ("skewness_pop", power(3) / 5.0 / (power(2) / 5.0).powf(1.5)),
        ("kurtosis_pop", power(4) / 5.0 / (power(2) / 5.0).powi(2) - 3.0),
        ("median", 4.0),
    ];
    for (name, value) in expected {
        for cut in 0..=6 {
            let column = Arc::clone(&column);
            assert_close(&run(&resolve(name, &[SqlType::Double]), &[column], cut), Some(value));
        }
    }
}

#[test]
fn aggregates_of_too_few_values_are_null() {
    let none = doubles(&[None]);
    let one = doubles(&[Some(1.0)]);
    for name in ["avg", "sum", "stddev_pop", "median", "geomean"] {
        assert_close(&run(&resolve(name, &[SqlType::Double]), &[Arc::clone(&none)], 0), None);
    }
    for name in ["stddev", "var_samp", "skewness", "kurtosis"] {
        assert_close(&run(&resolve(name, &[SqlType::Double]), &[Arc::clone(&one)], 0), None);
    }
}

#[test]
fn pair_aggregates_match_their_definitions() {
    let y = doubles(&[Some(1.0), Some(3.0), Some(2.0), None]);
    let x = doubles(&[Some(1.0), Some(2.0), Some(3.0), Some(9.0)]);
    let both = [SqlType::Double; 2];
    for cut in 0..=4 {
        let columns = [Arc::clone(&y), Arc::clone(&x)];
        assert_close(&run(&resolve("covar_samp", &both), &columns, cut), Some(0.5));
        assert_close(&run(&resolve("corr", &both), &columns, cut), Some(0.5));
        assert_close(&run(&resolve("regr_slope", &both), &columns, cut), Some(0.5));
        assert_close(&run(&resolve("regr_intercept", &both), &columns, cut), Some(1.0));
        assert_close(&run(&resolve("vwap", &both), &columns, cut), Some(13.0 / 6.0));
    }
}

#[test]
fn integer_sums_wrap_on_overflow_and_the_minimum_value_is_null() {
    let resolved = resolve("sum", &[SqlType::Long]);
    let sum = |values: &[i64]| {
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        run(&resolved, &[column], 1)
    };
    assert_eq!(sum(&[i64::MAX, 1]), [ScalarValue::Int64(None), ScalarValue::Int64(None)]);
    let wrapped = ScalarValue::Int64(Some(i64::MIN + 1));
    assert_eq!(sum(&[i64::MAX, 2]), [wrapped.clone(), wrapped]);
    assert_eq!(resolve("sum", &[SqlType::Int]).return_type, SqlType::Long);
}

#[test]
fn first_includes_nulls_and_first_not_null_skips_them() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1), Some(2), None]));
    let value = |name: &str, cut| run(&resolve(name, &[SqlType::Int]), &[Arc::clone(&column)], cut);
    for cut in 0..=4 {
        for (name, expected) in [
            ("first", None),
            ("last", None),
            ("first_not_null", Some(1)),
            ("last_not_null", Some(2)),
        ] {
            let expected = ScalarValue::Int32(expected);
            assert_eq!(value(name, cut), [expected.clone(), expected], "{name} cut at {cut}");
        }
    }
}

#[test]
fn strings_are_concatenated_in_row_order() {
    let texts: ArrayRef =
        Arc::new(StringViewArray::from(vec![Some("a"), None, Some("b"), Some("a")]));
    let separator = Argument::constant(SqlType::String, ScalarValue::from("-"));
    let join = |name: &str| {
        let arguments = [Argument::column(SqlType::Varchar), separator.clone()];
        let resolved = resolve_aggregate(name, false, &arguments).unwrap();
        let [whole, merged] = run(&resolved, &[Arc::clone(&texts)], 3);
        assert_eq!(whole, merged, "{name}");
        whole
    };
    assert_eq!(join("string_agg"), ScalarValue::Utf8View(Some("a-b-a".into())));
    assert_eq!(join("string_distinct_agg"), ScalarValue::Utf8View(Some("a-b".into())));
}

#[test]
fn error_messages_match_questdb() {
    let message = |name: &str, types: &[SqlType]| {
        let arguments: Vec<Argument> = types.iter().map(|t| Argument::column(*t)).collect();
        resolve_aggregate(name, false, &arguments).unwrap_err().message()
    };
    assert_eq!(
        message("count", &[SqlType::Boolean]),
        "there is no matching function `count` with the argument types: (BOOLEAN)"
    );
    assert_eq!(message("sum", &[]), "function `sum` requires arguments");
    assert_eq!(
        message("corr", &[SqlType::Double]),
        "wrong number of arguments for function `corr`; expected: 2, provided: 1"
    );
}

fn constants(value: SqlType, rest: &[ScalarValue]) -> Vec<Argument> {
    let constant = |value: &ScalarValue| match value {
        ScalarValue::Float64(_) => Argument::constant(SqlType::Double, value.clone()),
        _ => Argument::constant(SqlType::Int, value.clone()),
    };
    std::iter::once(Argument::column(value)).chain(rest.iter().map(constant)).collect()
}

#[test]
fn percentiles_are_exact_and_approximate_percentiles_use_a_histogram() {
    let column = doubles(&[Some(10.0), Some(60.0), None, Some(30.0), Some(20.0), Some(45.0)]);
    let ninety = ScalarValue::Float64(Some(0.9));
    for (name, rest, expected) in [
        ("median", vec![], 30.0),
        ("percentile", vec![ninety.clone()], 54.0),
        ("percentile_disc", vec![ninety.clone()], 60.0),
        ("approx_median", vec![], 30.5),
        ("approx_percentile", vec![ninety, ScalarValue::Int32(Some(3))], 60.023_437_5),
    ] {
        let resolved = resolve_aggregate(name, false, &constants(SqlType::Double, &rest)).unwrap();
        for cut in 0..=6 {
            assert_close(&run(&resolved, &[Arc::clone(&column)], cut), Some(expected));
        }
    }
    let beyond = constants(SqlType::Double, &[ScalarValue::Float64(Some(1.5))]);
    let refused = resolve_aggregate("percentile", false, &beyond).unwrap_err();
    assert_eq!(refused.message(), "percentile must be between 0.0 and 1.0");
}

#[test]
fn merged_partial_states_preserve_the_row_order() {
    let column = doubles(&[Some(1.0), Some(4.0), None, Some(8.0)]);
    for cut in 0..=4 {
        let columns = [Arc::clone(&column)];
        let chart = ScalarValue::Utf8View(Some("▁▄█".into()));
        let found = run(&resolve("sparkline", &[SqlType::Double]), &columns, cut);
        assert_eq!(found, [chart.clone(), chart]);
        let ordered = run(&resolve("isOrdered", &[SqlType::Double]), &columns, cut);
        assert_eq!(ordered, [ScalarValue::from(true), ScalarValue::from(true)]);
    }
    let falling = doubles(&[Some(-1.0), Some(-2.0)]);
    for cut in 0..=2 {
        let columns = [Arc::clone(&falling)];
        let ordered = run(&resolve("isOrdered", &[SqlType::Double]), &columns, cut);
        assert_eq!(ordered, [ScalarValue::from(false), ScalarValue::from(false)]);
    }
}

#[test]
fn path_length_is_the_sum_of_its_segments() {
    let (lat, lon) = (doubles(&[Some(1.25), Some(2.5)]), doubles(&[Some(10.0), Some(20.0)]));
    let times: ArrayRef = Arc::new(arrow::array::TimestampMicrosecondArray::from(vec![0, 1]));
    let types = [SqlType::Double, SqlType::Double, SqlType::Timestamp];
    for cut in 0..=2 {
        let columns = [Arc::clone(&lat), Arc::clone(&lon), Arc::clone(&times)];
        let resolved = resolve("haversine_dist_deg", &types);
        assert_close(&run(&resolved, &columns, cut), Some(1_120.003_962_062_721_7));
    }
}

/// A gauge with one null and a counter with a restart, at 0, 10, 20 and 40 seconds.
#[test]
fn delta_and_rate_aggregates_match_their_definitions() {
    let gauge = doubles(&[Some(1.0), None, Some(4.0), Some(2.0)]);
    let counter = doubles(&[Some(5.0), Some(8.0), Some(2.0), Some(6.0)]);
    let micros: ArrayRef = Arc::new(arrow::array::TimestampMicrosecondArray::from(vec![
        0, 10_000_000, 20_000_000, 40_000_000,
    ]));
    let nanos: ArrayRef = Arc::new(arrow::array::TimestampNanosecondArray::from(vec![
        0,
        10_000_000_000,
        20_000_000_000,
        40_000_000_000,
    ]));
    let times = [(SqlType::Timestamp, micros), (SqlType::TimestampNs, nanos)];
    for (time, timestamps) in times {
        for (name, values, expected) in [
            ("delta", &gauge, 1.0),
            ("derivative", &gauge, 1.0 / 40.0),
            ("increase", &counter, 3.0 + 2.0 + 4.0),
            ("rate", &counter, 9.0 / 40.0),
            // Each term is the mean of two values times the number of seconds between them.
            ("integral", &gauge, 2.5 * 20.0 + 3.0 * 20.0),
            ("time_weight", &gauge, 110.0 / 40.0),
        ] {
            let resolved = resolve(name, &[SqlType::Double, time]);
            for cut in 0..=4 {
                let columns = [Arc::clone(values), Arc::clone(&timestamps)];
                assert_close(&run(&resolved, &columns, cut), Some(expected));
            }
            let nothing = [doubles(&[None]), timestamps.slice(0, 1)];
            assert_close(&run(&resolved, &nothing, 0), None);
        }
    }
    let alone = [
        doubles(&[Some(7.0)]),
        Arc::new(arrow::array::TimestampMicrosecondArray::from(vec![3])) as ArrayRef,
    ];
    for (name, expected) in [("delta", Some(0.0)), ("rate", None), ("time_weight", Some(7.0))] {
        let resolved = resolve(name, &[SqlType::Double, SqlType::Timestamp]);
        assert_close(&run(&resolved, &alone, 0), expected);
    }
}
