//! CREATE TABLE.

use std::collections::HashSet;

use datafusion::logical_expr::LogicalPlan;
use tidemark_ast::{ColumnDefinition, CreateTableNode, Name, OptionValue, TypeName};
use tidemark_border::Permission;
use tidemark_functions::CastMode;
use tidemark_storage::{ColumnSchema, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, identifier};

use crate::binder::notice::{CONSTRAINT, KEY_NOT_ENFORCED};
use crate::binder::state::relation;
use crate::binder::state::scope::Relation;
use crate::binder::statements::constraints::{apply_dedup, row_key};
use crate::binder::statements::storage_policy::policy_of;
use crate::binder::statements::ttl::parse_ttl;
use crate::binder::{Binder, Typed, error};
use crate::{BoundCreateTable, BoundStatement};

/// Assigns column IDs to a new table. The storage retains these IDs, so keys can refer to columns
/// by ID.
fn numbered(columns: &mut [ColumnSchema]) {
    for (index, column) in columns.iter_mut().enumerate() {
        column.id = index as u32 + 1;
    }
}

impl Binder<'_> {
    /// Binds CREATE TABLE.
    pub(crate) fn create_table(mut self, node: &CreateTableNode) -> EngineResult<BoundStatement> {
        check_table_name(&node.name)?;
        self.note_change("", Permission::CreateTable);
        let is_view = self.view(&node.name.text).is_some();
        if (is_view || self.snapshot.table(&node.name.text).is_some()) && !self.explaining {
            if node.if_not_exists {
                return Ok(self.bound_create(None, None));
            }
            return Err(error::at(ErrorCode::TableExists, "table already exists", node.name.span));
        }
        refuse_beside_like(node)?;
        if let Some(like) = &node.like {
            let other = self.readable_table(like)?;
            self.note_all_columns(&other.schema().name);
            let mut schema = other.schema().as_ref().clone();
            schema.id = 0;
            schema.version = 0;
            schema.name.clone_from(&node.name.text);
            schema.constraints.clear();
            self.note_idle_options(&node.options);
            return Ok(self.bound_create(Some(schema), None));
        }
        let query = match node.query {
            Some(query) => Some(self.query(query)?),
            None => None,
        };
        let mut columns = match &query {
            Some(rows) => query_columns(rows, node)?,
            None => self.defined_columns(&node.columns)?,
        };
        self.note_idle_options(&node.options);
        for column in &node.columns {
            self.note_idle_options(&column.options);
        }
        numbered(&mut columns);
        let schema = TableSchema::new(node.name.text.clone(), columns);
        let mut schema = schema.with_defaults(self.context.table_defaults);
        apply_layout(&mut schema, node, query.as_ref(), self.context.now_micros)?;
        apply_options(&mut schema, &node.options)?;
        self.apply_primary_key(&mut schema, node)?;
        let source = match query {
            Some(rows) => Some(self.conformed_source(rows, &schema)?),
            None => None,
        };
        Ok(self.bound_create(Some(schema), source))
    }

    /// If the table supports DEDUP, uses the PRIMARY KEY, or the only UNIQUE constraint, as DEDUP
    /// keys. A new row then replaces the row with the same key.
    fn apply_primary_key(
        &mut self,
        schema: &mut TableSchema,
        node: &CreateTableNode,
    ) -> EngineResult<()> {
        let keys = row_key(&node.constraints);
        timed_by_key(schema, node, keys);
        let mut includes_time = false;
        for key in keys {
            let index = schema
                .column_index(&key.text)
                .ok_or_else(|| error::invalid_column(&key.text, key.span))?;
            includes_time |= schema.timestamp == Some(index);
        }
        if includes_time && schema.wal && schema.dedup_keys.is_empty() {
            apply_dedup(schema, keys)?;
        } else if !keys.is_empty() && schema.dedup_keys.is_empty() {
            self.notices.push(KEY_NOT_ENFORCED);
        }
        if node.constraints.len() > usize::from(!keys.is_empty()) {
            self.notices.push(CONSTRAINT);
        }
        self.declare(schema, &node.constraints)
    }

    fn bound_create(
        self,
        schema: Option<TableSchema>,
        source: Option<LogicalPlan>,
    ) -> BoundStatement {
        let (accesses, notice) = (self.accesses.list(), self.notice());
        BoundStatement::CreateTable(BoundCreateTable { schema, source, notice, accesses })
    }

    fn defined_columns(
        &mut self,
        definitions: &[ColumnDefinition],
    ) -> EngineResult<Vec<ColumnSchema>> {
        let mut columns: Vec<ColumnSchema> = Vec::with_capacity(definitions.len());
        let mut names = HashSet::with_capacity(definitions.len());
        for definition in definitions {
            let column = self.column_schema(definition)?;
            if !names.insert(identifier::fold(&column.name)) {
                return Err(error::at(
                    ErrorCode::DuplicateColumn,
                    format!("Duplicate column [name={}]", column.name),
                    definition.name.span,
                ));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// Builds a column from its definition.
    pub(crate) fn column_schema(
        &mut self,
        definition: &ColumnDefinition,
    ) -> EngineResult<ColumnSchema> {
        let ColumnDefinition {
            name,
            type_name,
            symbol_capacity: capacity,
            symbol_cache,
            indexed,
            // `apply_rules` handles these.
            not_null: _,
            default: _,
            options,
        } = definition;
        check_column_name(name)?;
        let sql_type = column_type(type_name)?;
        let mut column = ColumnSchema::new(name.text.clone(), sql_type);
        narrow(&mut column, type_name);
        column.indexed = *indexed;
        if *indexed {
            check_indexed(&column, name.span)?;
        }
        for OptionValue { name, value } in options {
            let number = value.as_ref().map_or("", |value| value.text.as_str());
            index_capacity(&mut column, [name.text.as_str(), number].into_iter());
        }
        column.symbol_cache = symbol_cache.unwrap_or(true);
        if let Some(capacity) = capacity {
            column.symbol_capacity = symbol_capacity(capacity)?;
        }
        self.apply_rules(&mut column, definition)?;
        Ok(column)
    }

    /// Casts the query's rows to the table's types.
    pub(crate) fn conformed_source(
        &mut self,
        rows: Relation,
        schema: &TableSchema,
    ) -> EngineResult<LogicalPlan> {
        let mut exprs = Vec::with_capacity(schema.columns.len());
        for (column, target) in rows.columns.iter().zip(&schema.columns) {
            let value = Typed::computed(column.expr(), column.sql_type);
            let at = tidemark_ast::Span::default();
            let value = self.cast(value, target.sql_type, CastMode::Explicit, at)?;
            exprs.push(value.expr.alias(&target.name));
        }
        relation::project(rows.plan, exprs)
    }
}

/// If the definition names no timestamp but the key contains exactly one timestamp column, makes
/// the table a time series. This lets ORMs create tables in which rows are replaced by key.
fn timed_by_key(schema: &mut TableSchema, node: &CreateTableNode, keys: &[Name]) {
    let is_plain = node.timestamp.is_none() && node.partition_by.is_none() && node.query.is_none();
    if !is_plain || node.wal.is_some() {
        return;
    }
    let times = keys.iter().filter_map(|key| schema.column_index(&key.text));
    let mut times = times.filter(|&index| schema.columns[index].sql_type.is_timestamp());
    if let (Some(time), None) = (times.next(), times.next()) {
        schema.timestamp = Some(time);
        schema.partition_by = PartitionBy::Day;
        schema.wal = true;
    }
}

/// Stores the length or precision given in a type's parentheses.
pub(crate) fn narrow(column: &mut ColumnSchema, written: &TypeName) {
    let number = match written.arguments.as_slice() {
        [number] => number.as_str(),
        _ => "",
    };
    column.length = if column.sql_type.is_text() { number.parse().unwrap_or(0) } else { 0 };
    // Catalog types have at most six fractional digits.
    column.precision = match column.sql_type {
        SqlType::Timestamp => number.parse().ok(),
        _ => None,
    };
    let name = written.name.to_ascii_lowercase();
    column.zoned = matches!(name.as_str(), "timestamptz" | "timestamp with time zone");
    column.text = name == "text";
}

/// The message `'pg_class' is reserved for the system catalog: choose another name`.
pub(crate) fn reserved(name: &str) -> String {
    format!("'{name}' is reserved for the system catalog: choose another name")
}

/// Rejects names that are invalid for tables and views.
pub(crate) fn check_table_name(name: &Name) -> EngineResult<()> {
    let is_catalog = crate::binder::catalog::pg_catalog::has_table(&name.text);
    if identifier::is_valid_table_name(&name.text) && !is_catalog {
        return Ok(());
    }
    if is_catalog {
        let message = format!("'{}' is a system catalog table", name.text);
        return Err(error::at(ErrorCode::InvalidName, message, name.span));
    }
    let message = match name.text.chars().find(|c| identifier::is_illegal_in_table_name(*c)) {
        Some(illegal) => format!("'{illegal}' is not allowed"),
        None if identifier::is_reserved_table_name(&name.text) => reserved(&name.text),
        None => format!("invalid table name: {}", name.text),
    };
    let mut at = name.span;
    // The error is positioned at the first character inside the quotes.
    at.start += u32::from(name.quoted);
    Err(error::at(ErrorCode::InvalidName, message, at))
}

/// A symbol capacity, rounded up to a power of two.
pub(crate) fn symbol_capacity(capacity: &Name) -> EngineResult<u32> {
    let invalid = |message: &str| error::at(ErrorCode::InvalidValue, message, capacity.span);
    let requested: i64 = capacity.text.parse().map_err(|_| invalid("numeric capacity expected"))?;
    match requested {
        ..2 => Err(invalid("min symbol capacity is 2")),
        2..=1_073_741_824 => Ok((requested as u32).next_power_of_two()),
        _ => Err(invalid("max symbol capacity is 1073741824")),
    }
}

/// Rejects invalid column names.
pub(crate) fn check_column_name(name: &Name) -> EngineResult<()> {
    if identifier::is_valid_column_name(&name.text) {
        return Ok(());
    }
    Err(error::at(
        ErrorCode::InvalidName,
        format!("new column name contains invalid characters [name={}]", name.text),
        name.span,
    ))
}

/// A column definition's type.
pub(crate) fn column_type(type_name: &TypeName) -> EngineResult<SqlType> {
    let found = SqlType::parse(&type_name.name, &type_name.arguments, type_name.dimensions);
    if let Some(sql_type) = found.filter(|sql_type| sql_type.is_storable()) {
        return Ok(sql_type);
    }
    let message = match (type_name.name.to_ascii_uppercase().as_str(), &type_name.arguments[..]) {
        ("GEOHASH", [size]) => {
            let digits: String = size.chars().filter(char::is_ascii_digit).collect();
            let bits = digits.parse::<u32>().unwrap_or(0) * if size.ends_with('c') { 5 } else { 1 };
            format!("invalid GEOHASH type precision range, must be [1, 60] bits, provided={bits}")
        }
        ("DECIMAL", [precision, ..]) => {
            format!("Invalid decimal type. The precision ({precision}) must be less than 76")
        }
        _ => format!("unsupported column type: {}", type_name.name),
    };
    Err(error::at(ErrorCode::TypeMismatch, message, type_name.span))
}

/// Rejects other clauses together with LIKE, because the new table copies its columns and layout
/// from the existing table.
fn refuse_beside_like(node: &CreateTableNode) -> EngineResult<()> {
    let CreateTableNode {
        name: _,
        if_not_exists: _,
        columns,
        like,
        query,
        casts,
        timestamp,
        partition_by,
        wal,
        dedup_keys,
        constraints,
        ttl,
        policy,
        options: _,
    } = node;
    let Some(like) = like else { return Ok(()) };
    let is_alone = columns.is_empty()
        && query.is_none()
        && casts.is_empty()
        && timestamp.is_none()
        && partition_by.is_none()
        && wal.is_none()
        && dedup_keys.is_empty()
        && constraints.is_empty()
        && ttl.is_none()
        && policy.is_none();
    if is_alone {
        return Ok(());
    }
    let message = "CREATE TABLE … (LIKE …) copies columns and layout, and allows no other clauses";
    Err(error::at(ErrorCode::NotSupported, message, like.span))
}

fn query_columns(rows: &Relation, node: &CreateTableNode) -> EngineResult<Vec<ColumnSchema>> {
    let mut columns = Vec::with_capacity(rows.columns.len());
    for column in &rows.columns {
        let sql_type = match column.sql_type {
            SqlType::Null => SqlType::String,
            SqlType::Interval => {
                return Err(EngineError::new(
                    ErrorCode::TypeMismatch,
                    format!("unsupported column type [column={}, type=INTERVAL]", column.name),
                ));
            }
            other => other,
        };
        columns.push(ColumnSchema::new(column.name.clone(), sql_type));
    }
    for (name, type_name) in &node.casts {
        let column = columns
            .iter_mut()
            .find(|column| identifier::same(&column.name, &name.text))
            .ok_or_else(|| error::invalid_column(&name.text, name.span))?;
        column.sql_type = column_type(type_name)?;
    }
    Ok(columns)
}

/// Applies TIMESTAMP, PARTITION BY, WAL, DEDUP, TTL and STORAGE POLICY.
fn apply_layout(
    schema: &mut TableSchema,
    node: &CreateTableNode,
    query: Option<&Relation>,
    now_micros: i64,
) -> EngineResult<()> {
    match &node.timestamp {
        Some(name) => {
            let index = schema.column_index(&name.text).ok_or_else(|| {
                error::at(
                    ErrorCode::ColumnNotFound,
                    format!("invalid designated timestamp column [name={}]", name.text),
                    name.span,
                )
            })?;
            let actual = schema.columns[index].sql_type;
            if !actual.is_timestamp() {
                let (actual, name_text) = (actual.name(), &name.text);
                return Err(error::at(
                    ErrorCode::TypeMismatch,
                    format!("TIMESTAMP column expected [actual={actual}, columnName={name_text}]"),
                    name.span,
                ));
            }
            schema.timestamp = Some(index);
        }
        None => schema.timestamp = query.and_then(|rows| rows.timestamp),
    }
    if let Some(unit) = &node.partition_by {
        schema.partition_by = PartitionBy::parse(&unit.text).ok_or_else(|| {
            error::at(
                ErrorCode::InvalidValue,
                "'NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH' or 'YEAR' expected",
                unit.span,
            )
        })?;
        if schema.timestamp.is_none() && schema.partition_by != PartitionBy::None {
            return Err(error::at(
                ErrorCode::InvalidValue,
                "partitioning is possible only on tables with designated timestamps",
                unit.span,
            ));
        }
    } else if schema.timestamp.is_some() && node.timestamp.is_none() {
        schema.partition_by = PartitionBy::Day;
    }
    let partitioned = schema.partition_by != PartitionBy::None;
    schema.wal = node.wal.unwrap_or(partitioned);
    if schema.wal && !partitioned {
        let at = node.partition_by.as_ref().map_or(node.name.span, |unit| unit.span);
        return Err(error::at(
            ErrorCode::NotSupported,
            "WAL Write Mode can only be used on partitioned tables",
            at,
        ));
    }
    apply_dedup(schema, &node.dedup_keys)?;
    if let Some(ttl) = &node.ttl {
        schema.ttl_hours_or_months = parse_ttl(ttl, schema.partition_by)?;
    }
    if let Some(policy) = &node.policy {
        schema.policy = Some(policy_of(policy, schema, now_micros)?);
    }
    Ok(())
}

/// Applies `maxUncommittedRows`, `o3MaxLag` and index clauses.
fn apply_options(schema: &mut TableSchema, options: &[OptionValue]) -> EngineResult<()> {
    for option in options {
        let value = option.value.as_ref();
        match option.name.text.to_ascii_lowercase().as_str() {
            "maxuncommittedrows" => {
                let value = value.and_then(|value| value.text.parse().ok());
                schema.max_uncommitted_rows = value.ok_or_else(|| invalid_option(option))?;
            }
            "o3maxlag" => {
                let micros = value.and_then(|value| parse_lag(&value.text));
                schema.o3_max_lag_micros = micros.ok_or_else(|| invalid_option(option))?;
            }
            "index" => {
                let Some(name) = value else { continue };
                let mut words = name.text.split_whitespace();
                let column = words.next().unwrap_or_default();
                let index = schema
                    .column_index(column)
                    .ok_or_else(|| error::invalid_column(column, name.span))?;
                check_indexed(&schema.columns[index], name.span)?;
                schema.columns[index].indexed = true;
                index_capacity(&mut schema.columns[index], words);
            }
            other if crate::binder::notice::is_option(other) => {}
            other => {
                let message = format!("unknown option: {other}");
                return Err(error::at(ErrorCode::Syntax, message, option.name.span));
            }
        }
    }
    Ok(())
}

/// Rejects an index on a column that is not a SYMBOL.
fn check_indexed(column: &ColumnSchema, at: tidemark_ast::Span) -> EngineResult<()> {
    if column.sql_type == SqlType::Symbol {
        return Ok(());
    }
    let (name, of) = (&column.name, column.sql_type.name());
    let message =
        format!("indexes are supported only for SYMBOL columns [column={name}, type={of}]");
    Err(error::at(ErrorCode::NotSupported, message, at))
}

/// Stores the number that follows CAPACITY.
pub(crate) fn index_capacity<'a>(
    column: &mut ColumnSchema,
    mut words: impl Iterator<Item = &'a str>,
) {
    if words.any(|word| word.eq_ignore_ascii_case("CAPACITY"))
        && let Some(capacity) = words.next().and_then(|number| number.parse().ok())
    {
        column.index_capacity = capacity;
    }
}

fn invalid_option(option: &OptionValue) -> EngineError {
    let value = option.value.as_ref().map_or("", |value| value.text.as_str());
    error::at(
        ErrorCode::InvalidValue,
        format!("invalid value [value={value},parameter={}]", option.name.text),
        option.value.as_ref().map_or(option.name.span, |value| value.span),
    )
}

/// Parses a duration such as `600000000us`, `10s`, `5m`, or a number of microseconds.
pub(crate) fn parse_lag(text: &str) -> Option<i64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let count: i64 = text[..digits].parse().ok()?;
    let scale = match text[digits..].trim() {
        "" | "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    count.checked_mul(scale)
}
