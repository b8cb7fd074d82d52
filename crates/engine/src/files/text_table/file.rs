//! The version and format of one text file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_border::{CsvAtomicity, CsvColumnSpec, TextFile};
use tidemark_ingest::{CsvColumn, CsvSpec};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType, identifier};
use tidemark_vfs::{FileVersion, read_exact_at};

use crate::files::csv_text::{delimiter, parse_type};

/// A file's column.
#[derive(Debug, Clone)]
pub(super) struct TextColumn {
    /// Index of the column's field in each line.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) sql_type: SqlType,
    /// Format of the column's dates or numbers.
    pub(super) pattern: Option<String>,
    /// Whether the type was guessed.
    pub(super) guessed: bool,
    /// Strings that are read as null unless they are valid values of the column's type.
    pub(super) null_texts: Vec<String>,
}

impl TextColumn {
    fn new(spec: &CsvColumnSpec) -> EngineResult<Self> {
        Ok(Self {
            index: spec.index,
            name: spec.name.clone(),
            sql_type: parse_type(&spec.type_name)?,
            pattern: spec.pattern.clone(),
            guessed: spec.guessed.unwrap_or(false),
            null_texts: spec.null_texts.clone().unwrap_or_default(),
        })
    }
}

/// The version of a file to read. Data appended after this version is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(FileVersion);

impl Version {
    fn at(path: &Path) -> Option<Self> {
        FileVersion::at(path).ok().map(Self)
    }

    /// Length of the file in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Parses [`TextFile::version`].
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(str::parse::<i128>);
        let mut next = || numbers.next()?.ok();
        let (device, number, bytes, changed) = (next()?, next()?, next()?, next()?);
        Some(Self(FileVersion {
            device: u64::try_from(device).ok()?,
            number: u64::try_from(number).ok()?,
            bytes: u64::try_from(bytes).ok()?,
            changed_ns: changed,
        }))
    }

    /// Whether the file at `path` still has this version. If it was examined recently and has only
    /// grown since, the version counts as unchanged.
    fn is_at(&self, path: &Path, known: &TextFile) -> bool {
        let grew = |found: Self| {
            is_fresh(known)
                && found.continues(self)
                && edges(path, self.bytes()).is_ok_and(|edges| edges == known.edges)
        };
        Self::at(path).is_some_and(|found| found == *self || grew(found))
    }

    /// Whether this version is the same file as `before` with data appended.
    fn continues(&self, before: &Self) -> bool {
        let (now, then) = (self.0, before.0);
        (now.device, now.number) == (then.device, then.number) && now.bytes > then.bytes
    }
}

/// A text file and its format.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// Path of the file named in the statement, and its version when it was examined.
    original: (PathBuf, Version),
    /// Path of the file to read, which may be a converted copy.
    path: PathBuf,
    /// Path shown to users.
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) columns: Vec<TextColumn>,
    pub(super) delimiter: u8,
    pub(super) header: bool,
    pub(super) atomicity: CsvAtomicity,
    skip_extra_values: bool,
    max_line_bytes: usize,
}

impl Text {
    /// Creates a description of the file at `path`. Fails if the file has changed since it was
    /// examined.
    pub(super) fn new(
        path: PathBuf,
        known: &TextFile,
        most_line_bytes: usize,
    ) -> EngineResult<Self> {
        let missing = || changed(&known.name);
        let original = Version::parse(&known.version);
        let original = original.filter(|version| version.is_at(&path, known));
        let original = (path, original.ok_or_else(missing)?);
        let (path, version) = match known.converted.as_ref().map(PathBuf::from) {
            Some(converted) => {
                let version = Version::at(&converted).ok_or_else(missing)?;
                (converted, version)
            }
            None => original.clone(),
        };
        let csv = &known.csv;
        Ok(Self {
            original,
            path,
            name: known.name.clone(),
            version,
            columns: csv.columns.iter().map(TextColumn::new).collect::<EngineResult<_>>()?,
            delimiter: delimiter(csv)?,
            header: csv.header,
            atomicity: csv.atomicity,
            skip_extra_values: csv.skip_extra_values,
            max_line_bytes: most_line_bytes,
        })
    }

    /// Whether the file is unchanged since it was examined.
    pub(super) fn is_current(&self, known: &TextFile) -> bool {
        let (path, version) = &self.original;
        version.is_at(path, known) && self.version.is_at(&self.path, known)
    }

    /// Opens the file if it still has this version.
    pub(super) fn open(&self) -> EngineResult<File> {
        let file = File::open(&self.path).map_err(|_| changed(&self.name))?;
        let found = FileVersion::of(&file).map_err(|_| changed(&self.name))?;
        let found = Version(found);
        let is_it = found == self.version || found.continues(&self.version);
        if is_it { Ok(file) } else { Err(changed(&self.name)) }
    }

    /// Returns the column with this name.
    pub(super) fn column(&self, name: &str) -> Option<&TextColumn> {
        let exact = self.columns.iter().find(|column| column.name == name);
        exact.or_else(|| self.columns.iter().find(|one| identifier::same(&one.name, name)))
    }

    /// Returns how to parse the `target` columns from the file's lines. Columns that the file lacks
    /// are null.
    pub(super) fn spec(&self, target: Vec<Field>) -> CsvSpec {
        let columns = target.iter().enumerate().filter_map(|(at, field)| {
            let TextColumn { index, pattern, guessed, null_texts, .. } =
                self.column(&field.name)?;
            Some(CsvColumn {
                index: *index,
                target: at,
                pattern: pattern.clone(),
                required: false,
                guessed: *guessed,
                null_texts: null_texts.clone(),
            })
        });
        CsvSpec {
            delimiter: self.delimiter,
            header: self.header,
            columns: columns.collect(),
            atomicity: self.atomicity,
            skip_extra_values: self.skip_extra_values,
            line_fields: self.columns.iter().map(|column| column.index + 1).max().unwrap_or(0),
            max_line_bytes: self.max_line_bytes,
            target,
            timestamp: None,
        }
    }
}

/// Time in milliseconds after a file is examined during which appended data does not count as a
/// change. Without this grace period, every statement on a growing log file would be bound
/// repeatedly.
const FRESH_MS: u64 = 1_000;

/// Number of bytes compared at each end of a file.
const EDGE_BYTES: u64 = 64;

/// Computes [`TextFile::edges`] for a file's first `bytes` bytes.
fn edges(path: &Path, bytes: u64) -> std::io::Result<String> {
    let file = File::open(path)?;
    let mut edge = vec![0; EDGE_BYTES.min(bytes) as usize];
    let mut digits = String::new();
    for at in [0, bytes.saturating_sub(EDGE_BYTES)] {
        read_exact_at(&file, &mut edge, at)?;
        digits.extend(edge.iter().map(|byte| format!("{byte:02x}")));
    }
    Ok(digits)
}

fn is_fresh(known: &TextFile) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    now.saturating_sub(known.examined_at.into()) < FRESH_MS.into()
}

/// Returns the error for a file that has changed since it was examined.
pub(super) fn changed(name: &str) -> EngineError {
    EngineError::new(
        ErrorCode::Replan,
        format!("file '{name}' changed while its schema was being detected"),
    )
    .with_hint("retry the statement")
}
