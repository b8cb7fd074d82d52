//! How a join by equal keys runs.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use super::grace::exec::GraceHashJoin;
use super::lookup::exec::LookupJoin;
use super::merge::plan::MergeJoin;
use super::semi::plan::SemiJoin;
use crate::operator::Input;

/// The operator that replaces a hash join; the hash join itself if it is for [`with_files`].
///
/// `most_held`: the rows up to which a side is held rather than merged. `grouped` replaces the two
/// steps of a side's GROUP BY by their final operators; a semi-join may have left the GROUP BY out.
pub fn equi_join(
    hash: Input,
    most_held: usize,
    grouped: impl Fn(Input) -> Result<Input>,
) -> Result<Input> {
    if let Some(merged) = MergeJoin::instead_of(&hash, most_held)? {
        return Ok(merged);
    }
    let join = SemiJoin::instead_of(&hash)?.unwrap_or(hash);
    let sides = join.children().into_iter().map(|side| grouped(Arc::clone(side)));
    let sides = sides.collect::<Result<Vec<_>>>()?;
    let join = replace_children_if_necessary(join, sides)?;
    Ok(LookupJoin::instead_of(&join).unwrap_or(join))
}

/// The operator that replaces a hash join whose inputs have the partitions and the order that it
/// requires: it spills where memory ends. Any other plan as it is.
pub fn with_files(plan: Input) -> Result<Input> {
    Ok(GraceHashJoin::instead_of(&plan)?.unwrap_or(plan))
}
