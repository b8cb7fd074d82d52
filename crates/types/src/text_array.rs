//! `PostgreSQL` catalog arrays, which are stored as strings: `{a,"b c",NULL}`, or `1 2` for number
//! vectors.

use std::str::{Chars, SplitWhitespace};

use crate::account;

/// Number of items between two cancellation checks.
const ITEMS_BETWEEN_CHECKS: usize = 16 * 1024;

/// Returns the items, with `None` for NULL. Ends early if the query is stopped.
#[must_use]
pub fn text_array(text: &str) -> TextArray<'_> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let rest = match inner {
        None => Remaining::Words(text.split_whitespace()),
        Some("") => Remaining::Nothing,
        Some(inner) => Remaining::Letters(inner.chars()),
    };
    TextArray { remaining: rest, yielded: 0 }
}

/// The remaining items of an array.
#[derive(Debug)]
pub struct TextArray<'a> {
    remaining: Remaining<'a>,
    yielded: usize,
}

#[derive(Debug)]
enum Remaining<'a> {
    Words(SplitWhitespace<'a>),
    Letters(Chars<'a>),
    Nothing,
}

impl Iterator for TextArray<'_> {
    type Item = Option<String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.yielded += 1;
        if self.yielded.is_multiple_of(ITEMS_BETWEEN_CHECKS) && account::check().is_err() {
            return None;
        }
        match &mut self.remaining {
            Remaining::Words(words) => words.next().map(|word| Some(word.to_owned())),
            Remaining::Nothing => None,
            Remaining::Letters(letters) => {
                let (item, ends) = next_item(letters);
                if ends {
                    self.remaining = Remaining::Nothing;
                }
                Some(item)
            }
        }
    }
}

/// Returns the item up to the next comma, and whether it is the last one.
fn next_item(letters: &mut Chars<'_>) -> (Option<String>, bool) {
    let mut item = String::new();
    let (mut quoted, mut was_quoted) = (false, false);
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => item.extend(letters.next()),
            '"' => {
                quoted = !quoted;
                was_quoted = true;
            }
            ',' if !quoted => return (finished(item, was_quoted), false),
            other => item.push(other),
        }
    }
    (finished(item, was_quoted), true)
}

fn finished(item: String, was_quoted: bool) -> Option<String> {
    if was_quoted {
        return Some(item);
    }
    let plain = item.trim();
    (!plain.eq_ignore_ascii_case("null")).then(|| plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_items_are_the_strings_between_commas() {
        let items = |text: &str| text_array(text).collect::<Vec<_>>();
        assert_eq!(items("{}"), Vec::new());
        let empty = Some(String::new());
        assert_eq!(items("{,}"), vec![empty.clone(), empty]);
        assert_eq!(items("{ 1, 2 }"), vec![Some("1".to_owned()), Some("2".to_owned())]);
        assert_eq!(items("1 2"), vec![Some("1".to_owned()), Some("2".to_owned())]);
        assert_eq!(items("{NULL,\"NULL\"}"), vec![None, Some("NULL".to_owned())]);
        assert_eq!(items(r#"{"x\"y\\z",é}"#), vec![Some(r#"x"y\z"#.into()), Some("é".into())]);
    }
}
