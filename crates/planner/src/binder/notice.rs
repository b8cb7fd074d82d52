//! Syntax that is accepted without effect because it tunes features that this database lacks. This
//! module lists all such syntax, with notices for the client.

use tidemark_ast::OptionValue;
use tidemark_border::Permission;

use super::Binder;

/// The notice for an index type.
pub(crate) const INDEX: &str =
    "symbols are looked up by dictionary code: the index type is only stored for SHOW";
const FORMAT: &str =
    "new partitions are written in the native format: use CONVERT PARTITION TO PARQUET";
const PARQUET: &str =
    "encodings of Parquet partitions are chosen by column type: PARQUET(…) has no effect";
pub(crate) const VOLUME: &str =
    "the table is stored in the root directory: IN VOLUME has no effect";

pub(crate) const KEY_NOT_ENFORCED: &str = "PRIMARY KEY is not enforced: only keys that include \
                                           the designated timestamp of a WAL table are enforced, \
                                           as DEDUP UPSERT KEYS";
pub(crate) const KEY_OF_NEW_ROWS: &str = "from now on, inserted rows replace rows with \
     the same key (DEDUP UPSERT KEYS); existing duplicates remain";
pub(crate) const CONSTRAINT: &str = "UNIQUE, CHECK and FOREIGN KEY are not enforced";
const TEMPORARY: &str =
    "a temporary table is visible to all sessions and dropped at the end of its own session";
pub(crate) const EXTENSION: &str =
    "extensions are not loaded: functions() lists the available functions";
pub(crate) const TEMPORARY_VIEW: &str =
    "a temporary view is visible to all sessions and dropped at the end of its own session";
const UNLOGGED: &str = "an unlogged table is as durable as any other";
const COLLATION: &str = "strings are compared by code point: COLLATE has no effect";
const IDENTITY: &str = "values start at START, or after the greatest existing value, and \
     increase by INCREMENT, which is at least 1: other IDENTITY options have no effect";
pub(crate) const TABLE_INDEX: &str = "symbols are looked up by dictionary code and times by order: \
     the index is listed in the catalog, but has no effect";

/// ALTER TABLE, VACUUM and REINDEX actions that have no effect: keywords, permission and notice.
const ACTIONS: &[(&[&str], Permission, &str)] = &[
    (&["VACUUM"], Permission::VacuumTable, "unused files are removed automatically"),
    (&["REINDEX"], Permission::Reindex, "there is no index to rebuild"),
    (
        &["RESUME", "WAL"],
        Permission::ResumeWal,
        "commits are applied immediately: there is nothing to resume",
    ),
    (
        &["SUSPEND", "WAL"],
        Permission::ResumeWal,
        "commits are applied immediately: the table is not suspended",
    ),
    (&["SET", "FORMAT"], Permission::SetTableParam, FORMAT),
    (
        &["OWNER", "TO"],
        Permission::SetTableParam,
        "tables have no owner: use GRANT to grant permissions on the table",
    ),
];

/// Table or column options that have no effect, by name.
const OPTIONS: &[(&str, &str)] = &[
    ("format", FORMAT),
    ("parquet", PARQUET),
    ("volume", VOLUME),
    ("type", INDEX),
    ("include", INDEX),
    ("temp", TEMPORARY),
    ("temporary", TEMPORARY),
    ("unlogged", UNLOGGED),
    ("collate", COLLATION),
    ("identity", IDENTITY),
];
/// Option values that request the default behaviour.
const USUAL: [&str; 5] = ["NATIVE", "BITMAP", "C", "POSIX", "default"];

/// Options that are accepted without a notice.
const SILENT_OPTIONS: [&str; 5] = ["batch", "batch o3maxlag", "atomic", "owned", "ttl"];

/// Whether this table option is accepted but has no effect.
pub(crate) fn is_option(name: &str) -> bool {
    SILENT_OPTIONS.contains(&name) || OPTIONS.iter().any(|(known, _)| *known == name)
}

/// The permission and notice for an action without effect; `None` if the action must be rejected.
pub(crate) fn idle_action(words: &[String]) -> Option<(Permission, &'static str)> {
    let begins = |with: &[&str]| {
        words.len() >= with.len()
            && words.iter().zip(with).all(|(word, with)| word.eq_ignore_ascii_case(with))
    };
    if let Some((_, permission, notice)) = ACTIONS.iter().find(|(words, ..)| begins(words)) {
        return Some((*permission, notice));
    }
    if begins(&["REBASE", "WAL"]) && words.len() == 2 {
        return Some((
            Permission::SystemAdmin,
            "commits are applied immediately: there is no log to rebase",
        ));
    }
    let sets_parquet = |words: &[String]| {
        matches!(words, [set, parquet, ..]
            if set.eq_ignore_ascii_case("SET") && parquet.eq_ignore_ascii_case("PARQUET"))
    };
    let alters_column = begins(&["ALTER", "COLUMN"]) && words.len() > 3;
    (alters_column && sets_parquet(&words[3..])).then_some((Permission::SetTableParam, PARQUET))
}

impl Binder<'_> {
    /// Adds notices for options that have no effect.
    pub(crate) fn note_idle_options(&mut self, options: &[OptionValue]) {
        for option in options {
            let name = option.name.text.as_str();
            let value = option.value.as_ref().map_or("", |value| value.text.as_str());
            if USUAL.iter().any(|usual| usual.eq_ignore_ascii_case(value)) {
                continue;
            }
            let known = OPTIONS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
            self.notices.extend(known.map(|(_, notice)| *notice));
        }
    }

    /// All notices on one line.
    pub(crate) fn notice(&self) -> Option<String> {
        let mut notices = self.notices.clone();
        notices.dedup();
        (!notices.is_empty()).then(|| notices.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn statements_without_effect_are_recognised() {
        for text in [
            "VACUUM",
            "reindex LOCK EXCLUSIVE",
            "resume wal FROM TXN 5",
            "REBASE WAL",
            "OWNER TO CURRENT_USER",
            "SET FORMAT PARQUET",
            "alter column v set parquet ( plain )",
        ] {
            assert!(idle_action(&words(text)).is_some(), "{text}");
        }
        for text in ["REBASE WAL INTO folder", "SET TABLE", "ALTER COLUMN v DROP", ""] {
            assert!(idle_action(&words(text)).is_none(), "{text}");
        }
    }
}
