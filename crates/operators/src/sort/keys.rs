//! Converts sort keys to numbers that sort in the same order.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, StringViewArray};
use arrow_schema::{DataType, Schema, SortOptions};
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use rustc_hash::FxHashMap;
use tidemark_kernels::{double_order, integer_order, maximum, minimum};
use tidemark_storage::{Bounds, Zone};

/// Whether a key can be converted to a number.
pub(crate) fn is_number(key: &PhysicalSortExpr, schema: &Schema) -> bool {
    let number = |data_type: &DataType| {
        let is_integer = data_type.is_integer() && *data_type != DataType::UInt64;
        let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
        is_integer || is_float || matches!(data_type, DataType::Timestamp(..) | DataType::Boolean)
    };
    key.expr.data_type(schema).is_ok_and(|data_type| number(&data_type)) || is_symbol(key, schema)
}

/// Whether a key is a symbol.
pub(crate) fn is_symbol(key: &PhysicalSortExpr, schema: &Schema) -> bool {
    let Ok(DataType::Dictionary(keys, _)) = key.expr.data_type(schema) else { return false };
    *keys == DataType::Int32
}

/// Ranks of a symbol key's strings among all strings that occur in any of the key's dictionaries.
pub(super) struct SymbolRanks {
    /// The rank of each dictionary entry, by the dictionary's address.
    dictionaries: FxHashMap<usize, Vec<u32>>,
    texts: u32,
}

/// Address of a dictionary's strings.
fn address(texts: &ArrayRef) -> usize {
    Arc::as_ptr(texts).cast::<()>() as usize
}

impl SymbolRanks {
    /// Ranks the strings that occur in these arrays; `None` if an array is not a symbol.
    pub(super) fn new<'a>(keys: impl Iterator<Item = &'a ArrayRef>) -> Result<Option<Self>> {
        let mut used: FxHashMap<usize, (ArrayRef, Vec<bool>)> = FxHashMap::default();
        for symbols in keys {
            let Some(symbols) = symbols.as_dictionary_opt::<Int32Type>() else { return Ok(None) };
            let texts = symbols.values();
            let none = || (Arc::clone(texts), vec![false; texts.len()]);
            let used = &mut used.entry(address(texts)).or_insert_with(none).1;
            for code in symbols.keys_iter().flatten() {
                used[code] = true;
            }
        }
        let mut dictionaries = Vec::with_capacity(used.len());
        for (at, (texts, used)) in used {
            dictionaries.push((at, cast(&texts, &DataType::Utf8View)?, used));
        }
        let mut occurring: Vec<(&str, usize, usize)> = vec![];
        for (number, (_, texts, used)) in dictionaries.iter().enumerate() {
            let texts: &StringViewArray = texts.as_string_view();
            let own =
                used.iter().enumerate().filter(|(code, used)| **used && texts.is_valid(*code));
            occurring.extend(own.map(|(code, _)| (texts.value(code), number, code)));
        }
        occurring.sort_unstable();
        // Unused strings, and any null among the strings, rank after all others.
        let unused = |used: &Vec<bool>| vec![u32::MAX; used.len()];
        let mut symbol_ranks: Vec<Vec<u32>> =
            dictionaries.iter().map(|(_, _, used)| unused(used)).collect();
        let (mut count, mut before) = (0_u32, None);
        for (text, number, code) in occurring {
            count += u32::from(before != Some(text));
            before = Some(text);
            symbol_ranks[number][code] = count - 1;
        }
        let at = dictionaries.iter().map(|(at, _, _)| *at);
        Ok(Some(Self { dictionaries: at.zip(symbol_ranks).collect(), texts: count }))
    }

    /// Number of ranks, including the rank of null.
    pub(super) fn count(&self) -> usize {
        self.texts as usize + 1
    }

    /// Returns each row's rank in this order.
    pub(super) fn of<'a>(
        &'a self,
        symbols: &'a ArrayRef,
        options: SortOptions,
    ) -> impl Iterator<Item = u32> + 'a {
        let null = if options.nulls_first { 0 } else { self.texts };
        let first = u32::from(options.nulls_first);
        let symbols = symbols.as_dictionary_opt::<Int32Type>();
        let symbol_ranks =
            symbols.and_then(|symbols| self.dictionaries.get(&address(symbols.values())));
        let rank = move |code: usize| {
            let rank = symbol_ranks
                .and_then(|symbol_ranks| symbol_ranks.get(code).copied())
                .unwrap_or(u32::MAX);
            match rank {
                u32::MAX => null,
                rank if options.descending => self.texts - 1 - rank + first,
                rank => rank + first,
            }
        };
        let codes = symbols.into_iter().flat_map(DictionaryArray::keys_iter);
        codes.map(move |code| code.map_or(null, rank))
    }
}

/// Returns the sort key of a double; both zeros have the same key.
fn of_double(value: f64, options: SortOptions) -> u64 {
    let order = double_order(value + 0.0);
    if options.descending { !order } else { order }
}

/// Returns the sort key of an integer. The minimum integer is not a valid value, so its key can be
/// used for null.
fn of_integer(value: i64, SortOptions { descending, nulls_first }: SortOptions) -> u64 {
    let order = integer_order(value);
    match (descending, nulls_first) {
        (false, true) => order,
        (false, false) => order.saturating_sub(1),
        (true, true) => (!order).saturating_add(1),
        (true, false) => !order,
    }
}

/// Returns the sort key of null.
fn of_null(options: SortOptions) -> u64 {
    if options.nulls_first { 0 } else { u64::MAX }
}

/// Returns the sort keys of a column that is not a symbol.
pub(crate) fn numbers(values: &ArrayRef, options: SortOptions) -> Result<Vec<u64>> {
    let is_float = matches!(values.data_type(), DataType::Float32 | DataType::Float64);
    let mut numbers: Vec<u64> = if is_float {
        let values = cast(values, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>().values();
        values.iter().map(|&value| of_double(value, options)).collect()
    } else {
        let values = cast(values, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>().values();
        values.iter().map(|&value| of_integer(value, options)).collect()
    };
    if let Some(nulls) = values.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        let null_rows = nulls.iter().enumerate().filter(|(_, is_valid)| !is_valid);
        null_rows.for_each(|(row, _)| numbers[row] = of_null(options));
    }
    Ok(numbers)
}

/// Returns a lower bound on the sort keys of a zone's cells.
pub(crate) fn first_of_zone(zone: &Zone, options: SortOptions) -> u64 {
    let first = match zone.bounds {
        Bounds::Double(min, greatest) => {
            of_double(if options.descending { greatest } else { min }, options)
        }
        Bounds::Integer(min, greatest) => {
            of_integer(if options.descending { greatest } else { min }, options)
        }
    };
    if zone.has_nulls { first.min(of_null(options)) } else { first }
}

/// Returns the first sort key of an array without nulls, if it can be computed quickly.
pub(crate) fn first_of(values: &ArrayRef, options: SortOptions) -> Option<u64> {
    if values.null_count() > 0 {
        return None;
    }
    if let Some(doubles) = values.as_primitive_opt::<Float64Type>() {
        let doubles = doubles.values();
        let first = if options.descending { maximum(doubles) } else { minimum(doubles) };
        return first.filter(|first| !first.is_nan()).map(|first| of_double(first, options));
    }
    let integers = values.as_primitive_opt::<Int64Type>()?.values();
    let first = if options.descending { maximum(integers) } else { minimum(integers) };
    first.map(|first| of_integer(first, options))
}
