//! Base of the binder: statement state, relations, scopes, typed expressions. These modules bind
//! nothing.

pub(crate) mod accesses;
pub(crate) mod binder;
pub(crate) mod common_table;
pub(crate) mod conditions;
pub(crate) mod list_rows;
pub(crate) mod named_windows;
pub(crate) mod outer_rows;
pub(crate) mod parameters;
pub(crate) mod relation;
pub(crate) mod scope;
pub(crate) mod typed;
pub(crate) mod views;
pub(crate) mod work;
