//! Types that only the catalog of `PostgreSQL` has. Its columns are stored as columns of ours, and
//! clients are told what they are there: numbers of objects, names, vectors of numbers.

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
    /// Stored as DOUBLE[].
    Int2Array,
    /// Stored as DOUBLE[].
    OidArray,
}

/// Every one of them.
const ALL: [CatalogType; 8] = [
    CatalogType::Oid,
    CatalogType::Xid,
    CatalogType::Name,
    CatalogType::Char,
    CatalogType::Int2Vector,
    CatalogType::OidVector,
    CatalogType::Int2Array,
    CatalogType::OidArray,
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
            Self::OidArray => "_oid",
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
            Self::Int2Array => 1005,
            Self::OidArray => 1028,
        }
    }

    /// Of a list of numbers: the number of the elements' type and their bytes.
    #[must_use]
    pub fn element(self) -> Option<(i32, usize)> {
        match self {
            Self::Int2Vector | Self::Int2Array => Some((21, 2)),
            Self::OidVector | Self::OidArray => Some((26, 4)),
            _ => None,
        }
    }

    /// Whether its first element has the number 0, and its text no braces.
    #[must_use]
    pub fn is_vector(self) -> bool {
        matches!(self, Self::Int2Vector | Self::OidVector)
    }
}
