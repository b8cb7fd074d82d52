//! How a join by equal keys runs.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use super::grace::exec::GraceHashJoin;
use super::lookup::exec::LookupJoin;
use super::merge::plan::MergeJoin;
use super::semi::plan::SemiJoin;
use crate::operator::Input;

/// The operator that takes the place of a hash join; the hash join where its rows go to files
/// ([`with_files`]). `most_held`: rows of a side up to which it is held rather than merged.
/// `grouped`: a side with the operators of its GROUP BY, which a join of keys leaves out.
pub fn equi_join(
    hash: Input,
    most_held: usize,
    grouped: impl Fn(Input) -> Result<Input>,
) -> Result<Input> {
    let by_order_or_keys = match MergeJoin::instead_of(&hash, most_held)? {
        None => SemiJoin::instead_of(&hash)?,
        merged => merged,
    };
    if let Some(own) = by_order_or_keys {
        return Ok(own);
    }
    let sides = hash.children().into_iter().map(|side| grouped(Arc::clone(side)));
    let sides = sides.collect::<Result<Vec<_>>>()?;
    let hash = replace_children_if_necessary(hash, sides)?;
    Ok(LookupJoin::instead_of(&hash).unwrap_or(hash))
}

/// The operator that takes the place of a hash join whose sides are final: it goes to files where
/// memory ends. Any other plan as it is.
pub fn with_files(plan: Input) -> Result<Input> {
    Ok(GraceHashJoin::instead_of(&plan)?.unwrap_or(plan))
}
