//! Columns whose cells have their own bytes: files have no copies of a dictionary, and what counts
//! the bytes of a batch does not count all that its cells share. Of symbols of one table there are
//! the keys; of those of others, and of views, the texts themselves.

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

use crate::held::with_schema;
use crate::operator::Input;
use crate::symbols::dictionary;

/// Which columns of an input are symbols of one table.
pub(crate) fn symbols(input: &Input) -> Vec<bool> {
    let schema = input.schema();
    let is_symbol = |(column, field): (usize, &FieldRef)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), column));
        matches!(field.data_type(), DataType::Dictionary(..))
            && dictionary(input, &column).is_some()
    };
    schema.fields().iter().enumerate().map(is_symbol).collect()
}

/// What becomes of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    AsIs,
    /// The keys of a table's dictionary, which is kept.
    Keys,
    /// The values of dictionaries and of views.
    Values,
}

/// The type of the same values, each with its own bytes.
fn by_themselves(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

/// The dictionaries and views that columns are without.
pub(super) struct Texts {
    schema: SchemaRef,
    without: SchemaRef,
    stored: Vec<Stored>,
    /// Of each column with keys; `None`: it is another, or has had no rows yet.
    of: Mutex<Vec<Option<ArrayRef>>>,
}

impl Texts {
    /// Those of rows with these columns; the first ones of them are symbols where it says so.
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

    /// The columns as they were.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns with bytes of their own.
    pub(super) fn schema_without(&self) -> &SchemaRef {
        &self.without
    }

    /// The rows with bytes of their own. A table's dictionary only grows.
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

    /// Rows as they were.
    pub(super) fn give(&self, batch: &RecordBatch) -> Result<RecordBatch> {
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
