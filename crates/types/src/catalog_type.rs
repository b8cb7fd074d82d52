//! Types that only the catalog of `PostgreSQL` has. Its columns are stored as columns of ours, and
//! clients see them as what they are there: numbers of objects, names, vectors of numbers.

/// A type of `PostgreSQL` that a column of its catalog has; the values are of one of our types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogType {
    /// The number of an object; stored as INT.
    Oid,
    /// The number of a transaction; stored as INT.
    Xid,
    /// The name of an object; stored as text.
    Name,
    /// A character, `"char"`; stored as text.
    Char,
    /// Numbers of columns, counted from 0; stored as DOUBLE[].
    Int2Vector,
    /// Numbers of objects, counted from 0; stored as DOUBLE[].
    OidVector,
    /// Stored as DOUBLE[], or as its text.
    Int2Array,
    /// Stored as its text, and so are the others.
    Int4Array,
    /// `bigint[]`.
    Int8Array,
    /// `oid[]`; stored as DOUBLE[], or as its text.
    OidArray,
    /// `boolean[]`.
    BoolArray,
    /// `name[]`.
    NameArray,
    /// `text[]`.
    TextArray,
}

/// Every one of them.
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
    /// The key of the metadata by which an Arrow field says that it is such a column.
    pub const METADATA: &str = "catalog_type";

    /// Its name in `pg_type`.
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

    /// The type of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its number in `pg_type`.
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

    /// Of an array: the number of its elements' type.
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

    /// Whether its first element has the number 0, and its text no braces.
    #[must_use]
    pub fn is_vector(self) -> bool {
        matches!(self, Self::Int2Vector | Self::OidVector)
    }
}
