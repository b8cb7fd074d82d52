//! Arrays of the catalog of `PostgreSQL` are text here: `{a,"b c",NULL}`, or, of numbers, `1 2`.

use crate::text::bounded_text::BoundedText;

/// The items; `None` for NULL.
#[must_use]
pub fn text_array(text: &str) -> Vec<Option<String>> {
    let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return text.split_whitespace().map(|item| Some(item.to_owned())).collect();
    };
    let mut items = Vec::new();
    let mut item = String::new();
    let (mut quoted, mut was_quoted) = (false, false);
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => item.extend(letters.next()),
            '"' => {
                quoted = !quoted;
                was_quoted = true;
            }
            ',' if !quoted => {
                items.push(finished(std::mem::take(&mut item), was_quoted));
                was_quoted = false;
            }
            other => item.push(other),
        }
    }
    if !inner.is_empty() {
        items.push(finished(item, was_quoted));
    }
    items
}

fn finished(item: String, was_quoted: bool) -> Option<String> {
    if was_quoted {
        return Some(item);
    }
    let plain = item.trim();
    (!plain.eq_ignore_ascii_case("null")).then(|| plain.to_owned())
}

/// Adds an item to what will stand between the braces.
pub(crate) fn push_item(list: &mut BoundedText, item: Option<&str>) {
    let Some(item) = item else {
        list.push_str("NULL");
        return;
    };
    let special = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',' | '"' | '\\');
    if !item.is_empty() && !item.contains(special) && !item.eq_ignore_ascii_case("null") {
        list.push_str(item);
        return;
    }
    list.push('"');
    for letter in item.chars() {
        if matches!(letter, '"' | '\\') {
            list.push('\\');
        }
        list.push(letter);
    }
    list.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_were_written() {
        let items = ["a", "", "b c", "null", r#"x"y\z"#, "{1,2}", "é"];
        let mut list = BoundedText::default();
        list.push('{');
        for item in items {
            push_item(&mut list, Some(item));
            list.push(',');
        }
        push_item(&mut list, None);
        list.push('}');
        let mut expected: Vec<Option<String>> =
            items.iter().map(|item| Some((*item).to_owned())).collect();
        expected.push(None);
        assert_eq!(text_array(list.get().unwrap()), expected);
        assert_eq!(text_array("{}"), Vec::new());
        assert_eq!(text_array("{ 1, 2 }"), vec![Some("1".to_owned()), Some("2".to_owned())]);
        assert_eq!(text_array("1 2"), vec![Some("1".to_owned()), Some("2".to_owned())]);
        assert_eq!(text_array("{NULL,\"NULL\"}"), vec![None, Some("NULL".to_owned())]);
    }
}
