//! The way of rows into tables, whatever brings them.
//!
//! An [`Appender`] takes bytes of one format: `csv`, `lines`, `copy`, `columns`. `feed`
//! queues bytes for a reader, `sink` takes the rows of one table from it, `planned_rows` those of
//! several, `stage` those of a query. All end in a `writer`, which commits them at once, or hands
//! them to the block of a `transaction`.

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

/// Takes bytes and writes rows. Dropping it forgets what was not committed.
pub struct Appender(Kind);

enum Kind {
    Csv(Box<CsvAppender>),
    Lines(LineAppender),
    Columns(ColumnAppender),
    Copy(CopyAppender),
}

/// The part of a specification that says which one it is.
#[derive(Deserialize)]
struct Named {
    kind: AppenderKind,
}

/// What the end of the bytes came to.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Finished {
    /// Of CSV.
    Text(Box<AppendReport>),
    /// Of rows for several tables.
    Rows(RowsReply),
    /// Of COPY.
    Copied(CopyReply),
}

impl Appender {
    /// Opens an appender; `spec` is the JSON of an `AppenderSpec`, a `LinesSpec`, a `ColumnsSpec`
    /// or a `CopySpec`, which takes the target of the rows.
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
                let target = target.ok_or_else(|| unsupported("COPY takes an INSERT"))?;
                Kind::Copy(CopyAppender::open(database, target, spec)?)
            }
        }))
    }

    /// Queues bytes; resolves when there was room for them.
    pub async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        failpoint::hit("engine.append")?;
        match &self.0 {
            Kind::Csv(csv) => csv.write(chunk).await,
            Kind::Lines(lines) => lines.write(chunk).await,
            Kind::Copy(copy) => copy.write(chunk).await,
            Kind::Columns(_) => Err(unsupported("messages come through their connection")),
        }
    }

    /// Reads messages of the columnar protocol that wait; resolves when what is read is to be
    /// known.
    pub async fn read(&self, messages: Arc<Messages>) -> EngineResult<MessagesProgress> {
        failpoint::hit("engine.append")?;
        match &self.0 {
            Kind::Columns(columns) => columns.read(messages).await,
            Kind::Csv(_) | Kind::Lines(_) | Kind::Copy(_) => {
                Err(unsupported("only columns come as messages"))
            }
        }
    }

    /// Ends one text of CSV and begins another in the same commit.
    pub async fn next_text(&self, csv: &[u8]) -> EngineResult<TextReport> {
        failpoint::hit("engine.append_text")?;
        match &self.0 {
            Kind::Csv(appender) => appender.next_text(csv).await,
            Kind::Lines(_) | Kind::Columns(_) | Kind::Copy(_) => {
                Err(unsupported("only appenders of CSV take several texts"))
            }
        }
    }

    /// Takes the end of the bytes, and commits. Rows for several tables are planned first, and
    /// committed when it is called again. `split`: what several commits of the columnar protocol
    /// would be is planned for the first of them.
    pub async fn finish(&self, split: bool) -> EngineResult<Finished> {
        failpoint::hit("engine.append_finish")?;
        match &self.0 {
            Kind::Csv(csv) => Ok(Finished::Text(Box::new(csv.finish().await?))),
            Kind::Lines(lines) => Ok(Finished::Rows(lines.finish().await?)),
            Kind::Columns(columns) => Ok(Finished::Rows(columns.finish(split).await?)),
            Kind::Copy(copy) => Ok(Finished::Copied(copy.finish().await?)),
        }
    }

    /// Forgets everything that came.
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
