//! Infix and prefix operators and the expressions they build.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion_expr::{Expr, Volatility};
use tidemark_ast::BinaryOperator;
use tidemark_types::SqlType;

use crate::native::{Kernel, Native, call};
use crate::resolve::{BuildOperator, ResolvedOperator};

/// Returns the name of the function that implements an operator.
pub(crate) fn function_name(operator: BinaryOperator) -> &'static str {
    use BinaryOperator as Op;
    match operator {
        Op::Add => "add",
        Op::Subtract => "subtract",
        Op::Multiply => "multiply",
        Op::Divide => "divide",
        Op::Modulo => "modulo",
        Op::BitAnd => "bit_and_of",
        Op::BitOr => "bit_or_of",
        Op::BitXor => "bit_xor_of",
        _ => "compare",
    }
}

/// Wraps a kernel as an operator.
pub(crate) fn operator(
    name: &'static str,
    types: (SqlType, SqlType, SqlType),
    variant: &str,
    kernel: Kernel,
) -> ResolvedOperator {
    let (left_type, right_type, return_type) = types;
    let variant = format!("{variant},{},{}", left_type.name(), right_type.name());
    let types = (vec![left_type, right_type], return_type);
    let udf = Native::udf(name, variant, types, Volatility::Immutable, kernel);
    let build: BuildOperator = Arc::new(move |left, right| call(&udf, vec![left, right]));
    ResolvedOperator { left_type, right_type, return_type, build }
}

/// Builds an operator with a constant result that does not depend on the operands.
pub(crate) fn always(left: SqlType, right: SqlType, value: bool) -> ResolvedOperator {
    ResolvedOperator {
        left_type: left,
        right_type: right,
        return_type: SqlType::Boolean,
        build: Arc::new(move |_, _| Expr::Literal(ScalarValue::Boolean(Some(value)), None)),
    }
}
