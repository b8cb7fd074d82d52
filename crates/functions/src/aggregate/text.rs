//! Aggregates that concatenate strings or collect them into lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF};
use hashbrown::HashSet;
use tidemark_types::{SqlType, account};

use super::native::NativeAggregate;
use crate::column::{Texts, stopped};
use crate::text::bounded_text::BoundedText;
use crate::text::text_array::push_item;

/// Builds `string_agg` and `string_distinct_agg`. Rows arrive in order, and nulls are skipped.
pub(super) fn join(distinct: bool, separator: String, returns: SqlType) -> Arc<AggregateUDF> {
    let variant = format!("{},{separator:?}", returns.name());
    let aggregate = if distinct {
        NativeAggregate {
            name: "string_distinct_agg",
            variant,
            returns,
            state: vec![DataType::new_list(DataType::Utf8View, true)],
            one: Arc::new(move || {
                Box::new(JoinedOnce {
                    separator: separator.clone(),
                    distinct: HashSet::new(),
                    texts: Vec::new(),
                })
            }),
            many: None,
        }
    } else {
        NativeAggregate {
            name: "string_agg",
            variant,
            returns,
            state: vec![DataType::Utf8View],
            one: Arc::new(move || Box::new(Joined { separator: separator.clone(), text: None })),
            many: None,
        }
    };
    aggregate.udaf()
}

/// Returns a copy of the string as the result.
fn copied(text: &BoundedText) -> Result<String> {
    let text = text.get().map_err(stopped)?;
    account::check_allocation(text.len()).map_err(stopped)?;
    Ok(text.to_owned())
}

#[derive(Debug)]
struct Joined {
    separator: String,
    text: Option<BoundedText>,
}

impl Accumulator for Joined {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = Texts::new(values[0].as_string_view().clone(), false);
        for row in 0..values.array.len() {
            if let Some(value) = values.get(row) {
                let is_first = self.text.is_none();
                let text = self.text.get_or_insert_default();
                text.push_str(if is_first { "" } else { &self.separator });
                text.push_str(value);
            }
        }
        account::check().map_err(stopped)?;
        self.text.as_ref().map_or(Ok(()), |text| text.get().map(|_| ()).map_err(stopped))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8View(self.text.as_ref().map(copied).transpose()?))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.text.as_ref().map_or(0, BoundedText::capacity)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// Concatenates the distinct strings in order of first occurrence.
#[derive(Debug)]
struct JoinedOnce {
    separator: String,
    distinct: HashSet<String>,
    texts: Vec<String>,
}

impl Accumulator for JoinedOnce {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_string_view().iter().flatten() {
            if !self.distinct.contains(value) {
                self.distinct.insert(value.to_owned());
                self.texts.push(value.to_owned());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let text = (!self.texts.is_empty()).then(|| self.texts.join(&self.separator));
        Ok(ScalarValue::Utf8View(text))
    }

    fn size(&self) -> usize {
        let bytes = |text: &String| 2 * (text.capacity() + size_of::<String>());
        size_of_val(self) + self.texts.iter().map(bytes).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(list_of_texts(self.texts.iter().map(|text| Some(text.as_str()))))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for texts in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[texts])?;
        }
        Ok(())
    }
}

/// Builds `array_agg` for strings. The result has the form of a catalog array, `{a,b,NULL}`.
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

/// Builds `array_agg(DISTINCT text)`: the distinct strings in sort order, with NULL last.
pub(super) fn listed_once() -> Arc<AggregateUDF> {
    NativeAggregate {
        name: "array_agg",
        variant: "text,distinct".into(),
        returns: SqlType::String,
        state: vec![DataType::new_list(DataType::Utf8View, true)],
        one: Arc::new(|| Box::new(ListedOnce::default())),
        many: None,
    }
    .udaf()
}

#[derive(Debug, Default)]
struct ListedOnce {
    texts: BTreeSet<String>,
    bytes: usize,
    has_null: bool,
}

impl ListedOnce {
    /// Approximate overhead per string in bytes, excluding its content.
    const ENTRY_BYTES: usize = 48;

    fn nulls(&self) -> impl Iterator<Item = Option<&str>> {
        self.has_null.then_some(None).into_iter()
    }

    fn all(&self) -> impl Iterator<Item = Option<&str>> {
        self.texts.iter().map(|text| Some(text.as_str())).chain(self.nulls())
    }
}

impl Accumulator for ListedOnce {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_string_view() {
            match value {
                None => self.has_null = true,
                Some(value) if self.texts.contains(value) => {}
                Some(value) => {
                    self.bytes += value.len() + Self::ENTRY_BYTES;
                    self.texts.insert(value.to_owned());
                }
            }
        }
        account::check().map_err(stopped)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut list = Listed { items: None };
        for item in self.all() {
            push_item(list.next(), item);
            list.check()?;
        }
        list.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(list_of_texts(self.all()))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for texts in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[texts])?;
        }
        Ok(())
    }
}

/// Converts strings to a list, the intermediate state of `array_agg`.
fn list_of_texts<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Vec<ScalarValue> {
    let texts: Vec<ScalarValue> =
        texts.map(|text| ScalarValue::Utf8View(text.map(str::to_owned))).collect();
    vec![ScalarValue::List(ScalarValue::new_list_nullable(&texts, &DataType::Utf8View))]
}

/// The items between the braces; `None` before the first row.
#[derive(Debug)]
struct Listed {
    items: Option<BoundedText>,
}

impl Listed {
    fn next(&mut self) -> &mut BoundedText {
        if let Some(items) = &mut self.items {
            items.push(',');
        }
        self.items.get_or_insert_default()
    }

    fn check(&self) -> Result<()> {
        self.items.as_ref().map_or(Ok(()), |items| items.get().map(|_| ()).map_err(stopped))
    }
}

impl Accumulator for Listed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = Texts::new(values[0].as_string_view().clone(), false);
        for row in 0..values.array.len() {
            push_item(self.next(), values.get(row));
            self.check()?;
        }
        account::check().map_err(stopped)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let items = self.items.as_ref().map(copied).transpose()?;
        Ok(ScalarValue::Utf8View(items.map(|items| format!("{{{items}}}"))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.items.as_ref().map_or(0, BoundedText::capacity)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Utf8View(self.items.as_ref().map(copied).transpose()?)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for items in states[0].as_string_view().iter().flatten() {
            self.next().push_str(items);
        }
        self.check()
    }
}
