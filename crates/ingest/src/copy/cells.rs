//! One column's values, in the type they were sent in.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder,
    Int32Builder, Int64Builder, LargeBinaryBuilder, StringViewBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef};
use tidemark_types::{EngineError, EngineResult, ParameterValue, SqlType};

use super::spec::CopyColumn;
use crate::column::Nullable;
use crate::parameters::{BinaryKind, truth};
use crate::symbol::SymbolTexts;

const UUID_BYTES: i32 = 16;

#[derive(Debug)]
pub(super) enum Cells {
    Text(StringViewBuilder),
    /// `PostgreSQL` boolean words, converted to `true` and `false`.
    Truth(StringViewBuilder),
    Symbol {
        texts: SymbolTexts,
        keys: Nullable<i32>,
    },
    Boolean(BooleanBuilder),
    Short(Int16Builder),
    Int(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Binary(LargeBinaryBuilder),
}

impl Cells {
    pub(super) fn new(column: &CopyColumn, is_binary: bool) -> Self {
        let kind = if is_binary { BinaryKind::of(column.oid) } else { BinaryKind::Text };
        match (kind, column.sql_type) {
            (BinaryKind::Text, SqlType::Symbol) => {
                Self::Symbol { texts: SymbolTexts::default(), keys: Nullable::new() }
            }
            (BinaryKind::Text, SqlType::Boolean) => Self::Truth(StringViewBuilder::new()),
            (BinaryKind::Text, _) => Self::Text(StringViewBuilder::new()),
            (BinaryKind::Boolean, _) => Self::Boolean(BooleanBuilder::new()),
            (BinaryKind::Short, _) => Self::Short(Int16Builder::new()),
            (BinaryKind::Int, _) => Self::Int(Int32Builder::new()),
            (BinaryKind::Long, _) => Self::Long(Int64Builder::new()),
            (BinaryKind::Float, _) => Self::Float(Float32Builder::new()),
            (BinaryKind::Double, _) => Self::Double(Float64Builder::new()),
            (BinaryKind::Timestamp, _) => Self::Timestamp(TimestampMicrosecondBuilder::new()),
            (BinaryKind::Uuid, _) => Self::Uuid(FixedSizeBinaryBuilder::new(UUID_BYTES)),
            (BinaryKind::Binary, _) => Self::Binary(LargeBinaryBuilder::new()),
        }
    }

    #[inline]
    pub(super) fn push_text(&mut self, text: &str) -> EngineResult<()> {
        match self {
            Self::Text(cells) => cells.append_value(text),
            Self::Symbol { texts, keys } => keys.push(Some(texts.intern(text)?)),
            Self::Truth(cells) => cells.append_value(match truth(text) {
                Some(true) => "true",
                Some(false) => "false",
                None => text,
            }),
            _ => return Err(unfit()),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn push_null(&mut self) {
        match self {
            Self::Text(cells) | Self::Truth(cells) => cells.append_null(),
            Self::Symbol { keys, .. } => keys.push(None),
            Self::Boolean(cells) => cells.append_null(),
            Self::Short(cells) => cells.append_null(),
            Self::Int(cells) => cells.append_null(),
            Self::Long(cells) => cells.append_null(),
            Self::Float(cells) => cells.append_null(),
            Self::Double(cells) => cells.append_null(),
            Self::Timestamp(cells) => cells.append_null(),
            Self::Uuid(cells) => cells.append_null(),
            Self::Binary(cells) => cells.append_null(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: &ParameterValue<'_>) -> EngineResult<()> {
        use ParameterValue as Value;
        match (self, value) {
            (cells, Value::Null) => cells.push_null(),
            (cells, Value::Text(text)) => cells.push_text(text)?,
            (cells, Value::Items(items)) => cells.push_text(&items.text())?,
            (Self::Boolean(cells), Value::Boolean(value)) => cells.append_value(*value),
            (Self::Short(cells), Value::Short(value)) => cells.append_value(*value),
            (Self::Int(cells), Value::Int(value)) => cells.append_value(*value),
            (Self::Long(cells), Value::Long(value)) => cells.append_value(*value),
            (Self::Float(cells), Value::Float(value)) => cells.append_value(*value),
            (Self::Double(cells), Value::Double(value)) => cells.append_value(*value),
            (Self::Timestamp(cells), Value::Timestamp(value)) => cells.append_value(*value),
            (Self::Uuid(cells), Value::Uuid(value)) => {
                cells.append_value(value).map_err(|_| unfit())?;
            }
            (Self::Binary(cells), Value::Binary(value)) => cells.append_value(value),
            _ => return Err(unfit()),
        }
        Ok(())
    }

    /// Returns the first `rows` values and their type. Discards the values after them, which belong
    /// to an incomplete row.
    pub(super) fn finish(&mut self, rows: usize) -> EngineResult<(SqlType, ArrayRef)> {
        let (sql_type, cells): (_, ArrayRef) = match self {
            Self::Text(cells) | Self::Truth(cells) => (SqlType::Varchar, Arc::new(cells.finish())),
            Self::Symbol { texts, keys } => {
                let (keys, nulls) = keys.take();
                (SqlType::Symbol, texts.column(keys, nulls)?)
            }
            Self::Boolean(cells) => (SqlType::Boolean, Arc::new(cells.finish())),
            Self::Short(cells) => (SqlType::Short, Arc::new(cells.finish())),
            Self::Int(cells) => (SqlType::Int, Arc::new(cells.finish())),
            Self::Long(cells) => (SqlType::Long, Arc::new(cells.finish())),
            Self::Float(cells) => (SqlType::Float, Arc::new(cells.finish())),
            Self::Double(cells) => (SqlType::Double, Arc::new(cells.finish())),
            Self::Timestamp(cells) => (SqlType::Timestamp, Arc::new(cells.finish())),
            Self::Uuid(cells) => (SqlType::Uuid, Arc::new(cells.finish())),
            Self::Binary(cells) => (SqlType::Binary, Arc::new(cells.finish())),
        };
        let cells = if cells.len() > rows { cells.slice(0, rows) } else { cells };
        Ok((sql_type, cells))
    }
}

fn unfit() -> EngineError {
    EngineError::internal("a value has a different type than its column")
}
