//! What runs beside transactions: checkpoints, and files rewritten without invisible data.

pub(crate) mod background;
pub(crate) mod checkpoint;
pub(crate) mod fold;
pub(crate) mod report;
pub(crate) mod shrink;
