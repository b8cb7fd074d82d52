//! The tables of `information_schema`, as `layout.rs` has those of `pg_catalog`.

use tidemark_storage::ColumnSchema;
use tidemark_types::SqlType;

use super::cell::{Cell, Row};
use super::layout::{Layout, table};
use super::object::{DATABASE, Object, shown_default};
use super::types;

/// Tables of the schema `information_schema`.
pub(crate) const INFORMATION_SCHEMA: &[Layout] = &[
    table(
        13_001,
        "tables",
        "table_catalog:t table_schema:t table_name:t table_type:t \
         self_referencing_column_name:t reference_generation:t user_defined_type_catalog:t \
         user_defined_type_schema:t user_defined_type_name:t is_insertable_into:t is_typed:t \
         commit_action:t",
    ),
    table(
        13_002,
        "columns",
        "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i \
         column_default:t is_nullable:t data_type:t character_maximum_length:i \
         character_octet_length:i numeric_precision:i numeric_precision_radix:i numeric_scale:i \
         datetime_precision:i interval_type:t collation_name:t domain_name:t udt_catalog:t \
         udt_schema:t udt_name:t is_identity:t is_generated:t is_updatable:t interval_precision:i \
         character_set_catalog:t character_set_schema:t character_set_name:t collation_catalog:t \
         collation_schema:t domain_catalog:t domain_schema:t scope_catalog:t scope_schema:t \
         scope_name:t maximum_cardinality:i dtd_identifier:t is_self_referencing:t \
         identity_generation:t identity_start:t identity_increment:t identity_maximum:t \
         identity_minimum:t identity_cycle:t generation_expression:t",
    ),
    table(
        13_003,
        "schemata",
        "catalog_name:t schema_name:t schema_owner:t default_character_set_catalog:t \
         default_character_set_schema:t default_character_set_name:t sql_path:t",
    ),
    table(
        13_004,
        "views",
        "table_catalog:t table_schema:t table_name:t view_definition:t check_option:t \
         is_updatable:t is_insertable_into:t is_trigger_updatable:t is_trigger_deletable:t \
         is_trigger_insertable_into:t",
    ),
    table(
        13_005,
        "character_sets",
        "character_set_catalog:t character_set_schema:t character_set_name:t \
         character_repertoire:t form_of_use:t default_collate_catalog:t \
         default_collate_schema:t default_collate_name:t",
    ),
    table(
        13_006,
        "key_column_usage",
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t \
         table_schema:t table_name:t column_name:t ordinal_position:i \
         position_in_unique_constraint:i",
    ),
    table(
        13_007,
        "table_constraints",
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t \
         table_schema:t table_name:t constraint_type:t is_deferrable:t initially_deferred:t \
         enforced:t nulls_distinct:t",
    ),
    table(
        13_008,
        "referential_constraints",
        "constraint_catalog:t constraint_schema:t constraint_name:t \
         unique_constraint_catalog:t unique_constraint_schema:t unique_constraint_name:t \
         match_option:t update_rule:t delete_rule:t",
    ),
    table(
        13_009,
        "constraint_column_usage",
        "table_catalog:t table_schema:t table_name:t column_name:t constraint_catalog:t \
         constraint_schema:t constraint_name:t",
    ),
    table(
        13_010,
        "routines",
        "specific_catalog:t specific_schema:t specific_name:t routine_catalog:t \
         routine_schema:t routine_name:t routine_type:t data_type:t",
    ),
    table(
        13_011,
        "sequences",
        "sequence_catalog:t sequence_schema:t sequence_name:t data_type:t numeric_precision:i \
         numeric_precision_radix:i numeric_scale:i start_value:t minimum_value:t maximum_value:t \
         increment:t cycle_option:t",
    ),
    table(
        13_012,
        "questdb_columns",
        "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i \
         column_default:t is_nullable:t data_type:t",
    ),
    table(13_100, "information_schema_catalog_name", "catalog_name:t"),
    table(13_101, "applicable_roles", "grantee:t role_name:t is_grantable:t"),
    table(13_102, "enabled_roles", "role_name:t"),
    table(
        13_103,
        "check_constraints",
        "constraint_catalog:t constraint_schema:t constraint_name:t check_clause:t",
    ),
    table(
        13_104,
        "collations",
        "collation_catalog:t collation_schema:t collation_name:t pad_attribute:t",
    ),
    table(
        13_105,
        "column_privileges",
        "grantor:t grantee:t table_catalog:t table_schema:t table_name:t column_name:t \
         privilege_type:t is_grantable:t",
    ),
    table(
        13_106,
        "table_privileges",
        "grantor:t grantee:t table_catalog:t table_schema:t table_name:t privilege_type:t \
         is_grantable:t with_hierarchy:t",
    ),
    table(
        13_107,
        "role_table_grants",
        "grantor:t grantee:t table_catalog:t table_schema:t table_name:t privilege_type:t \
         is_grantable:t with_hierarchy:t",
    ),
    table(
        13_108,
        "role_column_grants",
        "grantor:t grantee:t table_catalog:t table_schema:t table_name:t column_name:t \
         privilege_type:t is_grantable:t",
    ),
    table(
        13_109,
        "usage_privileges",
        "grantor:t grantee:t object_catalog:t object_schema:t object_name:t object_type:t \
         privilege_type:t is_grantable:t",
    ),
    table(
        13_110,
        "parameters",
        "specific_catalog:t specific_schema:t specific_name:t ordinal_position:i parameter_mode:t \
         is_result:t as_locator:t parameter_name:t data_type:t character_maximum_length:i \
         character_octet_length:i character_set_catalog:t character_set_schema:t \
         character_set_name:t collation_catalog:t collation_schema:t collation_name:t \
         numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i \
         interval_type:t interval_precision:i udt_catalog:t udt_schema:t udt_name:t \
         scope_catalog:t scope_schema:t scope_name:t maximum_cardinality:i dtd_identifier:t \
         parameter_default:t",
    ),
    table(
        13_111,
        "triggers",
        "trigger_catalog:t trigger_schema:t trigger_name:t event_manipulation:t \
         event_object_catalog:t event_object_schema:t event_object_table:t action_order:i \
         action_condition:t action_statement:t action_orientation:t action_timing:t \
         action_reference_old_table:t action_reference_new_table:t action_reference_old_row:t \
         action_reference_new_row:t created:p",
    ),
    table(
        13_112,
        "user_defined_types",
        "user_defined_type_catalog:t user_defined_type_schema:t user_defined_type_name:t \
         user_defined_type_category:t is_instantiable:t is_final:t ordering_form:t \
         ordering_category:t ordering_routine_catalog:t ordering_routine_schema:t \
         ordering_routine_name:t reference_type:t data_type:t character_maximum_length:i \
         character_octet_length:i character_set_catalog:t character_set_schema:t \
         character_set_name:t collation_catalog:t collation_schema:t collation_name:t \
         numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i \
         interval_type:t interval_precision:i source_dtd_identifier:t ref_dtd_identifier:t",
    ),
    table(
        13_113,
        "domains",
        "domain_catalog:t domain_schema:t domain_name:t data_type:t character_maximum_length:i \
         character_octet_length:i character_set_catalog:t character_set_schema:t \
         character_set_name:t collation_catalog:t collation_schema:t collation_name:t \
         numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i \
         interval_type:t interval_precision:i domain_default:t udt_catalog:t udt_schema:t \
         udt_name:t scope_catalog:t scope_schema:t scope_name:t maximum_cardinality:i \
         dtd_identifier:t",
    ),
    table(
        13_114,
        "element_types",
        "object_catalog:t object_schema:t object_name:t object_type:t \
         collection_type_identifier:t data_type:t character_maximum_length:i \
         character_octet_length:i character_set_catalog:t character_set_schema:t \
         character_set_name:t collation_catalog:t collation_schema:t collation_name:t \
         numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i \
         interval_type:t interval_precision:i domain_default:t udt_catalog:t udt_schema:t \
         udt_name:t scope_catalog:t scope_schema:t scope_name:t maximum_cardinality:i \
         dtd_identifier:t",
    ),
    table(
        13_115,
        "foreign_tables",
        "foreign_table_catalog:t foreign_table_schema:t foreign_table_name:t \
         foreign_server_catalog:t foreign_server_name:t",
    ),
    table(
        13_116,
        "foreign_servers",
        "foreign_server_catalog:t foreign_server_name:t foreign_data_wrapper_catalog:t \
         foreign_data_wrapper_name:t foreign_server_type:t foreign_server_version:t \
         authorization_identifier:t",
    ),
    table(
        13_117,
        "view_table_usage",
        "view_catalog:t view_schema:t view_name:t table_catalog:t table_schema:t table_name:t",
    ),
    table(
        13_118,
        "constraint_table_usage",
        "table_catalog:t table_schema:t table_name:t constraint_catalog:t constraint_schema:t \
         constraint_name:t",
    ),
    table(
        13_119,
        "sql_features",
        "feature_id:t feature_name:t sub_feature_id:t sub_feature_name:t is_supported:t \
         is_verified_by:t comments:t",
    ),
];

/// Rows of `information_schema.columns`; with `native`, types by their names here.
pub(super) fn information_columns(object: &Object, native: bool) -> Vec<Row> {
    let columns = object.columns.iter().enumerate();
    let row = |(index, column): (usize, &ColumnSchema)| {
        let of = types::of(column.sql_type);
        let data_type = match column.sql_type {
            other if native => other.name(),
            _ if of.element != 0 => "ARRAY".to_owned(),
            _ => of.title.to_owned(),
        };
        let number = |value: Option<i32>| value.map_or(Cell::Null, Cell::from);
        let (precision, scale) = match column.sql_type {
            SqlType::Byte | SqlType::Short => (Some(16), Some(0)),
            SqlType::Int => (Some(32), Some(0)),
            SqlType::Long => (Some(64), Some(0)),
            SqlType::Float => (Some(24), None),
            SqlType::Double => (Some(53), None),
            SqlType::Decimal(precision, scale) => (Some(precision.into()), Some(scale.into())),
            _ => (None, None),
        };
        let decimal = matches!(column.sql_type, SqlType::Decimal(..));
        let radix = precision.map(|_| if decimal { 10 } else { 2 });
        let mut row = row!(
            table_catalog: DATABASE, table_schema: "public", table_name: object.name.clone(),
            column_name: column.name.clone(), ordinal_position: index as i32 + 1,
            is_nullable: if column.not_null || object.timestamp == Some(index) {
                "NO"
            } else {
                "YES"
            },
            data_type: data_type,
            udt_catalog: DATABASE, udt_schema: "pg_catalog", udt_name: of.name,
            is_identity: "NO", is_generated: "NEVER",
            is_updatable: if object.kind == "r" { "YES" } else { "NO" },
        );
        let length = (column.length > 0).then_some(column.length as i32);
        row.push(("character_maximum_length", number(length)));
        row.push(("numeric_precision", number(precision)));
        row.push(("numeric_precision_radix", number(radix)));
        row.push(("numeric_scale", number(scale)));
        row.push(("datetime_precision", number(column.sql_type.is_timestamp().then_some(6))));
        if let Some(default) = shown_default(&object.name, column) {
            row.push(("column_default", Cell::from(default)));
        }
        row
    };
    columns.map(row).collect()
}
