//! The predicates of a cached plan other than time ranges. They are bound and lowered once, with
//! placeholders for the parameters. Each execution replaces the placeholders with its own values.
//!
//! This applies only if a parameter is used solely as the name of a symbol that a column is
//! compared with. Values of any other kind (null, empty string, number, array) are bound again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::physical_expr::PhysicalExpr;
use tidemark_ast::{BinaryOperator, Node, NodeId, Tree};
use tidemark_operators::{from_datafusion, renamed};
use tidemark_types::{EngineResult, ParameterValue};

/// Maximum length of a name in bytes. Longer constants are shared among operators and not copied.
const MAX_NAME_BYTES: usize = 256;

/// A plan's predicate with symbol names as parameters. It is compiled when the query first runs
/// with a second set of values.
#[derive(Debug, Default)]
pub(crate) struct NamedTest {
    runs: AtomicU64,
    test: OnceLock<Option<Placeholders>>,
}

/// A compiled predicate with a placeholder string for each parameter. A parameter that the
/// predicate does not use has `None`.
#[derive(Debug)]
struct Placeholders {
    test: Arc<dyn PhysicalExpr>,
    texts: Vec<Option<String>>,
}

impl NamedTest {
    /// Returns placeholder strings for the parameters if the predicate must be compiled now.
    pub(crate) fn placeholders(&self, parameters: usize) -> Option<Vec<String>> {
        if self.runs.fetch_add(1, Ordering::Relaxed) != 1 {
            return None;
        }
        // Makes the placeholders differ from every string in a query.
        let salt = RandomState::new().build_hasher().finish();
        let text = |index| format!("\u{1}{salt:016x}.{index}");
        Some((0..parameters).map(text).collect())
    }

    /// Stores a predicate that was bound with the placeholders from [`Self::placeholders`]. The
    /// placeholders occur `met` times. The predicate is stored only if it can be reused for any
    /// values.
    pub(crate) fn store(
        &self,
        tree: &Tree,
        test: Option<(Arc<dyn PhysicalExpr>, usize)>,
        texts: Vec<String>,
    ) -> EngineResult<()> {
        let stand_ins = match test {
            Some((test, met)) => Placeholders::new(tree, test, met, texts)?,
            None => None,
        };
        // Setting the value fails if another execution has already stored a predicate, which is
        // then used.
        let _ = self.test.set(stand_ins);
        Ok(())
    }

    /// Returns the predicate for these values; `None` if the query must be bound again for them.
    pub(crate) fn of(
        &self,
        values: &[ParameterValue<'_>],
    ) -> EngineResult<Option<Arc<dyn PhysicalExpr>>> {
        let Some(Some(Placeholders { test, texts })) = self.test.get() else { return Ok(None) };
        let mut names = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let Some(text) = text else { continue };
            match values.get(index) {
                Some(ParameterValue::Text(name))
                    if !name.is_empty() && name.len() <= MAX_NAME_BYTES =>
                {
                    names.push((text.as_str(), name.as_ref()));
                }
                _ => return Ok(None),
            }
        }
        let mut name_of = |text: &str| {
            let found = names.iter().find(|(stand_in, _)| *stand_in == text);
            found.map(|(_, name)| *name)
        };
        renamed(test, &mut name_of).map_err(from_datafusion)
    }
}

impl Placeholders {
    /// Returns the reusable predicate; `None` if a value may affect more than the symbol that a
    /// column is compared with.
    fn new(
        tree: &Tree,
        test: Arc<dyn PhysicalExpr>,
        met: usize,
        texts: Vec<String>,
    ) -> EngineResult<Option<Self>> {
        let mut found = vec![0; texts.len()];
        let mut note = |text: &str| {
            let index = texts.iter().position(|known| known == text)?;
            found[index] += 1;
            Some("x")
        };
        let suits = renamed(&test, &mut note).map_err(from_datafusion)?.is_some();
        let compared = only_compared(tree, texts.len());
        let is_named = |(&found, &compared): (&usize, &bool)| found == 0 || compared;
        if !suits
            || found.iter().sum::<usize>() != met
            || !found.iter().zip(&compared).all(is_named)
        {
            return Ok(None);
        }
        let texts = texts.into_iter().zip(found);
        let texts = texts.map(|(text, found)| (found > 0).then_some(text)).collect();
        Ok(Some(Self { test, texts }))
    }
}

/// Returns, for each parameter, whether it is only used as an operand of `=` or `<>`. A list with
/// one item does not count, because it may be an array.
fn only_compared(tree: &Tree, parameters: usize) -> Vec<bool> {
    let place = |id: &NodeId| match tree.get(*id) {
        Some(Node::Parameter { index }) => (*index as usize).checked_sub(1),
        _ => None,
    };
    let (mut all, mut compared) = (vec![0; parameters], vec![0; parameters]);
    let count = |counts: &mut Vec<usize>, place: Option<usize>| {
        if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
            *count += 1;
        }
    };
    for node in &tree.nodes {
        match node {
            Node::Parameter { index } => count(&mut all, (*index as usize).checked_sub(1)),
            // A variable may contain a parameter's value.
            Node::Variable { .. } => return vec![false; parameters],
            Node::Binary {
                operator: BinaryOperator::Equal | BinaryOperator::NotEqual,
                left,
                right,
                ..
            } => {
                count(&mut compared, place(left));
                count(&mut compared, place(right));
            }
            _ => {}
        }
    }
    all.iter().zip(&compared).map(|(all, compared)| all == compared).collect()
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{ColumnarValue, Operator, Volatility, create_udf};
    use datafusion::physical_expr::ScalarFunctionExpr;
    use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
    use tidemark_ast::{Name, Span};
    use tidemark_types::SYMBOL_EQUAL;

    use super::*;

    fn text(text: &str) -> Arc<dyn PhysicalExpr> {
        Arc::new(Literal::new(ScalarValue::Utf8View(Some(text.to_owned()))))
    }

    /// Builds the predicate `s = text` in the form used by a filter.
    fn named(name: &str) -> Arc<dyn PhysicalExpr> {
        let symbol = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let types = vec![symbol.clone(), DataType::Utf8View];
        let computed = |_: &[ColumnarValue]| Ok(ColumnarValue::from(ScalarValue::Null));
        let (returns, volatility) = (DataType::Boolean, Volatility::Immutable);
        let function = create_udf(SYMBOL_EQUAL, types, returns, volatility, Arc::new(computed));
        let schema = Schema::new(vec![Field::new("s", symbol, true)]);
        let arguments = vec![Arc::new(Column::new("s", 0)) as _, text(name)];
        let call =
            ScalarFunctionExpr::try_new(Arc::new(function), arguments, &schema, Arc::default());
        Arc::new(call.unwrap())
    }

    fn either(one: Arc<dyn PhysicalExpr>, other: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(one, Operator::Or, other))
    }

    /// Builds a tree that compares `parameters` parameters with a column.
    fn tree(parameters: u32) -> Tree {
        let mut nodes = vec![];
        for index in 1..=parameters {
            let left = nodes.len() as NodeId;
            nodes.push(Node::Null);
            nodes.push(Node::Parameter { index });
            let (operator, operator_span) = (BinaryOperator::Equal, Span::default());
            nodes.push(Node::Binary { operator, left, right: left + 1, operator_span });
        }
        Tree { spans: vec![Span::default(); nodes.len()], root: 0, first: 0, nodes }
    }

    /// Returns the stored predicate for the placeholders of two parameters.
    fn stored(
        tree: &Tree,
        met: usize,
        test: impl Fn(&[String]) -> Arc<dyn PhysicalExpr>,
    ) -> NamedTest {
        let kept = NamedTest::default();
        assert_eq!(kept.placeholders(2), None, "not for the first execution");
        let texts = kept.placeholders(2).unwrap();
        assert_eq!(kept.placeholders(2), None, "already compiled");
        kept.store(tree, Some((test(&texts), met)), texts).unwrap();
        kept
    }

    fn values(one: &'static str, other: &'static str) -> [ParameterValue<'static>; 2] {
        [one, other].map(|text| ParameterValue::Text(text.into()))
    }

    #[test]
    fn placeholders_are_replaced_with_the_symbols_of_each_execution() {
        let both =
            |texts: &[String]| either(either(named(&texts[1]), named("own")), named(&texts[0]));
        let test = stored(&tree(2), 2, both);
        for (one, other) in [("a", "b"), ("b", "a"), ("a", "a"), ("own", "x")] {
            let found = test.of(&values(one, other)).unwrap().unwrap();
            let expected = either(either(named(other), named("own")), named(one));
            assert_eq!(found.to_string(), expected.to_string());
        }
        let [name, _] = values("a", "b");
        let long = "n".repeat(MAX_NAME_BYTES + 1);
        for value in [
            ParameterValue::Null,
            ParameterValue::Int(1),
            ParameterValue::Text("".into()),
            ParameterValue::Text(long.into()),
        ] {
            assert!(test.of(&[value, name.clone()]).unwrap().is_none());
        }
        assert!(test.of(&[name]).unwrap().is_none(), "a value is missing");
    }

    #[test]
    fn parameters_are_replaced_only_if_every_use_is_a_symbol_name() {
        let of = |test: NamedTest| test.of(&values("a", "b")).unwrap().map(|test| test.to_string());
        // The second parameter is used only in a time condition, which is separate.
        let test = stored(&tree(2), 1, |texts| named(&texts[0]));
        let [name, _] = values("a", "");
        let found = test.of(&[name, ParameterValue::Null]).unwrap().unwrap();
        assert_eq!(found.to_string(), named("a").to_string());
        assert_eq!(of(stored(&tree(2), 2, |texts| named(&texts[0]))), None, "too few uses");
        assert_eq!(
            of(stored(&tree(2), 1, |texts| either(named(&texts[0]), text(&texts[0])))),
            None
        );
        assert_eq!(of(stored(&tree(2), 1, |texts| text(&texts[0]))), None, "no symbol");
        let mut elsewhere = tree(2);
        elsewhere.nodes.push(Node::Parameter { index: 1 });
        assert_eq!(of(stored(&elsewhere, 1, |texts| named(&texts[0]))), None, "of a list, say");
        let mut declared = tree(2);
        let name = Name { text: "@v".to_owned(), quoted: false, span: Span::default() };
        declared.nodes.push(Node::Variable { name });
        assert_eq!(of(stored(&declared, 1, |texts| named(&texts[0]))), None, "a variable's value");
    }
}
