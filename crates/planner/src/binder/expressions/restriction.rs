//! Binds the conditions of a WHERE clause again with other parameter values. If parameters occur
//! only there, the rest of the query is bound only once.

use datafusion::logical_expr::Expr;
use tidemark_ast::NodeId;
use tidemark_storage::TimeRange;
use tidemark_types::EngineResult;

use crate::binder::Binder;
use crate::binder::expressions::predicate;
use crate::binder::expressions::time_range::{Ranges, both};
use crate::binder::state::conditions::Conditions;
use crate::binder::state::scope::{Relation, Scope};

/// The WHERE conditions for given parameter values.
#[derive(Debug)]
pub struct Restriction {
    /// The rows' time ranges; empty for no restriction.
    pub ranges: Vec<TimeRange>,
    /// The predicate for these values; `None` if it is unchanged.
    pub predicate: Option<Expr>,
}

impl Binder<'_> {
    /// Binds conditions from the same tree and snapshot again, with the current parameter values.
    /// Returns `None` if the conditions may require a different plan.
    pub(crate) fn restriction(
        &mut self,
        Conditions { conjuncts, source, variables, .. }: &Conditions,
    ) -> EngineResult<Option<Restriction>> {
        self.variables.clone_from(variables);
        let mut ranges: Option<Ranges> = None;
        let mut others = Vec::new();
        // Keep the order of the first binding, so the same error is reported first.
        for conjunct in conjuncts {
            match self.time_ranges(conjunct.id, source)? {
                Some(found) if conjunct.is_in_time => ranges = Some(both(ranges, found)),
                None if !conjunct.is_in_time => others.push(conjunct.id),
                _ => return Ok(None),
            }
        }
        if ranges.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let ranges = ranges.unwrap_or_default();
        if others.is_empty() {
            return Ok(Some(Restriction { ranges, predicate: None }));
        }
        let test = self.test(others, source)?;
        Ok(test.map(|test| Restriction { ranges, predicate: Some(test) }))
    }

    /// Returns the time ranges to which the conditions restrict the rows. Call this only if no
    /// other condition can become a time range for any parameter values.
    pub(crate) fn condition_ranges(
        &mut self,
        Conditions { conjuncts, source, variables, .. }: &Conditions,
    ) -> EngineResult<Option<Ranges>> {
        self.variables.clone_from(variables);
        let mut ranges: Option<Ranges> = None;
        for conjunct in conjuncts.iter().filter(|conjunct| conjunct.is_in_time) {
            let Some(found) = self.time_ranges(conjunct.id, source)? else { return Ok(None) };
            ranges = Some(both(ranges, found));
        }
        let is_empty = ranges.as_ref().is_some_and(Vec::is_empty);
        Ok((!is_empty).then(|| ranges.unwrap_or_default()))
    }

    /// Binds the conditions that are not time ranges. Returns their conjunction and the number of
    /// parameter uses in it; `None` if the conjunction is constant.
    pub(crate) fn condition_test(
        &mut self,
        Conditions { conjuncts, source, variables, .. }: &Conditions,
    ) -> EngineResult<Option<(Expr, usize)>> {
        self.variables.clone_from(variables);
        let met = self.parameter_uses.total;
        let others = conjuncts.iter().filter(|conjunct| !conjunct.is_in_time);
        let test = self.test(others.map(|conjunct| conjunct.id).collect(), source)?;
        Ok(test.map(|test| (test, self.parameter_uses.total - met)))
    }

    fn test(&mut self, ids: Vec<NodeId>, source: &Relation) -> EngineResult<Option<Expr>> {
        let scope = Scope::rows(source);
        let tests = ids.into_iter().map(|id| self.predicate(id, &scope, false));
        let test = predicate::all(tests.collect::<EngineResult<_>>()?);
        Ok(test.constant.is_none().then_some(test.expr))
    }
}
