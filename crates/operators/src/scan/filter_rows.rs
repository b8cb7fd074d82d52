//! Copies the rows of a batch that pass a filter into a new batch. Columns of numbers and symbols
//! are not processed row by row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt32Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use datafusion::arrow::compute::{FilterBuilder, FilterPredicate, filter};
use datafusion::common::Result;
use tidemark_kernels::{Native, compact};

/// Returns the rows of `batch` whose bits are set.
pub(super) fn filter_rows(batch: &RecordBatch, mask: BooleanBuffer) -> Result<RecordBatch> {
    let rows = mask.count_set_bits();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    if batch.num_columns() == 0 {
        return Ok(RecordBatch::try_new_with_options(batch.schema(), vec![], &options)?);
    }
    let mut selection = Selection::new(mask);
    let columns = batch.columns().iter().map(|column| selection.of(column));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

/// The selected rows, in the representations required by different column types.
struct Selection {
    words: Vec<u64>,
    mask: BooleanArray,
    /// Filter for all other column types, created on first use.
    other_types: Option<FilterPredicate>,
}

impl Selection {
    fn new(mask: BooleanBuffer) -> Self {
        let words = mask.bit_chunks().iter_padded().collect();
        Self { words, mask: BooleanArray::new(mask, None), other_types: None }
    }

    fn of(&mut self, column: &ArrayRef) -> Result<ArrayRef> {
        use TimeUnit::{Microsecond, Millisecond, Nanosecond};
        Ok(match column.data_type() {
            DataType::Int8 => Arc::new(self.numbers::<Int8Type>(column)?),
            DataType::Int16 => Arc::new(self.numbers::<Int16Type>(column)?),
            DataType::Int32 => Arc::new(self.numbers::<Int32Type>(column)?),
            DataType::Int64 => Arc::new(self.numbers::<Int64Type>(column)?),
            DataType::UInt32 => Arc::new(self.numbers::<UInt32Type>(column)?),
            DataType::Float32 => Arc::new(self.numbers::<Float32Type>(column)?),
            DataType::Float64 => Arc::new(self.numbers::<Float64Type>(column)?),
            DataType::Timestamp(Millisecond, None) => {
                Arc::new(self.numbers::<TimestampMillisecondType>(column)?)
            }
            DataType::Timestamp(Microsecond, None) => {
                Arc::new(self.numbers::<TimestampMicrosecondType>(column)?)
            }
            DataType::Timestamp(Nanosecond, None) => {
                Arc::new(self.numbers::<TimestampNanosecondType>(column)?)
            }
            DataType::Dictionary(key, _) if **key == DataType::Int32 => {
                let symbols = column.as_dictionary::<Int32Type>();
                let keys = self.numbers::<Int32Type>(symbols.keys())?;
                Arc::new(DictionaryArray::try_new(keys, Arc::clone(symbols.values()))?)
            }
            _ => {
                let mask = &self.mask;
                let others = || FilterBuilder::new(mask).optimize().build();
                self.other_types.get_or_insert_with(others).filter(column)?
            }
        })
    }

    fn numbers<P>(&self, column: &dyn Array) -> Result<PrimitiveArray<P>>
    where
        P: ArrowPrimitiveType<Native: Native>,
    {
        let column = column.as_primitive::<P>();
        let nulls = match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => {
                let valid = BooleanArray::new(nulls.inner().clone(), None);
                let valid = filter(&valid, &self.mask)?.as_boolean().values().clone();
                Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0)
            }
            None => None,
        };
        Ok(PrimitiveArray::new(compact(column.values(), &self.words).into(), nulls))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int16Array, StringViewArray, TimestampMicrosecondArray};
    use arrow_schema::{Field, Schema};
    use datafusion::arrow::compute::filter_record_batch;

    use super::*;

    #[test]
    fn prefiltered_rows_match_the_library_filter() {
        let mut seed = 9_u64;
        let mut random = move |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for round in 0..200 {
            let rows = random(400) as usize;
            let mut some = |nulls: bool| -> Vec<Option<i64>> {
                let value = |_| (!nulls || random(4) > 0).then(|| random(100) as i64);
                (0..rows).map(value).collect()
            };
            let (plain, gaps, names) = (some(false), some(true), some(true));
            let names: Vec<Option<String>> =
                names.iter().map(|name| name.map(|name| format!("n{name}"))).collect();
            let texts = || names.iter().map(Option::as_deref);
            let columns: Vec<ArrayRef> = vec![
                Arc::new(plain.iter().map(|v| v.map(|v| v as f64)).collect::<Float64Array>()),
                Arc::new(gaps.iter().map(|v| v.map(|v| v as i16)).collect::<Int16Array>()),
                Arc::new(gaps.iter().copied().collect::<TimestampMicrosecondArray>()),
                Arc::new(texts().collect::<DictionaryArray<Int32Type>>()),
                Arc::new(texts().collect::<StringViewArray>()),
            ];
            let fields = columns.iter().enumerate().map(|(index, column)| {
                Field::new(format!("c{index}"), column.data_type().clone(), true)
            });
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let batch = RecordBatch::try_new(schema, columns).unwrap();
            // A slice may begin at any offset in its buffers.
            let start = random(rows as u64 + 1) as usize;
            let batch = batch.slice(start, rows - start);
            let percent = [0, 3, 50, 97, 100][round % 5];
            let mask: Vec<bool> = (start..rows).map(|_| random(100) < percent).collect();
            let mask = BooleanBuffer::from(mask);
            let expected =
                filter_record_batch(&batch, &BooleanArray::new(mask.clone(), None)).unwrap();
            assert_eq!(filter_rows(&batch, mask).unwrap(), expected, "round {round}");
        }
    }
}
