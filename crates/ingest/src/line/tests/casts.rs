//! Assigning values to columns of every type.

use tidemark_types::SqlType::{
    self, Boolean, Byte, Char, Date, Decimal, Double, Float, Geohash, Int, Ipv4, Long, Short,
    String, Symbol, Timestamp, TimestampNs, Uuid, Varchar,
};

use super::harness::cast;

/// A value, a column type, and the resulting cell.
const CASTS: &[(&str, SqlType, &str)] = &[
    ("127i", Byte, "127"),
    ("-128i", Byte, "-128"),
    ("-9223372036854775808i", Byte, "0"),
    ("32767i", Short, "32767"),
    ("2147483647i", Int, "2147483647"),
    ("-9223372036854775808i", Int, "-"),
    ("-9223372036854775808i", Long, "-"),
    ("9223372036854775807i", Long, "9223372036854775807"),
    ("3i", Float, "3.0"),
    ("3i", Double, "3.0"),
    ("1700000000000i", Date, "2023-11-14T22:13:20"),
    ("1700000000000000i", Timestamp, "2023-11-14T22:13:20"),
    ("12i", Decimal(4, 2), "12.00"),
    ("1.5", Float, "1.5"),
    ("NaN", Float, "-"),
    ("-Infinity", Double, "-"),
    ("1.5", Decimal(4, 2), "1.50"),
    ("NaN", Decimal(4, 2), "-"),
    ("1.5d", Double, "1.5"),
    ("1.5d", Float, "1.5"),
    ("12.34d", Decimal(4, 2), "12.34"),
    ("t", Byte, "1"),
    ("f", Short, "0"),
    ("true", Int, "1"),
    ("False", Long, "0"),
    ("TRUE", Float, "1.0"),
    ("T", Double, "1.0"),
    ("F", Boolean, "false"),
    ("\"a\"", Symbol, "a"),
    ("42i", Symbol, "42"),
    ("1.50", Symbol, "1.50"),
    ("NaN", Symbol, "-"),
    ("0x1i", Symbol, "0x1"),
    ("1.5d", Symbol, "1.5"),
    ("5t", Symbol, "5"),
    ("True", Symbol, "t"),
    ("NaNd", Double, "-"),
    ("NaNd", Decimal(4, 2), "-"),
    ("\"a\"", String, "a"),
    ("\"\"", Varchar, ""),
    ("\"a\"", Char, "97"),
    ("\"\"", Char, "-"),
    ("\"u33de\"", Geohash(10), "835"),
    ("\"\"", Geohash(10), "-"),
    ("\"\"", Uuid, "-"),
    ("\"11111111-2222-3333-4444-555555555555\"", Uuid, "11111111222233334444555555555555"),
    ("\"1.25\"", Decimal(4, 2), "1.25"),
    ("\"1.2.3.4\"", Ipv4, "16909060"),
    ("\"2024-01-02T03:04:05Z\"", Timestamp, "2024-01-02T03:04:05"),
    ("\"2024-01-02\"", Date, "2024-01-02T00:00:00"),
    ("1700000000000000t", Date, "2023-11-14T22:13:20"),
    ("1700000000000000t", TimestampNs, "2023-11-14T22:13:20"),
    ("5t", Long, "5"),
    ("-1n", Timestamp, "1969-12-31T23:59:59.999999"),
    ("7n", TimestampNs, "1970-01-01T00:00:00.000000007"),
];

/// Values that are out of range for the type.
const TOO_MUCH: &[(&str, SqlType)] = &[
    ("128i", Byte),
    ("-129i", Byte),
    ("32768i", Short),
    ("2147483648i", Int),
    ("-2147483648i", Int),
    ("100i", Decimal(4, 2)),
    ("1e39", Float),
    ("1.005", Decimal(4, 2)),
    ("1.005d", Decimal(4, 2)),
    ("\"ab\"", Char),
    ("\"😀\"", Char),
    ("\"u\"", Geohash(10)),
    ("\"u3!!\"", Geohash(10)),
    ("\"x\"", Uuid),
    ("\"x\"", Decimal(4, 2)),
    ("\"1.2.3\"", Ipv4),
    ("\"soon\"", Timestamp),
    ("9223372036854775807t", TimestampNs),
];

/// Values of a kind that the type does not accept.
const OTHER_KINDS: &[(&str, SqlType)] = &[
    ("1i", Boolean),
    ("1i", Varchar),
    ("1.5", Long),
    ("1.5", Timestamp),
    ("0x1i", Long),
    ("t", Varchar),
    ("\"1\"", Long),
    ("\"true\"", Boolean),
    ("1t", Double),
    ("1.5d", Long),
    ("0x1i", Double),
];

#[test]
fn values_are_accepted_or_rejected_by_column_type() {
    for (value, sql_type, cell) in CASTS {
        assert_eq!(cast(value, *sql_type).as_deref(), Ok(*cell), "{value} as {}", sql_type.name());
    }
    for (cases, expected) in [(TOO_MUCH, "cannot hold"), (OTHER_KINDS, "does not accept")] {
        for (value, sql_type) in cases {
            let refused = cast(value, *sql_type).unwrap_err();
            assert!(refused.contains(expected), "{value} as {}: {refused}", sql_type.name());
        }
    }
}
