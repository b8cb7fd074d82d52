//! What runs beside transactions: checkpoints, and files written anew without what nobody sees.

pub(crate) mod background;
pub(crate) mod checkpoint;
pub(crate) mod fold;
pub(crate) mod shrink;
