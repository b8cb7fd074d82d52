//! Types that exist only in the `PostgreSQL` catalog: object IDs, names, number vectors. Their
//! columns are stored with the dialect's types, but clients see the catalog type.

/// The `PostgreSQL` type of a catalog column whose values are stored with one of the dialect's
/// types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogType {
    /// An object ID; stored as INT.
    Oid,
    /// A transaction ID; stored as INT.
    Xid,
    /// An object name; stored as a string.
    Name,
    /// A character, `"char"`; stored as a string.
    Char,
    /// Column numbers, indexed from 0; stored as DOUBLE[].
    Int2Vector,
    /// Object IDs, indexed from 0; stored as DOUBLE[].
    OidVector,
    /// `smallint[]`; stored as DOUBLE[] or as a string.
    Int2Array,
    /// `integer[]`; stored as a string, like the array types below unless stated otherwise.
    Int4Array,
    /// `bigint[]`.
    Int8Array,
    /// `oid[]`; stored as DOUBLE[] or as a string.
    OidArray,
    /// `boolean[]`.
    BoolArray,
    /// `name[]`.
    NameArray,
    /// `text[]`.
    TextArray,
}

/// All catalog types.
const ALL: [CatalogType; 13] = [
    CatalogType::Oid,
    CatalogType::Xid,
    CatalogType::Name,
    CatalogType::Char,
    CatalogType::Int2Vector,
    CatalogType::OidVector,
    CatalogType::Int2Array,
    CatalogType::Int4Array,
    CatalogType::Int8Array,
    CatalogType::OidArray,
    CatalogType::BoolArray,
    CatalogType::NameArray,
    CatalogType::TextArray,
];

impl CatalogType {
    /// Metadata key that marks an Arrow field as a column with a catalog type.
    pub const METADATA: &str = "catalog_type";

    /// Returns the name in `pg_type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Oid => "oid",
            Self::Xid => "xid",
            Self::Name => "name",
            Self::Char => "char",
            Self::Int2Vector => "int2vector",
            Self::OidVector => "oidvector",
            Self::Int2Array => "_int2",
            Self::Int4Array => "_int4",
            Self::Int8Array => "_int8",
            Self::OidArray => "_oid",
            Self::BoolArray => "_bool",
            Self::NameArray => "_name",
            Self::TextArray => "_text",
        }
    }

    /// Returns the type with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the OID in `pg_type`.
    #[must_use]
    pub fn oid(self) -> i32 {
        match self {
            Self::Oid => 26,
            Self::Xid => 28,
            Self::Name => 19,
            Self::Char => 18,
            Self::Int2Vector => 22,
            Self::OidVector => 30,
            Self::BoolArray => 1000,
            Self::NameArray => 1003,
            Self::Int2Array => 1005,
            Self::Int4Array => 1007,
            Self::TextArray => 1009,
            Self::Int8Array => 1016,
            Self::OidArray => 1028,
        }
    }

    /// Returns the OID of an array's element type; `None` for other types.
    #[must_use]
    pub fn element(self) -> Option<i32> {
        match self {
            Self::BoolArray => Some(16),
            Self::NameArray => Some(19),
            Self::Int8Array => Some(20),
            Self::Int2Vector | Self::Int2Array => Some(21),
            Self::Int4Array => Some(23),
            Self::TextArray => Some(25),
            Self::OidVector | Self::OidArray => Some(26),
            Self::Oid | Self::Xid | Self::Name | Self::Char => None,
        }
    }

    /// Whether the first index is 0 and the string form has no braces.
    #[must_use]
    pub fn is_vector(self) -> bool {
        matches!(self, Self::Int2Vector | Self::OidVector)
    }
}
