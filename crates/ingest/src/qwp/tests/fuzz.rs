//! Malformed messages. The reader must stop with a reason, and accepted columns must have one cell
//! per row.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tidemark_types::SqlType;

use super::harness::*;
use crate::shown_rows::{nothing, one_column};

fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(1);
    println!("SEED={seed}");
    seed
}

fn count() -> usize {
    std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(20_000)
}

/// Encodes timestamps as clients do.
pub(super) fn gorilla(values: &[i64]) -> Vec<u8> {
    let plain = values.iter().take(2).flat_map(|value| value.to_le_bytes());
    let mut bytes: Vec<u8> = plain.collect();
    let mut bits: Vec<bool> = Vec::new();
    for three in values.windows(3) {
        let difference = (three[2] - three[1]) - (three[1] - three[0]);
        let (prefix, width): (&[bool], u32) = match difference {
            0 => (&[false], 0),
            -64..=63 => (&[true, false], 7),
            -256..=255 => (&[true, true, false], 9),
            -2048..=2047 => (&[true, true, true, false], 12),
            _ => (&[true; 4], 32),
        };
        bits.extend(prefix);
        bits.extend((0..width).map(|position| difference >> position & 1 == 1));
    }
    let byte = |bits: &[bool]| {
        bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << at)
    };
    bytes.extend(bits.chunks(8).map(byte));
    bytes
}

/// Builds a message with every type and with both representations of null.
fn complete_message(random: &mut ChaCha8Rng) -> Vec<u8> {
    let codes =
        [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24];
    let rows = random.random_range(0..6_usize);
    let names: Vec<String> = codes.iter().map(|code| format!("c{code}")).collect();
    let mut columns = Vec::new();
    for (code, name) in codes.iter().zip(&names) {
        if random.random_bool(0.4) {
            columns.push((name.as_str(), *code, data(*code, rows, random)));
        }
    }
    columns.push(("", 10, data(10, rows, random)));
    let flags = DELTA | GORILLA | random.random_range(0..2);
    let tables = random.random_range(1..3_u16);
    let mut payload = delta(0, &["a", "bc", ""]);
    for _ in 0..tables {
        let table = if random.random() { "t" } else { "new" };
        payload.extend(block(table, rows as u64, &columns));
    }
    message(flags, tables, &payload)
}

fn data(code: u8, rows: usize, random: &mut ChaCha8Rng) -> Vec<u8> {
    let has_nulls = random.random::<bool>();
    let nulls: u8 = if has_nulls { random.random() } else { 0 };
    let mut bytes = vec![u8::from(has_nulls)];
    if has_nulls {
        bytes.extend(vec![nulls; rows.div_ceil(8)]);
    }
    let count = (0..rows).filter(|row| nulls >> row & 1 == 0).count();
    let mut fixed =
        |width: usize| -> Vec<u8> { (0..count * width).map(|_| random.random()).collect() };
    let values: Vec<u8> = match code {
        1 => fixed(1).into_iter().take(count.div_ceil(8)).collect(),
        2 => fixed(1),
        3 | 22 => fixed(2),
        4 | 6 | 24 => fixed(4),
        5 | 7 | 11 => fixed(8),
        12 => fixed(16),
        13 => fixed(32),
        9 => (0..count).map(|at| at as u8 % 3).collect(),
        10 | 16 => {
            let values: Vec<i64> = (0..count as i64).map(|at| at * at * 1_000).collect();
            [vec![1], gorilla(&values)].concat()
        }
        14 => [vec![20], fixed(3)].concat(),
        15 | 23 => {
            let ends = (0..=count as u32).flat_map(|end| (end * 2).to_le_bytes());
            ends.chain("é".bytes().cycle().take(count * 2)).collect()
        }
        17 | 18 => {
            let one = [&[1][..], &1_i32.to_le_bytes(), &1.5_f64.to_le_bytes()].concat();
            one.repeat(count)
        }
        19 => [vec![2], fixed(8)].concat(),
        20 => [vec![2], fixed(16)].concat(),
        _ => [vec![2], fixed(32)].concat(),
    };
    bytes.extend(values);
    bytes
}

fn corrupt(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(0..4) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..5) {
            0 => bytes.insert(at, random.random()),
            1 => {
                let end = (at + random.random_range(0..6)).min(bytes.len());
                bytes.drain(at..end);
            }
            2 if at < bytes.len() => {
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)];
            }
            3 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            _ => bytes.truncate(at),
        }
    }
    // Corrects the length field of most messages. Otherwise they would not reach the column reader.
    if bytes.len() >= 12 && random.random_bool(0.9) {
        let length = (bytes.len() - 12) as u32;
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
    }
}

#[test]
fn malformed_messages_are_rejected_with_a_reason() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let types = [SqlType::Long, SqlType::Varchar, SqlType::Symbol, SqlType::Decimal(10, 2)];
    let mut used = 0;
    for _ in 0..count() {
        let mut bytes = complete_message(&mut random);
        corrupt(&mut bytes, &mut random);
        let tables = if random.random() {
            nothing()
        } else {
            one_column(types[random.random_range(0..types.len())])
        };
        // `shown` also checks the types and lengths of the accepted columns.
        match read(bytes, tables) {
            Ok(_) => used += 1,
            Err((_, reason)) => assert!(!reason.is_empty()),
        }
    }
    println!("taken={used}");
    assert!(used > 0);
}
