//! Function list entries.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::reference::{self, Other, Shown};

/// A function list entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDoc {
    /// The name, in `QuestDB`'s letter case.
    pub name: &'static str,
    /// The family, such as `numeric`, `text` or `datetime`.
    pub family: &'static str,
    /// The SQL context in which the function is allowed.
    pub kind: FunctionKind,
    /// The signatures, such as `round(DOUBLE, INT) -> DOUBLE`.
    pub signatures: Vec<String>,
    /// One-line summary.
    pub summary: &'static str,
    /// Whether the function's result may differ between executions.
    pub changes: bool,
    /// An example expression for SELECT.
    pub example: &'static str,
}

/// The SQL context in which a function is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// Allowed in any expression.
    Scalar,
    /// Computed from the rows in a group or window.
    Aggregate,
    /// Allowed only before OVER.
    Window,
    /// Allowed in FROM.
    Table,
}

static SHOWN_BY_NAME: LazyLock<HashMap<&'static str, &'static Shown>> =
    LazyLock::new(|| reference::SHOWN.iter().map(|shown| (shown.name, shown)).collect());

/// Returns a scalar function's or aggregate's documented signatures and example.
pub(crate) fn shown_of(name: &str) -> Option<&'static Shown> {
    SHOWN_BY_NAME.get(name).copied()
}

pub(crate) fn written_forms(name: &str, forms: &str) -> Vec<String> {
    forms.split("; ").filter(|form| !form.is_empty()).map(|form| format!("{name}{form}")).collect()
}

/// Builds the list entry for a window or table function.
pub(crate) fn other(one: &Other, family: &'static str, kind: FunctionKind) -> FunctionDoc {
    FunctionDoc {
        name: one.shown.name,
        family,
        kind,
        signatures: written_forms(one.shown.name, one.shown.forms),
        summary: one.summary,
        changes: kind == FunctionKind::Table,
        example: one.shown.example,
    }
}
