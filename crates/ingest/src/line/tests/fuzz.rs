//! Mutated messages. However the bytes are split, the reader must terminate with the same outcome.
//! For known messages it must agree with a simple reference parser.

use std::collections::HashMap;
use std::fmt::Write as _;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use tidemark_types::SqlType;

use super::harness::{Outcome, Tables, nothing, one_column, options, read, read_chunks, shown};
use crate::rows::{TargetColumn, TargetTable};

fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(1);
    println!("SEED={seed}");
    seed
}

fn count() -> usize {
    std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(20_000)
}

const FRAGMENTS: &[&[u8]] = &[
    b"t",
    b"u",
    b",",
    b"=",
    b" ",
    b"\n",
    b"\\",
    b"\"",
    b"a=1i",
    b"x=2.5",
    b"s=sym",
    b"==\x10",
    b"==\x0e\x0a\x01",
    b"==\x0e\x21",
    b"==\x17\x02\x02",
    b"\0\0\0\0",
    b"\xff\xff\xff\x7f",
    b"0x12i",
    b"true",
    b"1t",
    b"2n",
    b"1.5d",
    b"#",
    b"\r\n",
    b"timestamp=",
    b"NaN",
    b"1700000000000000000",
    b"\xc3\xa9",
    b"\xff",
    b"-",
    b"e400",
];

const FIRST: &[u8] = b"t,s=a f=1.5,i=42i,v=\"x y\",b=t,d==\x10\0\0\0\0\0\0\xf8\x3f 17000000000\n";
const SECOND: &[u8] = b"u a==\x0e\x0a\x01\x02\0\0\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x40,";

fn message(random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = [FIRST, SECOND, b"m==\x17\x02\x02\x30\x39 1t\n"].concat();
    for _ in 0..random.random_range(0..8) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..4) {
            0 => {
                let fragment = FRAGMENTS[random.random_range(0..FRAGMENTS.len())];
                bytes.splice(at..at, fragment.iter().copied());
            }
            1 => {
                let end = (at + random.random_range(0..6)).min(bytes.len());
                bytes.drain(at..end);
            }
            2 if at < bytes.len() => bytes[at] = random.random(),
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

#[test]
fn chunk_boundaries_do_not_change_the_result_of_mutated_messages() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let mut accepted = 0;
    for _ in 0..count() {
        let message = message(&mut random);
        let outcome = |chunks: &[&[u8]]| {
            let mut targets = one_column(SqlType::Int);
            let chunks = chunks.iter().copied();
            match read_chunks(chunks, &mut targets, options()) {
                Ok(tables) => {
                    // Server timestamps differ from run to run.
                    let mut all = shown(&tables);
                    all.retain(|column| !column.contains("timestamp:"));
                    Ok(all)
                }
                Err(refusal) => Err(refusal),
            }
        };
        let whole = outcome(&[&message]);
        let (head, tail) = message.split_at(random.random_range(0..=message.len()));
        assert_eq!(outcome(&[head, tail]), whole, "{message:?}");
        let size = random.random_range(1..9);
        let chunks: Vec<&[u8]> = message.chunks(size).collect();
        assert_eq!(outcome(&chunks), whole, "{message:?} in {size}");
        if let Err(refusal) = &whole {
            let ends = memchr::memchr_iter(b'\n', &message).count() as u64;
            assert!((1..=ends + 1).contains(&refusal.line) && !refusal.reason.is_empty());
        }
        accepted += usize::from(whole.is_ok());
    }
    println!("accepted={accepted}");
    assert!(accepted > 0);
}

const CHARACTERS: &[char] = &['a', 'B', ' ', ',', '=', '\\', '"', '\n', '\r', 'é', '😀', '_'];

/// Writes known cells as lines with the necessary escapes, and reads them back.
#[test]
fn parser_matches_a_simple_reference_parser() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    for _ in 0..count() / 20 {
        let (mut message, mut texts, mut symbols, mut numbers) =
            (String::new(), vec![], vec![], vec![]);
        for row in 0..random.random_range(1..20) {
            let mut word = || -> String {
                let length = random.random_range(1..8);
                (0..length).map(|_| CHARACTERS[random.random_range(0..CHARACTERS.len())]).collect()
            };
            let (symbol, text) = (word(), word());
            let escaped: String = symbol
                .chars()
                .flat_map(|c| if " ,=\\\n\r".contains(c) { vec!['\\', c] } else { vec![c] })
                .collect();
            let quoted: String = text
                .chars()
                .flat_map(|c| if "\"\\\n\r".contains(c) { vec!['\\', c] } else { vec![c] })
                .collect();
            let number = 0.5 + random.random::<f64>() / 2.0;
            let order = random.random_bool(0.8);
            let fields = if order {
                format!("v=\"{quoted}\",n={number:?}")
            } else {
                format!("n={number:?},v=\"{quoted}\"")
            };
            writeln!(message, "t,s={escaped} {fields} {row}").unwrap();
            symbols.push(symbol);
            texts.push(text);
            numbers.push(format!("{number}"));
        }
        let cut = random.random_range(1..64);
        let tables =
            read_chunks(message.as_bytes().chunks(cut), &mut nothing(), options()).unwrap();
        let shown = shown(&tables);
        let column = |name: &str| shown.iter().find(|one| one.starts_with(name)).unwrap().clone();
        assert_eq!(column("t.s:"), format!("t.s:SYMBOL=[{}]", symbols.join("|")), "{message:?}");
        assert_eq!(column("t.v:"), format!("t.v:VARCHAR=[{}]", texts.join("|")), "{message:?}");
        assert_eq!(column("t.n:"), format!("t.n:DOUBLE=[{}]", numbers.join("|")), "{message:?}");
    }
}

/// Field values, both valid and malformed, as clients and users write them.
const VALUES: &[&[u8]] = &[
    b"1",
    b"-12.75",
    b"0.1",
    b"-0",
    b".5",
    b"7.",
    b"1e5",
    b"123456789012345",
    b"1234567890.12345",
    b"12345678901234567890",
    b"42i",
    b"-7i",
    b"999999999999999i",
    b"9223372036854775807i",
    b"-9223372036854775808i",
    b"t",
    b"F",
    b"true",
    b"NaN",
    b"==\x10\0\0\0\0\0\0\xf8\x3f",
    b"==\x10\0\0\0\0\0\0\xf8\x7f",
    b"\"a b,c=\"",
    b"\"\\\"\"",
    b"\"\"",
    b"1700000000000000t",
    b"1.5d",
    b"-",
    b"1x",
    b"\xff",
];

/// A table with a column of each type that the fast path supports, and of some types that it does
/// not support.
fn target() -> Tables {
    let types = [
        SqlType::Symbol,
        SqlType::Double,
        SqlType::Long,
        SqlType::Boolean,
        SqlType::Varchar,
        SqlType::Int,
        SqlType::Timestamp,
    ];
    let mut columns = vec![TargetColumn::new("timestamp", SqlType::Timestamp)];
    let named = ["a", "b", "c", "d", "e", "f", "g"].iter().zip(types);
    columns.extend(named.map(|(name, sql_type)| TargetColumn::new(*name, sql_type)));
    columns[2].required = true;
    let table = TargetTable { name: "t".to_owned(), columns, timestamp: Some(0) };
    Tables(HashMap::from([("t".to_owned(), table)]))
}

/// Returns a line that usually has the same form as the previous line, with different values.
fn line_like(form: &mut Vec<&'static str>, random: &mut ChaCha8Rng) -> Vec<u8> {
    if form.is_empty() || random.random_bool(0.1) {
        let names = ["b", "c", "d", "e", "f", "g", "timestamp", "b", "B"];
        let count = random.random_range(1..5);
        *form = (0..count).map(|_| names[random.random_range(0..names.len())]).collect();
    }
    let symbols: [&[u8]; 5] = [b"x", b"y\\ z", b"", b"1", b"\xc3\xa9"];
    let mut line = b"t,a=".to_vec();
    line.extend(symbols[random.random_range(0..symbols.len())]);
    for (at, name) in form.iter().enumerate() {
        line.push(if at == 0 { b' ' } else { b',' });
        line.extend(name.as_bytes());
        let good: &[&[u8]] = match *name {
            "c" => &VALUES[10..13],
            "d" => &VALUES[15..18],
            "e" => &VALUES[21..24],
            "f" => &VALUES[10..12],
            "g" | "timestamp" => &VALUES[24..25],
            _ => &VALUES[..12],
        };
        let of = if random.random_bool(0.99) { good } else { VALUES };
        let value = of[random.random_range(0..of.len())];
        if !value.starts_with(b"==") {
            line.push(b'=');
        }
        line.extend(value);
    }
    let ends: [&[u8]; 6] = [b" 1000\n", b" 7\n", b" 5t\n", b"  9 \n", b" 3\r\n", b" -1\n"];
    let known = if random.random_bool(0.99) { 5 } else { ends.len() };
    line.extend(ends[random.random_range(0..known)]);
    line
}

/// A line must produce the same cells whether it is read alone or after lines with the same form.
#[test]
fn lines_parsed_in_a_batch_match_lines_parsed_alone() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut together, mut refused) = (0, 0);
    for _ in 0..count() / 10 {
        let mut form = Vec::new();
        let count = random.random_range(1..30);
        let lines: Vec<_> = (0..count).map(|_| line_like(&mut form, &mut random)).collect();
        let separate: Vec<_> = lines.iter().map(|line| read(line, target())).collect();
        let message = lines.concat();
        let cut = random.random_range(1..message.len() + 1);
        let whole = read_chunks(message.chunks(cut), &mut target(), options());
        let Some(bad) = separate.iter().position(Result::is_err) else {
            let columns = |tables: &Outcome| shown(tables.as_ref().unwrap());
            let cells = |column: &str| {
                let cells = column.split_once("=[").unwrap().1.replace(']', "");
                // A column without values is absent; a missing boolean is read as false.
                if column.contains(":BOOLEAN") { cells.replace('-', "false") } else { cells }
            };
            for (index, column) in columns(&whole).iter().enumerate() {
                let each = separate.iter().map(|one| cells(&columns(one)[index]));
                assert_eq!(
                    cells(column),
                    each.collect::<Vec<_>>().join("|"),
                    "{}",
                    message.escape_ascii()
                );
            }
            together += 1;
            continue;
        };
        let refusal = whole.unwrap_err();
        let expected = &separate[bad].as_ref().unwrap_err().reason;
        assert_eq!(
            (refusal.line, &refusal.reason),
            (bad as u64 + 1, expected),
            "{}",
            message.escape_ascii()
        );
        refused += 1;
    }
    println!("together={together} refused={refused}");
    assert!(together > 0 && refused > 0);
}
