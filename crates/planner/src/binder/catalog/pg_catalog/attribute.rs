//! Rows of `pg_attribute`.

use super::cell::{Cell, Row};
use super::numbers::COLLATION_OID;
use super::types::PgType;

/// Returns the values common to all rows of `pg_attribute`.
pub(super) fn attribute(relation: i32, index: usize, name: Cell, of: &PgType) -> Row {
    let text = of.category == "S";
    row!(
        attrelid: relation, attname: name, atttypid: of.oid, attstattarget: -1,
        attlen: of.length, attnum: index as i16 + 1, attndims: i32::from(of.element != 0),
        attcacheoff: -1, attbyval: of.length > 0, attalign: align(of), attstorage: storage(of),
        attcompression: "", attidentity: "", attgenerated: "", attisdropped: false,
        attislocal: true, attinhcount: 0, attcollation: if text { COLLATION_OID } else { 0 },
    )
}

pub(super) fn align(of: &PgType) -> &'static str {
    match of.length {
        1 => "c",
        2 => "s",
        8 | 16 => "d",
        _ => "i",
    }
}

pub(super) fn storage(of: &PgType) -> &'static str {
    if of.length < 0 { "x" } else { "p" }
}
