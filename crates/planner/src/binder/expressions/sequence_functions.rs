//! `lastval` and `currval`: the sequence values that SERIAL and IDENTITY columns generated in the
//! session.

use std::sync::Arc;

use arrow_array::Int64Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use tidemark_ast::Span;
use tidemark_border::SequenceValue;
use tidemark_functions::{CastMode, without_schema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::expressions::registered::Registered;
use crate::binder::{Binder, Typed};

impl Binder<'_> {
    /// Binds a call of `lastval` or `currval`; `None` for other names.
    pub(crate) fn sequence_call(
        &mut self,
        name: &str,
        arguments: &[Typed],
        at: Span,
    ) -> EngineResult<Option<Typed>> {
        let name = match (without_schema(name), arguments) {
            ("lastval", []) => "lastval",
            ("currval", [_]) => "currval",
            _ => return Ok(None),
        };
        let mut exprs = Vec::with_capacity(1);
        for argument in arguments.iter().cloned() {
            // `'t_id_seq'::regclass` is already converted to a number.
            let text = if argument.sql_type.is_integer() {
                self.registered_name(argument, Registered::Class, at)?
            } else {
                self.cast(argument, SqlType::String, CastMode::Explicit, at)?
            };
            exprs.push(text.expr);
        }
        let numbers = self.context.session_sequence_values().iter().map(Number::of);
        let function = SequenceFunction {
            name,
            numbers: numbers.collect::<EngineResult<_>>()?,
            signature: Signature::one_of(
                vec![TypeSignature::Nullary, TypeSignature::Any(1)],
                Volatility::Volatile,
            ),
        };
        Ok(Some(Typed::computed(ScalarUDF::from(function).call(exprs), SqlType::Long)))
    }
}

/// The last value that a sequence generated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Number {
    sequence: String,
    value: i64,
}

impl Number {
    fn of(sequence_values: &SequenceValue) -> EngineResult<Self> {
        let value = sequence_values.value.parse();
        let value = value.map_err(|_| EngineError::internal("a sequence value is not a number"))?;
        Ok(Self { sequence: sequence_values.sequence.clone(), value })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SequenceFunction {
    name: &'static str,
    /// The last value of each sequence, in the order in which the values were generated.
    numbers: Arc<[Number]>,
    signature: Signature,
}

impl SequenceFunction {
    /// The last value of a sequence, which is named as `t_id_seq` or `public."t_id_seq"`.
    fn current(&self, text: &str) -> Result<i64> {
        let name = text.rsplit('.').next().unwrap_or_default().trim_matches('"');
        let found = self.numbers.iter().find(|one| identifier::same(&one.sequence, name));
        found
            .map(|one| one.value)
            .ok_or_else(|| undefined(&format!("currval of sequence {text:?}")))
    }
}

fn undefined(what: &str) -> DataFusionError {
    let message = format!("{what} is not yet defined in this session");
    DataFusionError::External(Box::new(EngineError::new(ErrorCode::InvalidState, message)))
}

impl ScalarUDFImpl for SequenceFunction {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let values: Int64Array = match args.args.first() {
            Some(names) => {
                let names = names.to_array(rows)?;
                let names = names.as_string_view();
                let value = |name: Option<&str>| name.map(|name| self.current(name)).transpose();
                names.iter().map(value).collect::<Result<_>>()?
            }
            None if rows == 0 => Int64Array::from(Vec::<i64>::new()),
            None => {
                let last = self.numbers.last().ok_or_else(|| undefined("lastval"))?;
                std::iter::repeat_n(last.value, rows).collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}
