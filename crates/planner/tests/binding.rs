//! Binds statements from the parser's trees. Checks the names, types and designated timestamp of
//! the output, and the messages and positions of errors.
//!
//! `npm run generate` writes the trees in `data/trees.jsonl` from `data/cases.json`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tidemark_ast::Tree;
use tidemark_planner::{BindContext, BoundStatement, InsertSource, Planner};
use tidemark_storage::{Change, Storage, StorageOptions};
use tidemark_vfs::RealVfs;

/// A directory that is removed when the test ends.
struct Root(PathBuf);

impl Root {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidemark-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn context() -> BindContext {
    BindContext { now_micros: 1_763_000_000_000_000, ..BindContext::default() }
}

fn tree(value: &Value) -> Tree {
    serde_json::from_value(value.clone()).unwrap()
}

fn apply(storage: &Storage, statement: BoundStatement) {
    let change = match statement {
        BoundStatement::CreateTable(create) => Change::CreateTable(create.schema.unwrap()),
        BoundStatement::Insert(insert) => match insert.source {
            InsertSource::Batch(batch) => Change::Append {
                table: insert.table.schema().id,
                schema_version: insert.table.schema().version,
                batch,
            },
            _ => panic!("the setup must insert VALUES"),
        },
        other => panic!("not a setup statement: {other:?}"),
    };
    storage.commit(vec![change]).unwrap();
}

#[test]
fn recorded_statements_bind_as_expected() {
    let root = Root::new("binding");
    let vfs = RealVfs::new(&root.0).unwrap();
    let storage = Storage::open(Arc::new(vfs), StorageOptions::default()).unwrap();
    let mut lines = include_str!("data/trees.jsonl").lines();
    let setup: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    for value in setup["setup"].as_array().unwrap() {
        let bound = Planner::bind(&tree(value), &storage.snapshot(), &context()).unwrap();
        apply(&storage, bound);
    }
    for line in lines {
        let case: Value = serde_json::from_str(line).unwrap();
        let sql = case["sql"].as_str().unwrap();
        let bound = Planner::bind(&tree(&case["tree"]), &storage.snapshot(), &context());
        match (bound, case["error"].as_str()) {
            (Ok(bound), None) => {
                let found: Vec<Value> = bound
                    .columns()
                    .iter()
                    .map(|field| serde_json::json!([field.name, field.sql_type.name()]))
                    .collect();
                assert_eq!(Value::Array(found), case["columns"], "{sql}");
                let timestamp = bound.timestamp().map_or(-1, |index| index as i64);
                assert_eq!(Some(timestamp), case["timestamp"].as_i64(), "{sql}");
            }
            (Err(failure), Some(message)) => {
                assert_eq!(failure.message, message, "{sql}");
                let start = failure.span.map_or(0, |span| i64::from(span.start));
                assert_eq!(Some(start), case["position"].as_i64(), "{sql}");
            }
            (Ok(bound), Some(message)) => panic!("{sql}: no `{message}`, but {bound:?}"),
            (Err(failure), None) => panic!("{sql}: {failure:?}"),
        }
    }
}
