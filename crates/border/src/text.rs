//! Texts in files that a statement reads (`read_csv`, `read_json`): what binding asks about them,
//! and what is found.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::CsvTextSpec;

/// A question of binding: how the texts in some files are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TextAsk {
    /// Tells it apart from other questions.
    pub key: String,
    /// What the files are.
    pub format: TextFormat,
    /// The files, in the order in which their rows come.
    pub files: Vec<TextPlace>,
    /// What the statement says about them, by the names of the options.
    pub options: HashMap<String, String>,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum TextFormat {
    /// Lines of values.
    Csv,
    /// Objects or arrays.
    Json,
}

/// A file of texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TextPlace {
    /// As users know it, below the import directory.
    pub name: String,
    /// Where it is, absolute and without links.
    pub path: String,
}

/// What is found about the files of a question.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct TextShape {
    /// How they are read, in the order of the question.
    pub files: Vec<TextFile>,
    /// Why they cannot be read.
    #[serde(default)]
    pub problem: Option<String>,
}

/// How the text in one file is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct TextFile {
    /// As users know it.
    pub name: String,
    /// Which content of the file was looked at: device, number, bytes, nanoseconds since 1970 of
    /// the last change, with a colon between them.
    pub version: String,
    /// When that was, in milliseconds since 1970.
    pub looked_at: u64,
    /// Its first 64 bytes and its last, in hexadecimal digits: a file that grew has them still.
    pub edges: String,
    /// Where its text lies as UTF-8 and CSV, if the file itself is something else.
    #[serde(default)]
    pub converted: Option<String>,
    /// How that is read.
    pub csv: CsvTextSpec,
}
