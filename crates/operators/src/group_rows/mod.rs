//! GROUP BY with many distinct keys, using partitions that fit in the cache.

pub(crate) mod exec;
mod sample;
mod spread;
