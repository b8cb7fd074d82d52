//! Stored form of a column in segments and log records: an optional validity bitmap and one or more
//! bodies of bytes. A body is the buffer of the Arrow array, so a mapped column needs no
//! conversion.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, StringViewArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use tidemark_types::double_array::{self, DoubleArrays};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::segment::cell_layout::Layout;
use crate::segment::column::ColumnData;

/// Size in bytes of string data after which a column starts another body, because Arrow views
/// address at most 2 GiB.
pub(crate) const TEXT_BODY_BYTES: u64 = 1 << 30;

/// A column's bytes.
#[derive(Debug)]
pub(crate) struct ColumnBodies {
    /// One bit per row, set for values. Present only if the column has a null.
    pub(crate) validity: Option<BooleanBuffer>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Bits(BooleanBuffer),
    Fixed(Buffer),
    Text { views: Vec<u128>, bytes: Vec<u8> },
    Bytes { offsets: Vec<i64>, bytes: Buffer },
    Arrays(ArrayBodies),
}

/// The bodies of an array column.
#[derive(Debug, Default)]
pub(crate) struct ArrayBodies {
    pub(crate) shapes: Vec<i32>,
    pub(crate) offsets: Vec<i64>,
    pub(crate) values: Vec<f64>,
}

/// Splits a column into its bodies. Fixed-width and bit columns are not copied.
pub(crate) fn bodies_of(sql_type: SqlType, cells: &ColumnData) -> EngineResult<ColumnBodies> {
    let array = cells.array();
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let validity = nulls.map(|nulls| nulls.inner().clone());
    let body = match Layout::of(sql_type)? {
        Layout::Bits => Body::Bits(array.as_boolean().values().clone()),
        Layout::Fixed(width) => {
            let data = array.to_data();
            let start = data.offset() * width;
            let values = data.buffers().first();
            let values = values.ok_or_else(|| EngineError::internal("a column has no values"))?;
            Body::Fixed(values.slice_with_length(start, array.len() * width))
        }
        Layout::Text => {
            let (mut views, mut bytes) = (Vec::with_capacity(array.len()), Vec::new());
            compact_text(array.as_string_view(), &mut views, &mut bytes);
            Body::Text { views, bytes }
        }
        Layout::Bytes => {
            let array = array.as_binary::<i64>();
            let (offsets, values) = (array.offsets(), array.values());
            let first = offsets.first().copied().unwrap_or(0);
            let last = offsets.last().copied().unwrap_or(0);
            Body::Bytes {
                offsets: offsets.iter().map(|offset| offset - first).collect(),
                bytes: values.slice_with_length(first as usize, (last - first) as usize),
            }
        }
        Layout::Arrays(dimensions) => arrays(dimensions, array)?,
    };
    Ok(ColumnBodies { validity, body })
}

/// Shapes, offsets and elements of the rows. A null has an all-zero shape and no elements.
fn arrays(dimensions: u8, array: &dyn Array) -> EngineResult<Body> {
    let cells = DoubleArrays::new(array).ok_or_else(|| EngineError::internal("not an array"))?;
    let mut shapes = Vec::with_capacity(cells.len() * usize::from(dimensions));
    let mut offsets = Vec::with_capacity(cells.len() + 1);
    let mut values = Vec::new();
    offsets.push(0);
    for row in 0..cells.len() {
        match cells.get(row) {
            Some(cell) => {
                shapes.extend_from_slice(cell.shape);
                values.extend_from_slice(cell.values);
            }
            None => shapes.extend(std::iter::repeat_n(0, usize::from(dimensions))),
        }
        offsets.push(values.len() as i64);
    }
    Ok(Body::Arrays(ArrayBodies { shapes, offsets, values }))
}

/// Length of a view's string, stored in its low 32 bits.
fn view_len(view: u128) -> usize {
    view as u32 as usize
}

/// Returns the view with its string at `offset` in body `buffer`.
pub(crate) fn move_view(view: u128, buffer: u32, offset: u32) -> u128 {
    const LENGTH_AND_PREFIX: u128 = u64::MAX as u128; // length and prefix
    (view & LENGTH_AND_PREFIX) | (u128::from(buffer) << 64) | (u128::from(offset) << 96)
}

pub(crate) fn is_long(view: u128) -> bool {
    view_len(view) > 12
}

/// Copies an array's strings into one body without unused bytes, and copies its views.
fn compact_text(array: &StringViewArray, views: &mut Vec<u128>, bytes: &mut Vec<u8>) {
    let buffers = array.data_buffers();
    for (row, &view) in array.views().iter().enumerate() {
        if array.is_null(row) {
            views.push(0);
        } else if is_long(view) {
            let buffer = &buffers[(view >> 64) as u32 as usize];
            let start = (view >> 96) as usize;
            views.push(move_view(view, 0, bytes.len() as u32));
            bytes.extend_from_slice(&buffer[start..start + view_len(view)]);
        } else {
            views.push(view);
        }
    }
}

/// Assembles a column, and checks all invariants that readers rely on. `bodies` start at multiples
/// of 16 bytes.
pub(crate) fn assemble(
    sql_type: SqlType,
    rows: usize,
    validity: Option<Buffer>,
    mut bodies: Vec<Buffer>,
) -> EngineResult<ColumnData> {
    let layout = Layout::of(sql_type)?;
    let nulls = validity.map(|bits| bitmap(bits, rows).map(NullBuffer::new)).transpose()?;
    let aligned = bodies.iter().all(|body| body.as_ptr().align_offset(16) == 0);
    if bodies.is_empty() || !aligned {
        return Err(damage("column data is missing"));
    }
    let first = bodies.remove(0);
    let data_type = match sql_type {
        SqlType::Symbol => DataType::Int32,
        other => other.arrow_type(),
    };
    let array: ArrayRef = match layout {
        Layout::Bits => Arc::new(BooleanArray::new(bitmap(first, rows)?, nulls)),
        Layout::Fixed(width) => {
            if rows.checked_mul(width).is_none_or(|size| size > first.len()) {
                return Err(damage("column data is too short"));
            }
            let data = ArrayData::builder(data_type).len(rows).add_buffer(first).nulls(nulls);
            make_array(data.build().map_err(damage)?)
        }
        Layout::Text => {
            if rows.checked_mul(16).is_none_or(|size| size > first.len()) {
                return Err(damage("column data is too short"));
            }
            let views = ScalarBuffer::new(first, 0, rows);
            let texts = StringViewArray::try_new(views, Arc::<[Buffer]>::from(bodies), nulls);
            Arc::new(texts.map_err(damage)?)
        }
        Layout::Bytes => {
            let bytes = bodies.pop().ok_or_else(|| damage("column data is missing"))?;
            let data = ArrayData::builder(data_type).len(rows).nulls(nulls);
            let data = data.add_buffer(first).add_buffer(bytes);
            make_array(data.build().map_err(damage)?)
        }
        Layout::Arrays(dimensions) => {
            let [offsets, values] = &bodies[..] else {
                return Err(damage("column data is missing"));
            };
            let lengths = rows * usize::from(dimensions);
            if first.len() < lengths * 4 || offsets.len() < (rows + 1) * 8 {
                return Err(damage("column data is too short"));
            }
            let shapes = ScalarBuffer::new(first, 0, lengths);
            let offsets = ScalarBuffer::new(offsets.clone(), 0, rows + 1);
            let values = ScalarBuffer::new(values.clone(), 0, values.len() / 8);
            double_array::assemble(dimensions, shapes, offsets, values, nulls)?
        }
    };
    ColumnData::new(sql_type, array)
}

fn bitmap(bits: Buffer, rows: usize) -> EngineResult<BooleanBuffer> {
    if bits.len() < rows.div_ceil(8) {
        return Err(damage("null bitmap is too short"));
    }
    Ok(BooleanBuffer::new(bits, 0, rows))
}

fn damage(what: impl std::fmt::Display) -> EngineError {
    EngineError::new(ErrorCode::Damaged, what.to_string())
}
