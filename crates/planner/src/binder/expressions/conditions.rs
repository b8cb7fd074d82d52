//! The conditions of a WHERE, kept to be asked again with other values of the parameters: where
//! these are nowhere else, the rest of the query is bound once.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use tidemark_ast::{NodeId, Tree};
use tidemark_storage::{Snapshot, TimeRange};
use tidemark_types::EngineResult;

use crate::BindContext;
use crate::binder::expressions::expression::Scope;
use crate::binder::expressions::predicate;
use crate::binder::expressions::time_range;
use crate::binder::expressions::time_range::Ranges;
use crate::binder::sources::scope::Relation;
use crate::binder::{Binder, Planner};

/// The conditions of a statement on the one table it reads.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// As they are written; where parameters are in time ranges alone, those.
    conjuncts: Vec<Conjunct>,
    source: Relation,
    ranges: Ranges,
}

/// What conditions mean with certain values of the parameters.
#[derive(Debug)]
pub struct Restriction {
    /// The ranges of time in which rows are; none: all of it.
    pub ranges: Vec<TimeRange>,
    /// What holds for them; `None`: what it was before.
    pub predicate: Option<Expr>,
}

impl Conditions {
    /// The ranges of the values that the statement was bound with; none: all time.
    #[must_use]
    pub fn ranges(&self) -> &[TimeRange] {
        &self.ranges
    }
}

impl Planner {
    /// What the values in `context` mean to conditions of the same tree and snapshot; `None` where
    /// they may mean another plan, which is for [`Planner::bind`] to make.
    pub fn restriction(
        Conditions { conjuncts, source, .. }: &Conditions,
        tree: &Tree,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<Option<Restriction>> {
        let mut binder = Binder::new(tree, snapshot, context);
        let mut ranges: Option<Ranges> = None;
        let mut others = Vec::new();
        // In the order in which a first binding meets them: the first error is reported.
        for conjunct in conjuncts {
            match binder.time_ranges(conjunct.id, source)? {
                Some(found) if conjunct.is_in_time => ranges = Some(both(ranges, found)),
                None if !conjunct.is_in_time => others.push(conjunct.id),
                _ => return Ok(None),
            }
        }
        if ranges.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let scope = Scope::rows(source);
        let has_others = !others.is_empty();
        let tests = others.into_iter().map(|id| binder.predicate(id, &scope, false));
        let test = predicate::all(tests.collect::<EngineResult<_>>()?);
        if has_others && test.constant.is_some() {
            return Ok(None);
        }
        let predicate = has_others.then_some(test.expr);
        Ok(Some(Restriction { ranges: ranges.unwrap_or_default(), predicate }))
    }
}

/// What lies in the ranges so far, and in these.
pub(crate) fn both(so_far: Option<Ranges>, found: Ranges) -> Ranges {
    match so_far {
        Some(so_far) => time_range::intersection(&so_far, &found),
        None => found,
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
    pub(crate) ranges: Option<Ranges>,
}

impl ParameterUses {
    /// Notes the conditions on a table.
    pub(crate) fn note(&mut self, found: Where, source: &Relation) {
        self.in_conditions += found.uses_in_time + found.uses_in_others;
        if found.uses_in_time + found.uses_in_others > 0 {
            let mut conjuncts = found.conjuncts;
            conjuncts.retain(|conjunct| conjunct.is_in_time || found.uses_in_others > 0);
            let (source, ranges) = (source.clone(), found.ranges.unwrap_or_default());
            self.noted.push(Conditions { conjuncts, source, ranges });
        }
    }

    /// The conditions, if they are one table's and no parameter is anywhere else.
    pub(crate) fn conditions_alone(&mut self) -> Option<Conditions> {
        let is_alone = self.noted.len() == 1 && self.in_conditions == self.met;
        self.noted.pop().filter(|_| is_alone)
    }
}
