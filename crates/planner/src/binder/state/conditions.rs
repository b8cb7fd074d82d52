//! The conditions of a WHERE as they are kept, and where parameters were met.

use hashbrown::HashMap;

use tidemark_ast::NodeId;
use tidemark_storage::TimeRange;

use crate::binder::state::scope::Relation;

/// The conditions of a statement on the one table it reads.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// As they are written; where parameters are in time ranges alone, those.
    pub(crate) conjuncts: Vec<Conjunct>,
    pub(crate) source: Relation,
    pub(crate) ranges: Vec<TimeRange>,
    /// The variables that DECLARE gives them.
    pub(crate) variables: Vec<HashMap<String, NodeId>>,
}

impl Conditions {
    /// The ranges of the values that the statement was bound with; none: all time.
    #[must_use]
    pub fn ranges(&self) -> &[TimeRange] {
        &self.ranges
    }

    /// Whether ranges of time are among them.
    #[must_use]
    pub fn are_in_time(&self) -> bool {
        self.conjuncts.iter().any(|conjunct| conjunct.is_in_time)
    }
}

/// Where parameters were met while a statement was bound.
#[derive(Debug, Default)]
pub(crate) struct ParameterUses {
    /// All of them.
    pub(crate) met: usize,
    in_conditions: usize,
    noted: Vec<Conditions>,
}

/// One of the conditions that a WHERE joins by AND.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conjunct {
    pub(crate) id: NodeId,
    /// Whether it became time ranges.
    pub(crate) is_in_time: bool,
}

/// The conditions of a WHERE, as they were bound.
pub(crate) struct Where {
    pub(crate) conjuncts: Vec<Conjunct>,
    /// How often parameters were met in those that became time ranges, and in the others.
    pub(crate) uses_in_time: usize,
    pub(crate) uses_in_others: usize,
    pub(crate) ranges: Option<Vec<TimeRange>>,
}

impl ParameterUses {
    /// Notes the conditions on a table.
    pub(crate) fn note(
        &mut self,
        found: Where,
        source: &Relation,
        variables: &[HashMap<String, NodeId>],
    ) {
        self.in_conditions += found.uses_in_time + found.uses_in_others;
        if found.uses_in_time + found.uses_in_others > 0 {
            let mut conjuncts = found.conjuncts;
            conjuncts.retain(|conjunct| conjunct.is_in_time || found.uses_in_others > 0);
            let (source, ranges) = (source.clone(), found.ranges.unwrap_or_default());
            let variables = variables.to_vec();
            self.noted.push(Conditions { conjuncts, source, ranges, variables });
        }
    }

    /// The conditions, if they are one table's and no parameter is anywhere else.
    pub(crate) fn conditions_alone(&mut self) -> Option<Conditions> {
        let is_alone = self.noted.len() == 1 && self.in_conditions == self.met;
        self.noted.pop().filter(|_| is_alone)
    }
}
