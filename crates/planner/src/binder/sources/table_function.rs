//! Table functions in FROM: generators and catalog functions.

use std::sync::Arc;

use arrow_array::{ArrayRef, TimestampMicrosecondArray, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, ScalarValue};
use datafusion::functions_table::generate_series::{GenSeriesArgs, GenerateSeriesTable};
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, lit};
use tidemark_ast::{CallNode, Name, Node, NodeId, Span};
use tidemark_border::TextFormat;
use tidemark_functions::CastMode;
use tidemark_types::{CatalogType, EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::catalog::catalog_rows::texts;
use crate::binder::catalog::pg_catalog::marked::marked;
use crate::binder::expressions::series::{MAX_STEPS, Step};
use crate::binder::expressions::{constant, literal};
use crate::binder::state::accesses::Origin;
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, SERIES, Scope, ScopeColumn, TimeOrder};
use crate::binder::{Binder, Typed, error, names};

/// Maximum number of rows that a generator creates at bind time.
const MAX_LITERAL_ROWS: usize = 10_000_000;

impl Binder<'_> {
    /// Binds a function call in FROM.
    pub(crate) fn table_function(
        &mut self,
        id: NodeId,
        alias: Option<&Name>,
    ) -> EngineResult<Relation> {
        let Node::Call(call) = self.node(id)? else {
            return Err(error::at(ErrorCode::Syntax, "function expected", self.tree.span(id)));
        };
        let name = self.checked_name(call)?;
        let rows = match name.as_str() {
            "long_sequence" => self.long_sequence(call)?,
            "generate_series" | "pg_catalog.generate_series" => self.generate_series(call)?,
            "tables" | "all_tables" => self.tables_rows()?,
            "wal_tables" => self.wal_tables_rows()?,
            "table_columns" => {
                let name = self.name_argument(call)?;
                self.columns_of(&name)?
            }
            "table_partitions" => {
                let table = self.table_argument(call)?;
                self.partitions_rows(&table)?
            }
            "table_storage" => self.table_storage_rows()?,
            "wal_transactions" => {
                let table = self.table_argument(call)?;
                self.wal_transactions_rows(&table)?
            }
            "reader_pool" => self.reader_pool_rows()?,
            "table_segments" => {
                let table = self.table_argument(call)?;
                self.segments_rows(&table)?
            }
            "snapshots" => self.snapshots_rows()?,
            "views" => self.views_rows()?,
            "materialized_views" => self.materialized_views_rows()?,
            "live_views" => self.live_views_rows()?,
            // Reserved for access control, because it shows more than a user may see.
            "access_schema" if self.visibility().is_none() => self.access_schema_rows()?,
            "functions" => self.functions_rows()?,
            "keywords" => self.keywords_rows()?,
            "pg_get_keywords" | "pg_catalog.pg_get_keywords" => self.pg_keywords_rows()?,
            "read_parquet" | "parquet_scan" => self.read_parquet(call)?,
            "read_csv" | "read_csv_auto" => self.read_text(call, TextFormat::Csv)?,
            "read_json" | "read_json_auto" | "read_ndjson" => {
                self.read_text(call, TextFormat::Json)?
            }
            "files" | "import_files" | "export_files" | "glob" => self.file_list(&name, call)?,
            "all_permissions" => self
                .listed_rows("all_permissions")?
                .ok_or_else(|| error::not_supported("access control is", call.name.span))?,
            // Catalog arrays that tools expand here (options and privileges) are always null.
            "pg_catalog.unnest" => {
                let none = texts(Vec::<Option<&str>>::new());
                let rows = self.literal_rows(vec![("unnest", SqlType::String, none)])?;
                named_series(rows, alias.map_or("unnest", |alias| alias.text.as_str()))?
            }
            // Arrays of options are always null too.
            "pg_options_to_table" | "pg_catalog.pg_options_to_table" => self.no_options()?,
            _ => match self.catalog_table(&name)? {
                Some(rows) => rows,
                None => match names::catalog_function(&name) {
                    Some(column) => self.single_value(id, &column, alias)?,
                    None => return Err(self.not_a_source(call, id)),
                },
            },
        };
        let reference = self.relation_name();
        let qualifier = alias.map_or(call.name.text.as_str(), |alias| alias.text.as_str());
        rows.aliased(Some(qualifier), &reference)
    }

    /// The function name in lower case, after checking for unsupported clauses and excess
    /// arguments.
    fn checked_name(&self, call: &CallNode) -> EngineResult<String> {
        let arguments = self.plain_arguments(call)?;
        let name = call.name.text.to_ascii_lowercase();
        match max_arguments(&name).and_then(|max| arguments.get(max)) {
            Some(extra) => {
                let message = format!("{name}: too many arguments");
                Err(error::at(ErrorCode::InvalidValue, message, self.tree.span(*extra)))
            }
            None => Ok(name),
        }
    }

    fn no_options(&mut self) -> EngineResult<Relation> {
        let none = || texts(Vec::<Option<&str>>::new());
        let names = ["option_name", "option_value"];
        self.literal_rows(names.map(|name| (name, SqlType::String, none())).into())
    }

    /// Binds `FROM current_schema()`: one row with one column, named after the alias or, without an
    /// alias, after the function.
    fn single_value(
        &mut self,
        id: NodeId,
        function: &str,
        alias: Option<&Name>,
    ) -> EngineResult<Relation> {
        let name = alias.map_or(function, |alias| &alias.text).to_owned();
        let value = self.expression(id, &Scope::empty())?;
        let is_array = function == names::TEXTS_OF_TEXT;
        let expr = marked(value.expr, is_array.then_some(CatalogType::TextArray));
        let plan = relation::project(relation::one_row().plan, vec![expr.alias(&name)])?;
        let column = ScopeColumn {
            qualifier: None,
            column: Column::new_unqualified(&name),
            name,
            sql_type: value.sql_type,
            origin: Origin::NONE,
        };
        Ok(Relation { plan, columns: vec![column], ..relation::one_row() })
    }

    fn not_a_source(&mut self, call: &CallNode, id: NodeId) -> EngineError {
        match self.expression(id, &Scope { aggregates: true, ..Scope::empty() }) {
            Ok(_) => {
                error::at(ErrorCode::TypeMismatch, "function must return CURSOR", call.name.span)
            }
            Err(failure) => failure,
        }
    }

    fn integer_argument(&mut self, id: NodeId) -> EngineResult<Option<i64>> {
        let position = self.tree.span(id);
        let value = self.expression(id, &Scope::empty())?;
        if is_computed(&value) {
            return Err(error::at(ErrorCode::InvalidValue, "constant expected", position));
        }
        // A non-numeric string is an error and does not count as null.
        let is_text = value.sql_type.is_text() || value.sql_type == SqlType::Char;
        let mode = if is_text { CastMode::Implicit } else { CastMode::Explicit };
        // An untyped parameter may be null; any other value must be a number.
        let absent = value.parameter.map(|index| self.is_absent(index));
        let was_null = absent.unwrap_or_else(|| value.is_null_constant());
        let is_text = is_text || absent.is_some();
        let value = self.cast(value, SqlType::Long, mode, position)?;
        let number = value.constant.as_ref().and_then(constant::as_i64);
        if is_text && !was_null && number.is_none() {
            return Err(error::at(ErrorCode::InvalidValue, "number expected", position));
        }
        Ok(number)
    }

    fn long_sequence(&mut self, call: &CallNode) -> EngineResult<Relation> {
        let count = match call.arguments.as_slice() {
            [id] if self.is_computed(*id)? => {
                let at = self.tree.span(*id);
                let count = self.expression(*id, &Scope::empty())?;
                let count = self.cast(count, SqlType::Long, CastMode::Explicit, at)?;
                let bounds = [literal::long(1), count];
                let scope = Scope::empty();
                return self
                    .series_of(|binder| binder.series_between(bounds, None, &scope, at), "x");
            }
            [id] | [id, _, _] => self.integer_argument(*id)?.unwrap_or(0),
            [] | [_, _, ..] => {
                return Err(error::at(
                    ErrorCode::InvalidValue,
                    format!(
                        "wrong number of arguments for function `long_sequence`; expected: 1, \
                         provided: {}",
                        call.arguments.len()
                    ),
                    call.name.span,
                ));
            }
        };
        if let [_, high, low] = call.arguments.as_slice() {
            let (high, low) = (self.integer_argument(*high)?, self.integer_argument(*low)?);
            self.seed = high.zip(low).map(|(high, low)| (high as u64).rotate_left(32) ^ low as u64);
        }
        self.series("x", 1, count, 1)
    }

    /// The numbers from `low` to `high` in steps of `step`, generated row by row at run time.
    fn series(&mut self, name: &str, low: i64, high: i64, step: i64) -> EngineResult<Relation> {
        // The generator rejects a series that ends before it starts, but here, such a series is
        // empty.
        let is_empty = (step > 0 && low > high) || (step < 0 && low < high);
        let high = if is_empty { low } else { high };
        let field = Field::new("value", DataType::Int64, false);
        let args = GenSeriesArgs::Int64Args {
            start: low,
            end: high,
            step,
            include_end: true,
            name: "generate_series",
        };
        let schema = Arc::new(Schema::new(vec![field]));
        let provider = Arc::new(GenerateSeriesTable::new(schema, args));
        let mut rows = self.provider_rows(provider, &[("value".to_owned(), SqlType::Long)])?;
        if is_empty {
            let schema = Arc::clone(rows.plan.schema());
            rows.plan =
                LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema });
        }
        named_series(rows, name)
    }

    fn generate_series(&mut self, call: &CallNode) -> EngineResult<Relation> {
        let (low, high, step) = self.series_arguments(call)?;
        for bound in [Some(low), Some(high), step].into_iter().flatten() {
            if self.is_computed(bound)? {
                return self.series_of(|binder| binder.list_series(call, &Scope::empty()), SERIES);
            }
        }
        let first = self.expression(low, &Scope::empty())?;
        let last = self.expression(high, &Scope::empty())?;
        let times = [first.sql_type, last.sql_type].iter().any(|of| of.is_timestamp());
        let step_value = match step {
            Some(step) => Some(self.expression(step, &Scope::empty())?),
            None => None,
        };
        if let (Some(value), Some(id)) = (&step_value, step) {
            refuse_zero(value, self.tree.span(id))?;
        }
        let is_text = |bound: &Typed| bound.sql_type.is_text() || bound.parameter.is_some();
        let texts = is_text(&first) && is_text(&last);
        let period = step_value
            .as_ref()
            .is_some_and(|step| step.sql_type.is_text() || step.sql_type == SqlType::Period);
        let given = [Some(&first), Some(&last), step_value.as_ref()].into_iter().flatten();
        // A series with a null bound is empty.
        let is_null = |typed: &Typed| typed.parameter.is_none() && typed.is_null_constant();
        let has_null = given.clone().any(is_null);
        if times || (texts && period) {
            let nanoseconds = [first.sql_type, last.sql_type].contains(&SqlType::TimestampNs);
            let unit = if nanoseconds { SqlType::TimestampNs } else { SqlType::Timestamp };
            if has_null {
                let mut none = self.empty_series(unit)?;
                none.timestamp = Some(0);
                return Ok(none);
            }
            return self.time_series((low, high), step, unit);
        }
        if given.clone().any(|typed| typed.sql_type.is_floating()) {
            if has_null {
                return self.empty_series(SqlType::Double);
            }
            return self.floating_series(low, high, step);
        }
        let is_decimal = |of: &SqlType| matches!(of, SqlType::Decimal(..));
        let decimal = given.map(|typed| typed.sql_type).find(is_decimal);
        if let Some(sql_type) = decimal {
            if has_null {
                return self.empty_series(sql_type);
            }
            let series = self.decimal_series([first, last], step_value, call.name.span)?;
            let numbers = self.series("number", 0, series.length - 1, 1)?;
            let value = series.value(numbers.columns[0].expr());
            return mapped(numbers, value, series.sql_type);
        }
        let (low, high) = (self.integer_argument(low)?, self.integer_argument(high)?);
        let by = match step {
            Some(step) => self.integer_argument(step)?,
            None => Some(1),
        };
        let (low, high, by) = match (low, high, by) {
            (Some(low), Some(high), Some(by)) if step.is_some() => {
                let (low, high) = in_direction(low, high, by < 0);
                (low, high, by)
            }
            (Some(low), Some(high), Some(by)) => (low, high, by),
            _ => (1, 0, 1),
        };
        self.series(SERIES, low, high, by)
    }

    /// An empty series.
    fn empty_series(&mut self, sql_type: SqlType) -> EngineResult<Relation> {
        let numbers = self.series("number", 1, 0, 1)?;
        let value =
            datafusion::logical_expr::cast(numbers.columns[0].expr(), sql_type.arrow_type());
        mapped(numbers, value, sql_type)
    }

    /// Whether an argument is neither a constant nor a parameter, such as a sub-query or a column
    /// from a source on the left.
    fn is_computed(&mut self, id: NodeId) -> EngineResult<bool> {
        self.expression(id, &Scope::empty()).map(|value| is_computed(&value))
    }

    /// A series in FROM whose bounds are known only at run time.
    fn series_of(
        &mut self,
        bind: impl FnOnce(&mut Self) -> EngineResult<Typed>,
        name: &str,
    ) -> EngineResult<Relation> {
        let around = self.list_rows.replace(ListRows::default());
        let value = bind(self);
        let rows = std::mem::replace(&mut self.list_rows, around).unwrap_or_default();
        let (value, rows) = (value?, rows.over(relation::one_row())?);
        let plan = relation::project(rows.plan, vec![value.expr.alias(name)])?;
        Ok(Relation::of(plan, vec![relation::output_column(name, value.sql_type)]))
    }

    fn double_argument(&mut self, id: NodeId) -> EngineResult<f64> {
        let position = self.tree.span(id);
        let value = self.demanded(id, SqlType::Double, ScalarValue::Float64(Some(1.0)))?;
        let value = self.cast(value, SqlType::Double, CastMode::Explicit, position)?;
        match value.constant {
            Some(ScalarValue::Float64(Some(number))) => Ok(number),
            _ => Err(error::at(ErrorCode::InvalidValue, "number expected", position)),
        }
    }

    fn floating_series(
        &mut self,
        low: NodeId,
        high: NodeId,
        step: Option<NodeId>,
    ) -> EngineResult<Relation> {
        let at = self.tree.span(high);
        let (low, high) = (self.double_argument(low)?, self.double_argument(high)?);
        let ((low, high), step) = match step {
            Some(step) => {
                let step = self.double_argument(step)?;
                (in_direction(low, high, step < 0.0), step)
            }
            None => ((low, high), 1.0),
        };
        let steps = ((high - low) / step + 1e-9).floor();
        // Beyond this limit, consecutive numbers are equal as doubles.
        if steps.is_nan() || steps >= MAX_STEPS {
            return Err(endless(at));
        }
        let numbers = self.series("number", 0, if steps < 0.0 { -1 } else { steps as i64 }, 1)?;
        let number = datafusion::logical_expr::cast(numbers.columns[0].expr(), DataType::Float64);
        mapped(numbers, lit(low) + lit(step) * number, SqlType::Double)
    }

    /// A timestamp series whose step is a number of timestamp units or a period such as `1d` or
    /// `-1M`.
    fn time_series(
        &mut self,
        (low, high): (NodeId, NodeId),
        step: Option<NodeId>,
        unit: SqlType,
    ) -> EngineResult<Relation> {
        let first = self.timestamp(low, unit, "Invalid date")?;
        let last = self.timestamp(high, unit, "Invalid date")?;
        let period = match step {
            Some(step) => self.series_step(step, unit)?,
            None => Step::Ticks(1),
        };
        let (first, last, period) = match (first, last) {
            (Some(first), Some(last)) if step.is_some() => {
                let (first, last) = in_direction(first, last, period.is_negative());
                (first, last, period)
            }
            (Some(first), Some(last)) => (first, last, period),
            _ => (1, 0, Step::Ticks(1)),
        };
        let mut rows = match period {
            // The calendar's range has fewer than 10 million months.
            Step::Months(_) => {
                let beyond = |at: i64| if period.is_negative() { at < last } else { at > last };
                let times = (0..).map_while(|number| period.after(first, number, unit));
                let times = times.take(MAX_LITERAL_ROWS).take_while(|at| !beyond(*at));
                let array: ArrayRef = if unit == SqlType::TimestampNs {
                    Arc::new(TimestampNanosecondArray::from_iter_values(times))
                } else {
                    Arc::new(TimestampMicrosecondArray::from_iter_values(times))
                };
                self.literal_rows(vec![(SERIES, unit, array)])?
            }
            Step::Ticks(step) => {
                let numbers = self.series("number", first, last, step)?;
                let time = numbers.columns[0].expr();
                let time = datafusion::logical_expr::cast(time, unit.arrow_type());
                mapped(numbers, time, unit)?
            }
        };
        rows.timestamp = Some(0);
        let backwards = period.is_negative();
        rows.order = if backwards { TimeOrder::Descending } else { TimeOrder::Ascending };
        Ok(rows)
    }

    /// The table or view name in the function's first argument.
    fn name_argument(&self, call: &CallNode) -> EngineResult<Name> {
        let Some(id) = call.arguments.first() else {
            return Err(error::at(ErrorCode::InvalidValue, "table name expected", call.name.span));
        };
        let span = self.tree.span(*id);
        let text = match self.node(*id)? {
            Node::String { value } => value.clone(),
            _ => return Err(error::at(ErrorCode::InvalidValue, "table name expected", span)),
        };
        Ok(Name { text, quoted: true, span })
    }

    fn table_argument(
        &mut self,
        call: &CallNode,
    ) -> EngineResult<Arc<tidemark_storage::TableSnapshot>> {
        let name = self.name_argument(call)?;
        let table = self.readable_table(&name)?;
        self.note_read(&table.schema().name, Vec::new());
        Ok(table)
    }
}

/// The constant bounds, in the order that matches the step's sign.
fn in_direction<T: PartialOrd>(low: T, high: T, is_descending: bool) -> (T, T) {
    if (low > high) == is_descending { (low, high) } else { (high, low) }
}

fn refuse_zero(step: &Typed, at: Span) -> EngineResult<()> {
    let zero = |value: &ScalarValue| match value {
        ScalarValue::Float64(number) => *number == Some(0.0),
        other => constant::as_i64(other) == Some(0),
    };
    if step.constant.as_ref().is_some_and(zero) {
        return Err(error::at(ErrorCode::InvalidValue, "step cannot be zero", at));
    }
    Ok(())
}

/// Whether a value is known only at run time.
fn is_computed(value: &Typed) -> bool {
    let is_open = |node: &Expr| Ok(matches!(node, Expr::Placeholder(_)));
    value.constant.is_none()
        && value.parameter.is_none()
        && !value.expr.exists(is_open).unwrap_or(false)
}

/// Maximum number of arguments for a table function; `None` if the function counts them itself.
fn max_arguments(name: &str) -> Option<usize> {
    Some(match name {
        "tables" | "all_tables" | "wal_tables" | "table_storage" | "reader_pool" | "snapshots"
        | "views" | "materialized_views" | "live_views" | "functions" | "keywords"
        | "all_permissions" => 0,
        "table_columns" | "table_partitions" | "wal_transactions" | "table_segments" => 1,
        "long_sequence" => 3,
        _ => return None,
    })
}

fn endless(at: Span) -> EngineError {
    let message = format!("generate_series is too long: at most {MAX_STEPS} steps are allowed");
    error::at(ErrorCode::InvalidValue, message, at)
}

/// Computes a value for each number in a series.
fn mapped(numbers: Relation, value: Expr, sql_type: SqlType) -> EngineResult<Relation> {
    let plan = relation::project(numbers.plan, vec![value.alias(SERIES)])?;
    let columns = vec![relation::output_column(SERIES, sql_type)];
    Ok(Relation::of(plan, columns))
}

/// A series with its function's column name.
fn named_series(rows: Relation, name: &str) -> EngineResult<Relation> {
    let [only] = rows.columns.as_slice() else {
        return Err(EngineError::internal("a series has one column"));
    };
    let (expr, sql_type) = (only.expr().alias(name), only.sql_type);
    let plan = relation::project(rows.plan, vec![expr])?;
    Ok(Relation::of(plan, vec![relation::output_column(name, sql_type)]))
}
