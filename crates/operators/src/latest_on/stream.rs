//! Picks the last row of each key from batches that arrive newest first.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use std::sync::Arc;
use tidemark_kernels::{Validity, pick_latest};

use super::plan::{KeyKind, LatestOnPlan};
use crate::bounded::bytes::cell_bytes;
use crate::scan::symbol_test::PassingKeys;

/// Code of the null key.
const NULL: i32 = -1;

/// Maximum size of a cell in bytes, excluding its variable-length data.
const CELL_BYTES: usize = 16;

/// Keys found so far, and the rows picked for them.
pub(crate) struct Picker {
    plan: Arc<LatestOnPlan>,
    keys: Keys,
    /// Picked rows, newest first.
    picked: Vec<RecordBatch>,
    picked_bytes: usize,
}

enum Keys {
    /// Symbol codes that have no row yet; [`NULL`] represents null.
    Few(Vec<i32>),
    Symbol {
        seen: Vec<bool>,
        remaining: usize,
    },
    Hashed {
        values: Box<dyn GroupValues>,
        seen: Vec<bool>,
        ids: Vec<usize>,
    },
}

impl Picker {
    /// Creates a picker. `passing` contains the symbol keys that can occur, if known. `holds_null`
    /// specifies whether the symbol column contains nulls.
    pub(crate) fn new(
        plan: &Arc<LatestOnPlan>,
        passing: Option<PassingKeys>,
        holds_null: impl FnOnce() -> bool,
    ) -> Result<Self> {
        let keys = match &plan.kind {
            KeyKind::Symbol { symbols } => Keys::symbols(*symbols, passing, holds_null),
            KeyKind::Hashed(types) => {
                let fields = types.iter().enumerate().map(|(index, data_type)| {
                    Field::new(format!("key_{index}"), data_type.clone(), true)
                });
                let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
                let values = new_group_values(schema, &GroupOrdering::None)?;
                Keys::Hashed { values, seen: vec![], ids: vec![] }
            }
        };
        Ok(Self { plan: Arc::clone(plan), keys, picked: vec![], picked_bytes: 0 })
    }

    /// Symbol keys that have no row yet, if there are only a few and they do not include null.
    pub(crate) fn few_keys(&self) -> Option<&[i32]> {
        match &self.keys {
            Keys::Few(required) if !required.contains(&NULL) => Some(required),
            _ => None,
        }
    }

    /// Whether a row has been found for every key, which makes older rows irrelevant.
    pub(crate) fn is_complete(&self) -> bool {
        match &self.keys {
            Keys::Few(required) => required.is_empty(),
            Keys::Symbol { remaining, .. } => *remaining == 0,
            Keys::Hashed { .. } => false,
        }
    }

    /// Memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        let keys = match &self.keys {
            Keys::Few(_) => 0,
            Keys::Symbol { seen, .. } => seen.len(),
            Keys::Hashed { values, seen, ids } => values.size() + seen.len() + 8 * ids.capacity(),
        };
        keys + self.picked_bytes
    }

    /// Processes a batch that is older than all previous batches. `newest_first` specifies the
    /// order of its rows.
    pub(crate) fn update(&mut self, batch: &RecordBatch, newest_first: bool) -> Result<()> {
        let rows = batch.num_rows();
        let evaluate = self.plan.keys.iter().map(|key| key.evaluate(batch)?.into_array(rows));
        let keys = evaluate.collect::<Result<Vec<_>>>()?;
        let rows = match &mut self.keys {
            Keys::Few(required) => pick_few(symbol_codes(&keys)?, required, newest_first),
            Keys::Symbol { seen, remaining } => {
                pick_symbols(symbol_codes(&keys)?, seen, remaining, newest_first)
            }
            Keys::Hashed { values, seen, ids } => {
                values.intern(&keys, ids)?;
                seen.resize(values.len(), false);
                let mut rows = vec![];
                let mut visit = |row: usize| {
                    if !std::mem::replace(&mut seen[ids[row]], true) {
                        rows.push(row as u32);
                    }
                };
                if newest_first {
                    (0..ids.len()).for_each(&mut visit);
                } else {
                    (0..ids.len()).rev().for_each(&mut visit);
                }
                rows
            }
        };
        if !rows.is_empty() {
            let picked = match batch.num_rows() {
                1 => batch.clone(),
                _ => take_record_batch(batch, &UInt32Array::from(rows))?,
            };
            self.picked_bytes += cell_bytes(&picked);
            self.picked_bytes += picked.num_rows() * picked.num_columns() * CELL_BYTES;
            self.picked.push(picked);
        }
        Ok(())
    }

    /// Returns the picked rows, oldest first.
    pub(crate) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        if let [picked] = self.picked.as_slice()
            && picked.num_rows() == 1
        {
            let (schema, columns) = (Arc::clone(schema), picked.columns().to_vec());
            let options = RecordBatchOptions::new().with_row_count(Some(1));
            return Ok(RecordBatch::try_new_with_options(schema, columns, &options)?);
        }
        let newest_first = concat_batches(schema, &self.picked)?;
        let order = UInt32Array::from_iter_values((0..newest_first.num_rows() as u32).rev());
        Ok(take_record_batch(&newest_first, &order)?)
    }
}

impl Keys {
    fn symbols(
        symbols: usize,
        passing: Option<PassingKeys>,
        holds_null: impl FnOnce() -> bool,
    ) -> Self {
        let seen = || vec![false; symbols + 1];
        match passing {
            Some(PassingKeys::Few { mut keys, null }) => {
                keys.extend((null && holds_null()).then_some(NULL));
                Self::Few(keys)
            }
            Some(PassingKeys::Flags(flags)) => {
                let null = flags.last() == Some(&true) && holds_null();
                let others = flags.iter().take(symbols).filter(|&&passes| passes).count();
                Self::Symbol { seen: seen(), remaining: others + usize::from(null) }
            }
            None => {
                let remaining = symbols + usize::from(holds_null());
                Self::Symbol { seen: seen(), remaining }
            }
        }
    }
}

fn symbol_codes(keys: &[ArrayRef]) -> Result<&Int32Array> {
    let key = keys.first().and_then(|key| key.as_dictionary_opt::<Int32Type>());
    let key = key.ok_or_else(|| internal_datafusion_err!("expected a symbol key"))?;
    Ok(key.keys())
}

fn pick_few(codes: &Int32Array, required: &mut Vec<i32>, newest_first: bool) -> Vec<u32> {
    let mut rows = vec![];
    for position in 0..codes.len() {
        let row = if newest_first { position } else { codes.len() - 1 - position };
        let code = if codes.is_null(row) { NULL } else { codes.value(row) };
        if let Some(found) = required.iter().position(|&key| key == code) {
            required.swap_remove(found);
            rows.push(row as u32);
            if required.is_empty() {
                break;
            }
        }
    }
    rows
}

fn pick_symbols(
    codes: &Int32Array,
    seen: &mut [bool],
    remaining: &mut usize,
    newest_first: bool,
) -> Vec<u32> {
    let mut rows = vec![];
    if newest_first {
        for row in 0..codes.len() {
            let key = if codes.is_null(row) { 0 } else { codes.value(row) as usize + 1 };
            if !std::mem::replace(&mut seen[key], true) {
                rows.push(row as u32);
                *remaining = remaining.saturating_sub(1);
            }
        }
        return rows;
    }
    let validity = codes.nulls().map(|nulls| Validity::new(nulls.validity(), nulls.offset()));
    pick_latest(codes.values(), validity, seen, remaining, |row| rows.push(row as u32));
    rows
}
