//! Binding errors with positions, worded as in `QuestDB`.

use datafusion::error::DataFusionError;
use tidemark_types::{EngineError, ErrorCode, Span};

/// Converts a tree span to an engine span.
pub(crate) fn span(of: tidemark_ast::Span) -> Span {
    Span::new(of.start, of.end)
}

/// An error at a token.
pub(crate) fn at(
    code: ErrorCode,
    message: impl Into<String>,
    position: tidemark_ast::Span,
) -> EngineError {
    EngineError::new(code, message).at(span(position))
}

/// Prefix of the unknown-column message.
pub(crate) const INVALID_COLUMN: &str = "Invalid column: ";

/// The error `Invalid column: x`.
pub(crate) fn invalid_column(name: &str, position: tidemark_ast::Span) -> EngineError {
    at(ErrorCode::ColumnNotFound, format!("{INVALID_COLUMN}{name}"), position)
}

/// The error `table does not exist [table=x]`.
pub(crate) fn no_table(name: &tidemark_ast::Name) -> EngineError {
    at(ErrorCode::TableNotFound, format!("table does not exist [table={}]", name.text), name.span)
}

/// The error for syntax that is parsed but not yet supported.
pub(crate) fn not_supported(what: &str, position: tidemark_ast::Span) -> EngineError {
    at(ErrorCode::NotSupported, format!("{what} not supported"), position)
}

/// Converts a plan-building error. It is an internal error, because expressions have already been
/// type-checked.
pub(crate) fn plan(error: DataFusionError) -> EngineError {
    tidemark_operators::from_datafusion(error)
}
