//! GROUP BY with many distinct keys, in partitions that fit the cache.

pub(crate) mod exec;
mod sample;
mod spread;
