//! What the list of functions shows of each.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::reference::{self, Other, Shown};

/// A line of the function list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDoc {
    /// The name, in the letter case the reference prints.
    pub name: &'static str,
    /// The family: `numeric`, `text`, `datetime`, …
    pub family: &'static str,
    /// Where it may stand.
    pub kind: FunctionKind,
    /// Signatures such as `round(DOUBLE, INT) -> DOUBLE`.
    pub signatures: Vec<String>,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Whether its value may differ from one execution to the next.
    pub changes: bool,
    /// What a SELECT of it may say.
    pub example: &'static str,
}

/// Where a function may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// In any expression.
    Scalar,
    /// Over the rows of a group or a window.
    Aggregate,
    /// Before OVER alone.
    Window,
    /// In FROM.
    Table,
}

static SHOWN_BY_NAME: LazyLock<HashMap<&'static str, &'static Shown>> =
    LazyLock::new(|| reference::SHOWN.iter().map(|shown| (shown.name, shown)).collect());

/// What the list shows of a scalar function or an aggregate.
pub(crate) fn shown_of(name: &str) -> Option<&'static Shown> {
    SHOWN_BY_NAME.get(name).copied()
}

pub(crate) fn written_forms(name: &str, forms: &str) -> Vec<String> {
    forms.split("; ").filter(|form| !form.is_empty()).map(|form| format!("{name}{form}")).collect()
}

/// A line of the list for what is no scalar function and no aggregate.
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
