//! Chooses an aggregate's state: a Tidemark kernel if one supports the aggregate's name and types,
//! otherwise `DataFusion`'s group accumulator.

use std::any::Any;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt16Type, UInt32Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{DataType, TimeUnit};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use std::sync::Arc;

use super::accumulator::{Accumulate, BatchGroups, Count, Extreme, Merging, RowGroups, Sum};
use super::distinct::DistinctSymbols;
use super::edge::{Edge, EdgeKind};
use super::moments::{Spread, SpreadKind};

/// Calls a generic constructor with the Arrow type of a data type.
macro_rules! by_type {
    ($data_type:expr, [$($pattern:pat => $arrow:ty),* $(,)?], |$P:ident| $build:expr) => {
        match $data_type {
            $($pattern => {
                type $P = $arrow;
                Some($build)
            })*
            _ => None,
        }
    };
}

macro_rules! number_types {
    ($data_type:expr, |$P:ident| $build:expr) => {
        by_type!($data_type, [
            DataType::Int8 => Int8Type,
            DataType::Int16 => Int16Type,
            DataType::Int32 => Int32Type,
            DataType::Int64 => Int64Type,
            DataType::UInt16 => UInt16Type,
            DataType::UInt32 => UInt32Type,
            DataType::Float32 => Float32Type,
            DataType::Float64 => Float64Type,
            DataType::Timestamp(TimeUnit::Millisecond, None) => TimestampMillisecondType,
            DataType::Timestamp(TimeUnit::Microsecond, None) => TimestampMicrosecondType,
            DataType::Timestamp(TimeUnit::Nanosecond, None) => TimestampNanosecondType,
        ], |$P| $build)
    };
}

/// Maximum number of symbols at which each group may have a bitmap.
pub(crate) const MAX_DENSE_SYMBOLS: usize = 1024;

/// Creates a new state for this aggregate. `filtered` specifies whether it has a FILTER clause.
/// `symbols` is the size of the dictionary if a symbol argument has the same dictionary in all
/// batches.
pub(crate) fn state_of(
    aggregate: &AggregateFunctionExpr,
    argument: Option<&DataType>,
    filtered: bool,
    symbols: Option<usize>,
) -> Result<Box<dyn Accumulate>> {
    let plain = !filtered && aggregate.order_bys().is_empty();
    let output = aggregate.field().data_type().clone();
    let name = aggregate.fun().name();
    if plain && aggregate.is_distinct() {
        let dense = symbols.filter(|&symbols| symbols <= MAX_DENSE_SYMBOLS);
        if let Some(symbols) = dense
            && name == "count"
            && output == DataType::Int64
        {
            return Ok(Box::new(DistinctSymbols::new(symbols)));
        }
    } else if plain && let Some(state) = kernel_state(name, argument, &output, symbols.is_some()) {
        return Ok(state);
    }
    let states: Box<dyn GroupsAccumulator> = if aggregate.groups_accumulator_supported() {
        aggregate.create_groups_accumulator()?
    } else {
        let aggregate = Arc::new(aggregate.clone());
        Box::new(GroupsAccumulatorAdapter::new(move || aggregate.create_accumulator()))
    };
    Ok(Box::new(Fallback { states, filtered, ids: vec![] }))
}

/// Whether a Tidemark kernel supports an aggregate without a FILTER. Kernel states are of a fixed
/// size.
pub(crate) fn is_kernel(aggregate: &AggregateFunctionExpr, argument: Option<&DataType>) -> bool {
    let is_plain = aggregate.order_bys().is_empty() && !aggregate.is_distinct();
    let (name, output) = (aggregate.fun().name(), aggregate.field().data_type().clone());
    is_plain && kernel_state(name, argument, &output, false).is_some()
}

fn kernel_state(
    name: &str,
    argument: Option<&DataType>,
    output: &DataType,
    stable_symbols: bool,
) -> Option<Box<dyn Accumulate>> {
    let argument = match (name, argument) {
        ("count", _) if *output == DataType::Int64 => return Some(Box::new(Count::new())),
        (_, argument) => argument?,
    };
    match name {
        "sum" | "avg" => sum_state(name == "avg", argument, output),
        "min" | "max" => {
            let widens = argument == output
                || (matches!(argument, DataType::Int8 | DataType::Int16)
                    && *output == DataType::Int32);
            let greatest = name == "max";
            let build = || {
                number_types!(argument, |P| {
                    Box::new(Extreme::<P>::new(greatest, output.clone())) as Box<dyn Accumulate>
                })
            };
            widens.then(build).flatten()
        }
        "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp" => {
            let is_double = *argument == DataType::Float64 && argument == output;
            let kind = SpreadKind::of(name).filter(|_| is_double)?;
            Some(Box::new(Spread::new(kind)))
        }
        "first" | "last" | "first_not_null" | "last_not_null" if argument == output => {
            let kind =
                EdgeKind { last: name.starts_with("last"), not_null: name.ends_with("not_null") };
            let is_symbol = matches!(argument, DataType::Dictionary(key, _)
                if **key == DataType::Int32);
            if is_symbol && stable_symbols {
                return Some(Box::new(Edge::<Int32Type>::new(kind, output.clone())));
            }
            number_types!(argument, |P| {
                Box::new(Edge::<P>::new(kind, output.clone())) as Box<dyn Accumulate>
            })
        }
        _ => None,
    }
}

fn sum_state(mean: bool, argument: &DataType, output: &DataType) -> Option<Box<dyn Accumulate>> {
    let floats = matches!(argument, DataType::Float32 | DataType::Float64);
    let fits = match output {
        DataType::Float64 => mean || floats,
        DataType::Float32 => !mean && *argument == DataType::Float32,
        DataType::Int64 => !mean && !floats,
        _ => false,
    };
    if !fits {
        return None;
    }
    let output = output.clone();
    if mean || floats {
        return by_type!(argument, [
            DataType::Int8 => Int8Type,
            DataType::Int16 => Int16Type,
            DataType::Int32 => Int32Type,
            DataType::Int64 => Int64Type,
            DataType::Float32 => Float32Type,
            DataType::Float64 => Float64Type,
        ], |P| Box::new(Sum::<P, f64>::new(mean, output)) as Box<dyn Accumulate>);
    }
    by_type!(argument, [
        DataType::Int8 => Int8Type,
        DataType::Int16 => Int16Type,
        DataType::Int32 => Int32Type,
        DataType::Int64 => Int64Type,
    ], |P| Box::new(Sum::<P, i64>::new(false, output)) as Box<dyn Accumulate>)
}

/// Any other aggregate, executed by its own group accumulator.
struct Fallback {
    states: Box<dyn GroupsAccumulator>,
    /// Whether the last argument is the FILTER condition.
    filtered: bool,
    ids: Vec<usize>,
}

impl Accumulate for Fallback {
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()> {
        self.ids.clear();
        match &groups.rows {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs {
                    self.ids.resize(rows.end, *group as usize);
                }
            }
            RowGroups::Scattered(ids) => self.ids.extend(ids.iter().map(|&id| id as usize)),
        }
        let (values, filter) = match values.split_last() {
            Some((condition, values)) if self.filtered => {
                (values, condition.as_boolean_opt().cloned())
            }
            _ => (values, None),
        };
        if self.filtered && filter.is_none() {
            return internal_err!("FILTER requires a condition");
        }
        // Without a FILTER, DataFusion assumes that every group has rows, but the single group of
        // an empty input has none.
        let nothing = self.ids.is_empty().then(|| BooleanArray::from(Vec::<bool>::new()));
        let filter = filter.or(nothing);
        self.states.update_batch(values, &self.ids, filter.as_ref(), groups.total)
    }

    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()> {
        let Ok(mut later) = later.into_any().downcast::<Self>() else {
            return internal_err!("aggregate states have different types");
        };
        let states = later.states.state(EmitTo::All)?;
        // A partial result without rows has no states to merge.
        if states.first().is_none_or(|state| state.len() != merging.mapping.len()) {
            return Ok(());
        }
        let ids: Vec<usize> = merging.mapping.iter().map(|&id| id as usize).collect();
        self.states.merge_batch(&states, &ids, merging.total)
    }

    fn finish(mut self: Box<Self>, _: &[i64]) -> Result<ArrayRef> {
        self.states.evaluate(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.states.size() + self.ids.capacity() * size_of::<usize>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
