//! Conditions on a single symbol column, as the set of keys that pass. If a condition names its
//! symbols, they are looked up, regardless of the number of symbols. Other conditions are evaluated
//! once on the column's dictionary.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{Field, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, IsNullExpr, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use tidemark_kernels::{matching, matching_keys};
use tidemark_storage::SymbolDictionary;
use tidemark_types::SYMBOL_EQUAL;

use super::exec::SliceScan;

/// Maximum number of keys that are compared with each row's key one by one.
const FEW: usize = 8;

/// The keys of a symbol column that pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PassingKeys {
    /// These distinct keys, and null if `null` is set.
    Few { keys: Vec<i32>, null: bool },
    /// One flag per key; the last flag is for null.
    Flags(Vec<bool>),
}

impl PassingKeys {
    /// Number of keys that pass.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Few { keys, null } => keys.len() + usize::from(*null),
            Self::Flags(flags) => flags.iter().filter(|&&passes| passes).count(),
        }
    }

    /// Returns the keys that pass, if there are only a few and they do not include null.
    pub(super) fn few(&self) -> Option<&[i32]> {
        match self {
            Self::Few { keys, null: false } => Some(keys),
            _ => None,
        }
    }

    fn passes(&self, key: i32) -> bool {
        match self {
            Self::Few { keys, .. } => keys.contains(&key),
            Self::Flags(flags) => flags[..flags.len() - 1].get(key as usize) == Some(&true),
        }
    }

    fn passes_null(&self) -> bool {
        match self {
            Self::Few { null, .. } => *null,
            Self::Flags(flags) => flags.last() == Some(&true),
        }
    }

    /// Returns the keys that pass both tests.
    pub(super) fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Few { keys, null }, other) => other.of_few(keys, null),
            (all, Self::Few { keys, null }) => all.of_few(keys.clone(), *null),
            (Self::Flags(mut flags), Self::Flags(others)) => {
                flags.iter_mut().zip(others).for_each(|(all, one)| *all &= one);
                Self::Flags(flags)
            }
        }
    }

    /// Returns which of a few keys pass.
    fn of_few(&self, mut keys: Vec<i32>, null: bool) -> Self {
        keys.retain(|&key| self.passes(key));
        Self::Few { keys, null: null && self.passes_null() }
    }

    /// Returns the keys named by a predicate; `None` if other keys may pass as well.
    fn named(symbols: &SymbolDictionary, predicate: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let (mut keys, mut null) = (Vec::new(), false);
        let mut left = vec![predicate];
        while let Some(predicate) = left.pop() {
            if let Some(both) = predicate.downcast_ref::<BinaryExpr>()
                && *both.op() == Operator::Or
            {
                left.extend([both.left(), both.right()]);
                continue;
            }
            match Named::by(predicate)? {
                Named(Some(text)) => keys.extend(symbols.lookup(text).map(|key| key as i32)),
                Named(None) => null = true,
            }
        }
        keys.sort_unstable();
        keys.dedup();
        if keys.len() <= FEW {
            return Some(Self::Few { keys, null });
        }
        let mut flags = vec![false; symbols.len() + 1];
        for key in keys {
            flags[key as usize] = true;
        }
        flags[symbols.len()] = null;
        Some(Self::Flags(flags))
    }
}

/// The symbol that a predicate compares its column with; `None` for null.
struct Named<'a>(Option<&'a str>);

impl<'a> Named<'a> {
    /// Returns the symbol, or null for `IS NULL`. Returns `None` if the predicate is neither `IS
    /// NULL` on a column nor a comparison of a column with a string.
    fn by(predicate: &'a Arc<dyn PhysicalExpr>) -> Option<Self> {
        if let Some(is_null) = predicate.downcast_ref::<IsNullExpr>() {
            return is_null.arg().is::<Column>().then_some(Self(None));
        }
        let call = predicate.downcast_ref::<ScalarFunctionExpr>()?;
        let [column, text] = call.args() else { return None };
        if call.name() != SYMBOL_EQUAL || !column.is::<Column>() {
            return None;
        }
        match text.downcast_ref::<Literal>()?.value() {
            ScalarValue::Utf8View(text)
            | ScalarValue::Utf8(text)
            | ScalarValue::LargeUtf8(text) => Some(Self(text.as_deref())),
            _ => None,
        }
    }
}

/// Replaces the placeholder strings in a condition with other symbols. Returns `None` if a
/// placeholder is used anywhere other than in a comparison with a symbol column.
pub fn renamed<'n>(
    expr: &Arc<dyn PhysicalExpr>,
    names: &mut dyn FnMut(&str) -> Option<&'n str>,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    if let Some(Named(Some(text))) = Named::by(expr) {
        let Some(name) = names(text) else { return Ok(Some(Arc::clone(expr))) };
        let name = ScalarValue::Utf8View(Some(name.to_owned()));
        let mut arguments: Vec<_> = expr.children().into_iter().cloned().collect();
        arguments.pop();
        arguments.push(Arc::new(Literal::new(name)));
        return Arc::clone(expr).with_new_children(arguments).map(Some);
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        let is_name =
            literal.value().try_as_str().flatten().is_some_and(|text| names(text).is_some());
        return Ok((!is_name).then(|| Arc::clone(expr)));
    }
    let children = expr.children();
    let mut others = Vec::with_capacity(children.len());
    for child in &children {
        let Some(other) = renamed(child, names)? else { return Ok(None) };
        others.push(other);
    }
    if children.iter().zip(&others).all(|(child, other)| Arc::ptr_eq(child, other)) {
        return Ok(Some(Arc::clone(expr)));
    }
    Arc::clone(expr).with_new_children(others).map(Some)
}

/// A condition on a symbol column.
#[derive(Debug)]
pub(super) struct SymbolTest {
    /// Column of the scan.
    pub(super) column: usize,
    pub(super) passing: PassingKeys,
}

impl SymbolTest {
    /// Compiles a predicate if it depends on a single symbol column only.
    pub(super) fn new(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let columns = collect_columns(predicate);
        let mut columns = columns.iter();
        let (Some(column), None) = (columns.next(), columns.next()) else { return None };
        let symbols = scan.symbols(column.index())?;
        let index = column.index();
        if let Some(passing) = PassingKeys::named(&symbols, predicate) {
            return Some(Self { column: index, passing });
        }
        // If there are more symbols than rows, evaluating the rows is cheaper.
        if is_volatile(predicate) || symbols.len() > scan.row_count() {
            return None;
        }
        // The query must not fail if the evaluation fails for a symbol that no row has.
        let flags = evaluate_on(&symbols, column.name(), predicate).ok()?;
        Some(Self { column: index, passing: PassingKeys::Flags(flags) })
    }

    /// Returns which of these cells pass.
    pub(super) fn evaluate(&self, cells: &[ArrayRef]) -> Result<BooleanBuffer> {
        let symbols = cells.first().and_then(|cells| cells.as_dictionary_opt::<Int32Type>());
        let symbols = symbols.ok_or_else(|| internal_datafusion_err!("expected a symbol"))?;
        let codes = symbols.keys().values();
        let words = match &self.passing {
            PassingKeys::Few { keys, .. } => matching_few(codes, keys),
            PassingKeys::Flags(flags) => matching_flags(codes, &flags[..flags.len() - 1]),
        };
        let found = BooleanBuffer::new(Buffer::from_vec(words), 0, codes.len());
        let nulls = symbols.keys().nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(match nulls {
            Some(nulls) if self.passing.passes_null() => &found | &!nulls.inner(),
            Some(nulls) => &found & nulls.inner(),
            None => found,
        })
    }
}

fn matching_few(codes: &[i32], keys: &[i32]) -> Vec<u64> {
    match *keys {
        [] => vec![0; codes.len().div_ceil(64)],
        [only] => matching(codes, |code| code == only),
        [one, other] => matching(codes, |code| code == one || code == other),
        [first, ..] => {
            let mut all = [first; FEW];
            all[..keys.len()].copy_from_slice(keys);
            // Compares each code with all keys without branches.
            matching(codes, |code| all.iter().filter(|&&key| key == code).count() > 0)
        }
    }
}

fn matching_flags(codes: &[i32], flags: &[bool]) -> Vec<u64> {
    let mut passing = (0..flags.len()).filter(|&key| flags[key]);
    match (passing.next(), passing.next()) {
        (None, _) => matching_few(codes, &[]),
        (Some(only), None) => matching_few(codes, &[only as i32]),
        _ => matching_keys(codes, flags),
    }
}

/// Evaluates the predicate for every symbol, then for null.
fn evaluate_on(
    symbols: &SymbolDictionary,
    name: &str,
    predicate: &Arc<dyn PhysicalExpr>,
) -> Result<Vec<bool>> {
    let keys = (0..symbols.len() as i32).map(Some).chain([None]);
    let column = DictionaryArray::try_new(keys.collect::<Int32Array>(), symbols.values())?;
    let field = Field::new(name, column.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(column)])?;
    let first: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, 0));
    let moved = Arc::clone(predicate)
        .transform_up(|expr| {
            Ok(if expr.is::<Column>() {
                Transformed::yes(Arc::clone(&first))
            } else {
                Transformed::no(expr)
            })
        })
        .data()?;
    let answers = moved.evaluate(&batch)?.into_array(batch.num_rows())?;
    let answers = answers.as_boolean_opt();
    let answers = answers.ok_or_else(|| internal_datafusion_err!("expected a condition"))?;
    Ok(answers.iter().map(|answer| answer == Some(true)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_conditions_keep_only_keys_that_satisfy_both() {
        let few = |keys: &[i32], null| PassingKeys::Few { keys: keys.to_vec(), null };
        let flags = PassingKeys::Flags(vec![true, false, true, true]);
        assert_eq!(few(&[0, 1, 2], true).and(&flags), few(&[0, 2], true));
        assert_eq!(flags.clone().and(&few(&[1, 2], false)), few(&[2], false));
        assert_eq!(few(&[1, 2], true).and(&few(&[2, 5], false)), few(&[2], false));
        let others = PassingKeys::Flags(vec![true, true, false, false]);
        assert_eq!(flags.clone().and(&others), PassingKeys::Flags(vec![true, false, false, false]));
        assert_eq!((flags.count(), few(&[4], true).count()), (3, 2));
        assert_eq!((few(&[4], true).few(), few(&[4], false).few()), (None, Some(&[4][..])));
    }

    #[test]
    fn matching_by_key_list_returns_the_same_rows_as_matching_by_flags() {
        let codes: Vec<i32> = (0..300).map(|row| row * 7 % 23).collect();
        for count in 0..=FEW {
            let keys: Vec<i32> = (0..count as i32).map(|key| key * 3).collect();
            let flags: Vec<bool> = (0..30).map(|key| keys.contains(&key)).collect();
            assert_eq!(matching_few(&codes, &keys), matching_flags(&codes, &flags), "{keys:?}");
        }
    }
}
