//! Joining texts, and listing them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF};
use hashbrown::HashSet;
use tidemark_types::SqlType;

use super::native::NativeAggregate;
use crate::text_array::push_item;

/// `string_agg` and `string_distinct_agg`. Rows come in order; nulls are skipped.
pub(super) fn join(distinct: bool, separator: String, returns: SqlType) -> Arc<AggregateUDF> {
    NativeAggregate {
        name: if distinct { "string_distinct_agg" } else { "string_agg" },
        variant: format!("{},{separator:?}", returns.name()),
        returns,
        state: vec![DataType::Utf8View],
        one: Arc::new(move || {
            Box::new(Joined {
                separator: separator.clone(),
                seen: distinct.then(HashSet::new),
                text: None,
            })
        }),
        many: None,
    }
    .udaf()
}

#[derive(Debug)]
struct Joined {
    separator: String,
    /// Texts met, when each is joined once.
    seen: Option<HashSet<String>>,
    text: Option<String>,
}

impl Joined {
    fn add(&mut self, value: &str) {
        if let Some(seen) = &mut self.seen
            && !seen.insert(value.to_owned())
        {
            return;
        }
        match &mut self.text {
            None => self.text = Some(value.to_owned()),
            Some(text) => {
                text.push_str(&self.separator);
                text.push_str(value);
            }
        }
    }
}

impl Accumulator for Joined {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_string_view().iter().flatten() {
            self.add(value);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8View(self.text.clone()))
    }

    fn size(&self) -> usize {
        let text = self.text.as_ref().map_or(0, String::capacity);
        let seen = self.seen.as_ref().map_or(0, |seen| seen.capacity() * size_of::<String>());
        size_of_val(self) + text + seen
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    /// Partial texts are joined whole. A distinct join cannot be cut into its values again, so
    /// it is kept in one piece by the planner (it depends on order).
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// `array_agg` of texts: `{a,b,NULL}`, as arrays of the catalog are written.
pub(super) fn listed() -> Arc<AggregateUDF> {
    NativeAggregate {
        name: "array_agg",
        variant: "text".into(),
        returns: SqlType::String,
        state: vec![DataType::Utf8View],
        one: Arc::new(|| Box::new(Listed { items: None })),
        many: None,
    }
    .udaf()
}

/// The items between the braces; none before the first row.
#[derive(Debug)]
struct Listed {
    items: Option<String>,
}

impl Listed {
    fn next(&mut self) -> &mut String {
        match &mut self.items {
            Some(items) => items.push(','),
            none => *none = Some(String::new()),
        }
        self.items.get_or_insert_default()
    }
}

impl Accumulator for Listed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_string_view() {
            push_item(self.next(), value);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8View(self.items.as_ref().map(|items| format!("{{{items}}}"))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.items.as_ref().map_or(0, String::capacity)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Utf8View(self.items.clone())])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for items in states[0].as_string_view().iter().flatten() {
            self.next().push_str(items);
        }
        Ok(())
    }
}
