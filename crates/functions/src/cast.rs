//! Conversions between types: which exist, and the kernels that run them. Every kernel works on a
//! whole column: it widens the source to 64-bit lanes, then narrows to the target.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float64Array,
    Int64Array, PrimitiveArray, StringDictionaryBuilder, StringViewArray, StringViewBuilder,
    new_null_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{CastOptions, take};
use arrow::datatypes::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt16Type, UInt32Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Expr, Volatility};
use tidemark_types::timestamp::{self, TimestampUnit};
use tidemark_types::{SqlType, double_array, number_text};

use crate::array::{build_arrays, failed};
use crate::column::{
    Call, Canonical, Lane, build, build_flags, build_text, canonical, internal, invalid, try_build,
};
use crate::native::{Kernel, Native, call};
use crate::parse;
use crate::resolve::ResolveError;

/// On whose behalf a value is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastMode {
    /// `CAST` and `::` over a column: what does not convert is null.
    Explicit,
    /// By the binder, to make operands meet: text that does not convert is an error.
    Implicit,
    /// Into a stored column: failures are errors, and fewer conversions exist.
    Insert,
    /// `CAST` and `::` over a constant: as Explicit, but a null number has a text.
    Constant,
}

impl CastMode {
    fn strict(self) -> bool {
        matches!(self, Self::Implicit | Self::Insert)
    }
}

/// Casts `expr`. Fails when the conversion does not exist, or when a constant does not convert
/// and that is known without running anything.
pub fn cast(
    expr: Expr,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> std::result::Result<Expr, ResolveError> {
    if from == to || (is_plain_text(from) && is_plain_text(to)) {
        return Ok(expr);
    }
    if from == SqlType::Null {
        return null_of(to);
    }
    if !convertible(from, to, mode) {
        return Err(match mode {
            CastMode::Explicit | CastMode::Constant => {
                ResolveError::NoOverload { name: "cast".into(), types: vec![from, to] }
            }
            _ => ResolveError::InconvertibleTypes { from, to },
        });
    }
    if let Expr::Literal(value, _) = &expr {
        check_constant(value, to, mode)?;
    }
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| convert(call, from, to, mode));
    let variant = format!("{},{},{mode:?}", from.name(), to.name());
    Ok(call(&Native::udf("cast_value", variant, to, Volatility::Immutable, kernel), vec![expr]))
}

/// The null of a type, or what stands for it where there is none.
fn null_of(to: SqlType) -> std::result::Result<Expr, ResolveError> {
    let value = match to {
        SqlType::Boolean => ScalarValue::Boolean(Some(false)),
        SqlType::Byte => ScalarValue::Int8(Some(0)),
        SqlType::Short => ScalarValue::Int16(Some(0)),
        _ => ScalarValue::try_from(&to.arrow_type())
            .map_err(|_| ResolveError::InconvertibleTypes { from: SqlType::Null, to })?,
    };
    Ok(Expr::Literal(value, None))
}

fn check_constant(
    value: &ScalarValue,
    to: SqlType,
    mode: CastMode,
) -> std::result::Result<(), ResolveError> {
    let argument = crate::resolve::Argument::constant(SqlType::String, value.clone());
    let Some(text) = argument.text() else { return Ok(()) };
    let invalid = |what: &str| Err(ResolveError::Invalid { message: what.into() });
    if mode == CastMode::Implicit {
        return Ok(());
    }
    match to {
        SqlType::Uuid if parse::uuid(&text).is_none() => invalid("invalid UUID constant"),
        SqlType::Ipv4 if parse::ipv4(&text).is_none() => invalid("invalid IPv4 constant"),
        _ => Ok(()),
    }
}

/// `inconvertible value: …` in the reference's words.
pub(crate) fn inconvertible_value(value: &str, from: SqlType, to: SqlType) -> String {
    let quote = if from.is_text() { "`" } else { "" };
    format!("inconvertible value: {quote}{value}{quote} [{} -> {}]", from.name(), to.name())
}

fn is_plain_text(sql_type: SqlType) -> bool {
    matches!(sql_type, SqlType::String | SqlType::Varchar)
}

fn is_time(sql_type: SqlType) -> bool {
    unit_of(sql_type).is_some()
}

pub(crate) fn unit_of(sql_type: SqlType) -> Option<TimestampUnit> {
    match sql_type {
        SqlType::Date => Some(TimestampUnit::Millis),
        SqlType::Timestamp => Some(TimestampUnit::Micros),
        SqlType::TimestampNs => Some(TimestampUnit::Nanos),
        _ => None,
    }
}

/// Whether a conversion exists.
pub(crate) fn convertible(from: SqlType, to: SqlType, mode: CastMode) -> bool {
    use SqlType as T;
    let number = |sql_type: T| sql_type.is_integer() || sql_type.is_floating();
    if from == to {
        return true;
    }
    if mode == CastMode::Insert {
        let from_number = number(from) || is_time(from) || from == T::Boolean;
        let to_texts = to.is_text() || matches!(to, T::Char | T::Boolean);
        if from_number && to_texts && from != T::Boolean {
            return false;
        }
    }
    match (from, to) {
        (text, T::DoubleArray(_)) if text.is_text() => true,
        (T::Binary | T::Interval | T::DoubleArray(_) | T::Null, _)
        | (_, T::Binary | T::Interval | T::DoubleArray(_) | T::Null) => false,
        (text, _) if text.is_text() => true,
        (T::Uuid | T::Long256, to) => to.is_text(),
        (T::Geohash(bits), T::Geohash(fewer)) => fewer <= bits,
        (T::Geohash(_), to) => to.is_text(),
        (T::Char, T::Geohash(bits)) => bits <= 5,
        (_, T::Uuid | T::Long256 | T::Geohash(_)) => false,
        (T::Ipv4, to) => to.is_text() || to.is_integer(),
        (from, T::Ipv4) => from.is_integer(),
        (T::Decimal(..), to) => matches!(to, T::Decimal(..)) || number(to) || to.is_text(),
        (from, T::Decimal(..)) => {
            from.is_integer() || (from.is_floating() && mode != CastMode::Implicit)
        }
        _ => true,
    }
}

pub(crate) fn convert(
    call: &Call<'_>,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> Result<ArrayRef> {
    let (array, _) = call.array(0)?;
    let (array, from) = if from == SqlType::Symbol {
        (symbol_texts(&array)?, SqlType::String)
    } else {
        (array, from)
    };
    if is_plain_text(from) && is_plain_text(to) {
        return Ok(array);
    }
    match to {
        SqlType::String | SqlType::Varchar => text(&array, from, mode),
        SqlType::Symbol => symbols(&text(&array, from, mode)?),
        SqlType::Decimal(..) => decimal(&array, from, to, mode),
        _ if matches!(from, SqlType::Decimal(..)) => {
            let options = CastOptions { safe: true, ..CastOptions::default() };
            Ok(arrow::compute::cast_with_options(&array, &to.arrow_type(), &options)?)
        }
        _ if is_plain_text(from) => {
            let texts = array.as_string_view_opt().ok_or_else(|| internal("not a text"))?;
            from_text(texts, to, mode)
        }
        SqlType::Geohash(bits) => narrower_geohash(&array, from, bits),
        _ if from.is_floating() => from_double(&doubles(&array, from)?, to),
        _ => from_integer(&integers(&array, from, to)?, from, to, mode),
    }
}

/// The texts of a SYMBOL column as views into its dictionary.
pub(crate) fn symbol_texts(array: &ArrayRef) -> Result<ArrayRef> {
    let symbols = array
        .as_any()
        .downcast_ref::<DictionaryArray<Int32Type>>()
        .ok_or_else(|| internal("not a symbol"))?;
    let values = symbols.values().as_string_opt::<i32>().ok_or_else(|| internal("not a symbol"))?;
    Ok(take(&StringViewArray::from(values), symbols.keys(), None)?)
}

/// A SYMBOL column with a dictionary of its own.
pub(crate) fn symbols(texts: &ArrayRef) -> Result<ArrayRef> {
    let texts = texts.as_string_view_opt().ok_or_else(|| internal("not a text"))?;
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    for text in texts {
        builder.append_option(text);
    }
    Ok(Arc::new(builder.finish()))
}

/// The column as 64-bit integers, in its own unit.
fn integers(array: &ArrayRef, from: SqlType, to: SqlType) -> Result<Int64Array> {
    macro_rules! widen {
        ($type:ty) => {
            primitive::<$type>(array)?.unary(|value| i64::from(value))
        };
    }
    Ok(match from {
        SqlType::Boolean => {
            let flags = array.as_boolean_opt().ok_or_else(|| internal("not a boolean"))?;
            flags.iter().map(|flag| Some(i64::from(flag == Some(true)))).collect()
        }
        SqlType::Byte => widen!(Int8Type),
        SqlType::Short => widen!(Int16Type),
        SqlType::Int => widen!(Int32Type),
        SqlType::Long => primitive::<Int64Type>(array)?.clone(),
        SqlType::Ipv4 => widen!(UInt32Type),
        SqlType::Date => widen!(TimestampMillisecondType),
        SqlType::Timestamp => widen!(TimestampMicrosecondType),
        SqlType::TimestampNs => widen!(TimestampNanosecondType),
        SqlType::Char if to == SqlType::Char => widen!(UInt16Type),
        SqlType::Char => {
            let units = primitive::<UInt16Type>(array)?;
            let reading = |unit: u16| {
                char_value(unit, to).ok_or_else(|| {
                    let shown = char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}');
                    invalid(inconvertible_value(&shown.to_string(), from, to))
                })
            };
            let values: Vec<Option<i64>> =
                units.iter().map(|unit| unit.map(reading).transpose()).collect::<Result<_>>()?;
            values.into()
        }
        _ => return Err(internal(format!("no integer reading of {}", from.name()))),
    })
}

/// What a character stands for: a digit for its value, T and F for truth.
fn char_value(unit: u16, to: SqlType) -> Option<i64> {
    match (to, char::from_u32(u32::from(unit))?) {
        (SqlType::Boolean, 'T' | 't') => Some(1),
        (SqlType::Boolean, 'F' | 'f') => Some(0),
        (SqlType::Boolean, _) => None,
        (_, digit) => digit.to_digit(10).map(i64::from),
    }
}

fn doubles(array: &ArrayRef, from: SqlType) -> Result<Float64Array> {
    Ok(match from {
        SqlType::Float => primitive::<Float32Type>(array)?.unary(f64::from),
        _ => primitive::<Float64Type>(array)?.clone(),
    })
}

fn primitive<T: arrow::datatypes::ArrowPrimitiveType>(
    array: &ArrayRef,
) -> Result<&PrimitiveArray<T>> {
    array
        .as_primitive_opt::<T>()
        .ok_or_else(|| internal("a cast met another type than it was bound to"))
}

fn from_integer(
    source: &Int64Array,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> Result<ArrayRef> {
    if let (Some(source_unit), Some(target_unit)) = (unit_of(from), unit_of(to)) {
        return rescale(source, source_unit, target_unit);
    }
    if mode == CastMode::Insert {
        let range = match to {
            SqlType::Byte => i64::from(i8::MIN)..=i64::from(i8::MAX),
            SqlType::Short => i64::from(i16::MIN)..=i64::from(i16::MAX),
            SqlType::Int => i64::from(i32::MIN) + 1..=i64::from(i32::MAX),
            _ => i64::MIN..=i64::MAX,
        };
        if let Some(outside) = source.iter().flatten().find(|value| !range.contains(value)) {
            return Err(invalid(inconvertible_value(&outside.to_string(), from, to)));
        }
    }
    Ok(match to {
        SqlType::Boolean => {
            build_flags(source.len(), |row| source.is_valid(row) && source.value(row) != 0)
        }
        SqlType::Byte => narrow::<Int8Type>(source, |value| value as i8),
        SqlType::Short => narrow::<Int16Type>(source, |value| value as i16),
        SqlType::Int => narrow::<Int32Type>(source, |value| value as i32),
        SqlType::Long => narrow::<Int64Type>(source, |value| value),
        SqlType::Float => narrow::<Float32Type>(source, |value| value as f32),
        SqlType::Double => narrow::<Float64Type>(source, |value| value as f64),
        SqlType::Date => narrow::<TimestampMillisecondType>(source, |value| value),
        SqlType::Timestamp => narrow::<TimestampMicrosecondType>(source, |value| value),
        SqlType::TimestampNs => narrow::<TimestampNanosecondType>(source, |value| value),
        SqlType::Ipv4 => narrow::<UInt32Type>(source, |value| value as u32),
        SqlType::Char if from == SqlType::Boolean => {
            narrow::<UInt16Type>(source, |value| u16::from(if value == 0 { b'F' } else { b'T' }))
        }
        // A one-digit number becomes its character, others their code.
        SqlType::Char => narrow::<UInt16Type>(source, |value| match value {
            0..=9 => 48 + value as u16,
            value => value as u16,
        }),
        _ => return Err(internal(format!("no cast to {}", to.name()))),
    })
}

fn narrow<T: Lane>(source: &Int64Array, value: impl Fn(i64) -> T::Native) -> ArrayRef {
    if source.null_count() > 0 && !T::NULLABLE {
        return build::<T>(source.len(), |row| {
            source.is_valid(row).then(|| value(source.value(row)))
        });
    }
    let values = source.values().iter().map(|&wide| value(wide)).collect();
    Arc::new(canonical::<T>(values, source.nulls().cloned()))
}

fn rescale(source: &Int64Array, from: TimestampUnit, to: TimestampUnit) -> Result<ArrayRef> {
    let at =
        |row: usize| source.is_valid(row).then(|| from.convert(source.value(row), to)).flatten();
    let rows = source.len();
    Ok(match to {
        TimestampUnit::Millis => build::<TimestampMillisecondType>(rows, at),
        TimestampUnit::Micros => build::<TimestampMicrosecondType>(rows, at),
        TimestampUnit::Nanos => build::<TimestampNanosecondType>(rows, at),
    })
}

fn from_double(source: &Float64Array, to: SqlType) -> Result<ArrayRef> {
    let rows = source.len();
    let at = |row: usize| source.is_valid(row).then(|| source.value(row));
    // Truncation toward zero; what does not fit is null.
    let long = |row: usize| {
        at(row).filter(|value| value.abs() < 9.223_372_036_854_775e18).map(|value| value as i64)
    };
    let int = |row: usize| long(row).and_then(|value| i32::try_from(value).ok());
    Ok(match to {
        SqlType::Boolean => build_flags(rows, |row| at(row).is_some_and(|value| value != 0.0)),
        SqlType::Byte => build::<Int8Type>(rows, |row| int(row).map(|value| value as i8)),
        SqlType::Short => build::<Int16Type>(rows, |row| int(row).map(|value| value as i16)),
        SqlType::Int => build::<Int32Type>(rows, int),
        SqlType::Long => build::<Int64Type>(rows, long),
        SqlType::Float => build::<Float32Type>(rows, |row| at(row).map(|value| value as f32)),
        SqlType::Double => build::<Float64Type>(rows, at),
        SqlType::Date => build::<TimestampMillisecondType>(rows, long),
        SqlType::Timestamp => build::<TimestampMicrosecondType>(rows, long),
        SqlType::TimestampNs => build::<TimestampNanosecondType>(rows, long),
        SqlType::Char => build::<UInt16Type>(rows, |row| int(row).map(|value| value as u16)),
        _ => return Err(internal(format!("no cast to {}", to.name()))),
    })
}

/// A column of texts (string views) as another type; what does not convert is null.
pub fn from_texts(texts: &ArrayRef, to: SqlType) -> Result<ArrayRef> {
    let texts = texts.as_string_view_opt().ok_or_else(|| internal("not a text"))?;
    from_text(texts, to, CastMode::Explicit)
}

/// Arrays written as `{1,NULL}` or `[1,null]`; what is no array is null, or an error in the modes
/// that are strict.
fn arrays_from_text(texts: &StringViewArray, dimensions: u8, mode: CastMode) -> Result<ArrayRef> {
    build_arrays(texts.len(), dimensions, |row, out| {
        let text = texts.is_valid(row).then(|| texts.value(row));
        match text.map(|text| (text, double_array::parse_text(dimensions, text))) {
            Some((_, Some((shape, values)))) => out.push(&shape, values).map_err(failed)?,
            Some((text, None)) if mode.strict() => {
                let to = SqlType::DoubleArray(dimensions);
                return Err(invalid(inconvertible_value(text, SqlType::String, to)));
            }
            _ => out.push_null(),
        }
        Ok(())
    })
}

fn from_text(texts: &StringViewArray, to: SqlType, mode: CastMode) -> Result<ArrayRef> {
    let rows = texts.len();
    let text = |row: usize| texts.is_valid(row).then(|| texts.value(row));
    macro_rules! parsed {
        ($lane:ty, $parse:expr) => {
            parse_column::<$lane>(texts, to, mode, $parse)
        };
    }
    match to {
        SqlType::Boolean => {
            if mode == CastMode::Insert
                && let Some(bad) = texts.iter().flatten().find(|text| !parse::is_boolean(text))
            {
                return Err(invalid(inconvertible_value(bad, SqlType::String, to)));
            }
            Ok(build_flags(rows, |row| text(row).is_some_and(parse::boolean)))
        }
        SqlType::Byte => {
            parsed!(Int8Type, |text| parse::int(text).and_then(|value| i8::try_from(value).ok()))
        }
        SqlType::Short => {
            parsed!(Int16Type, |text| parse::int(text).and_then(|value| i16::try_from(value).ok()))
        }
        SqlType::Char => Ok(build::<UInt16Type>(rows, |row| {
            text(row).and_then(|text| text.encode_utf16().next())
        })),
        SqlType::Int => parsed!(Int32Type, parse::int),
        SqlType::Long => parsed!(Int64Type, parse::integer),
        SqlType::Float => parsed!(Float32Type, parse::float),
        SqlType::Double => parsed!(Float64Type, parse::double),
        SqlType::Date => {
            parsed!(TimestampMillisecondType, |text| timestamp::parse(text, TimestampUnit::Millis))
        }
        SqlType::Timestamp => {
            parsed!(TimestampMicrosecondType, |text| timestamp::parse(text, TimestampUnit::Micros))
        }
        SqlType::TimestampNs => {
            parsed!(TimestampNanosecondType, |text| timestamp::parse(text, TimestampUnit::Nanos))
        }
        SqlType::DoubleArray(dimensions) => arrays_from_text(texts, dimensions, mode),
        SqlType::Ipv4 => parsed!(UInt32Type, parse::ipv4),
        SqlType::Uuid => fixed(texts, to, mode, parse::uuid),
        SqlType::Long256 => fixed(texts, to, mode, parse::long256),
        SqlType::Geohash(bits) => {
            let strict = mode == CastMode::Insert;
            let values: Int64Array = texts
                .iter()
                .map(|text| match text.filter(|text| !text.is_empty()) {
                    None => Ok(None),
                    Some(text) => match parse::geohash(text, bits) {
                        None if strict => {
                            Err(invalid(inconvertible_value(text, SqlType::String, to)))
                        }
                        value => Ok(value),
                    },
                })
                .collect::<Result<_>>()?;
            Ok(arrow::compute::cast(&values, &to.arrow_type())?)
        }
        _ => Err(internal(format!("no cast to {}", to.name()))),
    }
}

/// Parses a column of text; in a strict mode what does not parse is an error. Addresses and ids
/// are compared for equality only, where a bad text is just unequal.
fn parse_column<T: Lane>(
    texts: &StringViewArray,
    to: SqlType,
    mode: CastMode,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let strict = mode == CastMode::Insert || (mode.strict() && to != SqlType::Ipv4);
    try_build::<T>(texts.len(), |row| {
        if texts.is_null(row) {
            return Ok(None);
        }
        match parse(texts.value(row)).filter(|value| !value.is_null_value()) {
            None if strict && !stands_for_null(texts.value(row), to) => {
                Err(invalid(inconvertible_value(texts.value(row), SqlType::String, to)))
            }
            value => Ok(value),
        }
    })
}

/// Whether a text that does not parse names the type's null rather than nonsense.
fn stands_for_null(text: &str, to: SqlType) -> bool {
    let number = to.is_integer() || to.is_floating();
    text.is_empty() && is_time(to)
        || to == SqlType::Ipv4 && text == "0.0.0.0"
        || number && text == "null"
        || to.is_floating() && (text == "NaN" || text.ends_with("Infinity"))
}

fn fixed<const N: usize>(
    texts: &StringViewArray,
    to: SqlType,
    mode: CastMode,
    parse: impl Fn(&str) -> Option<[u8; N]>,
) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        let value = text.and_then(&parse);
        if let (Some(text), None, CastMode::Insert) = (text, value, mode) {
            return Err(invalid(inconvertible_value(text, SqlType::String, to)));
        }
        values.push(value);
    }
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), N as i32)?;
    Ok(Arc::new(array))
}

fn decimal(array: &ArrayRef, from: SqlType, to: SqlType, mode: CastMode) -> Result<ArrayRef> {
    let safe = is_plain_text(from) && !mode.strict();
    let options = CastOptions { safe, ..CastOptions::default() };
    Ok(arrow::compute::cast_with_options(array, &to.arrow_type(), &options)?)
}

fn narrower_geohash(array: &ArrayRef, from: SqlType, bits: u8) -> Result<ArrayRef> {
    let SqlType::Geohash(have) = from else {
        return Err(internal(format!("no geohash of {}", from.name())));
    };
    let wide = arrow::compute::cast(array, &arrow::datatypes::DataType::Int64)?;
    let cut: Int64Array = primitive::<Int64Type>(&wide)?.unary(|value| value >> (have - bits));
    Ok(arrow::compute::cast(&cut, &SqlType::Geohash(bits).arrow_type())?)
}

/// Any column as text.
pub(crate) fn text(array: &ArrayRef, from: SqlType, mode: CastMode) -> Result<ArrayRef> {
    if is_plain_text(from) {
        return Ok(Arc::clone(array));
    }
    let null = match (mode, from) {
        (CastMode::Constant, SqlType::Int | SqlType::Long) => Some("null"),
        (CastMode::Constant, SqlType::Float | SqlType::Double) => Some("NaN"),
        _ => None,
    };
    let writer = TextWriter::new(array, from)?;
    let mut builder = StringViewBuilder::with_capacity(array.len());
    let mut bytes = Vec::with_capacity(64);
    for row in 0..array.len() {
        bytes.clear();
        if array.is_null(row) {
            builder.append_option(null);
        } else {
            writer.write(row, &mut bytes);
            builder.append_value(std::str::from_utf8(&bytes).unwrap_or_default());
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// A column that is to become text, its type decided once.
enum TextWriter<'a> {
    Flags(&'a BooleanArray),
    Integers(Int64Array),
    Floats(&'a PrimitiveArray<Float32Type>),
    Doubles(&'a PrimitiveArray<Float64Type>),
    Times(Int64Array, TimestampUnit),
    Units(&'a PrimitiveArray<UInt16Type>),
    Addresses(&'a PrimitiveArray<UInt32Type>),
    Uuids(&'a FixedSizeBinaryArray),
    Long256(&'a FixedSizeBinaryArray),
    Geohashes(Int64Array, u8),
    Other(StringViewArray),
}

impl<'a> TextWriter<'a> {
    fn new(array: &'a ArrayRef, from: SqlType) -> Result<Self> {
        let fixed =
            || array.as_fixed_size_binary_opt().ok_or_else(|| internal("not a fixed-size value"));
        Ok(match from {
            SqlType::Boolean => {
                Self::Flags(array.as_boolean_opt().ok_or_else(|| internal("not a boolean"))?)
            }
            SqlType::Byte | SqlType::Short | SqlType::Int | SqlType::Long => {
                Self::Integers(integers(array, from, SqlType::Long)?)
            }
            SqlType::Float => Self::Floats(primitive(array)?),
            SqlType::Double => Self::Doubles(primitive(array)?),
            SqlType::Date | SqlType::Timestamp | SqlType::TimestampNs => Self::Times(
                integers(array, from, SqlType::Long)?,
                unit_of(from).unwrap_or(TimestampUnit::Micros),
            ),
            SqlType::Char => Self::Units(primitive(array)?),
            SqlType::Ipv4 => Self::Addresses(primitive(array)?),
            SqlType::Uuid => Self::Uuids(fixed()?),
            SqlType::Long256 => Self::Long256(fixed()?),
            SqlType::Geohash(bits) => {
                let wide = arrow::compute::cast(array, &arrow::datatypes::DataType::Int64)?;
                Self::Geohashes(primitive::<Int64Type>(&wide)?.clone(), bits)
            }
            _ => {
                let texts = arrow::compute::cast(array, &arrow::datatypes::DataType::Utf8View)?;
                Self::Other(texts.as_string_view().clone())
            }
        })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Flags(flags) => {
                out.extend_from_slice(if flags.value(row) { b"true" } else { b"false" });
            }
            Self::Integers(values) => number_text::write_i64(out, values.value(row)),
            Self::Floats(values) => number_text::write_f32(out, values.value(row)),
            Self::Doubles(values) => number_text::write_f64(out, values.value(row)),
            Self::Times(values, unit) => timestamp::write_iso(out, values.value(row), *unit),
            Self::Units(values) => {
                let shown = char::from_u32(u32::from(values.value(row))).unwrap_or('\u{fffd}');
                out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Self::Addresses(values) => {
                let address = std::net::Ipv4Addr::from(values.value(row));
                out.extend_from_slice(address.to_string().as_bytes());
            }
            Self::Uuids(values) => {
                let id = uuid::Uuid::from_slice(values.value(row)).unwrap_or_default();
                let text =
                    id.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).to_owned();
                out.extend_from_slice(text.as_bytes());
            }
            Self::Long256(values) => {
                out.extend_from_slice(b"0x");
                let mut digits = String::new();
                crate::hash::hexadecimal(values.value(row), &mut digits);
                let digits = digits.trim_start_matches('0');
                let odd = digits.len() % 2 == 1 || digits.is_empty();
                out.extend_from_slice(if odd { b"0" } else { b"" });
                out.extend_from_slice(digits.as_bytes());
            }
            Self::Geohashes(values, bits) => {
                out.extend_from_slice(parse::geohash_text(values.value(row), *bits).as_bytes());
            }
            Self::Other(texts) => out.extend_from_slice(texts.value(row).as_bytes()),
        }
    }
}

/// What `||` and `concat` add for a null: nothing for text, the word for a number.
pub(crate) fn concatenated_null(from: SqlType) -> &'static str {
    match from {
        SqlType::Int | SqlType::Long => "null",
        SqlType::Float | SqlType::Double => "NaN",
        _ => "",
    }
}

/// Parts of one row put together, as `concat` does.
pub(crate) fn concatenate(call: &Call<'_>, types: &[SqlType]) -> Result<ArrayRef> {
    let mut parts = Vec::with_capacity(types.len());
    for (index, &from) in types.iter().enumerate() {
        let (array, scalar) = call.array(index)?;
        let (array, from) = if from == SqlType::Symbol {
            (symbol_texts(&array)?, SqlType::String)
        } else {
            (array, from)
        };
        let texts = if from == SqlType::Null {
            new_null_array(&SqlType::Varchar.arrow_type(), array.len())
        } else {
            text(&array, from, CastMode::Explicit)?
        };
        parts.push((texts.as_string_view().clone(), scalar, concatenated_null(from)));
    }
    Ok(build_text(call.rows, |row, out| {
        for (texts, scalar, null) in &parts {
            let row = if *scalar { 0 } else { row };
            out.push_str(if texts.is_valid(row) { texts.value(row) } else { null });
        }
        true
    }))
}

/// A BOOLEAN column without nulls, for results of `DataFusion` functions that may have some.
pub(crate) fn definite(flags: &BooleanArray) -> BooleanArray {
    let values =
        BooleanBuffer::collect_bool(flags.len(), |row| flags.is_valid(row) && flags.value(row));
    BooleanArray::new(values, None)
}

#[cfg(test)]
mod tests {
    use datafusion_expr::ColumnarValue;

    use super::*;

    /// Casts one value and shows it as text.
    fn shown(value: ScalarValue, from: SqlType, to: SqlType, mode: CastMode) -> Option<String> {
        let arguments = [ColumnarValue::Scalar(value)];
        let array = convert(&Call { arguments: &arguments, rows: 1 }, from, to, mode).unwrap();
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
    fn integers_keep_their_low_bits() {
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
    fn doubles_truncate_or_become_null() {
        let double = |value| ScalarValue::Float64(Some(value));
        assert_eq!(explicit(double(-2.9), SqlType::Double, SqlType::Byte).unwrap(), "-2");
        assert_eq!(explicit(double(1e20), SqlType::Double, SqlType::Short).unwrap(), "0");
        assert_eq!(explicit(double(1e20), SqlType::Double, SqlType::Timestamp), None);
        assert_eq!(explicit(double(1e10), SqlType::Double, SqlType::Int), None);
        assert_eq!(explicit(double(1e20), SqlType::Double, SqlType::Symbol).unwrap(), "1.0E20");
        assert_eq!(explicit(double(1e300), SqlType::Double, SqlType::Float), None);
    }

    #[test]
    fn text_converts_or_is_null() {
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
    fn strict_modes_name_the_value() {
        let arguments = [ColumnarValue::Scalar(view("abc"))];
        let call = Call { arguments: &arguments, rows: 1 };
        let error = convert(&call, SqlType::String, SqlType::Int, CastMode::Implicit).unwrap_err();
        assert!(error.to_string().contains("inconvertible value: `abc` [STRING -> INT]"));
        let arguments = [ColumnarValue::Scalar(ScalarValue::Int64(Some(3_000_000_000)))];
        let call = Call { arguments: &arguments, rows: 1 };
        let error = convert(&call, SqlType::Long, SqlType::Int, CastMode::Insert).unwrap_err();
        assert!(error.to_string().contains("inconvertible value: 3000000000 [LONG -> INT]"));
    }

    #[test]
    fn a_character_is_its_digit() {
        let unit = |unit: char| ScalarValue::UInt16(Some(unit as u16));
        assert_eq!(explicit(unit('7'), SqlType::Char, SqlType::Double).unwrap(), "7.0");
        let arguments = [ColumnarValue::Scalar(unit('A'))];
        let call = Call { arguments: &arguments, rows: 1 };
        let error = convert(&call, SqlType::Char, SqlType::Int, CastMode::Explicit).unwrap_err();
        assert!(error.to_string().contains("inconvertible value: A [CHAR -> INT]"));
        let values = ['T', 'f', '7'].map(|c| char_value(c as u16, SqlType::Boolean));
        assert_eq!(values, [Some(1), Some(0), None]);
    }

    #[test]
    fn times_rescale() {
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
    fn impossible_casts_are_refused() {
        let column = datafusion_expr::col("a");
        let error = cast(column.clone(), SqlType::Boolean, SqlType::Uuid, CastMode::Explicit);
        assert_eq!(
            error.unwrap_err().message(),
            "there is no matching function `cast` with the argument types: (BOOLEAN, UUID)"
        );
        let error = cast(column, SqlType::Int, SqlType::Varchar, CastMode::Insert);
        assert_eq!(error.unwrap_err().message(), "inconvertible types: INT -> VARCHAR");
    }
}
