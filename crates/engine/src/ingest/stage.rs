//! Writes a query's result to a table.

use arrow::record_batch::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::execution::check_faults;
use crate::execution::source::BatchSource;
use crate::ingest::transaction::Transaction;
use crate::ingest::writer::{TableIndex, Writer};
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;

/// Writes all rows of a source. A few rows are buffered in memory; larger numbers are staged in
/// files. `faults` is the number of mapped-file faults before the first read.
pub(crate) async fn write_all(
    mut writer: Writer,
    table: TableIndex,
    mut source: BatchSource,
    transaction: Option<&Transaction>,
    (token, faults): (&CancelToken, u64),
) -> EngineResult<u64> {
    // A block's rows remain in memory until the block ends.
    while transaction.is_some() || !writer.is_staging(table) {
        let Some(batch) = source.next().await? else {
            check_faults(faults)?;
            return writer.finish(transaction, token).await;
        };
        writer.buffer(table, batch)?;
    }
    stage_all(writer, table, source, (token, faults)).await
}

/// Streams rows into segments. Either all rows become visible and durable at the end, or none do.
/// Dropping the future also drops the writer, which discards all rows. `faults` is the number of
/// mapped-file faults before the first read.
pub(crate) async fn stage_all(
    mut writer: Writer,
    table: TableIndex,
    mut source: BatchSource,
    (token, faults): (&CancelToken, u64),
) -> EngineResult<u64> {
    let token = token.clone();
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Staged>(2);
    let writing = tokio::spawn(guard::run_blocking("bulk_write", move || {
        failpoint::hit("engine.bulk_write")?;
        while let Some(rows) = receiver.blocking_recv() {
            match rows {
                Staged::Rows(batch) => writer.push(table, batch)?,
                Staged::End => {
                    check_faults(faults)?;
                    return writer.commit(&token);
                }
            }
        }
        Err(EngineError::new(ErrorCode::Cancelled, "cancelled by user"))
    }));
    while let Some(batch) = source.next().await? {
        // Sending fails only if the writer has failed. The writer's error is returned below.
        if sender.send(Staged::Rows(batch)).await.is_err() {
            break;
        }
    }
    let _ = sender.send(Staged::End).await;
    drop(sender);
    writing.await.map_err(|error| EngineError::internal(error.to_string()))?
}

/// Rows to be written to files, or the end marker.
enum Staged {
    Rows(RecordBatch),
    End,
}
