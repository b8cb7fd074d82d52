//! Infix and prefix operators, and the expression that one of them becomes.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion_expr::{Expr, Volatility};
use tidemark_types::SqlType;

use crate::native::{Kernel, Native, call};
use crate::resolve::{BuildOperator, ResolvedOperator};

/// Infix operators; the mirror of the statement tree's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`
    Matches,
    /// `!~`
    NotMatches,
    /// `LIKE`
    Like,
    /// `NOT LIKE`
    NotLike,
    /// `ILIKE`
    ILike,
    /// `NOT ILIKE`
    NotILike,
    /// `<<`
    ContainedBy,
    /// `<<=`
    ContainedByOrEqual,
    /// `>>`
    Contains,
    /// `>>=`
    ContainsOrEqual,
}

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `NOT`
    Not,
}

impl BinaryOp {
    /// The operator as error messages show it.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Matches => "~",
            Self::NotMatches => "!~",
            Self::Like => "like",
            Self::NotLike => "not like",
            Self::ILike => "ilike",
            Self::NotILike => "not ilike",
            Self::ContainedBy => "<<",
            Self::ContainedByOrEqual => "<<=",
            Self::Contains => ">>",
            Self::ContainsOrEqual => ">>=",
        }
    }

    pub(crate) fn function_name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::Modulo => "modulo",
            Self::BitAnd => "bit_and_of",
            Self::BitOr => "bit_or_of",
            Self::BitXor => "bit_xor_of",
            _ => "compare",
        }
    }
}

/// Makes an operator of a kernel.
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

/// An operator whose result is known whatever the operands are.
pub(crate) fn always(left: SqlType, right: SqlType, value: bool) -> ResolvedOperator {
    ResolvedOperator {
        left_type: left,
        right_type: right,
        return_type: SqlType::Boolean,
        build: Arc::new(move |_, _| Expr::Literal(ScalarValue::Boolean(Some(value)), None)),
    }
}
