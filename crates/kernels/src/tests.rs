//! Property tests against naive loops. The seed is printed; `SEED=n` reproduces a run.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::*;

pub(crate) fn random() -> ChaCha8Rng {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(1);
    println!("SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

fn sorted(rng: &mut ChaCha8Rng, len: usize, spread: i64) -> Vec<i64> {
    let mut values: Vec<i64> = (0..len).map(|_| rng.random_range(-spread..=spread)).collect();
    values.sort_unstable();
    values
}

#[test]
fn binary_searches_match_a_linear_scan() {
    let mut rng = random();
    for _ in 0..2_000 {
        let len = rng.random_range(0..80);
        let ts = sorted(&mut rng, len, 30);
        let from = rng.random_range(0..=len);
        let bound = rng.random_range(-32..=32);
        let scan =
            |keep: &dyn Fn(i64) -> bool| (from..len).find(|&row| !keep(ts[row])).unwrap_or(len);
        assert_eq!(run_end(&ts, from, bound), scan(&|value| value < bound));
        assert_eq!(upper_bound(&ts, from, bound), scan(&|value| value <= bound));
    }
}

#[test]
fn aggregates_match_a_naive_loop() {
    let mut rng = random();
    for _ in 0..500 {
        let len = rng.random_range(0..200);
        let longs: Vec<i64> = (0..len).map(|_| rng.random()).collect();
        let doubles: Vec<f64> = (0..len).map(|_| f64::from(rng.random_range(-99..99))).collect();
        let sum = longs.iter().fold(0_i64, |sum, value| sum.wrapping_add(*value));
        assert_eq!(sum_integer(&longs), sum);
        assert_eq!(sum_float(&doubles), doubles.iter().sum::<f64>());
        assert_eq!(minimum(&longs), longs.iter().min().copied());
        assert_eq!(maximum(&longs), longs.iter().max().copied());
        assert_eq!(maximum(&doubles), doubles.iter().copied().reduce(f64::max));
    }
}

#[test]
fn range_trees_match_a_naive_loop() {
    let mut rng = random();
    for _ in 0..200 {
        let len = rng.random_range(0..2_000);
        let longs: Vec<i64> = (0..len).map(|_| rng.random_range(-999..999)).collect();
        let doubles: Vec<f64> = longs.iter().map(|&value| value as f64).collect();
        let (sums, lowest) = (
            RangeTree::<SumOfDoubles>::new(doubles.clone()),
            RangeTree::<LeastDouble>::new(doubles.clone()),
        );
        let greatest = RangeTree::<GreatestInteger>::new(longs.clone());
        for _ in 0..50 {
            let start = rng.random_range(0..=len);
            let end = rng.random_range(start..=len);
            // The doubles are integers, so their sums are exact in any order.
            assert_eq!(sums.over(start, end), doubles[start..end].iter().sum::<f64>());
            let min = doubles[start..end].iter().copied().fold(f64::INFINITY, f64::min);
            assert_eq!(lowest.over(start, end), min);
            let max = longs[start..end].iter().copied().max().unwrap_or(i64::MIN);
            assert_eq!(greatest.over(start, end), max);
        }
    }
}

#[test]
fn validity_runs_cover_exactly_the_valid_rows() {
    let mut rng = random();
    for _ in 0..1_000 {
        let offset: usize = rng.random_range(0..20);
        let len = rng.random_range(0..300);
        let fill = rng.random_range(0.0..=1.0);
        let bits: Vec<bool> = (0..offset + len).map(|_| rng.random_bool(fill)).collect();
        let mut bytes = vec![0_u8; (offset + len).div_ceil(8)];
        for (bit, _) in bits.iter().enumerate().filter(|(_, set)| **set) {
            bytes[bit / 8] |= 1 << (bit % 8);
        }
        let validity = Validity::new(&bytes, offset);
        let start = rng.random_range(0..=len);
        let mut rows = vec![];
        validity.for_each_run(start..len, |run| {
            assert!(!run.is_empty());
            rows.extend(run);
        });
        let expected: Vec<usize> = (start..len).filter(|row| bits[offset + row]).collect();
        assert_eq!(rows, expected);
        assert!(rows.iter().all(|&row| validity.is_valid(row)));
    }
}

#[test]
fn groups_are_numbered_in_order_of_first_appearance() {
    let mut rng = random();
    for round in 0..300 {
        let len = rng.random_range(0..500);
        let codes: Vec<i32> = (0..len).map(|_| rng.random_range(0..12)).collect();
        // Blocks without nulls use the vectorised lookup.
        let byte = |_| if round % 2 == 0 { u8::MAX } else { rng.random() };
        let bytes: Vec<u8> = (0..=len / 8).map(byte).collect();
        let validity = Validity::new(&bytes, 0);
        let mut sink = GroupSink::default();
        let mut slots = [u32::MAX; 13];
        let mut next = 0;
        let half = len / 2;
        let (head, tail) = codes.split_at(half);
        assign_groups(head, Some(validity), 0, &mut slots, &mut next, &mut sink);
        assign_groups(tail, Some(validity), half, &mut slots, &mut next, &mut sink);
        let mut order: Vec<u32> = vec![];
        for (row, &code) in codes.iter().enumerate() {
            let key = if validity.is_valid(row) { code as u32 + 1 } else { 0 };
            let group = order.iter().position(|&seen| seen == key).unwrap_or_else(|| {
                order.push(key);
                assert_eq!(sink.new_rows[order.len() - 1] as usize, row);
                order.len() - 1
            });
            assert_eq!(sink.groups[row] as usize, group);
        }
        assert_eq!(order, sink.new_keys);
        assert_eq!(next as usize, order.len());
    }
}

#[test]
fn keyed_aggregates_match_a_naive_loop() {
    let mut rng = random();
    let len = 5_000;
    let groups: Vec<u32> = (0..len).map(|_| rng.random_range(0..50)).collect();
    let values: Vec<i32> = (0..len).map(|_| rng.random_range(-1_000..1_000)).collect();
    let of = |group: u32| -> Vec<i32> {
        let pairs = groups.iter().zip(&values);
        pairs.filter(|(other, _)| **other == group).map(|(_, value)| *value).collect()
    };
    let (mut counts, mut longs, mut doubles) = ([0; 50], [0; 50], [0.0; 50]);
    let (mut low, mut high, mut last) = ([i32::MAX; 50], [i32::MIN; 50], [0; 50]);
    count_by(&groups, &mut counts);
    sum_integer_by(&values, &groups, &mut longs);
    sum_float_by(&values, &groups, &mut doubles);
    minimum_by(&values, &groups, &mut low);
    maximum_by(&values, &groups, &mut high);
    last_by(&values, &groups, &mut last);
    for group in 0..50_u32 {
        let rows = of(group);
        let slot = group as usize;
        assert_eq!(counts[slot] as usize, rows.len());
        assert_eq!(longs[slot], rows.iter().map(|&value| i64::from(value)).sum::<i64>());
        assert_eq!(doubles[slot], longs[slot] as f64);
        assert_eq!(Some(low[slot]), rows.iter().min().copied());
        assert_eq!(Some(high[slot]), rows.iter().max().copied());
        assert_eq!(Some(last[slot]), rows.last().copied());
    }
}

fn naive_match(ts: i64, right: &[(i64, u32, u64)], key: Option<u32>, strict: bool) -> u64 {
    let fits = |row: &&(i64, u32, u64)| {
        (if strict { row.0 < ts } else { row.0 <= ts }) && key.is_none_or(|key| key == row.1)
    };
    right.iter().rev().find(fits).map_or(NO_MATCH, |row| row.2)
}

#[test]
fn asof_matches_a_linear_scan() {
    let mut rng = random();
    for _ in 0..1_000 {
        let (left_len, right_len) = (rng.random_range(0..200), rng.random_range(0..200));
        let spread = rng.random_range(1..100);
        let left = sorted(&mut rng, left_len, spread);
        let left_keys: Vec<u32> = (0..left_len).map(|_| rng.random_range(0..7)).collect();
        let times = sorted(&mut rng, right_len, spread);
        let keys: Vec<u32> = (0..right_len).map(|_| rng.random_range(0..5)).collect();
        let size = rng.random_range(1..200);
        let chunks: Vec<RightChunk<'_>> = times
            .chunks(size)
            .zip(keys.chunks(size))
            .map(|(timestamps, keys)| RightChunk { timestamps, keys })
            .collect();
        let right: Vec<(i64, u32, u64)> = (0..right_len)
            .map(|row| (times[row], keys[row], pack(row / size, row % size)))
            .collect();
        let strict = rng.random_bool(0.5);
        let (mut plain, mut keyed) = (vec![], vec![]);
        let (mut cursor, mut before) = (Cursor::default(), NO_MATCH);
        let (mut keyed_cursor, mut last) = (Cursor::default(), vec![NO_MATCH; 5]);
        let split = rng.random_range(0..=left_len);
        for rows in [0..split, split..left_len] {
            let ts = &left[rows.clone()];
            match_unkeyed(ts, &chunks, &mut cursor, &mut before, strict, &mut plain);
            let (keys, last) = (&left_keys[rows], &mut last);
            let never = |_: &mut [u64], _| unreachable!();
            match_keyed(ts, keys, &chunks, &mut keyed_cursor, last, strict, &mut keyed, never);
        }
        for row in 0..left_len {
            assert_eq!(plain[row], naive_match(left[row], &right, None, strict));
            let key = Some(left_keys[row]);
            assert_eq!(keyed[row], naive_match(left[row], &right, key, strict));
        }
    }
}

#[test]
fn latest_picks_the_last_row_of_each_key() {
    let mut rng = random();
    for _ in 0..500 {
        let len = rng.random_range(0..100);
        let codes: Vec<i32> = (0..len).map(|_| rng.random_range(0..9)).collect();
        let (mut seen, mut remaining) = ([false; 10], usize::MAX);
        let mut picked = vec![];
        pick_latest(&codes, None, &mut seen, &mut remaining, |row| picked.push(row));
        let expected: Vec<usize> =
            (0..len).rev().filter(|&row| !codes[row + 1..].contains(&codes[row])).collect();
        assert_eq!(picked, expected);
    }
}

#[test]
fn note_last_rows_stores_the_last_row_of_each_code() {
    let mut rng = random();
    for round in 0..200 {
        let len: usize = rng.random_range(0..300);
        let codes: Vec<i32> = (0..len).map(|_| rng.random_range(0..20)).collect();
        let bits: Vec<u8> = (0..=len.div_ceil(8)).map(|_| rng.random()).collect();
        let offset = rng.random_range(0..8);
        let validity = (round % 2 == 0).then(|| Validity::new(&bits, offset));
        let mut last = [u32::MAX; 15];
        note_last_rows(&codes, validity, &mut last);
        for (code, &found) in (0..).zip(&last) {
            let is_it = |row: usize| {
                codes[row] == code && validity.is_none_or(|validity| validity.is_valid(row))
            };
            let expected = (0..len).rev().find(|&row| is_it(row));
            assert_eq!(found, expected.map_or(u32::MAX, |row| row as u32), "round {round}");
        }
    }
}

#[test]
fn matching_sets_the_bits_of_matching_values() {
    for length in [0, 1, 7, 63, 64, 65, 128, 200] {
        let values: Vec<i32> = (0..length).map(|value| value * 7 % 13).collect();
        let words = matching(&values, |value| value > 5);
        assert_eq!(words.len(), values.len().div_ceil(64));
        for (row, value) in values.iter().enumerate() {
            assert_eq!(words[row / 64] >> (row % 64) & 1 == 1, *value > 5, "row {row}");
        }
        let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert_eq!(ones as usize, values.iter().filter(|&&value| value > 5).count());
    }
}

#[test]
fn numbers_are_indexed_in_order_of_first_appearance() {
    let mut rng = random();
    for round in 0..200 {
        let different = [1, 5, 3_000, u64::MAX][round % 4];
        let mut table = NumberTable::new(rng.random());
        let (mut known, mut expected) = (std::collections::HashMap::new(), vec![]);
        let (mut key_numbers, mut new_rows) = (vec![], vec![]);
        for _ in 0..rng.random_range(1..4) {
            let numbers: Vec<u64> = (0..rng.random_range(0..3_000))
                .map(|_| rng.random_range(0..=different) << rng.random_range(0..3))
                .collect();
            let valid: Vec<u8> = (0..numbers.len().div_ceil(8)).map(|_| rng.random()).collect();
            let validity = rng.random_bool(0.5).then(|| Validity::new(&valid, 0));
            let mut first = vec![];
            for (row, &number) in numbers.iter().enumerate() {
                let is_valid = validity.is_none_or(|validity| validity.is_valid(row));
                let next = known.len() as u32;
                expected.push(*known.entry(is_valid.then_some(number)).or_insert_with(|| {
                    first.push(row as u32);
                    next
                }));
            }
            new_rows.clear();
            table.assign(&numbers, validity, &mut key_numbers, &mut new_rows);
            assert_eq!(new_rows, first);
        }
        assert_eq!(key_numbers, expected);
        assert_eq!(table.keys().len(), known.len());
        assert_eq!(table.null(), known.get(&None).copied());
        for (number, &key_number) in &known {
            assert_eq!(table.keys()[key_number as usize], number.unwrap_or(0));
        }
    }
}

#[test]
fn distances_returns_the_bitwise_or_of_all_distances() {
    let mut rng = random();
    for _ in 0..300 {
        let min = [i64::MIN, -5, 0, i64::MAX - 40][rng.random_range(0..4)];
        let max = [1, 30, 1 << 20, u64::MAX][rng.random_range(0..4)];
        let values: Vec<i64> = (0..rng.random_range(0..100))
            .map(|_| min.wrapping_add_unsigned(rng.random_range(0..=max)))
            .collect();
        let mut distances = vec![0; values.len()];
        let bits = crate::distances(&values, min, &mut distances);
        let far = |value: &i64| value.wrapping_sub(min) as u64;
        assert_eq!(bits, values.iter().map(far).fold(0, |bits, far| bits | far));
        assert!(values.iter().zip(&distances).all(|(value, own)| far(value) as u32 == *own as u32));
    }
    let mut distances = vec![0; 2];
    assert_eq!(crate::distances(&[3_i16, -2], -2, &mut distances), 5);
    assert_eq!(distances, [5, 0]);
}

#[test]
fn match_equal_returns_the_same_pairs_as_a_nested_loop() {
    let mut rng = random();
    let mut found = 0;
    for _ in 0..600 {
        let lens = [0, 1, 5, 40, 3_000];
        let mut side = || {
            let len = lens[rng.random_range(0..lens.len())];
            // The values are all distinct, mostly distinct or often repeated.
            let spread = [1_i64, 3, 40, 4_000][rng.random_range(0..4)];
            let mut values = sorted(&mut rng, len, spread);
            if rng.random_bool(0.4) {
                values.dedup();
            }
            values
        };
        let (left, right) = (side(), side());
        let (max, unmatched) = ([1, 7, 1_500, 5_000][rng.random_range(0..4)], rng.random());
        let mut expected = vec![];
        for (row, value) in left.iter().enumerate() {
            let own = right.partition_point(|other| other < value)
                ..right.partition_point(|other| other <= value);
            expected.extend(own.clone().map(|other| (row as u32, other as u32)));
            if own.is_empty() && unmatched {
                expected.push((row as u32, NO_ROW));
            }
        }
        // The left side is split into chunks, possibly between equal values.
        let length = [1, 3, 1_000, 10_000][rng.random_range(0..4)];
        let (mut at, mut pairs) = (EqualCursor::default(), EqualPairs::default());
        let (mut all, mut before) = (vec![], 0);
        for own in left.chunks(length) {
            at.restart_left();
            while at.left < own.len() {
                pairs.clear();
                match_equal(own, &right, &mut at, &mut pairs, max, unmatched);
                let rows = pairs.left.iter().map(|row| row + before);
                assert!(pairs.right.iter().filter(|&&row| row != NO_ROW).count() <= max);
                all.extend(rows.zip(pairs.right.iter().copied()));
            }
            before += own.len() as u32;
        }
        found += all.len();
        assert_eq!(all, expected);
    }
    assert!(found > 10_000, "{found}");
}
