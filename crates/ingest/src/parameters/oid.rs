//! OIDs of parameter types, which `PostgreSQL` defines in `pg_type.dat`. The OIDs of result types
//! are in `ts/pgwire/protocol/type-oids.ts`.

pub(super) const UNKNOWN: u32 = 0;
pub(super) const BOOL: u32 = 16;
pub(super) const BYTEA: u32 = 17;
pub(super) const CHAR: u32 = 18;
pub(super) const NAME: u32 = 19;
pub(super) const INT8: u32 = 20;
pub(super) const INT2: u32 = 21;
pub(super) const INT4: u32 = 23;
pub(super) const TEXT: u32 = 25;
pub(super) const OID: u32 = 26;
pub(super) const JSON: u32 = 114;
pub(super) const XML: u32 = 142;
pub(super) const CIDR: u32 = 650;
pub(super) const FLOAT4: u32 = 700;
pub(super) const FLOAT8: u32 = 701;
pub(super) const UNKNOWN_LITERAL: u32 = 705;
pub(super) const INET: u32 = 869;
pub(super) const BPCHAR: u32 = 1042;
pub(super) const VARCHAR: u32 = 1043;
pub(super) const DATE: u32 = 1082;
pub(super) const TIME: u32 = 1083;
pub(super) const TIMESTAMP: u32 = 1114;
pub(super) const TIMESTAMPTZ: u32 = 1184;
pub(super) const INTERVAL: u32 = 1186;
pub(super) const NUMERIC: u32 = 1700;
pub(super) const UUID: u32 = 2950;
pub(super) const JSONB: u32 = 3802;

/// OIDs of array types. The array value itself contains the OID of its element type.
pub(super) const ARRAYS: [u32; 23] = [
    199,  // json[]
    651,  // cidr[]
    1000, // bool[]
    1001, // bytea[]
    1002, // "char"[]
    1003, // name[]
    1005, // int2[]
    1007, // int4[]
    1009, // text[]
    1014, // bpchar[]
    1015, // varchar[]
    1016, // int8[]
    1021, // float4[]
    1022, // float8[]
    1028, // oid[]
    1041, // inet[]
    1115, // timestamp[]
    1182, // date[]
    1183, // time[]
    1185, // timestamptz[]
    1187, // interval[]
    1231, // numeric[]
    2951, // uuid[]
];
