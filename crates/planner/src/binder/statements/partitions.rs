//! Selects partitions for DROP, DETACH, ATTACH and CONVERT PARTITION.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr, lit};
use tidemark_ast::{Name, NodeId, PartitionChange, Span};
use tidemark_storage::{
    PartitionAction, PartitionFormat, PartitionInfo, TableSchema, TableSnapshot,
};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, TimestampUnit};

use crate::binder::expressions::constant;
use crate::binder::expressions::time_range::timestamp_literal;
use crate::binder::state::accesses::Origin;
use crate::binder::state::relation;
use crate::binder::state::scope::{Scope, ScopeColumn};
use crate::binder::{Binder, error};
use crate::{BoundFormat, BoundPartitions};

impl Binder<'_> {
    /// The partitions selected by LIST or WHERE, with the action to perform on them.
    pub(crate) fn partitions(
        &mut self,
        table: &Arc<TableSnapshot>,
        name: &Name,
        (change, names, filter): (PartitionChange, &[Name], Option<NodeId>),
    ) -> EngineResult<Vec<BoundPartitions>> {
        let schema = table.schema();
        check_partitioned(schema, name)?;
        let mut bound: Vec<BoundPartitions> = Vec::new();
        let mut note = |action, floor| match bound.iter_mut().find(|one| one.action == action) {
            Some(known) if known.floors.contains(&floor) => {}
            Some(known) => known.floors.push(floor),
            None => bound.push(BoundPartitions {
                table: Arc::clone(table),
                action,
                floors: vec![floor],
            }),
        };
        let known = Known::of(table);
        for name in names {
            let floor = partition_floor(schema, name)?;
            note(known.action(schema, change, floor, name.span)?, floor);
        }
        if let Some(filter) = filter {
            let candidates = match change {
                PartitionChange::Attach => &known.detached,
                _ => &known.attached,
            };
            let floors: Vec<i64> = candidates.iter().copied().collect();
            for floor in self.matching(schema, filter, &floors)? {
                note(known.action(schema, change, floor, self.tree.span(filter))?, floor);
            }
        }
        Ok(bound)
    }

    /// The partitions selected by CONVERT. As in `QuestDB`, the active partition is not converted
    /// to Parquet.
    pub(crate) fn formats(
        &mut self,
        table: &Arc<TableSnapshot>,
        name: &Name,
        (to, names, filter): (PartitionFormat, &[Name], Option<NodeId>),
    ) -> EngineResult<BoundFormat> {
        let schema = table.schema();
        check_partitioned(schema, name)?;
        let known: Vec<i64> = table.partition_list().iter().map(|p| p.floor).collect();
        let mut floors = Vec::new();
        for name in names {
            let floor = partition_floor(schema, name)?;
            if !known.contains(&floor) {
                let message = format!(
                    "could not convert partition, it does not exist [table={}, partition={}]",
                    schema.name, name.text
                );
                return Err(error::at(ErrorCode::InvalidValue, message, name.span));
            }
            floors.push(floor);
        }
        if let Some(filter) = filter {
            floors.extend(self.matching(schema, filter, &known)?);
        }
        if to == PartitionFormat::Parquet {
            floors.retain(|floor| Some(floor) != known.last());
        }
        Ok(BoundFormat { table: Arc::clone(table), to, floors })
    }

    /// The partitions that satisfy WHERE when their start is used as the designated timestamp.
    fn matching(
        &mut self,
        schema: &TableSchema,
        filter: NodeId,
        floors: &[i64],
    ) -> EngineResult<Vec<i64>> {
        let mut one = relation::one_row();
        let column = Column::new(Some("partition"), "timestamp");
        let timestamp = schema.timestamp_column();
        let timestamp = timestamp.ok_or_else(|| EngineError::internal("no timestamp"))?;
        one.columns.push(ScopeColumn {
            qualifier: Some(Arc::from(schema.name.as_str())),
            name: timestamp.name.clone(),
            sql_type: timestamp.sql_type,
            column: column.clone(),
            origin: Origin::NONE,
        });
        let test = self.predicate(filter, &Scope::rows(&one), false)?;
        let column = Expr::Column(column);
        let mut matching = Vec::new();
        for &floor in floors {
            let value = lit(timestamp_literal(Some(floor), timestamp.sql_type));
            let test = test.expr.clone().transform(|expr| {
                Ok(if expr == column {
                    Transformed::yes(value.clone())
                } else {
                    Transformed::no(expr)
                })
            });
            let outcome = test.and_then(|test| constant::evaluate(&test.data));
            if outcome.map_err(crate::binder::statements::conversion::runtime_value)?
                == ScalarValue::Boolean(Some(true))
            {
                matching.push(floor);
            }
        }
        Ok(matching)
    }
}

fn check_partitioned(schema: &TableSchema, name: &Name) -> EngineResult<()> {
    if schema.partition_by != PartitionBy::None && schema.timestamp.is_some() {
        return Ok(());
    }
    let message = format!("table is not partitioned [table={}]", schema.name);
    Err(error::at(ErrorCode::NotSupported, message, name.span))
}

/// The start of the partition with this name.
fn partition_floor(schema: &TableSchema, name: &Name) -> EngineResult<i64> {
    let unit = schema.partition_by;
    let micros = unit.parse_directory_name(&name.text).ok_or_else(|| {
        let pattern = match unit {
            PartitionBy::Hour => "yyyy-MM-ddTHH",
            PartitionBy::Week => "YYYY-Www",
            PartitionBy::Month => "yyyy-MM",
            PartitionBy::Year => "yyyy",
            PartitionBy::Day | PartitionBy::None => "yyyy-MM-dd",
        };
        let message = format!("'{pattern}' expected, not '{}'", name.text);
        error::at(ErrorCode::InvalidValue, message, name.span)
    })?;
    let nanos = schema.timestamp_column().map(|column| column.sql_type);
    Ok(if nanos == Some(SqlType::TimestampNs) { micros.saturating_mul(1_000) } else { micros })
}

/// A table's partition start timestamps.
struct Known {
    attached: BTreeSet<i64>,
    detached: BTreeSet<i64>,
}

impl Known {
    fn of(table: &TableSnapshot) -> Self {
        let floors = |list: Vec<PartitionInfo>| list.iter().map(|one| one.floor).collect();
        Self { attached: floors(table.partition_list()), detached: floors(table.detached_list()) }
    }

    /// The action on this partition, or an error if the action is not possible.
    fn action(
        &self,
        schema: &TableSchema,
        change: PartitionChange,
        floor: i64,
        at: Span,
    ) -> EngineResult<PartitionAction> {
        let attached = self.attached.contains(&floor);
        let detached = self.detached.contains(&floor);
        let active = self.attached.last() == Some(&floor);
        let (verb, status) = match change {
            PartitionChange::Drop if attached => return Ok(PartitionAction::Drop),
            PartitionChange::Drop if detached => return Ok(PartitionAction::DropDetached),
            PartitionChange::Drop => ("remove", ""),
            PartitionChange::Detach if !attached => ("detach", "DETACH_ERR_MISSING_PARTITION"),
            PartitionChange::Detach if detached => ("detach", "DETACH_ERR_ALREADY_DETACHED"),
            PartitionChange::Detach if active => ("detach", "DETACH_ERR_ACTIVE"),
            PartitionChange::Detach => return Ok(PartitionAction::Detach),
            PartitionChange::Attach if attached => ("attach", "ATTACH_ERR_PARTITION_EXISTS"),
            PartitionChange::Attach if !detached => ("attach", "ATTACH_ERR_MISSING_PARTITION"),
            PartitionChange::Attach => return Ok(PartitionAction::Attach),
            PartitionChange::ToParquet | PartitionChange::ToNative => {
                return Err(EngineError::internal("a conversion does not move partitions"));
            }
        };
        let unit = match schema.timestamp_column().map(|column| column.sql_type) {
            Some(SqlType::TimestampNs) => TimestampUnit::Nanos,
            _ => TimestampUnit::Micros,
        };
        let timestamp = tidemark_types::timestamp::iso_text(floor, unit);
        let status =
            if status.is_empty() { String::new() } else { format!("detachStatus={status}, ") };
        let (name, partition_by) = (&schema.name, schema.partition_by.name());
        Err(error::at(
            ErrorCode::InvalidValue,
            format!(
                "could not {verb} partition [table={name}, {status}partitionTimestamp={timestamp}, \
                 partitionBy={partition_by}]"
            ),
            at,
        ))
    }
}
