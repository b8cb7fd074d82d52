//! ON CONFLICT: joins the rows of an INSERT with existing rows that have the same keys. The result
//! contains the rows to insert; DEDUP then replaces existing rows with the same keys.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::row::{RowConverter, SortField};
use arrow_array::{BooleanArray, RecordBatch};
use datafusion::common::JoinType;
use datafusion::logical_expr::{Case, Expr, LogicalPlan};
use tidemark_ast::{Conflict, Name, Node};
use tidemark_storage::{TableSchema, TableSnapshot};
use tidemark_types::key::key_values;
use tidemark_types::{EngineError, EngineResult, ErrorCode, identifier};

use crate::InsertSource;
use crate::binder::sources::join::{self, Condition};
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope};
use crate::binder::{Binder, error};

/// Alias for the row to be inserted.
const EXCLUDED: &str = "excluded";

impl Binder<'_> {
    /// The rows to insert into a table after conflicts are resolved. `table` includes the table's
    /// alias in the statement.
    pub(crate) fn resolved_conflict(
        &mut self,
        table: (&Arc<TableSnapshot>, &str),
        source: InsertSource,
        conflict: &Conflict,
    ) -> EngineResult<InsertSource> {
        let schema = Arc::clone(table.0.schema());
        // `keys` and `span` are used below.
        let Conflict { keys: _, assignments, filter, span: _ } = conflict;
        if let (true, Some(filter)) = (assignments.is_empty(), filter) {
            let what = "WHERE of DO NOTHING is";
            return Err(error::not_supported(what, self.tree.span(*filter)));
        }
        let Some(keys) = conflict_keys(&schema, conflict)? else { return Ok(source) };
        // ON CONFLICT reads existing rows, including those written in the same transaction block.
        self.note_read(&schema.name, Vec::new());
        let rows = match source {
            InsertSource::Template(mut template) => {
                template.resolves = true;
                // Names and types are checked before the values are known.
                let none = RecordBatch::new_empty(template.rows.arrow_schema());
                self.resolved_rows(table, &none, &keys, conflict)?;
                return Ok(InsertSource::Template(template));
            }
            InsertSource::Batch(batch) => {
                let batch = once(&batch, &keys, conflict)?;
                return self.resolved_rows(table, &batch, &keys, conflict).map(InsertSource::Plan);
            }
            InsertSource::Plan(plan) => {
                let columns = schema.columns.iter();
                let columns = columns
                    .map(|column| relation::output_column(&column.name, column.sql_type))
                    .collect();
                Relation { plan, columns, ..relation::one_row() }
            }
        };
        self.resolved(table, rows, &keys, conflict).map(InsertSource::Plan)
    }

    fn resolved_rows(
        &mut self,
        table: (&Arc<TableSnapshot>, &str),
        batch: &RecordBatch,
        keys: &[usize],
        conflict: &Conflict,
    ) -> EngineResult<LogicalPlan> {
        let schema = Arc::clone(table.0.schema());
        let columns = schema.columns.iter().zip(batch.columns());
        let columns = columns
            .map(|(column, cells)| (column.name.as_str(), column.sql_type, Arc::clone(cells)))
            .collect();
        let rows = self.literal_rows(columns)?;
        self.resolved(table, rows, keys, conflict)
    }

    fn resolved(
        &mut self,
        table: (&Arc<TableSnapshot>, &str),
        rows: Relation,
        keys: &[usize],
        conflict: &Conflict,
    ) -> EngineResult<LogicalPlan> {
        let schema = Arc::clone(table.0.schema());
        let reference = self.relation_name();
        let rows = rows.aliased(Some(EXCLUDED), &reference)?;
        let reference = self.relation_name();
        let there = relation::of_table(Arc::clone(table.0), table.1, reference, &self.accesses)?;
        let width = rows.columns.len();
        let pairs = keys.iter().map(|&key| (rows.columns[key].expr(), there.columns[key].expr()));
        let condition = Condition::of_keys(pairs.collect());
        // The designated timestamp is never null, so a null means that no row matched.
        let time = schema.timestamp.unwrap_or_default();
        let is_new = there.columns[time].expr().is_null();
        let joined = join::relational(rows, there, condition, JoinType::Left, conflict.span)?;
        if conflict.assignments.is_empty() {
            let plan = relation::filter(joined.plan, is_new)?;
            let list = joined.columns.iter().zip(&schema.columns).take(width);
            return relation::project(
                plan,
                list.map(|(column, named)| column.expr().alias(&named.name)).collect(),
            );
        }
        let mut list: Vec<(Expr, Expr)> = (0..width)
            .map(|index| (joined.columns[index].expr(), joined.columns[width + index].expr()))
            .collect();
        for (name, value) in &conflict.assignments {
            let index = assigned(&schema, name)?;
            if keys.contains(&index) {
                self.same_key(name, *value)?;
            } else {
                list[index].1 = self.new_cell(*value, &joined, &schema, index)?.expr;
            }
        }
        let mut plan = joined.plan.clone();
        if let Some(filter) = conflict.filter {
            let test = self.predicate(filter, &Scope::rows(&joined), false)?;
            plan = relation::filter(plan, is_new.clone().or(test.expr))?;
        }
        let cells = list.into_iter().zip(&schema.columns).map(|((new, old), column)| {
            let cases = vec![(Box::new(is_new.clone()), Box::new(new))];
            Expr::Case(Case::new(None, cases, Some(Box::new(old)))).alias(&column.name)
        });
        relation::project(plan, cells.collect())
    }

    /// Requires that a key be set only to its own value.
    fn same_key(&self, name: &Name, value: u32) -> EngineResult<()> {
        if let Node::Column { path } = self.node(value)?
            && let [of, column] = path.as_slice()
            && identifier::same(&of.text, EXCLUDED)
            && identifier::same(&column.text, &name.text)
        {
            return Ok(());
        }
        let message = format!(
            "key column '{}' cannot be updated: expected excluded.{}",
            name.text, name.text
        );
        Err(error::at(ErrorCode::NotSupported, message, name.span))
    }
}

fn assigned(schema: &TableSchema, name: &Name) -> EngineResult<usize> {
    schema.column_index(&name.text).ok_or_else(|| error::invalid_column(&name.text, name.span))
}

/// The table's keys, which the clause's keys must match; `None` if no row can conflict.
fn conflict_keys(schema: &TableSchema, conflict: &Conflict) -> EngineResult<Option<Vec<usize>>> {
    let is_key = |index: &usize| schema.dedup_keys.contains(&schema.columns[*index].id);
    let keys: Vec<usize> = (0..schema.columns.len()).filter(is_key).collect();
    let refuse = |message: String| Err(error::at(ErrorCode::NotSupported, message, conflict.span));
    let mut named = Vec::with_capacity(conflict.keys.len());
    for name in &conflict.keys {
        named.push(assigned(schema, name)?);
    }
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        if !conflict.assignments.is_empty() {
            return refuse("ON CONFLICT DO UPDATE requires the keys in parentheses".into());
        }
        return Ok(Some(keys).filter(|keys| !keys.is_empty()));
    }
    if named != keys {
        let names: Vec<&str> = keys.iter().map(|&key| schema.columns[key].name.as_str()).collect();
        let (table, names) = (&schema.name, names.join(", "));
        return refuse(if keys.is_empty() {
            format!(
                "table '{table}' does not enforce any keys: ON CONFLICT requires DEDUP UPSERT KEYS"
            )
        } else {
            format!("ON CONFLICT must name the keys of '{table}' ({names})")
        });
    }
    Ok(Some(keys))
}

/// Keeps only the first of several rows with equal keys. With DO UPDATE, such rows are an error.
fn once(batch: &RecordBatch, keys: &[usize], conflict: &Conflict) -> EngineResult<RecordBatch> {
    let internal = |failure: arrow_schema::ArrowError| EngineError::internal(failure.to_string());
    let fields = keys.iter().map(|&key| SortField::new(batch.column(key).data_type().clone()));
    let converter = RowConverter::new(fields.collect()).map_err(internal)?;
    let cells: Vec<_> = keys.iter().map(|&key| key_values(batch.column(key))).collect();
    let rows = converter.convert_columns(&cells).map_err(internal)?;
    let mut seen = HashSet::with_capacity(batch.num_rows());
    let first: BooleanArray = rows.iter().map(|row| Some(seen.insert(row.owned()))).collect();
    if first.true_count() == batch.num_rows() {
        return Ok(batch.clone());
    }
    if !conflict.assignments.is_empty() {
        let message = "ON CONFLICT DO UPDATE cannot affect row a second time";
        return Err(error::at(ErrorCode::InvalidValue, message, conflict.span));
    }
    arrow::compute::filter_record_batch(batch, &first).map_err(internal)
}
