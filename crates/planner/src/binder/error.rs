//! Errors in the dialect's vocabulary, at their positions.

use datafusion::error::DataFusionError;
use tidemark_types::{EngineError, ErrorCode, Span};

/// The engine's span of a tree's span.
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

/// What is said of a column that is not there, before its name.
pub(crate) const INVALID_COLUMN: &str = "Invalid column: ";

/// `Invalid column: x`.
pub(crate) fn invalid_column(name: &str, position: tidemark_ast::Span) -> EngineError {
    at(ErrorCode::ColumnNotFound, format!("{INVALID_COLUMN}{name}"), position)
}

/// `table does not exist [table=x]`.
pub(crate) fn no_table(name: &tidemark_ast::Name) -> EngineError {
    at(ErrorCode::TableNotFound, format!("table does not exist [table={}]", name.text), name.span)
}

/// Something the grammar has and the engine has not yet.
pub(crate) fn not_supported(what: &str, position: tidemark_ast::Span) -> EngineError {
    at(ErrorCode::NotSupported, format!("{what} not supported"), position)
}

/// An error of plan building: our expressions are typed before they get there, so it is ours.
pub(crate) fn plan(error: DataFusionError) -> EngineError {
    tidemark_operators::from_datafusion(error)
}
