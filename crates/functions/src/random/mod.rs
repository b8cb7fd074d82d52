//! Random values. Every batch uses its own generator, seeded once per call, so rows differ and
//! threads share no state.

mod generator;
mod weighted;

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, LargeBinaryBuilder};
use arrow::datatypes::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt16Type, UInt32Type, i256,
};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;
use tidemark_types::SqlType::{
    self, Binary, Boolean, Byte, Char, Date, Double, Float, Int, Ipv4, Long, Long256, Short,
    String as Str, Symbol, Timestamp, TimestampNs, Uuid, Varchar,
};
use tidemark_types::account;
use tidemark_types::double_array::check_elements;

use self::generator::generator;
use self::weighted::{weighted_symbol, zipf_symbol};
use crate::array::arrays::{build_arrays, failed};
use crate::cast::symbols;
use crate::column::{Call, SentinelType, build, build_flags, build_text, invalid, stopped};
use crate::native::Kernel;
use crate::number::decimal::build_decimals;
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::Param::{Is, Text};
use crate::signature::{
    Bound, Function, Overload, ResultType, direct, mismatch, per_call, resolved, volatile,
};
use crate::text::parse;

/// The rate of nulls: 0 for none, 1 for all values, n for one in n values.
struct NullRate(u32);

impl NullRate {
    fn new(call: &Call<'_>, index: usize) -> Result<Self> {
        if call.arguments.len() <= index {
            return Ok(Self(0));
        }
        match call.primitive::<Int32Type>(index)?.get(0) {
            Some(rate) if rate >= 0 => Ok(Self(rate as u32)),
            _ => Err(invalid("invalid NaN rate")),
        }
    }

    fn hits(&self, random: &mut ChaCha8Rng) -> bool {
        match self.0 {
            0 => false,
            1 => true,
            rate => random.random_ratio(1, rate),
        }
    }
}

/// Draws random values of one type, with some nulls.
fn random_values<T: SentinelType>(
    call: &Call<'_>,
    rate_at: usize,
    mut value: impl FnMut(&mut ChaCha8Rng) -> T::Native,
) -> Result<ArrayRef> {
    let rate = NullRate::new(call, rate_at)?;
    let mut random = generator(call);
    Ok(build::<T>(
        call.rows,
        |_| if rate.hits(&mut random) { None } else { Some(value(&mut random)) },
    ))
}

/// Reads the bounds of a range, which must be ascending.
fn range<T: SentinelType>(call: &Call<'_>) -> Result<(T::Native, T::Native)>
where
    T::Native: PartialOrd,
{
    match (call.primitive::<T>(0)?.get(0), call.primitive::<T>(1)?.get(0)) {
        (Some(low), Some(high)) if low <= high => Ok((low, high)),
        _ => Err(invalid("invalid range")),
    }
}

fn random_integers<T: SentinelType>(call: &Call<'_>) -> Result<ArrayRef>
where
    T::Native: PartialOrd + rand::distr::uniform::SampleUniform,
{
    let (low, high) = range::<T>(call)?;
    random_values::<T>(call, 2, |random| random.random_range(low..=high))
}

/// Draws BYTE or SHORT values from a range. The range is given as INT and must lie within
/// `min..=max`.
fn small(call: &Call<'_>, min: i32, max: i32, returns: SqlType) -> Result<ArrayRef> {
    let (low, high) = range::<Int32Type>(call)?;
    if low < min || high > max {
        return Err(invalid("invalid range"));
    }
    let sequence_values =
        random_values::<Int32Type>(call, 2, |random| random.random_range(low..=high))?;
    Ok(arrow::compute::cast(&sequence_values, &returns.arrow_type())?)
}

fn texts(call: &Call<'_>) -> Result<ArrayRef> {
    let list: Vec<Option<String>> =
        (0..call.arguments.len()).map(|index| call.constant_text(index)).collect::<Result<_>>()?;
    let mut random = generator(call);
    build_text(call.rows, |_, out| {
        let chosen = list.get(random.random_range(0..list.len().max(1))).and_then(Option::as_ref);
        chosen.inspect(|text| out.push_str(text)).is_some()
    })
}

/// Maximum length of a random string.
const MAX_TEXT: i32 = 1 << 20;

fn word(random: &mut ChaCha8Rng, low: i32, high: i32, out: &mut impl Extend<char>) {
    let length = random.random_range(low..=high);
    out.extend((0..length).map(|_| char::from(random.random_range(b'A'..=b'Z'))));
}

/// Draws strings whose length is between two bounds. The arguments are (min, max, null rate),
/// optionally preceded by the number of distinct strings to draw from.
fn words(call: &Call<'_>) -> Result<ArrayRef> {
    let listed = call.arguments.len() == 4;
    let first = usize::from(listed);
    let number = |index: usize| -> Result<i32> {
        Ok(call.primitive::<Int32Type>(index)?.get(0).unwrap_or(-1))
    };
    let (low, high) = (number(first)?, number(first + 1)?);
    if low < 0 || low > high || high > MAX_TEXT {
        return Err(invalid("invalid range"));
    }
    let rate = NullRate::new(call, first + 2)?;
    let mut random = generator(call);
    let mut list = Vec::new();
    if listed {
        let size = number(0)?;
        if !(1..=1_000_000).contains(&size) {
            return Err(invalid("invalid symbol count"));
        }
        for _ in 0..size {
            let mut text = String::new();
            word(&mut random, low, high, &mut text);
            account::check_allocation(text.len()).map_err(stopped)?;
            list.push(text);
        }
    }
    build_text(call.rows, |_, out| {
        if rate.hits(&mut random) {
            return false;
        }
        if listed {
            out.push_str(&list[random.random_range(0..list.len())]);
        } else {
            word(&mut random, low, high, out);
        }
        true
    })
}

/// Converts a kernel that returns strings into one that returns SYMBOLs.
fn as_symbols(run: fn(&Call<'_>) -> Result<ArrayRef>) -> Kernel {
    Arc::new(move |call: &Call<'_>| symbols(&run(call)?))
}

fn bytes<const N: usize>(call: &Call<'_>, shape: impl Fn(&mut [u8; N])) -> Result<ArrayRef> {
    let mut random = generator(call);
    let values = (0..call.rows).map(|_| {
        let mut value = [0; N];
        random.fill_bytes(&mut value);
        shape(&mut value);
        Some(value)
    });
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, N as i32)?))
}

fn binary(call: &Call<'_>) -> Result<ArrayRef> {
    let (low, high) = if call.arguments.is_empty() { (1, 32) } else { range::<Int64Type>(call)? };
    if low < 1 || high > i64::from(MAX_TEXT) {
        return Err(invalid("invalid range"));
    }
    let rate = NullRate::new(call, 2)?;
    let mut random = generator(call);
    let mut builder = LargeBinaryBuilder::new();
    for _ in 0..call.rows {
        if rate.hits(&mut random) {
            builder.append_null();
        } else {
            let length = random.random_range(low..=high) as usize;
            account::check_allocation(length).map_err(stopped)?;
            let mut value = vec![0; length];
            random.fill_bytes(&mut value);
            builder.append_value(value);
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn address(bound: &Bound<'_>) -> std::result::Result<Kernel, ResolveError> {
    let text = bound.arguments[0].text().unwrap_or_default();
    let Some((base, mask, _)) = parse::ipv4_network(&text) else {
        let message = format!("invalid subnet: {text}");
        return Err(ResolveError::InvalidArgument { index: 0, message });
    };
    Ok(Arc::new(move |call: &Call<'_>| {
        random_values::<UInt32Type>(call, 1, |random| base | (random.random::<u32>() & !mask))
    }))
}

fn random_geohash(
    name: &str,
    arguments: &[Argument],
) -> std::result::Result<ResolvedScalar, ResolveError> {
    let bits = match arguments {
        [argument] => argument.constant.as_ref().and_then(|value| {
            match value.cast_to(&arrow::datatypes::DataType::Int64) {
                Ok(datafusion::common::ScalarValue::Int64(bits)) => bits,
                _ => None,
            }
        }),
        _ => return Err(mismatch(name, std::iter::once(1), arguments)),
    };
    let Some(bits @ 1..=60) = bits else {
        let message = "precision must be in [1..60] range".into();
        return Err(ResolveError::InvalidArgument { index: 0, message });
    };
    let returns = SqlType::Geohash(bits as u8);
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let mut random = generator(call);
        let wide = build::<Int64Type>(call.rows, |_| Some(random.random_range(0..1_i64 << bits)));
        Ok(arrow::compute::cast(&wide, &returns.arrow_type())?)
    });
    let types = vec![arguments[0].sql_type];
    Ok(resolved("rnd_geohash", Volatility::Volatile, types, returns, arguments, kernel))
}

const fn list_of(gives: SqlType) -> Overload {
    Overload {
        parameters: &[Text],
        variadic: true,
        result: ResultType::Is(gives),
        body: crate::signature::Body::Direct(texts),
    }
}

const LENGTHS: &[crate::signature::Param] = &[Is(Int), Is(Int), Is(Int)];
const LISTED: &[crate::signature::Param] = &[Is(Int), Is(Int), Is(Int), Is(Int)];

/// Resolves `rnd_double_array(dimensions [, null rate [, longest]])`. If `longest` is 0, it is
/// followed by a length for each dimension.
fn random_array(
    name: &str,
    arguments: &[Argument],
) -> std::result::Result<ResolvedScalar, ResolveError> {
    let dimensions = match arguments.first().and_then(Argument::integer) {
        Some(dimensions @ 1..=32) => dimensions as u8,
        _ if arguments.is_empty() => return Err(mismatch(name, [1].into_iter(), arguments)),
        _ => {
            let message = "the number of dimensions must be a constant from 1 to 32".to_owned();
            return Err(ResolveError::InvalidArgument { index: 0, message });
        }
    };
    let count = arguments.len();
    let fixed = count > 3;
    if fixed && count != 3 + usize::from(dimensions) {
        let message = format!("expected {dimensions} lengths, found {}", count - 3);
        return Err(ResolveError::InvalidArgument { index: 3, message });
    }
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| random_arrays(call, dimensions));
    let returns = SqlType::DoubleArray(dimensions);
    let types = vec![Int; count];
    Ok(resolved("rnd_double_array", Volatility::Volatile, types, returns, arguments, kernel))
}

fn random_arrays(call: &Call<'_>, dimensions: u8) -> Result<ArrayRef> {
    let nulls = NullRate::new(call, 1)?;
    let length = |index: usize, default: i32| -> Result<i32> {
        if call.arguments.len() <= index {
            return Ok(default);
        }
        match call.primitive::<Int32Type>(index)?.get(0) {
            Some(length) if length >= 0 => Ok(length),
            _ => Err(invalid("an array length must not be negative")),
        }
    };
    let max = length(2, 16)?.max(1);
    let fixed = match call.arguments.len() {
        0..=3 => None,
        count => Some((3..count).map(|index| length(index, 0)).collect::<Result<Vec<_>>>()?),
    };
    let mut random = generator(call);
    build_arrays(call.rows, dimensions, |_, out| {
        let shape = fixed
            .clone()
            .unwrap_or_else(|| (0..dimensions).map(|_| random.random_range(1..=max)).collect());
        let lengths = shape.iter().map(|&length| length as usize);
        let count = lengths.fold(1_usize, usize::saturating_mul);
        check_elements(count).map_err(failed)?;
        let values: Vec<f64> = (0..count)
            .map(|_| if nulls.hits(&mut random) { f64::NAN } else { random.random() })
            .collect();
        out.push(&shape, values).map_err(failed)
    })
}

/// Resolves `rnd_decimal(precision, scale, null rate)`.
fn random_decimal(
    name: &str,
    arguments: &[Argument],
) -> std::result::Result<ResolvedScalar, ResolveError> {
    let [precision, scale, _] = arguments else {
        return Err(mismatch(name, std::iter::once(3), arguments));
    };
    let Some(digits @ 1..=76) = precision.integer() else {
        let message = "precision must be a constant from 1 to 76".into();
        return Err(ResolveError::InvalidArgument { index: 0, message });
    };
    let Some(places) = scale.integer().filter(|places| (0..=digits).contains(places)) else {
        let message = format!("scale must be a constant from 0 to {digits}");
        return Err(ResolveError::InvalidArgument { index: 1, message });
    };
    let returns = SqlType::Decimal(digits as u8, places as u8);
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let rate = NullRate::new(call, 2)?;
        let mut random = generator(call);
        let ten = i256::from_i128(10);
        build_decimals(call.rows, returns, "decimal overflow", &mut |_| {
            if rate.hits(&mut random) {
                return Ok(None);
            }
            let digit = |sum: i256, digit: u8| {
                sum.wrapping_mul(ten).wrapping_add(i256::from_i128(i128::from(digit)))
            };
            let sequence_values = (0..digits).map(|_| random.random_range(0..10_u8));
            Ok(Some(sequence_values.fold(i256::ZERO, digit)))
        })
    });
    let types = vec![Int; 3];
    Ok(resolved("rnd_decimal", Volatility::Volatile, types, returns, arguments, kernel))
}

const fn random_function(
    name: &'static str,
    rule: crate::signature::Special,
    summary: &'static str,
) -> Function {
    Function {
        name,
        summary,
        volatility: Volatility::Volatile,
        overloads: &[],
        special: Some(rule),
    }
}

fn uuid(call: &Call<'_>) -> Result<ArrayRef> {
    bytes::<16>(call, |value| {
        value[6] = value[6] & 0x0F | 0x40;
        value[8] = value[8] & 0x3F | 0x80;
    })
}

pub(crate) const FUNCTIONS: &[Function] = &[
    volatile(
        "rnd_boolean",
        &[direct(&[], Boolean, |call| {
            let mut random = generator(call);
            Ok(build_flags(call.rows, |_| random.random()))
        })],
        "random BOOLEAN",
    ),
    volatile(
        "rnd_byte",
        &[
            direct(&[], Byte, |call| {
                random_values::<Int8Type>(call, 0, |random| random.random_range(0..=127))
            }),
            direct(&[Is(Int), Is(Int)], Byte, |call| {
                small(call, i8::MIN.into(), i8::MAX.into(), Byte)
            }),
        ],
        "random BYTE from 0 to 127, or in a range: (min, max)",
    ),
    volatile(
        "rnd_short",
        &[
            direct(&[], Short, |call| random_values::<Int16Type>(call, 0, Rng::random)),
            direct(&[Is(Int), Is(Int)], Short, |call| {
                small(call, i16::MIN.into(), i16::MAX.into(), Short)
            }),
        ],
        "random SHORT, or one in a range: (min, max)",
    ),
    volatile(
        "rnd_int",
        &[
            direct(&[], Int, |call| {
                random_values::<Int32Type>(call, 0, |r| r.random_range(-i32::MAX..=i32::MAX))
            }),
            direct(LENGTHS, Int, random_integers::<Int32Type>),
        ],
        "random INT, or one in a range: (min, max, null rate)",
    ),
    volatile(
        "rnd_long",
        &[
            direct(&[], Long, |call| {
                random_values::<Int64Type>(call, 0, |r| r.random_range(-i64::MAX..=i64::MAX))
            }),
            direct(&[Is(Long), Is(Long), Is(Int)], Long, random_integers::<Int64Type>),
        ],
        "random LONG, or one in a range: (min, max, null rate)",
    ),
    volatile(
        "rnd_float",
        &[
            direct(&[], Float, |call| random_values::<Float32Type>(call, 0, Rng::random)),
            direct(&[Is(Int)], Float, |call| random_values::<Float32Type>(call, 0, Rng::random)),
        ],
        "random FLOAT from 0 to 1: ([null rate])",
    ),
    volatile(
        "rnd_double",
        &[
            direct(&[], Double, |call| random_values::<Float64Type>(call, 0, Rng::random)),
            direct(&[Is(Int)], Double, |call| random_values::<Float64Type>(call, 0, Rng::random)),
        ],
        "random DOUBLE from 0 to 1: ([null rate])",
    ),
    volatile(
        "random",
        &[direct(&[], Double, |call| random_values::<Float64Type>(call, 0, Rng::random))],
        "random DOUBLE from 0 to 1, as in PostgreSQL",
    ),
    volatile(
        "rnd_char",
        &[direct(&[], Char, |call| {
            random_values::<UInt16Type>(call, 0, |r| u16::from(r.random_range(b'A'..=b'Z')))
        })],
        "random letter from A to Z",
    ),
    volatile(
        "rnd_date",
        &[direct(
            &[Is(Date), Is(Date), Is(Int)],
            Date,
            random_integers::<TimestampMillisecondType>,
        )],
        "random DATE in a range: (start, end, null rate)",
    ),
    volatile(
        "rnd_timestamp",
        &[direct(
            &[Is(Timestamp), Is(Timestamp), Is(Int)],
            Timestamp,
            random_integers::<TimestampMicrosecondType>,
        )],
        "random TIMESTAMP in a range: (start, end, null rate)",
    ),
    volatile(
        "rnd_timestamp_ns",
        &[direct(
            &[Is(TimestampNs), Is(TimestampNs), Is(Int)],
            TimestampNs,
            random_integers::<TimestampNanosecondType>,
        )],
        "random TIMESTAMP_NS in a range: (start, end, null rate)",
    ),
    volatile(
        "rnd_str",
        &[direct(LENGTHS, Str, words), direct(LISTED, Str, words), list_of(Str)],
        "one of the arguments, or letters: (min, max, null rate), (list size, min, max, null rate)",
    ),
    volatile(
        "rnd_varchar",
        &[direct(LENGTHS, Varchar, words), direct(LISTED, Varchar, words), list_of(Varchar)],
        "one of the arguments, or random letters: (min, max, null rate)",
    ),
    volatile(
        "rnd_symbol",
        &[
            per_call(LISTED, ResultType::Is(Symbol), |_| Ok(as_symbols(words))),
            Overload {
                parameters: &[Text],
                variadic: true,
                result: ResultType::Is(Symbol),
                body: crate::signature::Body::PerCall(|_| Ok(as_symbols(texts))),
            },
        ],
        "one of the arguments, or a value from a generated list: (list size, min, max, null rate)",
    ),
    volatile("rnd_uuid4", &[direct(&[], Uuid, uuid)], "random UUID (version 4)"),
    volatile("uuid_generate_v4", &[direct(&[], Uuid, uuid)], "random UUID (version 4)"),
    volatile("gen_random_uuid", &[direct(&[], Uuid, uuid)], "random UUID (version 4)"),
    volatile(
        "rnd_long256",
        &[direct(&[], Long256, |call| bytes::<32>(call, |_| {}))],
        "random LONG256",
    ),
    volatile(
        "rnd_bin",
        &[direct(&[], Binary, binary), direct(&[Is(Long), Is(Long), Is(Int)], Binary, binary)],
        "random bytes: (min length, max length, null rate)",
    ),
    volatile(
        "rnd_ipv4",
        &[
            direct(&[], Ipv4, |call| {
                random_values::<UInt32Type>(call, 0, |r| r.random_range(1..=u32::MAX))
            }),
            per_call(&[Text, Is(Int)], ResultType::Is(Ipv4), address),
        ],
        "random IPv4 address, or one in a network: (network, null rate)",
    ),
    random_function("rnd_geohash", random_geohash, "random geohash with n bits"),
    random_function(
        "rnd_decimal",
        random_decimal,
        "random positive DECIMAL: (precision, scale, null rate)",
    ),
    random_function(
        "rnd_symbol_weighted",
        weighted_symbol,
        "symbol chosen by weight: (symbol, weight, …)",
    ),
    random_function(
        "rnd_symbol_zipf",
        zipf_symbol,
        "symbol from a Zipf distribution: (symbol, …, alpha), or (count, alpha)",
    ),
    volatile(
        "timestamp_shuffle",
        &[direct(
            &[Is(Timestamp), Is(Timestamp)],
            Timestamp,
            random_integers::<TimestampMicrosecondType>,
        )],
        "random TIMESTAMP between two others",
    ),
    random_function(
        "rnd_double_array",
        random_array,
        "random array: (dimensions, null rate, max length), or (…, 0, length, …)",
    ),
];
