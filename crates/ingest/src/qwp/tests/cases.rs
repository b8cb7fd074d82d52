//! Dictionaries, tables, limits and malformed messages.

use tidemark_types::SqlType;

use super::harness::*;
use crate::qwp::QwpStatus;
use crate::rows::TargetColumn;
use crate::shown_rows::{nothing, one_column};

/// Returns a column whose rows each contain one symbol.
fn symbols(start: u64, entries: &[&str], ids: &[u8]) -> Vec<u8> {
    let data = [vec![0], ids.to_vec()].concat();
    let times = longs(&vec![0; ids.len()]);
    let block = block("t", ids.len() as u64, &[("s", 0x09, data), ("", 0x0a, times)]);
    message(DELTA, 1, &[delta(start, entries), block].concat())
}

#[test]
fn a_dictionary_grows_across_messages() {
    let messages = [
        message(DELTA | DEFER, 0, &delta(0, &["a", "b"])),
        symbols(2, &["c"], &[2, 0, 2]),
        symbols(3, &[], &[1]),
        symbols(1, &["b", "c", "d"], &[3]),
    ];
    let shown = read_all(&messages, nothing(), options()).unwrap();
    assert_eq!(shown[0], "t.s:SYMBOL=[c|a|c|b|d]");
    let refused = |messages: &[Vec<u8>]| read_all(messages, nothing(), options()).unwrap_err();
    let (status, reason) = refused(&[symbols(1, &["a"], &[0])]);
    assert_eq!(status, QwpStatus::DictionaryGap);
    assert_eq!(reason, "the dictionary has 0 entries, but the new entries start at 1");
    let (status, reason) = refused(&[symbols(0, &["a"], &[0]), symbols(0, &["b"], &[0])]);
    assert_eq!(status, QwpStatus::ParseError);
    assert!(reason.starts_with("dictionary entry 0 already has a different value"));
    let (_, reason) = refused(&[symbols(0, &["a"], &[1])]);
    assert!(
        reason.starts_with(
            "table 't', column 's': symbol 1 does not exist: the dictionary has 1 entries (byte "
        ),
        "{reason}"
    );
    let long = "x".repeat(600);
    let (_, reason) = refused(&[symbols(0, &[&long], &[0]), symbols(1, &[&long], &[0])]);
    assert!(reason.contains("qwp.max.dictionary.size=1024"));
    let own = [vec![1, 0b10, 2], text("p"), text("q"), vec![1]].concat();
    assert_eq!(cells(0x09, own, nothing()).unwrap(), "SYMBOL=[q|-]");
}

#[test]
fn columns_can_be_added_later_to_several_tables() {
    let long = |name, value| (name, 0x05, longs(&[value]));
    let first = [block("A", 1, &[long("x", 1)]), block("b", 1, &[long("y", 2)])].concat();
    let second = [block("a", 1, &[long("X", 3), long("z", 4)]), block("empty", 0, &[])].concat();
    let messages = [message(DEFER, 2, &first), message(0, 2, &second)];
    let mut shown = read_all(&messages, nothing(), options()).unwrap();
    shown.retain(|column| !column.contains("timestamp:"));
    assert_eq!(shown, ["A.x:LONG=[1|3]", "A.z:LONG=[-|4]", "b.y:LONG=[2]"]);
}

#[test]
fn rows_keep_their_timestamp_or_get_the_server_time() {
    let shown = read(message(0, 1, &block("t", 1, &[("", 0x10, longs(&[5]))])), nothing());
    assert_eq!(shown.unwrap(), ["t.timestamp:TIMESTAMP_NS=[1970-01-01T00:00:00.000000005]"]);
    let given = some(0b10, [7_i64.to_le_bytes()]);
    let shown = read(message(0, 1, &block("t", 2, &[("", 0x0a, given.clone())])), nothing());
    let shown = shown.unwrap().concat();
    assert!(shown.contains("[1970-01-01T00:00:00.000007|20"), "expected the server time: {shown}");
    let named = message(0, 1, &block("t", 2, &[("timestamp", 0x0a, given)]));
    let (status, reason) = read(named, nothing()).unwrap_err();
    assert_eq!(
        (status, &*reason),
        (QwpStatus::SchemaMismatch, "the designated timestamp of 't' is null")
    );
    let both = [("timestamp", 0x0a, longs(&[1])), ("", 0x0a, longs(&[1]))];
    let (status, reason) =
        read(message(0, 1, &block("t", 1, &both)), one_column(SqlType::Long)).unwrap_err();
    assert_eq!(
        (status, &*reason),
        (QwpStatus::ParseError, "duplicate column 'timestamp' in a block")
    );
}

#[test]
fn a_missing_required_value_is_rejected() {
    let mut tables = one_column(SqlType::Long);
    let table = tables.0.get_mut("t").unwrap();
    table.columns[1].has_default = true;
    table.columns.push(TargetColumn { required: true, ..TargetColumn::new("r", SqlType::Int) });
    let row = |nulls| {
        let required = some(nulls, [[1, 0, 0, 0]].into_iter().take(2 - nulls as usize));
        two_rows(&[("x", 0x05, some(0b01, [[2; 8]])), ("r", 0x04, required)])
    };
    let (status, reason) = read(row(0b01), tables).unwrap_err();
    assert_eq!(
        (status, &*reason),
        (QwpStatus::SchemaMismatch, "column 'r' of 't' is NOT NULL: expected a value")
    );
}

fn refused(message: Vec<u8>) -> String {
    let (status, reason) = read(message, nothing()).unwrap_err();
    assert_eq!(status, QwpStatus::ParseError, "{reason}");
    reason
}

#[test]
fn malformed_messages_are_reported_with_the_offset() {
    let good = two_rows(&[("x", 0x05, longs(&[1, 2]))]);
    for end in 0..good.len() {
        assert!(refused(good[..end].to_vec()).contains("(byte "));
    }
    let spoilt = |at: usize, byte| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        refused(bytes)
    };
    assert!(spoilt(0, b'X').starts_with("the message does not start with QWP1"));
    assert!(spoilt(4, 2).starts_with("version 2 differs from the negotiated version 1"));
    for flag in [0x02, 0x10, 0x20, 0x40, 0x80] {
        assert!(spoilt(5, flag).starts_with("reserved flags are set"));
    }
    assert!(refused(message(0, 0, b"x")).starts_with("1 bytes after the last table"));
    let block = |columns: &[Column<'_>]| refused(message(0, 1, &block("t", 2, columns)));
    assert!(block(&[]).starts_with("2 rows without columns"));
    assert!(block(&[("x", 0x08, vec![])]).contains("unknown type 0x08"));
    assert!(block(&[("x", 0x19, vec![])]).contains("unknown type 0x19"));
    assert!(block(&[("a/b", 0x05, longs(&[1, 2]))]).contains("invalid column name: 'a/b'"));
    let twice = [("x", 0x05, longs(&[1, 2])), ("X", 0x05, longs(&[1, 2]))];
    assert!(block(&twice).starts_with("duplicate column 'x' in a block"));
    let geohash = |bits| block(&[("x", 0x0e, vec![0, bits])]);
    assert!(geohash(0).contains("1 to 60") && geohash(61).contains("1 to 60"));
    assert!(block(&[("x", 0x13, vec![0, 19])]).contains("scale 19 exceeds"));
    let falls = [vec![0], [0_u32, 2, 1].map(u32::to_le_bytes).concat(), vec![b'a'; 2]].concat();
    assert!(block(&[("x", 0x0f, falls)]).contains("must not decrease"));
    let cut = [vec![0], [0_u32, 1, 2].map(u32::to_le_bytes).concat(), "é".into()].concat();
    assert!(block(&[("x", 0x0f, cut)]).contains("is not valid UTF-8"));
    let many = [vec![1, 0b10, 3], [i32::MAX; 3].map(i32::to_le_bytes).concat()].concat();
    assert!(block(&[("x", 0x11, many)]).contains("too large"));
    assert!(block(&[("x", 0x11, vec![1, 0b10, 33, 0, 0, 0, 0])]).contains("33 dimensions"));
    let encoding = message(GORILLA, 1, &super::harness::block("t", 1, &[("", 0x0a, vec![0, 2])]));
    assert!(refused(encoding).contains("unknown encoding 2"));
}

/// Checks that declared sizes are rejected before memory is allocated for them.
#[test]
fn declared_sizes_are_checked_against_limits_and_available_bytes() {
    let claim = |rows, data| refused(message(0, 1, &block("t", rows, &[("x", 0x05, data)])));
    assert!(claim(1_001, vec![]).contains("qwp.max.rows.per.table=1000"));
    assert!(claim(1_000, vec![0]).contains("expected 8000 bytes, found 0"));
    let columns: Vec<Column<'_>> = (0..90).map(|_| ("x", 0x05, vec![0])).collect();
    let small = QwpOptionsSmall::read(&message(0, 1, &block("t", 900, &columns)));
    assert!(small.contains("qwp.max.uncommitted.size=4096"), "{small}");
    let tables: Vec<u8> =
        (0..5).flat_map(|at| block(&format!("t{at}"), 1, &[("x", 0x05, longs(&[1]))])).collect();
    assert!(refused(message(0, 5, &tables)).contains("qwp.max.tables.per.connection=4"));
}

struct QwpOptionsSmall;

impl QwpOptionsSmall {
    fn read(message: &[u8]) -> String {
        let options = crate::qwp::QwpOptions { max_pending_bytes: 4096, ..options() };
        read_all(&[message.to_vec()], nothing(), options).unwrap_err().1
    }
}
