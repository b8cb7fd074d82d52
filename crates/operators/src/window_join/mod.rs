//! WINDOW JOIN.

pub(crate) mod exec;
pub(crate) mod index;
pub(crate) mod node;
pub(crate) mod pairs;
pub(crate) mod plan;
pub(crate) mod side;
pub(crate) mod stream;
