//! Chooses an equi-join's operator.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use super::grace::exec::GraceHashJoin;
use super::lookup::exec::LookupJoin;
use super::merge::plan::MergeJoin;
use super::semi::plan::SemiJoin;
use crate::operator::Input;

/// Returns the operator that replaces a hash join. Returns the hash join itself if only
/// [`with_files`] can replace it.
///
/// `most_held` is the maximum number of rows at which a side is built in memory rather than merged.
/// `grouped` replaces the two steps of a GROUP BY below a side with the final operators. It is
/// called only after a semi-join has been considered, because a semi-join may remove the GROUP BY.
pub fn equi_join(
    hash: Input,
    most_held: usize,
    grouped: impl Fn(Input) -> Result<Input>,
) -> Result<Input> {
    if let Some(merged) = MergeJoin::try_replace(&hash, most_held)? {
        return Ok(merged);
    }
    let join = SemiJoin::try_replace(&hash)?.unwrap_or(hash);
    let sides = join.children().into_iter().map(|side| grouped(Arc::clone(side)));
    let sides = sides.collect::<Result<Vec<_>>>()?;
    let join = replace_children_if_necessary(join, sides)?;
    Ok(LookupJoin::try_replace(&join).unwrap_or(join))
}

/// Returns the operator that replaces a hash join whose inputs already have the required
/// partitioning and order. It spills to disk when memory runs out. Other plans are returned
/// unchanged.
pub fn with_files(plan: Input) -> Result<Input> {
    Ok(GraceHashJoin::try_replace(&plan)?.unwrap_or(plan))
}
