//! WHERE conditions that are cached so that they can be bound again with other parameter values,
//! and the number of places where parameters occur.

use hashbrown::HashMap;

use tidemark_ast::NodeId;
use tidemark_storage::TimeRange;

use crate::binder::state::scope::Relation;

/// The conditions of a statement that reads a single table.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// The conditions in their original order. If parameters occur only in time ranges, only the
    /// conditions on time are included.
    pub(crate) conjuncts: Vec<Conjunct>,
    pub(crate) source: Relation,
    pub(crate) ranges: Vec<TimeRange>,
    /// The DECLARE variables that the conditions use.
    pub(crate) variables: Vec<HashMap<String, NodeId>>,
}

impl Conditions {
    /// The time ranges for the values that the statement was bound with; empty for all times.
    #[must_use]
    pub fn ranges(&self) -> &[TimeRange] {
        &self.ranges
    }

    /// Whether some conditions are time ranges.
    #[must_use]
    pub fn are_in_time(&self) -> bool {
        self.conjuncts.iter().any(|conjunct| conjunct.is_in_time)
    }
}

/// Occurrences of parameters found while a statement is bound.
#[derive(Debug, Default)]
pub(crate) struct ParameterUses {
    /// Total number of occurrences.
    pub(crate) total: usize,
    in_conditions: usize,
    noted: Vec<Conditions>,
}

/// A condition in a WHERE clause, combined with the other conditions by AND.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conjunct {
    pub(crate) id: NodeId,
    /// Whether the condition was converted to time ranges.
    pub(crate) is_in_time: bool,
}

/// A WHERE clause's conditions after binding.
pub(crate) struct Where {
    pub(crate) conjuncts: Vec<Conjunct>,
    /// Number of parameter occurrences in time ranges, and in all other conditions.
    pub(crate) uses_in_time: usize,
    pub(crate) uses_in_other_conditions: usize,
    pub(crate) ranges: Option<Vec<TimeRange>>,
}

impl ParameterUses {
    /// Records the conditions on a table.
    pub(crate) fn note(
        &mut self,
        found: Where,
        source: &Relation,
        variables: &[HashMap<String, NodeId>],
    ) {
        self.in_conditions += found.uses_in_time + found.uses_in_other_conditions;
        if found.uses_in_time + found.uses_in_other_conditions > 0 {
            let mut conjuncts = found.conjuncts;
            conjuncts.retain(|conjunct| conjunct.is_in_time || found.uses_in_other_conditions > 0);
            let (source, ranges) = (source.clone(), found.ranges.unwrap_or_default());
            let variables = variables.to_vec();
            self.noted.push(Conditions { conjuncts, source, ranges, variables });
        }
    }

    /// The conditions, if they are all on one table and parameters occur nowhere else.
    pub(crate) fn sole_conditions(&mut self) -> Option<Conditions> {
        let is_alone = self.noted.len() == 1 && self.in_conditions == self.total;
        self.noted.pop().filter(|_| is_alone)
    }
}
