//! Server files in FROM: `read_parquet`, `read_csv`, `read_json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::TimestampMillisecondArray;
use datafusion::common::ScalarValue;
use tidemark_ast::{BinaryOperator, CallNode, Name, Node, NodeId, Span};
use tidemark_border::{Permission, TextFormat};
use tidemark_functions::CastMode;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::catalog::catalog_rows::{longs, texts};
use crate::binder::expressions::constant;
use crate::binder::state::scope::{Relation, Scope, TimeOrder};
use crate::binder::{Binder, error};
use crate::{Access, ExternalSources, ExternalTable, FileRoot, TextRequest, TextRows};

/// Names of `read_csv` options, and their canonical names.
const CSV_OPTIONS: [(&str, &str); 10] = [
    ("delimiter", "delimiter"),
    ("delim", "delimiter"),
    ("sep", "delimiter"),
    ("header", "header"),
    ("encoding", "encoding"),
    ("decimal", "decimal"),
    ("decimal_separator", "decimal"),
    ("schema", "schema"),
    ("ignore_errors", "ignore_errors"),
    ("sample_size", "sample_size"),
];
/// Options that JSON files also support.
const JSON_OPTIONS: [&str; 4] = ["encoding", "schema", "ignore_errors", "sample_size"];

/// A call's options, by canonical name.
type Options = BTreeMap<&'static str, String>;

impl Binder<'_> {
    /// Binds `read_parquet('a', 'b')` and `read_parquet(ARRAY['a', 'b'])`.
    pub(crate) fn read_parquet(&mut self, call: &CallNode) -> EngineResult<Relation> {
        let (paths, at) = self.paths(call, &call.arguments)?;
        let external = self.files(call)?;
        let table = external
            .read_parquet(&paths)
            .map_err(|failure| failure.at_if_missing(error::span(at)))?;
        self.rows_of_files(table)
    }

    /// Binds `read_csv('a', header = true)`, and the same for JSON.
    pub(crate) fn read_text(
        &mut self,
        call: &CallNode,
        format: TextFormat,
    ) -> EngineResult<Relation> {
        let mut indices = Vec::new();
        let mut options = Options::new();
        for id in &call.arguments {
            match self.option(*id)? {
                Some((name, value)) => {
                    let value = self.option_value(value)?;
                    let span = name.span;
                    if options.insert(option_name(&name, format)?, value).is_some() {
                        let message = format!("duplicate option '{}'", name.text);
                        return Err(error::at(ErrorCode::InvalidValue, message, span));
                    }
                }
                None => indices.push(*id),
            }
        }
        let (paths, at) = self.paths(call, &indices)?;
        let external = self.files(call)?;
        let request = TextRequest { format, paths, options };
        let key = request.key();
        let known = self.context.texts.get(&key);
        let rows = external
            .read_text(&request, known)
            .map_err(|failure| failure.at_if_missing(error::span(at)))?;
        match rows {
            TextRows::Table(table) => self.rows_of_files(table),
            TextRows::Unknown(ask) => {
                self.context.request_text_schema(ask);
                Err(error::not_supported("a text file of unknown format is", call.name.span))
            }
        }
    }

    /// Parses `name = value`, which is an option here and not a comparison.
    fn option(&self, id: NodeId) -> EngineResult<Option<(Name, NodeId)>> {
        let Node::Binary { operator: BinaryOperator::Equal, left, right, .. } = self.node(id)?
        else {
            return Ok(None);
        };
        Ok(match self.node(*left)? {
            Node::Column { path } => match path.as_slice() {
                [name] => Some((name.clone(), *right)),
                _ => None,
            },
            _ => None,
        })
    }

    fn option_value(&mut self, id: NodeId) -> EngineResult<String> {
        let at = self.tree.span(id);
        if let Node::String { value } = self.node(id)? {
            return Ok(value.clone());
        }
        let value = self.constant(id)?;
        let text = match &value {
            Some(ScalarValue::Boolean(Some(value))) => Some(value.to_string()),
            Some(value) => constant::as_text(value)
                .map(str::to_owned)
                .or_else(|| constant::as_i64(value).map(|number| number.to_string())),
            None => None,
        };
        text.ok_or_else(|| error::at(ErrorCode::InvalidValue, "constant value expected", at))
    }

    /// File lists: `import_files()`, `export_files()`, `files('directory')`, `glob('pattern')`.
    pub(crate) fn file_list(&mut self, name: &str, call: &CallNode) -> EngineResult<Relation> {
        let takes_path = matches!(name, "files" | "glob");
        let mut is_described = false;
        let (pattern, at) = match (takes_path, call.arguments.as_slice()) {
            (false, []) => ("**".to_owned(), call.name.span),
            (true, [path]) if self.awaits_value(*path, SqlType::Varchar)? => {
                is_described = true;
                (String::new(), call.name.span)
            }
            (true, [_]) => {
                let (mut paths, at) = self.paths(call, &call.arguments)?;
                let path = paths.pop().unwrap_or_default();
                let path = path.strip_prefix("./").unwrap_or(&path);
                let pattern = match (name, path) {
                    ("files", "" | ".") => "**".to_owned(),
                    ("files", directory) => format!("{}/**", directory.trim_end_matches('/')),
                    (_, pattern) => pattern.to_owned(),
                };
                (pattern, at)
            }
            _ => {
                let message = format!("{name} requires {} argument", u8::from(takes_path));
                return Err(error::at(ErrorCode::InvalidValue, message, call.name.span));
            }
        };
        let root = if name == "export_files" { FileRoot::Export } else { FileRoot::Import };
        let external = self.files(call)?;
        let files = if is_described { Ok(Vec::new()) } else { external.files(root, &pattern) };
        let files = files.map_err(|failure| failure.at_if_missing(error::span(at)))?;
        let sizes: Vec<String> =
            files.iter().map(|file| tidemark_functions::size_text(file.bytes as f64)).collect();
        let times = files.iter().map(|file| file.modified_millis);
        let times = TimestampMillisecondArray::from_iter_values(times);
        self.literal_rows(vec![
            ("path", SqlType::Varchar, texts(files.iter().map(|file| Some(&file.path)))),
            ("diskSize", SqlType::Long, longs(files.iter().map(|file| file.bytes as i64))),
            ("diskSizeHuman", SqlType::String, texts(sizes.iter().map(Some))),
            ("modifiedTime", SqlType::Date, Arc::new(times)),
        ])
    }

    /// The paths in a call, and their position in the SQL text.
    fn paths(&mut self, call: &CallNode, indices: &[NodeId]) -> EngineResult<(Vec<String>, Span)> {
        let mut arguments = indices.to_vec();
        if let [only] = indices
            && let Node::Array { items } = self.node(*only)?
        {
            arguments.clone_from(items);
        }
        let first = arguments.first().map_or(call.name.span, |id| self.tree.span(*id));
        let missing = |at| error::at(ErrorCode::InvalidValue, "file name expected", at);
        let mut paths = Vec::with_capacity(arguments.len());
        for id in arguments {
            let at = self.tree.span(id);
            let value = self.expression(id, &Scope::empty())?;
            let value = self.cast(value, SqlType::Varchar, CastMode::Implicit, at)?;
            let path = value.constant.as_ref().and_then(constant::as_text);
            paths.push(path.map(str::to_owned).ok_or_else(|| missing(at))?);
        }
        if paths.is_empty() { Err(missing(first)) } else { Ok((paths, first)) }
    }

    /// The interface that opens files, if the user may read them.
    fn files(&mut self, call: &CallNode) -> EngineResult<Arc<dyn ExternalSources>> {
        self.accesses.note(Access::new("", Permission::ReadFiles));
        let sees_files = self.visibility().is_none_or(|visibility| visibility.files);
        if !sees_files && !self.beneath_view {
            // The error does not reveal which files exist.
            return Err(EngineError::new(ErrorCode::AccessDenied, "Access denied [READ FILES]"));
        }
        let what = format!("{} is", call.name.text);
        self.context.external().ok_or_else(|| error::not_supported(&what, call.name.span))
    }

    fn rows_of_files(&mut self, table: ExternalTable) -> EngineResult<Relation> {
        let columns: Vec<(String, SqlType)> =
            table.columns.iter().map(|field| (field.name.clone(), field.sql_type)).collect();
        let mut rows = self.provider_rows(table.provider, &columns)?;
        let is_time = |at: &usize| table.columns[*at].sql_type.is_timestamp();
        let mut times = (0..table.columns.len()).filter(is_time);
        // If the files declare no order, but have only one timestamp column, that column is used.
        let only = times.next().filter(|_| times.next().is_none());
        rows.timestamp = table.sorted_by.or(only);
        if table.sorted_by.is_some() {
            rows.order = TimeOrder::Ascending;
        }
        Ok(rows)
    }
}

fn option_name(name: &Name, format: TextFormat) -> EngineResult<&'static str> {
    let is_known = |known: &str| format == TextFormat::Csv || JSON_OPTIONS.contains(&known);
    let found = CSV_OPTIONS
        .iter()
        .find(|(written, known)| name.text.eq_ignore_ascii_case(written) && is_known(known));
    found.map(|(_, known)| *known).ok_or_else(|| {
        let names: Vec<&str> = CSV_OPTIONS
            .iter()
            .filter(|(written, known)| written == known && is_known(known))
            .map(|(_, known)| *known)
            .collect();
        let message = format!("unknown option '{}', expected {}", name.text, names.join(", "));
        error::at(ErrorCode::InvalidValue, message, name.span)
    })
}
