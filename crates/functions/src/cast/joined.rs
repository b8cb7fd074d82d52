//! Row-by-row string concatenation: `concat` and `||`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringViewArray, new_null_array};
use arrow::datatypes::Int32Type;
use datafusion::common::Result;
use tidemark_kernels::{append_views, view_len, view_of};
use tidemark_types::{SqlType, account};
use tidemark_vfs::{INLINE_BYTES, STRINGS_PER_CHUNK, text_column};

use super::mode::CastMode;
use super::shown::{symbol_texts, text};
use crate::column::{Call, build_text, internal, stopped};
use crate::text::vectorized::{MAX_BYTES, buffers_of, reserve};

/// Maximum size in bytes of the rows concatenated in one step.
const MAX_STEP_BYTES: u64 = 4 << 20;

/// Returns the string that `||` and `concat` append for a null: the empty string for text, a word
/// for numbers.
pub(crate) fn concatenated_null(from: SqlType) -> &'static str {
    match from {
        SqlType::Int | SqlType::Long => "null",
        SqlType::Float | SqlType::Double => "NaN",
        _ => "",
    }
}

/// An argument, converted to strings.
struct TextArgument {
    texts: StringViewArray,
    /// Index of each row's string; `None` if rows map to strings one to one.
    keys: Option<Int32Array>,
    scalar: bool,
    null: &'static str,
}

impl TextArgument {
    fn new(array: &ArrayRef, scalar: bool, from: SqlType) -> Result<Self> {
        let null = concatenated_null(from);
        if from == SqlType::Symbol && !scalar {
            let symbols = array.as_dictionary_opt::<Int32Type>();
            let symbols = symbols.ok_or_else(|| internal("not a symbol"))?;
            let values = symbols.values().as_string_opt::<i32>();
            let values = values.filter(|values| values.len() <= array.len());
            if let Some(values) = values.filter(|values| values.null_count() == 0) {
                let texts = StringViewArray::from(values);
                return Ok(Self { texts, keys: Some(symbols.keys().clone()), scalar, null });
            }
        }
        let texts = match from {
            SqlType::Symbol => symbol_texts(array)?,
            SqlType::Null => new_null_array(&SqlType::Varchar.arrow_type(), array.len()),
            _ => text(array, from, CastMode::Explicit)?,
        };
        let texts = texts.as_string_view_opt().ok_or_else(|| internal("not a string"))?.clone();
        Ok(Self { texts, keys: None, scalar, null })
    }

    /// Returns the string of a row.
    #[inline]
    fn get(&self, row: usize) -> &str {
        match &self.keys {
            Some(keys) if keys.is_valid(row) => self.texts.value(keys.value(row) as usize),
            Some(_) => self.null,
            None => {
                let row = if self.scalar { 0 } else { row };
                if self.texts.is_valid(row) { self.texts.value(row) } else { self.null }
            }
        }
    }

    /// Appends each row's string, starting at row `first`, to the corresponding view in `to`.
    /// Returns the length of the longest result.
    fn append(&self, first: usize, to: &mut [u128]) -> u32 {
        let null = view_of(self.null.as_bytes(), 0, 0);
        let views = self.texts.views();
        let rows = first..first + to.len();
        match &self.keys {
            _ if self.scalar => {
                let view = if self.texts.is_valid(0) { views[0] } else { null };
                append_views(to, |_| view)
            }
            Some(keys) if keys.null_count() == 0 => {
                let keys = &keys.values()[rows];
                append_views(to, |row| views[keys[row] as usize])
            }
            Some(keys) => append_views(to, |row| {
                let row = first + row;
                if keys.is_valid(row) { views[keys.value(row) as usize] } else { null }
            }),
            None if self.texts.null_count() == 0 => {
                let views = &views[rows];
                append_views(to, |row| views[row])
            }
            None => append_views(to, |row| {
                if self.texts.is_valid(first + row) { views[first + row] } else { null }
            }),
        }
    }
}

/// Concatenates each row's arguments with the semantics of `concat`.
pub(crate) fn concatenate(call: &Call<'_>, types: &[SqlType]) -> Result<ArrayRef> {
    let arguments = types.iter().enumerate().map(|(index, &from)| {
        let (array, scalar) = call.array(index)?;
        TextArgument::new(&array, scalar, from)
    });
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    if let Some(texts) = by_views(&arguments, call.rows)? {
        return Ok(texts);
    }
    build_text(call.rows, |row, out| {
        for argument in &arguments {
            out.push_str(argument.get(row));
        }
        true
    })
}

/// Like [`concatenate`], but processes 1,024 rows at a time and builds rows of short strings from
/// their views alone. Returns `None` if the strings are so long that the size of each must be
/// checked.
fn by_views(arguments: &[TextArgument], rows: usize) -> Result<Option<ArrayRef>> {
    let mut views = vec![0; rows];
    let mut bytes: Vec<u8> = vec![];
    for (chunk, views) in views.chunks_mut(STRINGS_PER_CHUNK).enumerate() {
        account::check().map_err(stopped)?;
        let first = chunk * STRINGS_PER_CHUNK;
        let max = arguments.iter().map(|argument| argument.append(first, views)).max().unwrap_or(0);
        if max <= INLINE_BYTES {
            continue;
        }
        let more: u64 = views.iter().map(|&view| view_len(view) as u64).sum();
        if more > MAX_STEP_BYTES || bytes.len() as u64 + more > MAX_BYTES as u64 {
            return Ok(None);
        }
        reserve(&mut bytes, more as usize)?;
        for (row, view) in (first..).zip(views) {
            let start = bytes.len();
            for argument in arguments {
                bytes.extend_from_slice(argument.get(row).as_bytes());
            }
            *view = view_of(&bytes[start..], 0, start as u32);
            if bytes.len() - start <= INLINE_BYTES as usize {
                bytes.truncate(start);
            }
        }
    }
    Ok(Some(Arc::new(text_column(views, buffers_of(bytes), None)?)))
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int64Array};
    use datafusion::common::ScalarValue;
    use datafusion_expr::ColumnarValue;
    use rand::Rng;

    use super::*;
    use crate::tests::random;

    #[test]
    fn vectorised_concatenation_matches_row_by_row_formatting() {
        let mut rng = random();
        for round in 0..200 {
            let rows = [0, 1, 2, 500, 1_024, 2_500][round % 6];
            let max = [2, 5, 14][rng.random_range(0..3)];
            let nulls = rng.random_bool(0.5);
            let other = rng.random_bool(0.3);
            let mut column = |different: u32| -> Vec<Option<String>> {
                let text = |_| {
                    let number = rng.random_range(0..different);
                    let len = number as usize % (max + 1);
                    let letter = if other && number % 50 == 3 { "é" } else { "x" };
                    let text = format!("{number}{}", letter.repeat(len));
                    (!nulls || rng.random_bool(0.8)).then_some(text)
                };
                (0..rows).map(text).collect()
            };
            let (symbols, texts) = (column(20), column(5_000));
            let numbers: Vec<Option<i64>> =
                texts.iter().map(|text| text.as_ref().map(|text| text.len() as i64)).collect();
            let keys: DictionaryArray<Int32Type> = symbols.iter().map(Option::as_deref).collect();
            let of = ColumnarValue::Array;
            let arguments = [
                of(Arc::new(keys)),
                ColumnarValue::Scalar(ScalarValue::Utf8View(Some("-".into()))),
                of(Arc::new(texts.iter().map(Option::as_deref).collect::<StringViewArray>())),
                of(Arc::new(Int64Array::from(numbers.clone()))),
            ];
            let call = Call { arguments: &arguments, rows, random: None };
            let types = [SqlType::Symbol, SqlType::Varchar, SqlType::Varchar, SqlType::Long];
            let found = concatenate(&call, &types).unwrap();
            found.to_data().validate_full().unwrap();
            let found = found.as_string_view();
            assert_eq!((found.len(), found.null_count()), (rows, 0));
            for row in 0..rows {
                let text = |texts: &[Option<String>]| texts[row].clone().unwrap_or_default();
                let number = numbers[row].map_or("null".to_owned(), |number| number.to_string());
                let expected = format!("{}-{}{number}", text(&symbols), text(&texts));
                assert_eq!(found.value(row), expected);
            }
        }
    }
}
