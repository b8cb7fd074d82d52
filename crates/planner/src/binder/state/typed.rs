//! An expression with its SQL type, which the Arrow type alone does not determine.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, lit};
use tidemark_functions::{Argument, in_64_bits, is_json};
use tidemark_types::SqlType;

/// An expression with the SQL type assigned by the binder.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) sql_type: SqlType,
    /// The expression's value, if known at bind time.
    pub(crate) constant: Option<ScalarValue>,
    /// The parameter's number, if the expression is a parameter whose type is still unknown.
    pub(crate) parameter: Option<u32>,
}

impl Typed {
    /// A value known at bind time.
    pub(crate) fn literal(value: ScalarValue, sql_type: SqlType) -> Self {
        Self { expr: lit(value.clone()), sql_type, constant: Some(value), parameter: None }
    }

    /// An expression whose value depends on rows.
    pub(crate) fn computed(expr: Expr, sql_type: SqlType) -> Self {
        Self { expr, sql_type, constant: None, parameter: None }
    }

    /// The untyped null.
    pub(crate) fn null() -> Self {
        Self::literal(ScalarValue::Utf8View(None), SqlType::Null)
    }

    /// A boolean constant.
    pub(crate) fn truth(value: bool) -> Self {
        Self::literal(ScalarValue::Boolean(Some(value)), SqlType::Boolean)
    }

    /// Describes the expression to the function library.
    pub(crate) fn argument(&self) -> Argument {
        let json = is_json(&self.expr);
        Argument { sql_type: self.sql_type, constant: self.constant.clone(), json }
    }

    /// Whether the value is the constant null.
    pub(crate) fn is_null_constant(&self) -> bool {
        self.constant.as_ref().is_some_and(ScalarValue::is_null)
    }

    /// Whether the value is a constant string.
    pub(crate) fn is_constant_text(&self) -> bool {
        let is_text = matches!(self.sql_type, SqlType::String | SqlType::Varchar | SqlType::Char);
        is_text && self.constant.is_some()
    }

    /// The constant boolean value, if any.
    pub(crate) fn as_truth(&self) -> Option<bool> {
        match self.constant {
            Some(ScalarValue::Boolean(value)) => value,
            _ => None,
        }
    }

    /// Converts the value for a context that is wider than INT: INT arithmetic in the value is done
    /// in 64 bits and does not wrap.
    pub(crate) fn unwrapped(self) -> Self {
        match in_64_bits(&self.expr) {
            Some(wide) if self.constant.is_none() => Self::computed(wide, SqlType::Long),
            _ => self,
        }
    }

    /// Replaces null with false or 0 for types without a null in `QuestDB`.
    pub(crate) fn never_null(self) -> Self {
        let zero = match self.sql_type {
            SqlType::Boolean => lit(false),
            SqlType::Byte => lit(0_i8),
            SqlType::Short => lit(0_i16),
            _ => return self,
        };
        let test = Box::new(self.expr.clone().is_not_null());
        let case = Case::new(None, vec![(test, Box::new(self.expr))], Some(Box::new(zero)));
        Self::computed(Expr::Case(case), self.sql_type)
    }
}
