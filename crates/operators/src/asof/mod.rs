//! ASOF JOIN and LT JOIN.

pub(crate) mod exec;
pub(crate) mod gather;
pub(crate) mod keys;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod right;
pub(crate) mod sides;
pub(crate) mod stream;
