//! Reads arguments and builds results.
//!
//! An argument is an array or a scalar. A scalar is read as a column in which every row is row 0.
//! It is never expanded, so each kernel needs only one implementation.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, BooleanBufferBuilder, PrimitiveArray,
    StringViewArray, StringViewBuilder,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt16Type, UInt32Type,
};
use datafusion::common::{DataFusionError, Result};
use datafusion_expr::ColumnarValue;
use rand_chacha::ChaCha8Rng;
use tidemark_types::{EngineError, ErrorCode, account};

use crate::text::bounded_text::BoundedText;

/// The input of a kernel.
pub(crate) struct Call<'a> {
    pub(crate) arguments: &'a [ColumnarValue],
    /// Number of rows in the batch; 1 if every argument is a scalar.
    pub(crate) rows: usize,
    /// Random generator, if the statement has a seed.
    pub(crate) random: Option<&'a Mutex<ChaCha8Rng>>,
}

/// A type with a value that represents null in the SQL dialect.
pub(crate) trait Canonical: Copy {
    /// Whether this value represents null.
    fn is_null_value(self) -> bool;
}

macro_rules! canonical {
    ($($native:ty: $test:expr;)*) => {$(
        impl Canonical for $native {
            fn is_null_value(self) -> bool {
                let test: fn($native) -> bool = $test;
                test(self)
            }
        }
    )*};
}

canonical! {
    i8: |_| false;
    i16: |_| false;
    i32: |value| value == i32::MIN;
    i64: |value| value == i64::MIN;
    u16: |value| value == 0;
    u32: |value| value == 0;
    f32: |value| !value.is_finite();
    f64: |value| !value.is_finite();
}

/// An Arrow type whose nulls are represented by a sentinel value in the SQL dialect.
pub(crate) trait SentinelType: ArrowPrimitiveType<Native: Canonical + Default> {
    /// Whether the SQL type has nulls. BYTE and SHORT have no nulls and use 0.
    const NULLABLE: bool = true;
}

macro_rules! sentinel_types {
    ($($name:ident),*) => {$(impl SentinelType for $name {})*};
}

sentinel_types!(
    Int32Type,
    Int64Type,
    Float32Type,
    Float64Type,
    UInt16Type,
    UInt32Type,
    TimestampMillisecondType,
    TimestampMicrosecondType,
    TimestampNanosecondType
);

impl SentinelType for Int8Type {
    const NULLABLE: bool = false;
}

impl SentinelType for Int16Type {
    const NULLABLE: bool = false;
}

/// A primitive argument.
pub(crate) struct Primitives<T: ArrowPrimitiveType> {
    pub(crate) values: ScalarBuffer<T::Native>,
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) scalar: bool,
}

impl<T: ArrowPrimitiveType> Primitives<T> {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<T::Native> {
        let row = if self.scalar { 0 } else { row };
        match &self.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => Some(self.values[row]),
        }
    }
}

/// Number of bytes that a kernel reads or writes between checks of the query's deadline and
/// cancellation.
const BYTES_BETWEEN_CHECKS: usize = 256 << 10;
/// Number of bytes charged per string on top of its content.
const BYTES_PER_STRING: usize = 64;

/// A text argument.
pub(crate) struct Texts {
    pub(crate) array: StringViewArray,
    pub(crate) scalar: bool,
    /// Number of bytes read since the last check.
    read: Cell<usize>,
}

impl Texts {
    pub(crate) fn new(array: StringViewArray, scalar: bool) -> Self {
        Self { array, scalar, read: Cell::new(0) }
    }

    /// Returns a row's string, or `None` if the query must stop. In that case the kernel ends soon
    /// and its result is discarded.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        let row = if self.scalar { 0 } else { row };
        if !self.array.is_valid(row) {
            return None;
        }
        let text = self.array.value(row);
        let read = self.read.get() + text.len() + BYTES_PER_STRING;
        self.read.set(read);
        if read > BYTES_BETWEEN_CHECKS {
            self.read.set(0);
            account::check().ok()?;
        }
        Some(text)
    }
}

impl Call<'_> {
    /// Returns an argument's array (one row for a scalar) and whether it is a scalar.
    pub(crate) fn array(&self, index: usize) -> Result<(ArrayRef, bool)> {
        match self.arguments.get(index) {
            Some(ColumnarValue::Array(array)) => Ok((Arc::clone(array), false)),
            Some(ColumnarValue::Scalar(value)) => Ok((value.to_array()?, true)),
            None => Err(internal("an argument is missing")),
        }
    }

    pub(crate) fn primitive<T: ArrowPrimitiveType>(&self, index: usize) -> Result<Primitives<T>> {
        let (array, scalar) = self.array(index)?;
        let array = array
            .as_any()
            .downcast_ref::<PrimitiveArray<T>>()
            .ok_or_else(|| unexpected(&array, &T::DATA_TYPE.to_string()))?;
        Ok(Primitives { values: array.values().clone(), nulls: array.nulls().cloned(), scalar })
    }

    pub(crate) fn texts(&self, index: usize) -> Result<Texts> {
        let (array, scalar) = self.array(index)?;
        let array = array
            .as_any()
            .downcast_ref::<StringViewArray>()
            .ok_or_else(|| unexpected(&array, "Utf8View"))?;
        Ok(Texts::new(array.clone(), scalar))
    }

    /// Returns the value of a text argument, which must be constant.
    pub(crate) fn constant_text(&self, index: usize) -> Result<Option<String>> {
        let texts = self.texts(index)?;
        Ok(if texts.array.is_empty() { None } else { texts.get(0).map(str::to_owned) })
    }
}

/// Builds a primitive column row by row; a value that represents null becomes null.
pub(crate) fn build<T: SentinelType>(
    rows: usize,
    mut value: impl FnMut(usize) -> Option<T::Native>,
) -> ArrayRef {
    let mut values = Vec::with_capacity(rows);
    let mut valid = BooleanBufferBuilder::new(rows);
    let mut nulls = 0;
    for row in 0..rows {
        let found = value(row).filter(|value| !value.is_null_value());
        nulls += usize::from(found.is_none());
        valid.append(found.is_some());
        values.push(found.unwrap_or_default());
    }
    let mask = (T::NULLABLE && nulls > 0).then(|| NullBuffer::new(valid.finish()));
    Arc::new(PrimitiveArray::<T>::new(values.into(), mask))
}

/// Like [`build`], but computing a value can fail.
pub(crate) fn try_build<T: SentinelType>(
    rows: usize,
    mut value: impl FnMut(usize) -> Result<Option<T::Native>>,
) -> Result<ArrayRef> {
    let mut failure = None;
    let array = build::<T>(rows, |row| {
        if failure.is_some() {
            return None;
        }
        value(row).unwrap_or_else(|error| {
            failure = Some(error);
            None
        })
    });
    failure.map_or(Ok(array), Err)
}

/// Builds a BOOLEAN column.
pub(crate) fn build_flags(rows: usize, value: impl FnMut(usize) -> bool) -> ArrayRef {
    Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(rows, value), None))
}

/// Builds a string column. `write` appends a row's string and returns whether the row has a value.
/// Fails if the strings exceed the query memory limit.
pub(crate) fn build_text(
    rows: usize,
    mut write: impl FnMut(usize, &mut BoundedText) -> bool,
) -> Result<ArrayRef> {
    try_build_text(rows, |row, text| Ok(write(row, text)))
}

/// Like [`build_text`], but computing a string can fail.
pub(crate) fn try_build_text(
    rows: usize,
    mut write: impl FnMut(usize, &mut BoundedText) -> Result<bool>,
) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(rows);
    let mut text = BoundedText::default();
    let mut unasked = 0;
    for row in 0..rows {
        text.clear();
        let is_valid = write(row, &mut text)?;
        let text = text.get().map_err(stopped)?;
        if !is_valid {
            builder.append_null();
            continue;
        }
        unasked += text.len();
        if unasked > BYTES_BETWEEN_CHECKS {
            account::check_allocation(text.len()).map_err(stopped)?;
            unasked = 0;
        }
        builder.append_value(text);
    }
    Ok(Arc::new(builder.finish()))
}

/// Wraps the error that stops a query in a kernel error.
pub(crate) fn stopped(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Builds a primitive column from computed values. A row is null if an input was null or if its
/// value represents null.
///
/// A vectorised first pass merely tests whether any value represents null.
pub(crate) fn canonical<T: SentinelType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<T> {
    let any = values.iter().fold(false, |any, value| any | value.is_null_value());
    let nulls = if any && T::NULLABLE {
        let valid = BooleanBuffer::collect_bool(values.len(), |row| !values[row].is_null_value());
        NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(valid)))
    } else {
        nulls.filter(|nulls| T::NULLABLE && nulls.null_count() > 0)
    };
    PrimitiveArray::new(values.into(), nulls)
}

/// Returns an error that may be shown to a client.
pub(crate) fn failure(code: ErrorCode, message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(EngineError::new(code, message)))
}

/// Returns the error for a value that a function rejects.
pub(crate) fn invalid(message: impl Into<String>) -> DataFusionError {
    failure(ErrorCode::InvalidValue, message)
}

/// Returns the error for an internal bug.
pub(crate) fn internal(message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(EngineError::internal(message)))
}

fn unexpected(array: &ArrayRef, expected: &str) -> DataFusionError {
    internal(format!("argument has type {}, expected {expected}", array.data_type()))
}

/// Returns a BOOLEAN column with nulls replaced by false. Used for the results of `DataFusion`
/// functions.
pub(crate) fn definite(flags: &BooleanArray) -> BooleanArray {
    let values =
        BooleanBuffer::collect_bool(flags.len(), |row| flags.is_valid(row) && flags.value(row));
    BooleanArray::new(values, None)
}
