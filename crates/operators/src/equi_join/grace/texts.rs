//! Converts columns so that their cells own their bytes. Files then do not contain copies of a
//! dictionary, and a batch's size does not include shared bytes. Symbols from a single table become
//! dictionary keys; other dictionaries and views become plain values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use parking_lot::Mutex;

use crate::materialize::with_schema;
use crate::operator::Input;
use crate::symbols::dictionary;

/// Returns, for each column of an input, whether it contains symbols from a single table.
pub(crate) fn symbols(input: &Input) -> Vec<bool> {
    let schema = input.schema();
    let is_symbol = |(column, field): (usize, &FieldRef)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), column));
        matches!(field.data_type(), DataType::Dictionary(..))
            && dictionary(input, &column).is_some()
    };
    schema.fields().iter().enumerate().map(is_symbol).collect()
}

/// How a column is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    AsIs,
    /// Keys of a table's dictionary, which is retained in memory.
    Keys,
    /// Plain values of dictionaries and views.
    Values,
}

/// Returns the type that stores the same values with their own bytes.
fn by_themselves(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

/// Converts dictionary and view columns to columns that own their bytes, and back.
pub(super) struct Texts {
    schema: SchemaRef,
    without: SchemaRef,
    stored: Vec<Stored>,
    /// The dictionary of each column that is stored as keys. `None` for other columns, or before
    /// the first rows.
    of: Mutex<Vec<Option<ArrayRef>>>,
}

impl Texts {
    /// Creates the converter for rows with this schema. `symbols` marks the leading columns that
    /// contain symbols from a single table.
    pub(super) fn of(schema: SchemaRef, symbols: &[bool]) -> Self {
        let stored = |(column, field): (usize, &FieldRef)| match field.data_type() {
            DataType::Dictionary(..) if symbols.get(column) == Some(&true) => Stored::Keys,
            DataType::Dictionary(..) | DataType::Utf8View | DataType::BinaryView => Stored::Values,
            _ => Stored::AsIs,
        };
        let stored: Vec<_> = schema.fields().iter().enumerate().map(stored).collect();
        let without = |(field, stored): (&FieldRef, &Stored)| {
            let data_type = match (field.data_type(), stored) {
                (DataType::Dictionary(keys, _), Stored::Keys) => keys.as_ref().clone(),
                (DataType::Dictionary(_, values), _) => by_themselves(values),
                (other, Stored::Values) => by_themselves(other),
                (other, _) => other.clone(),
            };
            Arc::new(field.as_ref().clone().with_data_type(data_type))
        };
        let without: Vec<_> = schema.fields().iter().zip(&stored).map(without).collect();
        let of = Mutex::new(vec![None; stored.len()]);
        Self { without: Arc::new(Schema::new(without)), schema, stored, of }
    }

    /// The original schema.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schema in which cells own their bytes.
    pub(super) fn schema_without(&self) -> &SchemaRef {
        &self.without
    }

    /// Converts rows to cells that own their bytes. A table's dictionary only grows, so its longest
    /// version is retained.
    pub(super) fn take(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut of = self.of.lock();
        let column = |(column, array): (usize, &ArrayRef)| match self.stored[column] {
            Stored::AsIs => Ok(Arc::clone(array)),
            Stored::Values => Ok(cast(array, self.without.field(column).data_type())?),
            Stored::Keys => {
                let (symbols, texts) = (array.as_dictionary::<Int32Type>(), &mut of[column]);
                if texts.as_ref().is_none_or(|texts| texts.len() < symbols.values().len()) {
                    *texts = Some(Arc::clone(symbols.values()));
                }
                Ok(Arc::new(symbols.keys().clone()) as ArrayRef)
            }
        };
        let columns = batch.columns().iter().enumerate().map(column);
        with_schema(&self.without, columns.collect::<Result<_>>()?, batch.num_rows())
    }

    /// Restores rows to their original form.
    pub(super) fn restore(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let of = self.of.lock();
        let column = |(column, array): (usize, &ArrayRef)| match (self.stored[column], &of[column])
        {
            (Stored::Keys, Some(texts)) => {
                let keys = array.as_primitive::<Int32Type>().clone();
                let symbols = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(texts))?;
                Ok(Arc::new(symbols) as ArrayRef)
            }
            (Stored::AsIs, _) => Ok(Arc::clone(array)),
            _ => Ok(cast(array, self.schema.field(column).data_type())?),
        };
        let columns = batch.columns().iter().enumerate().map(column);
        with_schema(&self.schema, columns.collect::<Result<_>>()?, batch.num_rows())
    }
}
