//! The conditions of a WHERE, asked again with other values of the parameters: where these are
//! nowhere else, the rest of the query is bound once.

use datafusion::logical_expr::Expr;
use tidemark_storage::TimeRange;
use tidemark_types::EngineResult;

use crate::binder::Binder;
use crate::binder::expressions::predicate;
use crate::binder::expressions::time_range::{Ranges, both};
use crate::binder::state::conditions::Conditions;
use crate::binder::state::scope::Scope;

/// What conditions mean with certain values of the parameters.
#[derive(Debug)]
pub struct Restriction {
    /// The ranges of time in which rows are; none: all of it.
    pub ranges: Vec<TimeRange>,
    /// What holds for them; `None`: what it was before.
    pub predicate: Option<Expr>,
}

impl Binder<'_> {
    /// What conditions of the same tree and snapshot mean with the values at hand; `None` where
    /// they may mean another plan.
    pub(crate) fn restriction(
        &mut self,
        Conditions { conjuncts, source, variables, .. }: &Conditions,
    ) -> EngineResult<Option<Restriction>> {
        self.variables.clone_from(variables);
        let mut ranges: Option<Ranges> = None;
        let mut others = Vec::new();
        // In the order in which a first binding meets them: the first error is reported.
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
        let scope = Scope::rows(source);
        let has_others = !others.is_empty();
        let tests = others.into_iter().map(|id| self.predicate(id, &scope, false));
        let test = predicate::all(tests.collect::<EngineResult<_>>()?);
        if has_others && test.constant.is_some() {
            return Ok(None);
        }
        let predicate = has_others.then_some(test.expr);
        Ok(Some(Restriction { ranges: ranges.unwrap_or_default(), predicate }))
    }
}
