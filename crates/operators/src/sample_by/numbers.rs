//! GROUP BY keys with few values: integers in a small range, alone or together with symbols. Groups
//! are looked up by slot, as for symbols.

use std::sync::Arc;

use datafusion::common::Result;

use super::fallback::is_kernel;
use super::floor::aggregates;
use super::groups::KeyPlan;
use super::plan::SampleByPlan;
use super::slots::slots_of;
use crate::lowering::{counted_rows, key_plan};
use crate::operator::{Input, OperatorExec};
use crate::plan_node::{Grouping, grouping};

/// Approximate maximum size of the groups in bytes. They stay in memory and cannot be spilled.
const MAX_BYTES: usize = 16 << 20;
/// Size in bytes of a slot, including its group's key and row count, and approximate size of an
/// aggregate's state.
const SLOT_BYTES: usize = 2 * size_of::<u32>() + size_of::<i64>();
const STATE_BYTES: usize = 3 * size_of::<i64>();

impl SampleByPlan {
    /// Returns the replacement for the two steps of GROUP BY, if its keys have few values and its
    /// aggregates have fixed-size states.
    pub fn by_slots(plan: &Input) -> Result<Option<Input>> {
        let Some(Grouping { keys, functions, filters, input }) = grouping(plan) else {
            return Ok(None);
        };
        for function in functions {
            let argument = counted_rows(function).first().map(|own| own.data_type(&input.schema()));
            if !is_kernel(function, argument.transpose()?.as_ref()) {
                return Ok(None);
            }
        }
        let KeyPlan::Slots(digits) = key_plan(input, &keys)? else { return Ok(None) };
        let max = MAX_BYTES / (SLOT_BYTES + STATE_BYTES * functions.len());
        if slots_of(&digits).is_none_or(|slots| slots > max) {
            return Ok(None);
        }
        let grouped = Self {
            bucket: None,
            keys,
            key_plan: KeyPlan::None,
            aggregates: aggregates(functions, filters),
            max_groups: None,
            input_schema: input.schema(),
            output_schema: plan.schema(),
            cache: None,
        };
        let grouped = grouped.planned(input)?;
        Ok(Some(OperatorExec::plan(grouped, vec![Arc::clone(input)], &plan.schema())))
    }
}
