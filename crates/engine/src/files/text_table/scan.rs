//! Reads text files in order.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use arrow::array::RecordBatchOptions;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use tidemark_ingest::CsvReader;
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, account};
use tokio::sync::mpsc::Sender;

use super::file::{Text, changed};

/// Number of bytes per read.
pub(super) const CHUNK_BYTES: usize = 256 << 10;
/// Number of batches that may be read ahead of the plan.
const BATCHES_AHEAD: usize = 2;

/// A scan of text files.
#[derive(Debug)]
pub(super) struct TextScanExec {
    texts: Arc<Vec<Arc<Text>>>,
    /// The result columns.
    columns: Vec<Field>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl TextScanExec {
    pub(super) fn new(
        texts: Vec<Arc<Text>>,
        columns: Vec<Field>,
        schema: SchemaRef,
        limit: Option<usize>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { texts: Arc::new(texts), columns, limit, properties: Arc::new(properties) }
    }
}

impl DisplayAs for TextScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let columns: Vec<&str> = self.columns.iter().map(|one| one.name.as_str()).collect();
        let (files, columns) = (self.texts.len(), columns.join(", "));
        write!(f, "TextScanExec: files={files} columns=[{columns}]")?;
        self.limit.map_or(Ok(()), |limit| write!(f, " limit={limit}"))
    }
}

impl ExecutionPlan for TextScanExec {
    fn name(&self) -> &'static str {
        "TextScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Optimizer rules call this for every plan that they visit, so it also checks for
        // cancellation.
        check_stop().map_err(external)?;
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), BATCHES_AHEAD);
        let (texts, columns) = (Arc::clone(&self.texts), self.columns.clone());
        let left = self.limit.unwrap_or(usize::MAX);
        let mut rows = Rows { sender: builder.tx(), schema, left };
        builder.spawn_blocking(move || {
            for text in texts.iter() {
                if !read(text, &columns, &mut rows).map_err(external)? {
                    break; // The plan needs no more rows.
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

fn external(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Destination for the parsed rows.
struct Rows {
    sender: Sender<Result<RecordBatch>>,
    schema: SchemaRef,
    /// Number of rows that the plan still needs.
    left: usize,
}

impl Rows {
    fn are_needed(&self) -> bool {
        self.left > 0 && !self.sender.is_closed()
    }

    fn send(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        let batch = batch.slice(0, self.left.min(batch.num_rows()));
        self.left -= batch.num_rows();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let (schema, columns) = (Arc::clone(&self.schema), batch.columns().to_vec());
        let batch =
            RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| {
                EngineError::internal(format!(
                    "cannot assemble the columns of a text file: {error}"
                ))
            })?;
        // Sending fails if the plan has enough rows and has closed the channel.
        let _ = self.sender.blocking_send(Ok(batch));
        Ok(())
    }
}

/// Reads one file; returns whether the plan needs more rows.
fn read(text: &Text, columns: &[Field], rows: &mut Rows) -> EngineResult<bool> {
    let mut file = text.open()?.take(text.version.bytes());
    let spec = text.spec(columns.to_vec());
    let reported: Vec<&str> =
        spec.columns.iter().map(|column| columns[column.target].name.as_str()).collect();
    let mut reader = CsvReader::new(spec)?;
    let named = |error| named(error, text);
    let mut chunk = vec![0; CHUNK_BYTES];
    while rows.are_needed() {
        account::check()?;
        let length = file.read(&mut chunk).map_err(|error| EngineError::io(&text.name, &error))?;
        let sink = &mut |batch| rows.send(&batch);
        if length == 0 {
            reader.finish(sink).map_err(named)?;
            must_fit(&reader, text, &reported)?;
            let is_whole = file.limit() == 0;
            return if is_whole { Ok(rows.are_needed()) } else { Err(changed(&text.name)) };
        }
        reader.feed(&chunk[..length], sink).map_err(named)?;
        must_fit(&reader, text, &reported)?;
    }
    Ok(false)
}

/// Adds the file name to a reader error.
pub(super) fn named(error: EngineError, text: &Text) -> EngineError {
    let is_bad = error.code == ErrorCode::InvalidValue;
    if !is_bad && error.code != ErrorCode::ResourceLimit {
        return error;
    }
    let message = format!("cannot read '{}', {}", text.name, error.message);
    let hint = "set ignore_errors => true to ignore values that cannot be read";
    let hint = if is_bad { Some(hint.to_owned()) } else { error.hint.clone() };
    EngineError { message, hint, ..error }
}

/// Fails if a value does not fit a guessed type. The type can no longer be widened, because rows
/// with that type have already been sent.
fn must_fit(reader: &CsvReader, text: &Text, reported: &[&str]) -> EngineResult<()> {
    let mut widened = reported.iter().zip(&reader.report().widened);
    let found = widened.find_map(|(name, widened)| Some((name, widened.as_ref()?)));
    let Some((column, widened)) = found else { return Ok(()) };
    let known = text.column(column).map_or_else(String::new, |known| known.sql_type.name());
    let message = format!(
        "cannot read '{}', line {}, column '{column}': '{}' is not {known}, the detected type",
        text.name, widened.line, widened.text
    );
    Err(EngineError::new(ErrorCode::InvalidValue, message)
        .with_hint("set sample_size => -1 to detect the types from all values"))
}
