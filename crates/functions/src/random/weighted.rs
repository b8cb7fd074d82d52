//! Weighted random words.

use std::sync::Arc;

use datafusion_expr::Volatility;
use rand::Rng;
use tidemark_types::SqlType::Symbol;

use super::generator::generator;
use crate::cast::symbols;
use crate::column::{Call, build_text};
use crate::native::Kernel;
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::{mismatch, resolved};

/// Words and their weights, which are stored as cumulative sums.
struct WeightedWords {
    words: Vec<Option<String>>,
    sums: Vec<f64>,
}

impl WeightedWords {
    fn new(words: Vec<Option<String>>, weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let sums = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        Self { words, sums }
    }

    /// Returns a kernel that draws words as SYMBOLs.
    fn kernel(self) -> Kernel {
        Arc::new(move |call: &Call<'_>| {
            let mut random = generator(call);
            let total = self.sums.last().copied().unwrap_or(0.0);
            let words = build_text(call.rows, |_, out| {
                let point = random.random::<f64>() * total;
                let at = self.sums.partition_point(|sum| *sum <= point);
                let word = self.words.get(at).and_then(Option::as_ref);
                word.inspect(|word| out.push_str(word)).is_some()
            })?;
            symbols(&words)
        })
    }
}

/// Resolves `rnd_symbol_weighted(symbol, weight, symbol, weight, …)`.
pub(super) fn weighted_symbol(
    name: &str,
    arguments: &[Argument],
) -> Result<ResolvedScalar, ResolveError> {
    if arguments.is_empty() || !arguments.len().is_multiple_of(2) {
        return Err(mismatch(name, [0, 2].into_iter(), arguments));
    }
    let (mut words, mut weights) = (Vec::new(), Vec::new());
    for (pair, both) in arguments.chunks_exact(2).enumerate() {
        words.push(constant_word(&both[0], 2 * pair)?);
        match both[1].double() {
            Some(weight) if weight >= 0.0 => weights.push(weight),
            _ => {
                let message = "weight must be non-negative".into();
                return Err(ResolveError::InvalidArgument { index: 2 * pair + 1, message });
            }
        }
    }
    if weights.iter().all(|weight| *weight == 0.0) {
        let message = "at least one weight must be positive".into();
        return Err(ResolveError::InvalidArgument { index: 1, message });
    }
    let kernel = WeightedWords::new(words, weights.into_iter()).kernel();
    let types = arguments.iter().map(|argument| argument.sql_type).collect();
    Ok(resolved("rnd_symbol_weighted", Volatility::Volatile, types, Symbol, arguments, kernel))
}

fn constant_word(argument: &Argument, index: usize) -> Result<Option<String>, ResolveError> {
    match argument.text() {
        Some(word) => Ok(Some(word)),
        None if argument.is_null() => Ok(None),
        None => {
            let message = "constant text expected".into();
            Err(ResolveError::InvalidArgument { index, message })
        }
    }
}

/// Maximum number of symbols that `count` may request.
const MAX_SYMBOLS: i64 = 1_000_000;

/// Resolves `rnd_symbol_zipf(symbol, …, alpha)` and `rnd_symbol_zipf(count, alpha)`. The frequency
/// of the n-th symbol is proportional to n to the power of minus alpha.
pub(super) fn zipf_symbol(
    name: &str,
    arguments: &[Argument],
) -> Result<ResolvedScalar, ResolveError> {
    let [first @ .., alpha] = arguments else {
        return Err(mismatch(name, [0, 2].into_iter(), arguments));
    };
    let Some(exponent) = alpha.double().filter(|alpha| *alpha > 0.0) else {
        let message = "alpha must be positive".into();
        return Err(ResolveError::InvalidArgument { index: first.len(), message });
    };
    let words = match first {
        [] => return Err(mismatch(name, [0, 2].into_iter(), arguments)),
        [count] if count.sql_type.is_integer() => match count.integer() {
            Some(count @ 1..=MAX_SYMBOLS) => {
                (0..count).map(|number| Some(format!("sym{number}"))).collect()
            }
            Some(count) if count > MAX_SYMBOLS => {
                let message = format!("symbol count must not exceed {MAX_SYMBOLS}");
                return Err(ResolveError::InvalidArgument { index: 0, message });
            }
            _ => {
                let message = "symbol count must be positive".into();
                return Err(ResolveError::InvalidArgument { index: 0, message });
            }
        },
        words => words
            .iter()
            .enumerate()
            .map(|(index, word)| constant_word(word, index))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let weights = (1..=words.len()).map(|rank| (rank as f64).powf(-exponent));
    let kernel = WeightedWords::new(words, weights.collect::<Vec<_>>().into_iter()).kernel();
    let types = arguments.iter().map(|argument| argument.sql_type).collect();
    Ok(resolved("rnd_symbol_zipf", Volatility::Volatile, types, Symbol, arguments, kernel))
}
