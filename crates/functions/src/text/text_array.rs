//! Items in `PostgreSQL` catalog arrays, which are stored as strings: `{a,"b c",NULL}`.

use crate::text::bounded_text::BoundedText;

/// Appends an item to the list between the braces.
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
    use tidemark_types::text_array::text_array;

    use super::*;

    #[test]
    fn array_items_round_trip_through_strings() {
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
        let items = |text: &str| text_array(text).collect::<Vec<_>>();
        assert_eq!(items(list.get().unwrap()), expected);
    }
}
