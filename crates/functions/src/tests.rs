//! Tests scalar functions through the binder's entry points. Each test resolves a function, casts
//! its arguments, runs it, and compares the result as a string. The expected values are
//! `QuestDB`'s.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::Field;
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, lit};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tidemark_types::SqlType;
use tidemark_types::timestamp::{TimestampUnit, parse};

use crate::cast::convert::convert;
use crate::cast::shown::{symbol_texts, text};
use crate::cast::{CastMode, cast};
use crate::column::Call;
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::resolve_scalar;

/// Returns a random number generator. Its seed is printed and can be set with `SEED`.
pub(crate) fn random() -> ChaCha8Rng {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(1);
    println!("SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

#[derive(Clone)]
struct Given(SqlType, ScalarValue);

fn s(text: &str) -> Given {
    Given(SqlType::String, ScalarValue::Utf8View(Some(text.into())))
}

fn c(letter: char) -> Given {
    Given(SqlType::Char, ScalarValue::UInt16(Some(letter as u16)))
}

fn i(number: i32) -> Given {
    Given(SqlType::Int, ScalarValue::Int32(Some(number)))
}

fn l(number: i64) -> Given {
    Given(SqlType::Long, ScalarValue::Int64(Some(number)))
}

fn d(number: f64) -> Given {
    Given(SqlType::Double, ScalarValue::Float64(Some(number)))
}

fn t(iso: &str) -> Given {
    let micros = parse(iso, TimestampUnit::Micros);
    Given(SqlType::Timestamp, ScalarValue::TimestampMicrosecond(micros, None))
}

fn null(sql_type: SqlType) -> Given {
    Given(sql_type, ScalarValue::try_from(&sql_type.arrow_type()).unwrap())
}

fn resolve(name: &str, given: &[Given]) -> Result<ResolvedScalar, ResolveError> {
    let arguments: Vec<Argument> = given
        .iter()
        .map(|Given(sql_type, value)| Argument::constant(*sql_type, value.clone()))
        .collect();
    resolve_scalar(name, &arguments)
}

/// Runs a function on three rows. Its arguments are columns if `expanded`, otherwise scalars.
fn run(name: &str, given: &[Given], expanded: bool) -> (SqlType, ArrayRef) {
    let resolved = resolve(name, given).unwrap_or_else(|error| panic!("{name}: {error}"));
    let arguments: Vec<ColumnarValue> = given
        .iter()
        .zip(&resolved.argument_types)
        .map(|(Given(from, value), &to)| {
            let value = ColumnarValue::Scalar(value.clone());
            let value = if *from == to {
                value
            } else if *from == SqlType::Null {
                let typed = cast(lit(ScalarValue::Null), *from, to, CastMode::Implicit).unwrap();
                let Expr::Literal(null, _) = typed else { panic!("a cast null must be a literal") };
                ColumnarValue::Scalar(null)
            } else {
                let call = Call { arguments: &[value], rows: 1, random: None };
                let array = convert(&call, *from, to, CastMode::Implicit).unwrap();
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0).unwrap())
            };
            if expanded { ColumnarValue::Array(value.into_array(3).unwrap()) } else { value }
        })
        .collect();
    let returns = resolved.return_type;
    let arg_fields = resolved
        .argument_types
        .iter()
        .map(|sql_type| Arc::new(Field::new("a", sql_type.arrow_type(), true)))
        .collect();
    let args = ScalarFunctionArgs {
        args: arguments,
        arg_fields,
        number_rows: 3,
        return_field: Arc::new(Field::new("r", returns.arrow_type(), true)),
        config_options: Arc::new(ConfigOptions::new()),
    };
    let result = resolved.udf.invoke_with_args(args).unwrap().into_array(3).unwrap();
    assert_eq!(result.len(), 3, "{name}");
    assert_eq!(result.data_type(), &returns.arrow_type(), "{name}");
    (returns, result)
}

fn show(name: &str, given: &[Given]) -> Option<String> {
    let shown = |expanded| {
        let (returns, array) = run(name, given, expanded);
        let (array, returns) = match returns {
            SqlType::Symbol => (symbol_texts(&array).unwrap(), SqlType::Varchar),
            other => (array, other),
        };
        let texts = text(&array, returns, CastMode::Explicit).unwrap();
        let texts = texts.as_string_view();
        texts.is_valid(2).then(|| texts.value(2).to_owned())
    };
    let (columns, scalars) = (shown(true), shown(false));
    assert_eq!(columns, scalars, "{name}: columns and scalars differ");
    columns
}

#[track_caller]
fn check(name: &str, given: &[Given], expected: &str) {
    assert_eq!(show(name, given).as_deref(), Some(expected), "{name}");
}

#[track_caller]
fn check_null(name: &str, given: &[Given]) {
    assert_eq!(show(name, given), None, "{name}");
}

fn message(name: &str, given: &[Given]) -> String {
    resolve(name, given).unwrap_err().message()
}

#[test]
fn numeric_functions_return_the_reference_results() {
    check("round", &[d(2.5)], "3.0");
    check("round", &[d(-2.5)], "-2.0");
    check("round", &[d(2.675), i(2)], "2.68");
    check("round", &[d(6.25), i(1)], "6.3");
    check("round", &[d(1234.567), i(-2)], "1200.0");
    check("round", &[d(-0.001), i(1)], "-0.0");
    check("round_up", &[d(-1.234), i(2)], "-1.24");
    check("round_down", &[d(1.239), i(2)], "1.23");
    check("round_half_even", &[d(2.5), i(0)], "2.0");
    check("round_half_even", &[d(3.5), i(0)], "4.0");
    check("floor", &[d(-1.2)], "-2.0");
    check("ceiling", &[d(-1.7)], "-1.0");
    check("floor", &[i(5)], "5.0");
    check("sqrt", &[i(16)], "4.0");
    check_null("sqrt", &[i(-1)]);
    check_null("ln", &[d(0.0)]);
    check("log", &[d(1000.0)], "3.0");
    check("power", &[i(2), i(-1)], "0.5");
    check("abs", &[i(-3)], "3");
    check("greatest", &[i(1), null(SqlType::Null), i(3)], "3");
    check("least", &[d(5.5), i(2)], "2.0");
    check("size_pretty", &[l(400_032)], "390.7 KiB");
    check("size_pretty", &[l(0)], "0.0 B");
    check("spread_bps", &[d(1.0), d(2.0)], "6666.666666666666");
    check("wmid", &[i(100), i(5), i(6), i(100)], "5.5");
    check_null("mid", &[null(SqlType::Null), d(1.0)]);
}

#[test]
fn string_functions_return_the_reference_results() {
    check("upper", &[s("é")], "É");
    check_null("upper", &[null(SqlType::String)]);
    check("left", &[s("hello"), i(-2)], "hel");
    check("right", &[s("hello"), i(-2)], "llo");
    check("right", &[s("hello"), i(3)], "llo");
    check("left", &[s("hello"), i(0)], "");
    check("substring", &[s("hello"), i(2), i(3)], "ell");
    check("substring", &[s("hello"), i(0), i(2)], "h");
    check("substring", &[s("hello"), i(-1), i(4)], "he");
    check("substring", &[s("hello"), i(10), i(2)], "");
    check("substr", &[s("hello"), i(2), i(3)], "ell");
    check("substr", &[s("hello"), i(4)], "lo");
    check("octet_length", &[s("é€")], "5");
    check("bit_length", &[s("é€")], "40");
    check_null("octet_length", &[null(SqlType::String)]);
    check_null("bit_length", &[null(SqlType::String)]);
    check("strpos", &[s("hello world"), c('o')], "5");
    check("strpos", &[s("abc"), s("")], "1");
    check_null("strpos", &[null(SqlType::Null), c('a')]);
    check("replace", &[s("hello"), c('l'), c('L')], "heLLo");
    check("replace", &[s("abc"), s(""), c('x')], "abc");
    check("trim", &[s("  a b  ")], "a b");
    check("lpad", &[s("abc"), i(7), s("xy")], "xyxyabc");
    check("lpad", &[s("abc"), i(2), c('*')], "ab");
    check("rpad", &[s("abc"), i(5)], "abc  ");
    check("split_part", &[s("a,b,c"), c(','), i(-1)], "c");
    check("split_part", &[s("a,b,c"), c(','), i(9)], "");
    assert_eq!(message("split_part", &[s("a"), c(','), i(0)]), "field position must not be zero");
    check("regexp_replace", &[s("foo bar"), s(r"(\w+) (\w+)"), s("$2 $1")], "bar foo");
    check("starts_with", &[s("abc"), s("ab")], "true");
    check("starts_with", &[null(SqlType::String), s("ab")], "false");
    check("length", &[null(SqlType::Null)], "-1");
    check("length", &[s("abc")], "3");
    check("concat", &[s("x"), i(5), null(SqlType::Int), null(SqlType::Double)], "x5nullNaN");
    check("concat", &[null(SqlType::Null), null(SqlType::Null)], "");
    check("netmask", &[s("1.2.3.0/24")], "255.255.255.0");
    check("to_uuid", &[l(2), l(1)], "00000000-0000-0001-0000-000000000002");
    let parts = "0xffffffffffffffff000000000000000000000000000000020000000000000001";
    check("to_long256", &[l(1), l(2), l(0), l(-1)], parts);
    assert_eq!(show("to_long256", &[l(1), null(SqlType::Long), l(0), l(0)]), None);
    check("bar", &[d(3.0), d(0.0), d(4.0), i(2)], "█▌");
}

#[test]
fn calendar_fields_match_the_reference() {
    let moment = t("2024-05-17T13:45:56.123456Z");
    for (name, expected) in [
        ("year", "2024"),
        ("month", "5"),
        ("day", "17"),
        ("hour", "13"),
        ("minute", "45"),
        ("second", "56"),
        ("millis", "123"),
        ("micros", "456"),
        ("day_of_week", "5"),
        ("days_in_month", "31"),
        ("week_of_year", "20"),
        ("is_leap_year", "true"),
        ("day_of_week_sunday_first", "6"),
    ] {
        check(name, std::slice::from_ref(&moment), expected);
    }
    for (part, iso, expected) in [
        ("doy", "2024-05-17", "138"),
        ("dow", "2024-05-19", "0"),
        ("isodow", "2024-05-19", "7"),
        ("week", "2024-12-30", "1"),
        ("isoyear", "2024-12-30", "2025"),
        ("quarter", "2024-05-17", "2"),
        ("decade", "2024-05-17", "202"),
        ("century", "2000-12-31", "20"),
        ("millennium", "2001-01-01", "3"),
        ("millisecond", "2024-05-17T13:45:56.123456Z", "123"),
        ("microsecond", "2024-05-17T13:45:56.123456Z", "123456"),
    ] {
        check("extract", &[s(part), t(iso)], expected);
    }
    check("extract_epoch", &[s("epoch"), moment], "1715953556");
    check("year", &[t("1969-12-31T23:59:59Z")], "1969");
    check("hour", &[s("2024-05-17T13:45:56.123456Z")], "13");
    check_null("year", &[null(SqlType::Timestamp)]);
    assert_eq!(message("extract", &[s("foo"), t("2024")]), "unsupported timestamp part: foo");
}

#[test]
fn date_addition_and_difference_return_the_reference_results() {
    for (letter, number, from, to) in [
        ('s', 90, "2024-01-31T00:00:00Z", "2024-01-31T00:01:30.000000Z"),
        ('m', -1, "2024-01-31T00:00:00Z", "2024-01-30T23:59:00.000000Z"),
        ('M', 1, "2024-01-31T12:00:00Z", "2024-02-29T12:00:00.000000Z"),
        ('M', -1, "2024-03-31T00:00:00Z", "2024-02-29T00:00:00.000000Z"),
        ('y', 1, "2024-02-29", "2025-02-28T00:00:00.000000Z"),
        ('w', 1, "2024-01-01", "2024-01-08T00:00:00.000000Z"),
        ('u', -1, "2024-01-01", "2023-12-31T23:59:59.999999Z"),
    ] {
        check("dateadd", &[c(letter), i(number), t(from)], to);
    }
    check("dateadd", &[c('d'), i(1), s("2024-01-01")], "2024-01-02T00:00:00.000000Z");
    check(
        "dateadd",
        &[c('d'), i(1), t("2024-03-30T02:00"), s("Europe/Berlin")],
        "2024-03-31T01:00:00.000000Z",
    );
    assert_eq!(message("dateadd", &[c('x'), i(1), t("2024")]), "invalid time period [unit=x]");
    for (letter, a, b, expected) in [
        ('m', "2024-01-01", "2024-01-02", "1440"),
        ('h', "2024-01-02", "2024-01-01", "24"),
        ('d', "2024-01-01T23:00", "2024-01-02T01:00", "0"),
        ('w', "2024-01-01", "2024-01-15", "2"),
        ('M', "2024-01-31", "2024-02-29", "0"),
        ('M', "2024-01-31", "2024-03-31", "2"),
        ('y', "2023-06-01", "2024-05-31", "0"),
        ('y', "2023-06-01", "2024-06-01", "1"),
    ] {
        check("datediff", &[c(letter), t(a), t(b)], expected);
    }
    check_null("datediff", &[c('q'), t("2024"), t("2025")]);
}

#[test]
fn timestamps_are_rounded_to_multiples_of_a_step() {
    for (step, at, expected) in [
        ("1s", "2024-05-17T13:45:56.123456Z", "2024-05-17T13:45:56.000000Z"),
        ("5m", "2024-05-17T13:47:56Z", "2024-05-17T13:45:00.000000Z"),
        ("3h", "2024-05-17T13:47:56Z", "2024-05-17T12:00:00.000000Z"),
        ("d", "2024-05-17T13:47:56Z", "2024-05-17T00:00:00.000000Z"),
        ("w", "2024-05-17", "2024-05-13T00:00:00.000000Z"),
        ("M", "2024-05-17", "2024-05-01T00:00:00.000000Z"),
        ("2M", "2024-05-17", "2024-05-01T00:00:00.000000Z"),
        ("3y", "2024-05-17", "2024-01-01T00:00:00.000000Z"),
    ] {
        check("timestamp_floor", &[s(step), t(at)], expected);
    }
    check(
        "timestamp_floor",
        &[s("5d"), t("2024-05-17"), t("2024-01-01")],
        "2024-05-15T00:00:00.000000Z",
    );
    check(
        "timestamp_floor",
        &[s("1d"), t("2024-05-17T03:00"), null(SqlType::Null), s("04:00"), null(SqlType::Null)],
        "2024-05-16T04:00:00.000000Z",
    );
    assert_eq!(message("timestamp_floor", &[c('x'), t("2024")]), "invalid unit 'x'");
    check("timestamp_ceil", &[c('M'), t("2024-05-01")], "2024-06-01T00:00:00.000000Z");
    check(
        "timestamp_ceil",
        &[c('T'), t("2024-05-17T13:45:56.123456Z")],
        "2024-05-17T13:45:56.124000Z",
    );
    for (unit, expected) in [
        ("milliseconds", "2024-05-17T13:45:56.123000Z"),
        ("week", "2024-05-13T00:00:00.000000Z"),
        ("quarter", "2024-04-01T00:00:00.000000Z"),
        ("decade", "2020-01-01T00:00:00.000000Z"),
        ("century", "2001-01-01T00:00:00.000000Z"),
        ("millennium", "2001-01-01T00:00:00.000000Z"),
    ] {
        check("date_trunc", &[s(unit), t("2024-05-17T13:45:56.123456Z")], expected);
    }
    assert_eq!(message("date_trunc", &[s("foo"), t("2024")]), "invalid unit 'foo'");
}

#[test]
fn timestamps_are_parsed_and_formatted() {
    check(
        "to_timestamp",
        &[s("2024-05-17 13:45 CET"), s("yyyy-MM-dd HH:mm z")],
        "2024-05-17T11:45:00.000000Z",
    );
    check_null("to_timestamp", &[s("2024-02-30"), s("yyyy-MM-dd")]);
    check("to_date", &[s("2024-05-17"), s("yyyy-MM-dd")], "2024-05-17T00:00:00.000Z");
    check("to_pg_date", &[s("2024-05-17")], "2024-05-17T00:00:00.000Z");
    check_null("to_pg_date", &[s("2024-5-17")]);
    check_null("to_pg_date", &[s("2024-05-17T00:00:00Z")]);
    check("to_str", &[t("2024-05-07T13:04:05Z"), s("dd/MM/yy hh:mm a")], "07/05/24 01:04 PM");
    check("to_timezone", &[t("2024-07-01"), s("Europe/Berlin")], "2024-07-01T02:00:00.000000Z");
    check("to_utc", &[t("2024-07-01"), s("Europe/Berlin")], "2024-06-30T22:00:00.000000Z");
    assert_eq!(
        message("to_timezone", &[t("2024-07-01"), s("Nowhere/Bad")]),
        "invalid timezone: Nowhere/Bad"
    );
}

#[test]
fn conditional_functions_return_the_reference_results() {
    check("coalesce", &[null(SqlType::Null), null(SqlType::Null), i(3)], "3");
    check("coalesce", &[i(1), d(2.5)], "1.0");
    check("coalesce", &[null(SqlType::Int), i(5)], "5");
    check_null("nullif", &[i(1), i(1)]);
    check("nullif", &[i(1), i(2)], "1");
    check_null("nullif", &[null(SqlType::Null), i(1)]);
    check_null("nullif", &[c('a'), c('a')]);
    check("typeOf", &[i(1)], "INT");
    check("version", &[], crate::meta::VERSION);
}

#[test]
fn random_values_stay_within_their_bounds() {
    let (_, values) = run("rnd_int", &[i(1), i(5), i(0)], false);
    let values = values.as_primitive::<arrow::datatypes::Int32Type>();
    assert!(values.iter().flatten().all(|value| (1..=5).contains(&value)));
    assert_eq!(values.null_count(), 0);
    let (_, values) = run("rnd_long", &[l(1), l(5), i(1)], false);
    assert_eq!(values.null_count(), 3);
    let (returns, symbols) = run("rnd_symbol", &[c('a'), c('b')], false);
    assert_eq!(returns, SqlType::Symbol);
    let texts = symbol_texts(&symbols).unwrap();
    assert!(texts.as_string_view().iter().flatten().all(|text| text == "a" || text == "b"));
    let (returns, _) = run("rnd_geohash", &[i(20)], false);
    assert_eq!(returns, SqlType::Geohash(20));
    for name in
        ["rnd_boolean", "rnd_byte", "rnd_double", "random", "rnd_uuid4", "rnd_long256", "rnd_bin"]
    {
        run(name, &[], false);
    }
}
