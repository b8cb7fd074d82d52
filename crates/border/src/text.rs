//! Text files that a statement reads (`read_csv`, `read_json`): the binder's format requests and
//! the detected formats.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::CsvTextSpec;

/// A binder request to detect the format of text files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TextFormatRequest {
    /// Identifies the request.
    pub key: String,
    /// The file format.
    pub format: TextFormat,
    /// The files, in the order in which their rows are returned.
    pub files: Vec<TextPath>,
    /// Options given in the statement, by name.
    pub options: HashMap<String, String>,
}

/// Format of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum TextFormat {
    /// Delimited lines.
    Csv,
    /// JSON objects or arrays.
    Json,
}

/// A text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TextPath {
    /// Path shown to users, relative to the import directory.
    pub name: String,
    /// Absolute path without symbolic links.
    pub path: String,
}

/// Detected formats of the requested files.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct TextShape {
    /// How to read each file, in the order of the request.
    pub files: Vec<TextFile>,
    /// Why the files cannot be read; absent if they can.
    #[serde(default)]
    pub problem: Option<String>,
}

/// How one text file is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct TextFile {
    /// Path shown to users.
    pub name: String,
    /// Version of the file when it was examined: device, inode, size in bytes and modification time
    /// in nanoseconds since 1970, separated by colons.
    pub version: String,
    /// Time when the file was examined, in milliseconds since 1970.
    pub examined_at: u64,
    /// The first and last 64 bytes in hexadecimal. A file that has only grown still contains them
    /// at the same offsets.
    pub edges: String,
    /// Path of the copy converted to UTF-8 CSV, if the file itself is in a different format.
    #[serde(default)]
    pub converted: Option<String>,
    /// How that CSV is parsed.
    pub csv: CsvTextSpec,
}
