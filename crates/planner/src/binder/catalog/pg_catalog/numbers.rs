//! OIDs of catalog objects.

use tidemark_catalog::View;
use tidemark_storage::TableSchema;
use tidemark_types::identifier;

pub(crate) const DATABASE_OID: i32 = 1;
pub(crate) const PG_CATALOG_OID: i32 = 11;
pub(crate) const INFORMATION_SCHEMA_OID: i32 = 13_000;
pub(crate) const PUBLIC_OID: i32 = 2_200;
/// The schemas and their OIDs.
pub(crate) const SCHEMAS: &[(i32, &str)] = &[
    (PG_CATALOG_OID, "pg_catalog"),
    (PUBLIC_OID, "public"),
    (INFORMATION_SCHEMA_OID, "information_schema"),
];
/// The owner of all objects.
pub(crate) const OWNER_OID: i32 = 10;
pub(crate) const OWNER: &str = "admin";
/// The only table access method.
pub(crate) const ACCESS_METHOD_OID: i32 = 2;
/// The access method reported for indexes.
pub(crate) const INDEX_METHOD_OID: i32 = 403;
pub(crate) const TABLESPACE_OID: i32 = 1_663;
/// First OID of the SQL functions.
pub(crate) const FUNCTIONS_OID: i32 = 20_000;
/// First OID of the types' input and output functions.
pub(crate) const TYPE_FUNCTIONS_OID: i32 = 19_000;
/// The only collation, named `default`.
pub(crate) const COLLATION_OID: i32 = 100;
pub(crate) const UTF8: i32 = 6;
/// The OID of `pg_class` itself.
pub(crate) const CLASS_OID: i32 = 1_259;

/// First OID of user objects.
pub(crate) const OBJECTS_OID: i32 = 16_384;

/// A table's OID.
pub(crate) fn table_oid(schema: &TableSchema) -> i32 {
    OBJECTS_OID + schema.id as i32
}

/// A view's OID, derived from its name because views have no ID here.
pub(crate) fn view_oid(view: &View) -> i32 {
    (1 << 30) | (hash_of(&identifier::fold(&view.name)) >> 3) as i32
}

/// Hashes a name.
pub(crate) fn hash_of(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5_u32, step)
}

/// An index's OID, derived from its table and its name. It is always even; the following odd number
/// is the OID of the index's constraint.
pub(crate) fn index_oid(table: i32, name: &str) -> i32 {
    (1 << 29) | ((hash_of(&format!("{table}.{name}")) >> 4) << 1) as i32
}
