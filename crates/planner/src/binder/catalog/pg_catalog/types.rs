//! The `PostgreSQL` types, and the mapping from SQL types to them.

use tidemark_storage::ColumnSchema;
use tidemark_types::SqlType;

/// A row of `pg_type`.
pub(crate) struct PgType {
    /// The type's OID, as in `PostgreSQL`.
    pub(crate) oid: i32,
    pub(crate) name: &'static str,
    /// The type's name as returned by `format_type`.
    pub(crate) title: &'static str,
    /// Length in bytes; -1 if variable.
    pub(crate) length: i16,
    /// `b` for base types, `p` for pseudo-types.
    pub(crate) kind: &'static str,
    pub(crate) category: &'static str,
    /// OID of an array's element type, otherwise 0.
    pub(crate) element: i32,
    /// OID of the array type whose elements have this type, otherwise 0.
    pub(crate) array: i32,
    /// Name prefix of the type's input and output functions.
    pub(crate) io: &'static str,
}

const fn base(
    (oid, array): (i32, i32),
    (name, title): (&'static str, &'static str),
    length: i16,
    category: &'static str,
    io: &'static str,
) -> PgType {
    PgType { oid, name, title, length, kind: "b", category, element: 0, array, io }
}

const fn array(oid: i32, name: &'static str, title: &'static str, element: i32) -> PgType {
    let (kind, category, io) = ("b", "A", "array_");
    PgType { oid, name, title, length: -1, kind, category, element, array: 0, io }
}

/// All types in the catalog, by OID.
pub(crate) const TYPES: &[PgType] = &[
    base((16, 1000), ("bool", "boolean"), 1, "B", "bool"),
    base((17, 1001), ("bytea", "bytea"), -1, "U", "bytea"),
    base((18, 1002), ("char", "\"char\""), 1, "Z", "char"),
    base((19, 1003), ("name", "name"), 64, "S", "name"),
    base((20, 1016), ("int8", "bigint"), 8, "N", "int8"),
    base((21, 1005), ("int2", "smallint"), 2, "N", "int2"),
    base((22, 1006), ("int2vector", "int2vector"), -1, "A", "int2vector"),
    base((23, 1007), ("int4", "integer"), 4, "N", "int4"),
    base((24, 1008), ("regproc", "regproc"), 4, "N", "regproc"),
    base((25, 1009), ("text", "text"), -1, "S", "text"),
    base((26, 1028), ("oid", "oid"), 4, "N", "oid"),
    base((28, 1011), ("xid", "xid"), 4, "U", "xid"),
    base((30, 1013), ("oidvector", "oidvector"), -1, "A", "oidvector"),
    base((194, 0), ("pg_node_tree", "pg_node_tree"), -1, "Z", "pg_node_tree_"),
    base((114, 199), ("json", "json"), -1, "U", "json_"),
    base((700, 1021), ("float4", "real"), 4, "N", "float4"),
    base((701, 1022), ("float8", "double precision"), 8, "N", "float8"),
    base((705, 0), ("unknown", "unknown"), -2, "X", "unknown"),
    array(1000, "_bool", "boolean[]", 16),
    array(1001, "_bytea", "bytea[]", 17),
    array(1002, "_char", "\"char\"[]", 18),
    array(1003, "_name", "name[]", 19),
    base((790, 791), ("money", "money"), 8, "N", "cash_"),
    array(791, "_money", "money[]", 790),
    base((829, 1040), ("macaddr", "macaddr"), 6, "U", "macaddr_"),
    base((869, 1041), ("inet", "inet"), -1, "I", "inet_"),
    base((1033, 1034), ("aclitem", "aclitem"), 12, "U", "aclitem"),
    array(1034, "_aclitem", "aclitem[]", 1033),
    array(1005, "_int2", "smallint[]", 21),
    array(1007, "_int4", "integer[]", 23),
    array(1009, "_text", "text[]", 25),
    array(1014, "_bpchar", "character[]", 1042),
    array(1015, "_varchar", "character varying[]", 1043),
    array(1016, "_int8", "bigint[]", 20),
    array(1021, "_float4", "real[]", 700),
    array(1022, "_float8", "double precision[]", 701),
    array(1028, "_oid", "oid[]", 26),
    array(1040, "_macaddr", "macaddr[]", 829),
    array(1041, "_inet", "inet[]", 869),
    base((1042, 1014), ("bpchar", "character"), -1, "S", "bpchar"),
    base((1043, 1015), ("varchar", "character varying"), -1, "S", "varchar"),
    base((1082, 1182), ("date", "date"), 4, "D", "date_"),
    base((1083, 1183), ("time", "time without time zone"), 8, "D", "time_"),
    base((1114, 1115), ("timestamp", "timestamp without time zone"), 8, "D", "timestamp_"),
    array(1115, "_timestamp", "timestamp without time zone[]", 1114),
    array(1182, "_date", "date[]", 1082),
    base((1184, 1185), ("timestamptz", "timestamp with time zone"), 8, "D", "timestamptz_"),
    array(1185, "_timestamptz", "timestamp with time zone[]", 1184),
    base((1186, 1187), ("interval", "interval"), 16, "T", "interval_"),
    array(1231, "_numeric", "numeric[]", 1700),
    base((1560, 1561), ("bit", "bit"), -1, "V", "bit_"),
    array(1561, "_bit", "bit[]", 1560),
    base((1562, 1563), ("varbit", "bit varying"), -1, "V", "varbit_"),
    array(1563, "_varbit", "bit varying[]", 1562),
    base((1700, 1231), ("numeric", "numeric"), -1, "N", "numeric_"),
    base((2205, 2210), ("regclass", "regclass"), 4, "N", "regclass"),
    array(2211, "_regtype", "regtype[]", 2206),
    base((2206, 2211), ("regtype", "regtype"), 4, "N", "regtype"),
    PgType { kind: "p", ..base((2249, 0), ("record", "record"), -1, "P", "record_") },
    PgType { kind: "p", ..base((2275, 0), ("cstring", "cstring"), -2, "P", "cstring_") },
    PgType { kind: "p", ..base((2278, 0), ("void", "void"), 4, "P", "void_") },
    PgType { kind: "p", ..base((2279, 0), ("trigger", "trigger"), 4, "P", "trigger_") },
    PgType { kind: "p", ..base((2281, 0), ("internal", "internal"), 8, "P", "internal_") },
    PgType { kind: "p", ..base((2277, 0), ("anyarray", "anyarray"), -1, "P", "anyarray_") },
    base((3220, 3221), ("pg_lsn", "pg_lsn"), 8, "U", "pg_lsn_"),
    base((3361, 0), ("pg_ndistinct", "pg_ndistinct"), -1, "Z", "pg_ndistinct_"),
    base((3402, 0), ("pg_dependencies", "pg_dependencies"), -1, "Z", "pg_dependencies_"),
    base((5017, 0), ("pg_mcv_list", "pg_mcv_list"), -1, "Z", "pg_mcv_list_"),
    base((2950, 2951), ("uuid", "uuid"), 16, "U", "uuid_"),
    array(2951, "_uuid", "uuid[]", 2950),
];

/// The type with this OID.
pub(crate) fn by_oid(oid: i32) -> Option<&'static PgType> {
    TYPES.iter().find(|one| one.oid == oid)
}

/// The type with this name or title.
pub(crate) fn by_name(name: &str) -> Option<&'static PgType> {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    TYPES.iter().find(|one| same(one.name) || same(one.title))
}

/// The `PostgreSQL` type that corresponds to a SQL type; the wire protocol uses the same mapping.
pub(crate) fn of(sql_type: SqlType) -> &'static PgType {
    let oid = match sql_type {
        SqlType::Boolean => 16,
        SqlType::Byte | SqlType::Short => 21,
        SqlType::Int => 23,
        SqlType::Long => 20,
        SqlType::Float => 700,
        SqlType::Double => 701,
        SqlType::Char => 1042,
        SqlType::Date | SqlType::Timestamp | SqlType::TimestampNs => 1114,
        SqlType::Uuid => 2950,
        SqlType::Binary => 17,
        SqlType::Decimal(..) => 1700,
        SqlType::DoubleArray(_) => 1022,
        SqlType::Period => 1186,
        _ => 1043,
    };
    by_oid(oid).unwrap_or(&TYPES[0])
}

/// A table column's `PostgreSQL` type.
pub(crate) fn of_column(column: &ColumnSchema) -> &'static PgType {
    let declared = match (column.zoned, column.text) {
        (true, _) => by_oid(1184),
        (false, true) => by_oid(25),
        (false, false) => None,
    };
    declared.unwrap_or_else(|| of(column.sql_type))
}

/// A column's type modifier, from its length or precision; -1 if it has none.
pub(crate) fn column_modifier(column: &ColumnSchema) -> i32 {
    match (column.length, column.precision) {
        (0, Some(digits)) => digits.into(),
        (0, None) => modifier(column.sql_type),
        // As in `PostgreSQL`, a string's modifier includes its 4-byte header.
        (length, _) => length.min(10_485_760) as i32 + 4,
    }
}

/// A type's modifier in `PostgreSQL`'s encoding; -1 if it has none.
pub(crate) fn modifier(sql_type: SqlType) -> i32 {
    match sql_type {
        SqlType::Char => 5,
        SqlType::Decimal(precision, scale) => (i32::from(precision) << 16 | i32::from(scale)) + 4,
        _ => -1,
    }
}
