//! From a physical plan to chunks of encoded rows.
//!
//! `source` joins the plan's partitions in order, `window` cuts out the rows asked for, `cursor`
//! encodes them, `stream` hands chunks over with back-pressure.

pub(crate) mod cursor;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod window;
