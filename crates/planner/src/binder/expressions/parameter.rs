//! `$1` as an expression, with its declared type or the type that its context requires, and its
//! value if known.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, lit};
use tidemark_ast::{Node, NodeId, Span, UnaryOperator};
use tidemark_functions::CastMode;
use tidemark_types::{
    EngineError, EngineResult, ErrorCode, ParameterItems, ParameterValue, SqlType,
};

use crate::binder::expressions::constant;
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds `$index`, whose type has not been inferred yet.
    pub(crate) fn parameter(&mut self, index: u32, position: Span) -> EngineResult<Typed> {
        self.parameter_uses.total += 1;
        let given = self.context.parameter_values.as_ref().map(Vec::len);
        if given.is_some_and(|given| given < index as usize) {
            let is_question_mark = position.end.saturating_sub(position.start) == 1;
            return Err(if is_question_mark {
                error::invalid_column("?", position)
            } else {
                not_provided()
            });
        }
        if let Some(declared) = *self.parameters.slot(index) {
            return self.parameter_of_type(index, declared);
        }
        Ok(Typed {
            expr: Expr::Placeholder(Placeholder::new_with_field(format!("${index}"), None)),
            sql_type: SqlType::Null,
            constant: None,
            parameter: Some(index),
        })
    }

    /// Gives an untyped parameter this type; returns any other expression unchanged.
    pub(crate) fn settled(&mut self, typed: Typed, target: SqlType) -> EngineResult<Typed> {
        let Some(index) = typed.parameter else { return Ok(typed) };
        let Expr::Negative(inner) = typed.expr else {
            let settled = self.parameters.settle(index, target);
            return self.parameter_of_type(index, settled);
        };
        let is_number =
            target.is_integer() || target.is_floating() || matches!(target, SqlType::Decimal(..));
        let target = if is_number { target } else { SqlType::Double };
        let operand = self.settled(Typed { expr: *inner, ..typed }, target)?;
        self.prefix_operator(UnaryOperator::Minus, operand, Span::default())
    }

    /// In a cast to an integer type, replaces an untyped parameter with the value that the client
    /// sent. The cast can then truncate a value that a conversion as in INSERT would reject. Until
    /// values are known, the parameter has the cast's target type.
    pub(crate) fn sent_integer(&mut self, typed: Typed, to: SqlType) -> Typed {
        let Some(index) = typed.parameter.filter(|_| to.is_integer()) else { return typed };
        let is_plain = matches!(typed.expr, Expr::Placeholder(_));
        let position = (index as usize).saturating_sub(1);
        let values = self.context.parameter_values.as_ref();
        let Some(value) = values.and_then(|values| values.get(position)).filter(|_| is_plain)
        else {
            return typed;
        };
        let (scalar, sql_type) = match value {
            // A string that is not an integer is rejected later as an invalid integer.
            ParameterValue::Text(text) => match text.parse() {
                Ok(number) => (ScalarValue::Int64(Some(number)), SqlType::Long),
                Err(_) => return typed,
            },
            ParameterValue::Short(_) | ParameterValue::Int(_) | ParameterValue::Long(_) => {
                (scalar_of(value), value.sql_type())
            }
            _ => return typed,
        };
        if self.parameters.settle(index, to) != to {
            return typed;
        }
        Typed { expr: lit(scalar.clone()), sql_type, constant: Some(scalar), parameter: None }
    }

    /// Whether a parameter is null, or has no value yet.
    pub(crate) fn is_absent(&self, index: u32) -> bool {
        let position = (index as usize).saturating_sub(1);
        let value = self.context.parameter_values.as_ref().and_then(|values| values.get(position));
        value.is_none_or(|value| matches!(value, ParameterValue::Null))
    }

    /// The parameter that a node consists of, either directly or through a variable; `None` for
    /// other nodes.
    pub(crate) fn parameter_at(&self, id: NodeId) -> EngineResult<Option<u32>> {
        let id = match self.node(id)? {
            Node::Variable { name } => self.variable_value(name).map_or(id, |value| value.node),
            _ => id,
        };
        match self.node(id)? {
            Node::Parameter { index } => Ok(Some(*index)),
            _ => Ok(None),
        }
    }

    /// The elements of a parameter sent as an array.
    pub(crate) fn items_sent(&mut self, index: u32) -> Option<ParameterItems> {
        let position = (index as usize).saturating_sub(1);
        let values = self.context.parameter_values.as_ref()?;
        let ParameterValue::Items(items) = values.get(position)? else { return None };
        self.parameter_uses.total += 1;
        Some(items.clone())
    }

    /// Whether a parameter is an array or can become an array.
    pub(crate) fn accepts_array(&mut self, index: u32) -> bool {
        self.parameters.is_array(index) || self.parameters.slot(index).is_none()
    }

    /// Gives an untyped parameter a `PostgreSQL` array type, which is stored as text.
    pub(crate) fn settled_array(
        &mut self,
        typed: Typed,
        array: &'static str,
    ) -> EngineResult<Typed> {
        if let Some(index) = typed.parameter {
            self.parameters.make_array(index, array);
        }
        self.settled(typed, SqlType::Varchar)
    }

    fn parameter_of_type(&mut self, index: u32, sql_type: SqlType) -> EngineResult<Typed> {
        let position = (index as usize).saturating_sub(1);
        let Some(values) = &self.context.parameter_values else {
            let field = arrow_schema::Field::new("", sql_type.arrow_type(), true);
            let name = format!("${index}");
            let placeholder = Placeholder::new_with_field(name, Some(field.into()));
            return Ok(Typed {
                expr: Expr::Placeholder(placeholder),
                sql_type,
                constant: None,
                parameter: None,
            });
        };
        let value = values.get(position).unwrap_or(&ParameterValue::Null);
        let scalar = scalar_of(value);
        let literal = Typed {
            expr: lit(scalar.clone()),
            sql_type: value.sql_type(),
            constant: Some(scalar),
            parameter: None,
        };
        let literal = if is_epoch(&literal, sql_type) {
            self.cast(literal, SqlType::Long, CastMode::Insert, Span::default())?
        } else {
            literal
        };
        let is_text = literal.sql_type.is_text();
        match self.cast(literal.clone(), sql_type, CastMode::Insert, Span::default()) {
            // No direct conversion exists, so convert the value's string form instead.
            Err(failure) if failure.code == ErrorCode::TypeMismatch && !is_text => {
                let explicit = CastMode::Explicit;
                let text = self.cast(literal, SqlType::Varchar, explicit, Span::default())?;
                self.cast(text, sql_type, CastMode::Insert, Span::default())
            }
            outcome => outcome,
        }
    }
}

/// Whether a string is an epoch value in microseconds or in the unit of another time type. Clients
/// that do not declare types send numbers as text. A string with fewer than ten digits, such as a
/// year, is not an epoch value.
pub(crate) fn is_epoch(text: &Typed, sql_type: SqlType) -> bool {
    const MIN_DIGITS: usize = 10;
    let is_time = sql_type.is_timestamp() || sql_type == SqlType::Date;
    let digits = text.constant.as_ref().and_then(constant::as_text).filter(|_| is_time);
    digits.is_some_and(|digits| {
        digits.len() >= MIN_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The value as a constant with its own type; null becomes a null string.
pub(crate) fn scalar_of(value: &ParameterValue<'_>) -> ScalarValue {
    match value {
        ParameterValue::Null => ScalarValue::Utf8View(None),
        ParameterValue::Text(text) => ScalarValue::Utf8View(Some(text.as_ref().to_owned())),
        ParameterValue::Items(items) => ScalarValue::Utf8View(Some(items.text())),
        ParameterValue::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        ParameterValue::Short(value) => ScalarValue::Int16(Some(*value)),
        ParameterValue::Int(value) => ScalarValue::Int32(Some(*value)),
        ParameterValue::Long(value) => ScalarValue::Int64(Some(*value)),
        ParameterValue::Float(value) => ScalarValue::Float32(Some(*value)),
        ParameterValue::Double(value) => ScalarValue::Float64(Some(*value)),
        ParameterValue::Timestamp(micros) => ScalarValue::TimestampMicrosecond(Some(*micros), None),
        ParameterValue::Uuid(bytes) => ScalarValue::FixedSizeBinary(16, Some(bytes.to_vec())),
        ParameterValue::Binary(bytes) => ScalarValue::LargeBinary(Some(bytes.to_vec())),
    }
}

/// The error for a parameter without a value; as in `QuestDB`, it has no position.
pub(crate) fn not_provided() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "bind variable service is not provided")
}
