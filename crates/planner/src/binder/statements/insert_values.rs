//! Builds one batch from VALUES rows: cells are collected by column and kind, and each kind is
//! converted at once.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray,
};
use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ident};
use tidemark_functions::CastMode;
use tidemark_storage::{ColumnSchema, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, ParameterValue, Span, SqlType};

use crate::binder::expressions::parameter::scalar_of;
use crate::binder::statements::conversion::{refuse_conversion, runtime_value};
use crate::binder::statements::defaults::Defaults;

/// A cell in VALUES.
#[derive(Debug, Clone)]
pub(crate) enum Cell<'t> {
    Null,
    Boolean(bool),
    /// Digits as written.
    Integer(Cow<'t, str>),
    /// Digits as written.
    Floating(Cow<'t, str>),
    Text(Cow<'t, str>),
    /// A value in the column's type.
    Value(Box<ScalarValue>),
    /// A parameter value that was sent in binary.
    Bound(ParameterValue<'t>),
    /// `$n`, numbered from 1.
    Parameter(u32),
    /// An expression with parameters, whose value is known once the parameters have values.
    Computed,
    /// DEFAULT: the column's default.
    Default,
}

impl Cell<'_> {
    fn into_owned(self) -> Cell<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Null => Cell::Null,
            Self::Boolean(value) => Cell::Boolean(value),
            Self::Integer(text) => Cell::Integer(owned(text)),
            Self::Floating(text) => Cell::Floating(owned(text)),
            Self::Text(text) => Cell::Text(owned(text)),
            Self::Value(value) => Cell::Value(value),
            Self::Bound(value) => Cell::Bound(value.into_owned()),
            Self::Parameter(index) => Cell::Parameter(index),
            Self::Computed => Cell::Computed,
            Self::Default => Cell::Default,
        }
    }
}

/// Cells in row order, for some of a table's columns. Strings are borrowed from the tree.
#[derive(Debug, Clone)]
pub(crate) struct ValueRows<'t> {
    schema: Arc<TableSchema>,
    targets: Vec<usize>,
    /// Defaults for all other columns.
    defaults: Defaults,
    cells: Vec<Cell<'t>>,
    starts: Vec<u32>,
}

impl<'t> ValueRows<'t> {
    pub(crate) fn new(schema: Arc<TableSchema>, targets: Vec<usize>, defaults: Defaults) -> Self {
        Self { schema, targets, defaults, cells: Vec::new(), starts: Vec::new() }
    }

    /// Number of cells per row.
    pub(crate) fn width(&self) -> usize {
        self.targets.len()
    }

    /// Name and type of the column that the nth cell of a row belongs to.
    pub(crate) fn target(&self, position: usize) -> (String, SqlType) {
        let column = &self.schema.columns[self.targets[position]];
        (column.name.clone(), column.sql_type)
    }

    /// Returns the rows without references to the tree.
    pub(crate) fn into_owned(self) -> ValueRows<'static> {
        let cells = self.cells.into_iter().map(Cell::into_owned).collect();
        let Self { schema, targets, defaults, starts, .. } = self;
        ValueRows { schema, targets, defaults, cells, starts }
    }

    /// The batches' schema.
    pub(crate) fn arrow_schema(&self) -> SchemaRef {
        arrow_schema_of(&self.schema)
    }

    /// Reserves memory for additional cells.
    pub(crate) fn reserve(&mut self, cells: usize) {
        self.cells.reserve(cells);
        self.starts.reserve(cells);
    }

    pub(crate) fn push(&mut self, cell: Cell<'t>, start: u32) {
        self.cells.push(cell);
        self.starts.push(start);
    }

    pub(crate) fn has_parameters(&self) -> bool {
        self.cells.iter().any(|cell| matches!(cell, Cell::Parameter(_) | Cell::Computed))
    }

    /// Whether parameters also occur inside expressions.
    pub(crate) fn is_computed(&self) -> bool {
        self.cells.iter().any(|cell| matches!(cell, Cell::Computed))
    }

    /// Repeats the rows for each row of parameters and fills in the parameter values.
    pub(crate) fn with_parameters<'p>(
        &'p self,
        rows: impl IntoIterator<Item = &'p [ParameterValue<'p>]>,
    ) -> EngineResult<ValueRows<'p>> {
        let (schema, targets) = (Arc::clone(&self.schema), self.targets.clone());
        let mut filled = ValueRows::new(schema, targets, self.defaults.clone());
        for row in rows {
            for (cell, start) in self.cells.iter().zip(&self.starts) {
                let cell = match cell {
                    Cell::Parameter(index) => match row.get((*index as usize).wrapping_sub(1)) {
                        Some(value) => bound_cell(value),
                        None => {
                            return Err(EngineError::new(
                                ErrorCode::InvalidValue,
                                format!("no value for parameter ${index}"),
                            ));
                        }
                    },
                    Cell::Computed => {
                        return Err(EngineError::internal("an expression has no values"));
                    }
                    other => other.clone(),
                };
                filled.push(cell, *start);
            }
        }
        Ok(filled)
    }

    /// All rows as a batch in the table's schema. Columns without given values contain their
    /// defaults.
    pub(crate) fn batch(&self) -> EngineResult<RecordBatch> {
        let rows = self.cells.len() / self.width().max(1);
        let mut arrays = Vec::with_capacity(self.schema.columns.len());
        for (index, column) in self.schema.columns.iter().enumerate() {
            let array = match self.targets.iter().position(|target| *target == index) {
                Some(position) => self.column(position, rows)?,
                None => match self.defaults.cells(index, rows)? {
                    Some(cells) => cells,
                    None => nulls(column.sql_type, rows)?,
                },
            };
            arrays.push(array);
        }
        RecordBatch::try_new(arrow_schema_of(&self.schema), arrays)
            .map_err(|failure| EngineError::internal(failure.to_string()))
    }

    fn column(&self, position: usize, rows: usize) -> EngineResult<ArrayRef> {
        let target = self.targets[position];
        let column = &self.schema.columns[target];
        let designated = self.schema.timestamp == Some(target);
        let mut kinds: Vec<(u8, Vec<usize>)> = Vec::new();
        for row in 0..rows {
            let kind = match kind_of(&self.cells[row * self.width() + position]) {
                DEFAULT if self.defaults.expr(target).is_none() => b'n',
                kind => kind,
            };
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, members)) => members.push(row),
                None => kinds.push((kind, vec![row])),
            }
        }
        let mut parts = Vec::with_capacity(kinds.len());
        for (kind, members) in &kinds {
            if *kind == b'n' && designated {
                return Err(self.null_timestamp(members[0], position));
            }
            if *kind == b'n' && column.not_null {
                let start = self.starts[members[0] * self.width() + position];
                return Err(null_value(column).at(Span::new(start, start)));
            }
            let conversion = Conversion { rows: self, position, members, column };
            parts.push(conversion.convert(*kind)?);
        }
        let array = match parts.as_slice() {
            [only] => Arc::clone(only),
            _ => interleaved(&kinds, &parts, rows, column.sql_type)?,
        };
        if designated {
            self.check_timestamps(&array, position)?;
        }
        Ok(array)
    }

    /// Builds a batch from columns of parameter values. The statement has a single VALUES row, and
    /// each column belongs to one of its cells.
    fn given_batch(&self, given: &[(SqlType, ArrayRef)]) -> EngineResult<RecordBatch> {
        let rows = given.first().map_or(0, |(_, cells)| cells.len());
        let mut arrays = Vec::with_capacity(self.schema.columns.len());
        for (index, column) in self.schema.columns.iter().enumerate() {
            let array = match self.targets.iter().position(|target| *target == index) {
                Some(position) => {
                    let Some((from, cells)) = given.get(position) else {
                        return Err(EngineError::internal("a parameter has no column"));
                    };
                    self.given_column(position, *from, cells)?
                }
                None => match self.defaults.cells(index, rows)? {
                    Some(cells) => cells,
                    None => nulls(column.sql_type, rows)?,
                },
            };
            arrays.push(array);
        }
        RecordBatch::try_new(arrow_schema_of(&self.schema), arrays)
            .map_err(|failure| EngineError::internal(failure.to_string()))
    }

    fn given_column(
        &self,
        position: usize,
        from: SqlType,
        cells: &ArrayRef,
    ) -> EngineResult<ArrayRef> {
        let target = self.targets[position];
        let column = &self.schema.columns[target];
        let designated = self.schema.timestamp == Some(target);
        if cells.null_count() > 0 {
            if designated {
                return Err(self.null_timestamp(0, position));
            }
            if column.not_null {
                let start = self.starts.get(position).copied().unwrap_or_default();
                return Err(null_value(column).at(Span::new(start, start)));
            }
        }
        let conversion = Conversion { rows: self, position, members: &[0], column };
        let array = if matches!(from, SqlType::Varchar | SqlType::String) {
            conversion.text_cells(Arc::clone(cells))?
        } else {
            conversion.bound_cells(cells, from)?
        };
        if designated {
            self.check_timestamps(&array, position)?;
        }
        if array.null_count() > 0 && !column.sql_type.is_nullable() {
            let empty = nulls(column.sql_type, array.len())?;
            let given = arrow::compute::is_not_null(&array);
            return given
                .and_then(|given| arrow::compute::kernels::zip::zip(&given, &array, &empty))
                .map_err(|failure| EngineError::internal(failure.to_string()));
        }
        Ok(array)
    }

    fn null_timestamp(&self, row: usize, position: usize) -> EngineError {
        // If values are given as columns, the statement has only one row, whose positions apply to
        // all values.
        let index = row * self.width() + position;
        let start = self.starts.get(index).copied().unwrap_or_default();
        EngineError::new(ErrorCode::InvalidValue, "designated timestamp column cannot be NULL")
            .at(Span::new(start, start))
    }

    fn check_timestamps(&self, array: &ArrayRef, position: usize) -> EngineResult<()> {
        for row in 0..array.len() {
            if array.is_null(row) {
                return Err(self.null_timestamp(row, position));
            }
        }
        check_not_before_epoch(array)
    }
}

fn null_value(column: &ColumnSchema) -> EngineError {
    let message = format!("column '{}' is NOT NULL: expected a value", column.name);
    EngineError::new(ErrorCode::NullValue, message)
}

/// A prepared INSERT's VALUES rows, with parameters.
#[derive(Debug, Clone)]
pub struct InsertTemplate {
    pub(crate) rows: ValueRows<'static>,
    /// Whether ON CONFLICT must compare each row with existing rows.
    pub(crate) resolves: bool,
}

impl InsertTemplate {
    /// Builds one batch with the rows to insert for these rows of parameters.
    pub fn rows<'p>(
        &'p self,
        parameter_rows: impl IntoIterator<Item = &'p [ParameterValue<'p>]>,
    ) -> EngineResult<RecordBatch> {
        self.rows.with_parameters(parameter_rows)?.batch()
    }

    /// Builds the rows for parameters given as columns. Each entry contains the type in which a
    /// parameter's values were sent, and the values. The result is the same as from [`Self::rows`].
    pub fn columns(&self, given: &[(SqlType, ArrayRef)]) -> EngineResult<RecordBatch> {
        self.rows.given_batch(given)
    }

    /// Name and type of each parameter's column, in parameter order.
    #[must_use]
    pub fn targets(&self) -> Vec<(String, SqlType)> {
        (0..self.rows.width()).map(|position| self.rows.target(position)).collect()
    }

    /// Whether the rows depend on existing rows. If so, the statement is executed once for each
    /// row.
    #[must_use]
    pub fn resolves(&self) -> bool {
        self.resolves
    }

    /// Whether parameters occur inside expressions. If so, each row must be bound with its values.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        self.rows.is_computed()
    }
}

/// Rejects designated timestamps before 1970.
fn check_not_before_epoch(array: &ArrayRef) -> EngineResult<()> {
    let any = array.as_any();
    let min = if let Some(times) = any.downcast_ref::<TimestampMicrosecondArray>() {
        arrow::compute::min(times)
    } else if let Some(times) = any.downcast_ref::<TimestampNanosecondArray>() {
        arrow::compute::min(times)
    } else {
        None
    };
    if min.is_some_and(|min| min < 0) {
        return Err(EngineError::new(
            ErrorCode::InvalidValue,
            "designated timestamp before 1970-01-01 is not allowed",
        )
        .at(Span::new(0, 0)));
    }
    Ok(())
}

/// The Arrow schema for a table's batches.
pub(crate) fn arrow_schema_of(schema: &TableSchema) -> SchemaRef {
    let fields: Vec<Field> = schema
        .columns
        .iter()
        .map(|column| Field::new(&column.name, column.sql_type.arrow_type(), true))
        .collect();
    Arc::new(Schema::new(fields))
}

/// Converts a parameter's value to a cell.
fn bound_cell<'p>(value: &'p ParameterValue<'p>) -> Cell<'p> {
    match value {
        ParameterValue::Null => Cell::Null,
        ParameterValue::Text(text) => Cell::Text(Cow::Borrowed(text)),
        ParameterValue::Items(items) => Cell::Text(Cow::Owned(items.text())),
        ParameterValue::Binary(bytes) => {
            Cell::Bound(ParameterValue::Binary(Cow::Borrowed(bytes.as_ref())))
        }
        other => Cell::Bound(other.clone()),
    }
}

/// The kind of a cell that contains the column's default.
const DEFAULT: u8 = b'-';

fn kind_of(cell: &Cell<'_>) -> u8 {
    match cell {
        Cell::Default => DEFAULT,
        Cell::Null => b'n',
        Cell::Boolean(_) => b'b',
        Cell::Integer(_) => b'i',
        Cell::Floating(_) => b'd',
        Cell::Text(_) => b's',
        Cell::Value(_) => b'v',
        Cell::Bound(value) => match value {
            ParameterValue::Short(_) => b'2',
            ParameterValue::Int(_) => b'4',
            ParameterValue::Long(_) => b'8',
            ParameterValue::Float(_) => b'f',
            ParameterValue::Double(_) => b'F',
            ParameterValue::Timestamp(_) => b't',
            ParameterValue::Uuid(_) => b'u',
            ParameterValue::Binary(_) => b'x',
            ParameterValue::Boolean(_) => b'B',
            ParameterValue::Null | ParameterValue::Text(_) | ParameterValue::Items(_) => b'p',
        },
        Cell::Parameter(_) | Cell::Computed => b'p',
    }
}

/// The cells of one kind in a column, which are converted to the column's type together.
struct Conversion<'a> {
    rows: &'a ValueRows<'a>,
    position: usize,
    members: &'a [usize],
    column: &'a ColumnSchema,
}

impl Conversion<'_> {
    fn cells(&self) -> impl Iterator<Item = &Cell<'_>> {
        let width = self.rows.width();
        self.members.iter().map(move |row| &self.rows.cells[row * width + self.position])
    }

    fn convert(&self, kind: u8) -> EngineResult<ArrayRef> {
        match kind {
            b'n' => nulls(self.column.sql_type, self.members.len()),
            b'b' => {
                let values: BooleanArray = self
                    .cells()
                    .map(|cell| match cell {
                        Cell::Boolean(value) => Some(*value),
                        _ => None,
                    })
                    .collect();
                self.cast(Arc::new(values), SqlType::Boolean)
            }
            b'i' => self.integers(),
            b'd' => {
                let values = self.parsed::<f64>()?;
                self.floats(values)
            }
            b's' => self.texts(),
            b'v' => {
                let scalars = self.cells().filter_map(|cell| match cell {
                    Cell::Value(value) => Some(value.as_ref().clone()),
                    _ => None,
                });
                ScalarValue::iter_to_array(scalars).map_err(runtime_value)
            }
            DEFAULT => {
                let target = self.rows.targets[self.position];
                let cells = self.rows.defaults.cells(target, self.members.len())?;
                cells.ok_or_else(|| EngineError::internal("a column has no default"))
            }
            b'p' => Err(EngineError::internal("a parameter has no value")),
            _ => self.bound(),
        }
    }

    /// Converts values sent in binary, which all have one type.
    fn bound(&self) -> EngineResult<ArrayRef> {
        let values = || {
            self.cells().filter_map(|cell| match cell {
                Cell::Bound(value) => Some(value),
                _ => None,
            })
        };
        let from = values().next().map_or(SqlType::Null, ParameterValue::sql_type);
        let array = ScalarValue::iter_to_array(values().map(scalar_of)).map_err(runtime_value)?;
        self.bound_cells(&array, from)
    }

    fn bound_cells(&self, array: &ArrayRef, from: SqlType) -> EngineResult<ArrayRef> {
        match self.cast(Arc::clone(array), from) {
            // No direct conversion exists, so convert the value's string form instead.
            Err(failure) if failure.code == ErrorCode::TypeMismatch => {
                let text = tidemark_functions::cast(
                    ident("value"),
                    from,
                    SqlType::Varchar,
                    CastMode::Explicit,
                );
                let text = text.map_err(EngineError::from)?;
                self.text_cells(evaluate_over(&text, Arc::clone(array), from)?)
            }
            outcome => outcome,
        }
    }

    fn parsed<T: std::str::FromStr>(&self) -> EngineResult<Vec<T>> {
        let mut values = Vec::with_capacity(self.members.len());
        for (cell, row) in self.cells().zip(self.members) {
            let (Cell::Integer(text) | Cell::Floating(text)) = cell else { continue };
            let plain;
            let digits: &str = if text.contains('_') {
                plain = text.replace('_', "");
                &plain
            } else {
                text
            };
            let digits = digits.trim_end_matches(['L', 'l', 'd', 'D', 'f', 'F', 'm']);
            values.push(digits.parse().map_err(|_| {
                let start = self.rows.starts[row * self.rows.width() + self.position];
                EngineError::new(ErrorCode::InvalidValue, format!("invalid constant: {text}"))
                    .at(Span::new(start, start))
            })?);
        }
        Ok(values)
    }

    fn integers(&self) -> EngineResult<ArrayRef> {
        if let SqlType::Long256 = self.column.sql_type {
            return self.texts();
        }
        let Ok(values) = self.parsed::<i64>() else {
            // An integer literal beyond LONG is DOUBLE.
            let values = self.parsed::<f64>()?;
            return self.floats(values);
        };
        self.refuse(|index| match i32::try_from(values[index]) {
            Ok(_) => SqlType::Int,
            Err(_) => SqlType::Long,
        })?;
        let valid = |value: i64| (value != i64::MIN).then_some(value);
        let longs = || values.iter().map(|value| valid(*value));
        Ok(match self.column.sql_type {
            SqlType::Byte => {
                let narrow = self.narrowed::<i8>(&values)?;
                Arc::new(Int8Array::from(narrow))
            }
            SqlType::Short => {
                let narrow = self.narrowed::<i16>(&values)?;
                Arc::new(Int16Array::from(narrow))
            }
            SqlType::Int => {
                let narrow = self.narrowed::<i32>(&values)?;
                let valid = narrow.into_iter().map(|value| (value != i32::MIN).then_some(value));
                Arc::new(valid.collect::<Int32Array>())
            }
            SqlType::Long => Arc::new(longs().collect::<Int64Array>()),
            SqlType::Float => {
                Arc::new(longs().map(|v| v.map(|v| v as f32)).collect::<Float32Array>())
            }
            SqlType::Double => {
                Arc::new(longs().map(|v| v.map(|v| v as f64)).collect::<Float64Array>())
            }
            SqlType::Date => Arc::new(longs().collect::<TimestampMillisecondArray>()),
            SqlType::Timestamp => Arc::new(longs().collect::<TimestampMicrosecondArray>()),
            SqlType::TimestampNs => Arc::new(longs().collect::<TimestampNanosecondArray>()),
            _ => self.cast(Arc::new(longs().collect::<Int64Array>()), SqlType::Long)?,
        })
    }

    fn narrowed<T: TryFrom<i64>>(&self, values: &[i64]) -> EngineResult<Vec<T>> {
        let to = self.column.sql_type.name();
        values
            .iter()
            .map(|value| {
                T::try_from(*value).map_err(|_| {
                    let from = if i32::try_from(*value).is_ok() { "INT" } else { "LONG" };
                    EngineError::new(
                        ErrorCode::InvalidValue,
                        format!("inconvertible value: {value} [{from} -> {to}]"),
                    )
                    .at(Span::new(0, 0))
                })
            })
            .collect()
    }

    fn floats(&self, values: Vec<f64>) -> EngineResult<ArrayRef> {
        self.refuse(|_| SqlType::Double)?;
        let finite = |value: f64| value.is_finite().then_some(value);
        match self.column.sql_type {
            SqlType::Double => {
                Ok(Arc::new(values.into_iter().map(finite).collect::<Float64Array>()))
            }
            SqlType::Float => {
                let narrow = values.into_iter().map(|value| {
                    let value = value as f32;
                    value.is_finite().then_some(value)
                });
                Ok(Arc::new(narrow.collect::<Float32Array>()))
            }
            SqlType::Decimal(..) => {
                let texts: StringViewArray = self
                    .cells()
                    .map(|cell| match cell {
                        Cell::Floating(text) | Cell::Integer(text) => Some(text.as_ref()),
                        _ => None,
                    })
                    .collect();
                self.cast(Arc::new(texts), SqlType::Varchar)
            }
            _ => {
                let doubles: Float64Array = values.into_iter().map(finite).collect();
                self.cast(Arc::new(doubles), SqlType::Double)
            }
        }
    }

    fn texts(&self) -> EngineResult<ArrayRef> {
        let values: StringViewArray = self
            .cells()
            .map(|cell| match cell {
                Cell::Text(text) | Cell::Integer(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        self.text_cells(Arc::new(values))
    }

    fn text_cells(&self, values: ArrayRef) -> EngineResult<ArrayRef> {
        match self.column.sql_type {
            SqlType::Varchar | SqlType::String => Ok(values),
            SqlType::Symbol => arrow::compute::cast(&values, &SqlType::Symbol.arrow_type())
                .map_err(|failure| EngineError::internal(failure.to_string())),
            _ => self.cast(values, SqlType::String).map_err(|failure| {
                let message =
                    if failure.message.contains("tuple") || failure.message.contains("[CHAR -> ") {
                        failure.message.clone()
                    } else {
                        format!("{} tuple: {}", failure.message, self.members[0])
                    };
                EngineError { message, ..failure }
            }),
        }
    }

    fn cast(&self, values: ArrayRef, from: SqlType) -> EngineResult<ArrayRef> {
        let to = self.column.sql_type;
        if from == to {
            return Ok(values);
        }
        let expr = tidemark_functions::cast(ident("value"), from, to, CastMode::Insert)
            .map_err(EngineError::from)?;
        evaluate_over(&expr, values, from)
    }

    fn refuse(&self, from: impl Fn(usize) -> SqlType) -> EngineResult<()> {
        for (index, (cell, row)) in self.cells().zip(self.members).enumerate() {
            let (Cell::Integer(text) | Cell::Floating(text)) = cell else { continue };
            let column = &self.column.name;
            refuse_conversion(from(index), self.column.sql_type, text, column).map_err(
                |failure| {
                    let start = self.rows.starts[row * self.rows.width() + self.position];
                    failure.at(Span::new(start, start))
                },
            )?;
        }
        Ok(())
    }
}

fn evaluate_over(expr: &Expr, values: ArrayRef, from: SqlType) -> EngineResult<ArrayRef> {
    use datafusion::common::DFSchema;
    use datafusion::execution::context::ExecutionProps;
    use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
    use datafusion::physical_expr::create_physical_expr;
    let rows = values.len();
    let field = Field::new("value", from.arrow_type(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values])
        .map_err(|failure| EngineError::internal(failure.to_string()))?;
    DFSchema::try_from(schema)
        .and_then(|schema| {
            let context = PhysicalPlanningContext::default();
            create_physical_expr(expr, &schema, &ExecutionProps::new(), &context)
        })
        .and_then(|physical| physical.evaluate(&batch))
        .and_then(|value| value.into_array(rows))
        .map_err(runtime_value)
}

/// A column of nulls, or of false and 0 for types without a null.
pub(crate) fn nulls(sql_type: SqlType, rows: usize) -> EngineResult<ArrayRef> {
    Ok(match sql_type {
        SqlType::Boolean => Arc::new(BooleanArray::from(vec![false; rows])),
        SqlType::Byte => Arc::new(Int8Array::from(vec![0; rows])),
        SqlType::Short => Arc::new(Int16Array::from(vec![0; rows])),
        other => arrow_array::new_null_array(&other.arrow_type(), rows),
    })
}

fn interleaved(
    kinds: &[(u8, Vec<usize>)],
    parts: &[ArrayRef],
    rows: usize,
    sql_type: SqlType,
) -> EngineResult<ArrayRef> {
    let mut indices = vec![(0, 0); rows];
    for (part, (_, members)) in kinds.iter().enumerate() {
        for (index, row) in members.iter().enumerate() {
            indices[*row] = (part, index);
        }
    }
    let refs: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let joined = arrow::compute::interleave(&refs, &indices)
        .map_err(|failure| EngineError::internal(failure.to_string()))?;
    if joined.data_type() == &sql_type.arrow_type() {
        return Ok(joined);
    }
    arrow::compute::cast(&joined, &sql_type.arrow_type())
        .map_err(|failure| EngineError::internal(failure.to_string()))
}
