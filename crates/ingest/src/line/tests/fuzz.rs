//! Mutated messages: the reader ends, in the same way however the bytes are cut, and a plain reader
//! agrees on messages that it knows.

use std::fmt::Write as _;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::harness::{nothing, one_column, options, read_pieces, shown};

fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = given.unwrap_or(now.as_nanos() as u64);
    println!("SEED={seed}");
    seed
}

fn count() -> usize {
    std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(20_000)
}

const PIECES: &[&[u8]] = &[
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
                let piece = PIECES[random.random_range(0..PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
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
fn mutated_messages_end_alike_however_they_are_cut() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let mut accepted = 0;
    for _ in 0..count() {
        let message = message(&mut random);
        let outcome = |pieces: &[&[u8]]| {
            let mut targets = one_column(tidemark_types::SqlType::Int);
            let pieces = pieces.iter().copied();
            match read_pieces(pieces, &mut targets, options()) {
                Ok(tables) => {
                    // Those of the server itself differ from read to read.
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
        let pieces: Vec<&[u8]> = message.chunks(size).collect();
        assert_eq!(outcome(&pieces), whole, "{message:?} in {size}");
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

/// Lines of known cells, written with whatever escapes they need, and read back.
#[test]
fn a_plain_reader_agrees() {
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
            read_pieces(message.as_bytes().chunks(cut), &mut nothing(), options()).unwrap();
        let shown = shown(&tables);
        let column = |name: &str| shown.iter().find(|one| one.starts_with(name)).unwrap().clone();
        assert_eq!(column("t.s:"), format!("t.s:SYMBOL=[{}]", symbols.join("|")), "{message:?}");
        assert_eq!(column("t.v:"), format!("t.v:VARCHAR=[{}]", texts.join("|")), "{message:?}");
        assert_eq!(column("t.n:"), format!("t.n:DOUBLE=[{}]", numbers.join("|")), "{message:?}");
    }
}
