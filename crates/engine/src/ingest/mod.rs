//! Ingestion of rows into tables, independent of the protocol.
//!
//! An [`Appender`] accepts bytes in one format: `csv`, `lines`, `copy` or `columns`. `feed` queues
//! these bytes for a reader of the format. `sink` receives the reader's rows for a single table,
//! and `planned_rows` receives rows for several tables. `stage` receives the rows of a query. All
//! of them use a `writer`, which either commits the rows immediately or adds them to the block of a
//! `transaction`.

mod arrow_stream;
mod columns;
mod copy;
mod csv;
mod feed;
mod lines;
mod planned_rows;
mod queue;
mod sink;
pub(crate) mod stage;
pub(crate) mod transaction;
pub(crate) mod writer;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidemark_border::{
    AppendProgress, AppendReport, AppenderKind, CopyReply, MessagesProgress, RowsReply, TextReport,
};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::database::{Database, given};
use columns::ColumnAppender;
pub use columns::Messages;
use copy::CopyAppender;
pub use copy::CopyTarget;
use csv::CsvAppender;
use lines::LineAppender;

/// Accepts bytes and writes rows. Dropping the appender discards uncommitted rows.
pub struct Appender(Kind);

enum Kind {
    Csv(Box<CsvAppender>),
    Lines(LineAppender),
    Columns(ColumnAppender),
    Copy(CopyAppender),
}

/// The specification field that selects the kind of appender.
#[derive(Deserialize)]
struct Named {
    kind: AppenderKind,
}

/// Result of finishing an appender.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Finished {
    /// Result of a CSV import.
    Text(Box<AppendReport>),
    /// Result for rows in several tables.
    Rows(RowsReply),
    /// Result of a COPY.
    Copied(CopyReply),
}

impl Appender {
    /// Opens an appender. `spec` is the JSON of an `AppenderSpec`, `LinesSpec`, `ColumnsSpec` or
    /// `CopySpec`. Only a `CopySpec` uses the target.
    pub fn open(
        database: &Arc<Database>,
        spec: &[u8],
        target: Option<CopyTarget>,
    ) -> EngineResult<Self> {
        failpoint::hit("engine.open_appender")?;
        let Named { kind } = given(spec, "appender")?;
        Ok(Self(match kind {
            AppenderKind::Csv => Kind::Csv(Box::new(CsvAppender::open(database, spec)?)),
            AppenderKind::Lines => Kind::Lines(LineAppender::open(database, spec)?),
            AppenderKind::Columns => Kind::Columns(ColumnAppender::open(database, spec)?),
            AppenderKind::Copy => {
                let target = target.ok_or_else(|| unsupported("COPY requires an INSERT"))?;
                Kind::Copy(CopyAppender::open(database, target, spec)?)
            }
        }))
    }

    /// Queues bytes; resolves when the queue has space.
    pub async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        failpoint::hit("engine.append")?;
        match &self.0 {
            Kind::Csv(csv) => csv.write(chunk).await,
            Kind::Lines(lines) => lines.write(chunk).await,
            Kind::Copy(copy) => copy.write(chunk).await,
            Kind::Columns(_) => Err(unsupported("this appender accepts only messages")),
        }
    }

    /// Reads pending columnar protocol messages; resolves when it has made progress.
    pub async fn read(&self, messages: Arc<Messages>) -> EngineResult<MessagesProgress> {
        failpoint::hit("engine.append")?;
        match &self.0 {
            Kind::Columns(columns) => columns.read(messages).await,
            Kind::Csv(_) | Kind::Lines(_) | Kind::Copy(_) => {
                Err(unsupported("this appender does not accept messages"))
            }
        }
    }

    /// Ends a CSV input and begins another in the same commit.
    pub async fn next_text(&self, csv: &[u8]) -> EngineResult<TextReport> {
        failpoint::hit("engine.append_text")?;
        match &self.0 {
            Kind::Csv(appender) => appender.next_text(csv).await,
            Kind::Lines(_) | Kind::Columns(_) | Kind::Copy(_) => {
                Err(unsupported("only CSV appenders accept more than one file"))
            }
        }
    }

    /// Ends the input and commits. Rows for several tables are planned by the first call and
    /// committed by the next. With `split`, if there are several columnar protocol commits, only
    /// the first is planned.
    pub async fn finish(&self, split: bool) -> EngineResult<Finished> {
        failpoint::hit("engine.append_finish")?;
        match &self.0 {
            Kind::Csv(csv) => Ok(Finished::Text(Box::new(csv.finish().await?))),
            Kind::Lines(lines) => Ok(Finished::Rows(lines.finish().await?)),
            Kind::Columns(columns) => Ok(Finished::Rows(columns.finish(split).await?)),
            Kind::Copy(copy) => Ok(Finished::Copied(copy.finish().await?)),
        }
    }

    /// Discards all received data.
    pub async fn abort(&self) -> EngineResult<()> {
        failpoint::hit("engine.append_abort")?;
        match &self.0 {
            Kind::Csv(csv) => csv.abort().await,
            Kind::Lines(lines) => lines.abort().await,
            Kind::Copy(copy) => copy.abort().await,
            Kind::Columns(columns) => {
                columns.abort();
                Ok(())
            }
        }
    }
}

fn unsupported(message: &str) -> EngineError {
    EngineError::new(ErrorCode::NotSupported, message)
}
