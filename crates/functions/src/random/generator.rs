//! Random generator for one batch.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::column::Call;

/// Number of calls so far. It ensures that no two generators start in the same state.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Creates the generator for one batch, seeded from the statement's generator if it has a seed.
pub(super) fn generator(call: &Call<'_>) -> ChaCha8Rng {
    if let Some(random) = call.random {
        let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
        return ChaCha8Rng::from_rng(&mut *random);
    }
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_nanos() as u64);
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    ChaCha8Rng::seed_from_u64(nanos ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
