//! What a kept plan tests beside ranges of time, bound and lowered once: texts stand for the
//! parameters, and each execution puts its own in their place.
//!
//! Only where all that the values do is to name a symbol that a column is compared with. A value
//! of another kind (null, an empty text, a number, an array) is bound anew.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::physical_expr::PhysicalExpr;
use tidemark_ast::{BinaryOperator, Node, NodeId, Tree};
use tidemark_operators::{from_datafusion, renamed};
use tidemark_types::{EngineResult, ParameterValue};

/// Bytes of a name, at most: longer constants are shared among operators, not copied.
const MOST_NAME_BYTES: usize = 256;

/// A plan's test of named symbols, made when values come the second time.
#[derive(Debug, Default)]
pub(crate) struct NamedTest {
    runs: AtomicU64,
    test: OnceLock<Option<StandIns>>,
}

/// A test, and the texts that stand in it for those parameters that it is about.
#[derive(Debug)]
struct StandIns {
    test: Arc<dyn PhysicalExpr>,
    texts: Vec<Option<String>>,
}

impl NamedTest {
    /// Texts that stand for so many parameters, when the test is to be made.
    pub(crate) fn wanted(&self, parameters: usize) -> Option<Vec<String>> {
        let is_due = self.runs.fetch_add(1, Ordering::Relaxed) == 1;
        // No text that is written anywhere.
        let salt = RandomState::new().build_hasher().finish();
        let text = |place| format!("\u{1}{salt:016x}.{place}");
        is_due.then(|| (0..parameters).map(text).collect())
    }

    /// Keeps a test that was bound with the texts of [`Self::wanted`], which were `met` so often,
    /// if it suits any others.
    pub(crate) fn keep(
        &self,
        tree: &Tree,
        test: Option<(Arc<dyn PhysicalExpr>, usize)>,
        texts: Vec<String>,
    ) -> EngineResult<()> {
        let stand_ins = match test {
            Some((test, met)) => StandIns::new(tree, test, met, texts)?,
            None => None,
        };
        // Made by another execution meanwhile.
        let _ = self.test.set(stand_ins);
        Ok(())
    }

    /// The test for these values; `None` where they have to be bound.
    pub(crate) fn of(
        &self,
        values: &[ParameterValue<'_>],
    ) -> EngineResult<Option<Arc<dyn PhysicalExpr>>> {
        let Some(Some(StandIns { test, texts })) = self.test.get() else { return Ok(None) };
        let mut names = Vec::with_capacity(texts.len());
        for (place, text) in texts.iter().enumerate() {
            let Some(text) = text else { continue };
            match values.get(place) {
                Some(ParameterValue::Text(name))
                    if !name.is_empty() && name.len() <= MOST_NAME_BYTES =>
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

impl StandIns {
    /// `None` where a value may decide about more than the symbol that is looked for.
    fn new(
        tree: &Tree,
        test: Arc<dyn PhysicalExpr>,
        met: usize,
        texts: Vec<String>,
    ) -> EngineResult<Option<Self>> {
        let mut found = vec![0; texts.len()];
        let mut note = |text: &str| {
            let place = texts.iter().position(|known| known == text)?;
            found[place] += 1;
            Some("x")
        };
        let suits = renamed(&test, &mut note).map_err(from_datafusion)?.is_some();
        let compared = compared_alone(tree, texts.len());
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

/// Of which parameters each place is a side of an equation: a list with one item may be an array.
fn compared_alone(tree: &Tree, parameters: usize) -> Vec<bool> {
    let place = |id: &NodeId| match tree.get(*id) {
        Some(Node::Parameter { index }) => (*index as usize).checked_sub(1),
        _ => None,
    };
    let (mut all, mut compared) = (vec![0; parameters], vec![0; parameters]);
    let mut count = |counts: &mut Vec<usize>, place: Option<usize>| {
        if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
            *count += 1;
        }
    };
    for node in &tree.nodes {
        match node {
            Node::Parameter { index } => count(&mut all, (*index as usize).checked_sub(1)),
            // Of the value that it stands for.
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
