//! Hive partition directories: `year=2026/month=01`.

use datafusion::common::ScalarValue;
use tidemark_types::{Field, SqlType};

/// Directory name that represents null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the columns that the directories of `paths` define, and their values for each path.
/// Omits columns for which `known` returns true. Returns no columns if the paths define different
/// columns. Integers are INT or LONG; all other values are VARCHAR.
pub(super) fn columns_of(
    paths: &[&str],
    known: &dyn Fn(&str) -> bool,
) -> (Vec<Field>, Vec<Vec<ScalarValue>>) {
    let pairs: Vec<Vec<(&str, Option<String>)>> = paths.iter().map(|path| pairs(path)).collect();
    let keys: Vec<&str> =
        pairs.first().map(|first| first.iter().map(|(key, _)| *key).collect()).unwrap_or_default();
    let same = |of: &Vec<(&str, Option<String>)>| of.iter().map(|(key, _)| *key).eq(keys.clone());
    if !pairs.iter().all(same) {
        return (Vec::new(), vec![Vec::new(); paths.len()]);
    }
    let mut fields = Vec::new();
    let mut rows = vec![Vec::new(); paths.len()];
    for (at, key) in keys.iter().enumerate() {
        if known(key) || keys[..at].contains(key) {
            continue;
        }
        let texts: Vec<Option<&str>> = pairs.iter().map(|of| of[at].1.as_deref()).collect();
        let sql_type = type_of(&texts);
        fields.push(Field::new(*key, sql_type));
        for (row, text) in rows.iter_mut().zip(texts) {
            row.push(value_of(text, sql_type));
        }
    }
    (fields, rows)
}

/// Returns the `key=value` pairs among a path's directories.
fn pairs(path: &str) -> Vec<(&str, Option<String>)> {
    let directories = path.rsplit_once('/').map_or("", |(directories, _)| directories);
    let pair = |directory: &'_ str| -> Option<(usize, Option<String>)> {
        let (key, value) = directory.split_once('=')?;
        let value = decoded(value);
        (!key.is_empty()).then(|| (key.len(), (value != NULL).then_some(value)))
    };
    directories
        .split('/')
        .filter_map(|directory| pair(directory).map(|(key, value)| (&directory[..key], value)))
        .collect()
}

/// Decodes escapes such as `%20`, which replace characters that file systems do not allow.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn type_of(texts: &[Option<&str>]) -> SqlType {
    let numbers: Option<Vec<i64>> = texts.iter().flatten().map(|text| text.parse().ok()).collect();
    match numbers {
        Some(numbers) if !numbers.is_empty() => {
            let is_int = |number: &i64| i32::try_from(*number).is_ok_and(|int| int != i32::MIN);
            if numbers.iter().all(is_int) { SqlType::Int } else { SqlType::Long }
        }
        _ => SqlType::Varchar,
    }
}

fn value_of(text: Option<&str>, sql_type: SqlType) -> ScalarValue {
    match sql_type {
        SqlType::Int => ScalarValue::Int32(text.and_then(|text| text.parse().ok())),
        SqlType::Long => ScalarValue::Int64(text.and_then(|text| text.parse().ok())),
        _ => ScalarValue::Utf8View(text.map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> (Vec<(String, SqlType)>, Vec<Vec<String>>) {
        let (fields, rows) = columns_of(paths, &|name| name == "known");
        let fields = fields.into_iter().map(|field| (field.name, field.sql_type)).collect();
        let texts = |row: Vec<ScalarValue>| row.iter().map(ToString::to_string).collect();
        (fields, rows.into_iter().map(texts).collect())
    }

    #[test]
    fn hive_directories_become_columns_when_all_files_have_them() {
        let (fields, rows) = of(&[
            "in/year=2026/city=New%20York/known=1/a.parquet",
            "in/year=2025/city=__HIVE_DEFAULT_PARTITION__/known=2/b=c.parquet",
        ]);
        assert_eq!(fields, [("year".into(), SqlType::Int), ("city".into(), SqlType::Varchar)]);
        assert_eq!(rows, [["2026", "New York"], ["2025", "NULL"]]);
        assert_eq!(of(&["year=1/a", "a"]).0, []);
        assert_eq!(of(&["x=9999999999/a"]).0, [("x".into(), SqlType::Long)]);
        assert_eq!(of(&["a.parquet"]).0, []);
    }
}
