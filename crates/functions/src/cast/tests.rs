use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use datafusion_expr::{ColumnarValue, Expr};
use tidemark_types::SqlType;

use super::convert::convert;
use super::mode::CastMode;
use super::number::char_value;
use super::shown::{symbol_texts, text};
use super::{cast, cast_value};
use crate::column::Call;

/// Casts one value and returns it as a string.
fn shown(value: ScalarValue, from: SqlType, to: SqlType, mode: CastMode) -> Option<String> {
    let arguments = [ColumnarValue::Scalar(value)];
    let array =
        convert(&Call { arguments: &arguments, rows: 1, random: None }, from, to, mode).unwrap();
    let array = if to == SqlType::Symbol { symbol_texts(&array).unwrap() } else { array };
    let to = if to == SqlType::Symbol { SqlType::Varchar } else { to };
    let texts = text(&array, to, CastMode::Explicit).unwrap();
    let texts = texts.as_string_view();
    texts.is_valid(0).then(|| texts.value(0).to_owned())
}

fn explicit(value: ScalarValue, from: SqlType, to: SqlType) -> Option<String> {
    shown(value, from, to, CastMode::Explicit)
}

fn view(text: &str) -> ScalarValue {
    ScalarValue::Utf8View(Some(text.into()))
}

#[test]
fn narrowing_integer_casts_keep_the_low_bits() {
    let long = |value| ScalarValue::Int64(Some(value));
    assert_eq!(explicit(long(70_000), SqlType::Long, SqlType::Short).unwrap(), "4464");
    assert_eq!(explicit(long(70_000), SqlType::Long, SqlType::Byte).unwrap(), "112");
    assert_eq!(explicit(long(i64::MAX), SqlType::Long, SqlType::Int).unwrap(), "-1");
    assert_eq!(explicit(ScalarValue::Int64(None), SqlType::Long, SqlType::Byte).unwrap(), "0");
    assert_eq!(explicit(ScalarValue::Int64(None), SqlType::Long, SqlType::Int), None);
    assert_eq!(
        shown(ScalarValue::Int64(None), SqlType::Long, SqlType::String, CastMode::Constant)
            .unwrap(),
        "null"
    );
}

#[test]
fn doubles_are_truncated_or_become_null() {
    let double = |value| ScalarValue::Float64(Some(value));
    assert_eq!(explicit(double(-2.9), SqlType::Double, SqlType::Byte).unwrap(), "-2");
    assert_eq!(explicit(double(1e20), SqlType::Double, SqlType::Short).unwrap(), "0");
    assert_eq!(explicit(double(1e20), SqlType::Double, SqlType::Timestamp), None);
    assert_eq!(explicit(double(1e10), SqlType::Double, SqlType::Int), None);
    assert_eq!(explicit(double(1e20), SqlType::Double, SqlType::Symbol).unwrap(), "1.0E20");
    assert_eq!(explicit(double(1e300), SqlType::Double, SqlType::Float), None);
}

#[test]
fn strings_are_converted_or_become_null() {
    for (text, to, expected) in [
        ("12", SqlType::Byte, Some("12")),
        ("abc", SqlType::Byte, Some("0")),
        ("-7.5", SqlType::Int, None),
        ("-7.5", SqlType::Double, Some("-7.5")),
        ("NaN", SqlType::Float, None),
        ("T", SqlType::Boolean, Some("true")),
        ("12", SqlType::Boolean, Some("false")),
        ("2024-02", SqlType::Date, Some("2024-02-01T00:00:00.000Z")),
        ("1.2.3.4", SqlType::Ipv4, Some("1.2.3.4")),
        ("0.0.0.0", SqlType::Ipv4, None),
        ("0x1F", SqlType::Long256, Some("0x1f")),
        ("u33d8", SqlType::Geohash(20), Some("u33d")),
        ("abc", SqlType::Char, Some("a")),
        (
            "11111111-1111-1111-1111-111111111111",
            SqlType::Uuid,
            Some("11111111-1111-1111-1111-111111111111"),
        ),
    ] {
        assert_eq!(explicit(view(text), SqlType::String, to).as_deref(), expected, "{text}");
    }
}

#[test]
fn strict_cast_errors_contain_the_value() {
    let arguments = [ColumnarValue::Scalar(view("abc"))];
    let call = Call { arguments: &arguments, rows: 1, random: None };
    let error = convert(&call, SqlType::String, SqlType::Int, CastMode::Implicit).unwrap_err();
    assert!(error.to_string().contains("inconvertible value: `abc` [STRING -> INT]"));
    let arguments = [ColumnarValue::Scalar(ScalarValue::Int64(Some(3_000_000_000)))];
    let call = Call { arguments: &arguments, rows: 1, random: None };
    let error = convert(&call, SqlType::Long, SqlType::Int, CastMode::Insert).unwrap_err();
    assert!(error.to_string().contains("inconvertible value: 3000000000 [LONG -> INT]"));
}

#[test]
fn a_digit_char_is_converted_to_its_number() {
    let unit = |unit: char| ScalarValue::UInt16(Some(unit as u16));
    assert_eq!(explicit(unit('7'), SqlType::Char, SqlType::Double).unwrap(), "7.0");
    let arguments = [ColumnarValue::Scalar(unit('A'))];
    let call = Call { arguments: &arguments, rows: 1, random: None };
    let error = convert(&call, SqlType::Char, SqlType::Int, CastMode::Explicit).unwrap_err();
    assert!(error.to_string().contains("inconvertible value: A [CHAR -> INT]"));
    let values = ['T', 'f', '7'].map(|c| char_value(c as u16, SqlType::Boolean));
    assert_eq!(values, [Some(1), Some(0), None]);
}

#[test]
fn timestamps_convert_between_units() {
    let micros = ScalarValue::TimestampMicrosecond(Some(1_500), None);
    assert_eq!(
        explicit(micros.clone(), SqlType::Timestamp, SqlType::Date).unwrap(),
        "1970-01-01T00:00:00.001Z"
    );
    assert_eq!(
        explicit(micros.clone(), SqlType::Timestamp, SqlType::TimestampNs).unwrap(),
        "1970-01-01T00:00:00.001500000Z"
    );
    assert_eq!(explicit(micros, SqlType::Timestamp, SqlType::Long).unwrap(), "1500");
}

#[test]
fn numbers_become_the_low_bits_of_a_long256() {
    let wide = |value, from| explicit(value, from, SqlType::Long256);
    let long = |value| wide(ScalarValue::Int64(value), SqlType::Long);
    assert_eq!(long(Some(1_000)).unwrap(), "0x03e8");
    assert_eq!(long(Some(-5)).unwrap(), "0xfffffffffffffffb");
    assert_eq!(long(None), None);
    assert_eq!(wide(ScalarValue::Float64(Some(256.9)), SqlType::Double).unwrap(), "0x0100");
    assert_eq!(wide(ScalarValue::Float64(Some(1e30)), SqlType::Double), None);
    assert_eq!(wide(ScalarValue::Boolean(Some(true)), SqlType::Boolean).unwrap(), "0x01");
}

#[test]
fn unsupported_casts_are_rejected() {
    let column = datafusion_expr::col("a");
    let error = cast(column.clone(), SqlType::Boolean, SqlType::Uuid, CastMode::Explicit);
    assert_eq!(
        error.unwrap_err().message(),
        "there is no matching function `cast` with the argument types: (BOOLEAN, UUID)"
    );
    let error = cast(column, SqlType::Int, SqlType::Varchar, CastMode::Insert);
    assert_eq!(error.unwrap_err().message(), "inconvertible types: INT -> VARCHAR");
}

#[test]
fn constants_and_columns_have_the_same_cast_results() {
    use SqlType as T;
    let types = [
        (T::Boolean, ScalarValue::Boolean(Some(true))),
        (T::Byte, ScalarValue::Int8(Some(-7))),
        (T::Int, ScalarValue::Int32(Some(70_000))),
        (T::Long, ScalarValue::Int64(Some(1_704_067_200_000_000))),
        (T::Double, ScalarValue::Float64(Some(2.75))),
        (T::Timestamp, ScalarValue::TimestampMicrosecond(Some(1_704_067_200_123_456), None)),
        (T::Varchar, view("2024-01-01T00:00:00.5")),
        (T::Varchar, view("12")),
        (T::String, view("no number")),
        (T::Varchar, view("5e1d2c3b-0000-4000-8000-00000000abcd")),
        (T::Varchar, ScalarValue::Utf8View(None)),
        (T::Null, ScalarValue::Utf8View(None)),
    ];
    let targets = [T::Boolean, T::Byte, T::Short, T::Int, T::Long, T::Float, T::Double, T::Date]
        .into_iter()
        .chain([T::Timestamp, T::TimestampNs, T::Varchar, T::String, T::Char, T::Uuid, T::Ipv4])
        .chain([T::Decimal(10, 2), T::DoubleArray(1), T::Geohash(10), T::Long256]);
    let mut compared = 0;
    for to in targets {
        for (from, value) in &types {
            for mode in
                [CastMode::Explicit, CastMode::Implicit, CastMode::Insert, CastMode::Constant]
            {
                let literal = Expr::Literal(value.clone(), None);
                let (now, later) =
                    (cast_value(value, *from, to, mode), cast(literal, *from, to, mode));
                let what = format!("{value:?} {from:?} -> {to:?} {mode:?}");
                match (now, later) {
                    (Ok(now), Ok(later)) => {
                        assert_eq!(now, evaluated(&later), "{what}");
                        compared += 1;
                    }
                    (Err(now), Err(later)) => {
                        assert_eq!(now.to_string(), later.to_string(), "{what}");
                    }
                    (now, later) => panic!("{what}: {now:?}, {later:?}"),
                }
            }
        }
    }
    assert!(compared > 400, "{compared}");
}

/// Evaluates an expression that has no columns; `None` if the evaluation fails.
fn evaluated(expr: &Expr) -> Option<ScalarValue> {
    let (schema, props) = (DFSchema::empty(), ExecutionProps::new());
    let context = PhysicalPlanningContext::default();
    let physical = create_physical_expr(expr, &schema, &props, &context).unwrap();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options);
    match physical.evaluate(&row.unwrap()).ok()? {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(values) => Some(ScalarValue::try_from_array(&values, 0).unwrap()),
    }
}
