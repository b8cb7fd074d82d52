//! A temporary database for the SQL test runner.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sqllogictest::{AsyncDB, ColumnType, DBOutput};
use tempfile::TempDir;
use tidemark_engine::{Database, EngineError, EngineResult, ExecuteOptions, Statement, given};

use crate::parser::parse;

/// Encoded parameters of a statement without parameters: no types, and one row without values.
const NO_PARAMETERS: [u8; 4] = [0; 4];
/// Length of a message header in bytes: the `D` byte and the message length.
const MESSAGE_HEADER_BYTES: usize = 5;

/// A database that exists while one test file runs.
pub(crate) struct Opened {
    database: Arc<Database>,
    _root: TempDir,
}

impl Opened {
    pub(crate) fn new() -> EngineResult<Self> {
        let root = TempDir::with_prefix("tidemark-cases-")
            .map_err(|error| EngineError::io("cannot make a temporary folder", &error))?;
        // The data is not needed after the test file has ended.
        let options = serde_json::json!({
            "root": root.path(), "commitMode": "nosync", "workers": 2, "diskReserveBytes": 0,
            "processMemoryBytes": 4_u64 << 30,
        });
        let database = Database::open(&given(options.to_string().as_bytes(), "open options")?)?;
        Ok(Self { database, _root: root })
    }

    pub(crate) fn session(&self) -> Session {
        Session { database: Arc::clone(&self.database) }
    }
}

pub(crate) struct Session {
    database: Arc<Database>,
}

/// A statement error, with its position if known: `7: message`.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) String);

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self(match error.span {
            Some(span) => format!("{}: {}", span.start, error.message),
            None => error.message,
        })
    }
}

/// Column types, each with its letter in the sqllogictest format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Integer,
    /// FLOAT, DOUBLE and DECIMAL.
    Number,
    Time,
    Text,
    /// Arrays, bytes, intervals and null.
    Other,
}

impl Kind {
    fn of(type_name: &str) -> Self {
        let name = type_name.split('(').next().unwrap_or_default();
        match name {
            "BOOLEAN" => Self::Boolean,
            "BYTE" | "SHORT" | "INT" | "LONG" => Self::Integer,
            "FLOAT" | "DOUBLE" | "DECIMAL" => Self::Number,
            "DATE" | "TIMESTAMP" | "TIMESTAMP_NS" => Self::Time,
            "CHAR" | "SYMBOL" | "STRING" | "VARCHAR" | "UUID" | "IPv4" | "LONG256" | "GEOHASH" => {
                Self::Text
            }
            _ => Self::Other,
        }
    }
}

impl ColumnType for Kind {
    fn from_char(letter: char) -> Option<Self> {
        match letter {
            'B' => Some(Self::Boolean),
            'I' => Some(Self::Integer),
            'R' => Some(Self::Number),
            'P' => Some(Self::Time),
            'T' => Some(Self::Text),
            '?' => Some(Self::Other),
            _ => None,
        }
    }

    fn to_char(&self) -> char {
        match self {
            Self::Boolean => 'B',
            Self::Integer => 'I',
            Self::Number => 'R',
            Self::Time => 'P',
            Self::Text => 'T',
            Self::Other => '?',
        }
    }
}

#[async_trait]
impl AsyncDB for Session {
    type Error = Refusal;
    type ColumnType = Kind;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Kind>, Refusal> {
        let tree = parse(sql)?;
        let statement = Statement::prepare(&self.database, tree.as_bytes(), b"{}", None)?;
        let statement = Arc::new(statement);
        let columns = statement.describe().columns;
        let rows = serde_json::json!({
            "format": "pg", "formatCodes": vec![0; columns.len()], "nanoseconds": true,
        });
        let options = serde_json::json!({ "rows": rows });
        let options: ExecuteOptions = given(options.to_string().as_bytes(), "options")?;
        let registration = statement.register(&options)?;
        let reply = statement.execute(registration, &NO_PARAMETERS, options).await?;
        if columns.is_empty() {
            let affected = reply.summary.map_or(0, |summary| summary.rows_affected);
            return Ok(DBOutput::StatementComplete(affected));
        }
        let mut rows = Vec::new();
        let mut next = reply.chunk;
        while let Some(chunk) = next {
            read_rows(&chunk.bytes, &mut rows);
            next = match &reply.stream {
                Some(stream) => stream.next(None).await?,
                None => None,
            };
        }
        let types = columns.iter().map(|column| Kind::of(&column.type_name)).collect();
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &'static str {
        "tidemark"
    }
}

/// Decodes the cells of `DataRow` messages.
fn read_rows(mut bytes: &[u8], rows: &mut Vec<Vec<String>>) {
    while !bytes.is_empty() {
        bytes = &bytes[MESSAGE_HEADER_BYTES..];
        let count = i16::from_be_bytes(take(&mut bytes));
        rows.push((0..count).map(|_| cell(&mut bytes)).collect());
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let mut used = [0; N];
    used.copy_from_slice(&bytes[..N]);
    *bytes = &bytes[N..];
    used
}

/// Formats a cell on one line for sqllogictest. Spaces that the test runner would collapse or trim
/// are shown as dots.
fn cell(bytes: &mut &[u8]) -> String {
    let Ok(length) = usize::try_from(i32::from_be_bytes(take(bytes))) else {
        return "NULL".to_owned();
    };
    let (text, rest) = bytes.split_at(length);
    *bytes = rest;
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let text = String::from_utf8_lossy(text).replace('\n', "\\n");
    let letters: Vec<char> = text.chars().collect();
    let is_blank = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_none_or(|c| *c == ' ');
    let shown = letters.iter().enumerate().map(|(at, letter)| {
        let is_lost = is_blank(at.checked_sub(1)) || is_blank(Some(at + 1));
        if *letter == ' ' && is_lost { '·' } else { *letter }
    });
    shown.collect()
}
