//! GROUP BY of many different keys, in parts that are small enough for the cache.

pub(crate) mod exec;
mod sample;
mod spread;
