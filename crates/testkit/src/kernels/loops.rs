//! The kernels of `crates/kernels`.

use tidemark_kernels as kernel;
use tidemark_kernels::{
    Case, Cursor, EqualCursor, EqualPairs, GreatestDouble, GroupSink, Moments, NO_MATCH,
    NumberTable, Pick, Ranges, Reach, RightChunk, Rows, SourceRange, Spread, SumOfDoubles,
    Validity,
};

use super::entry::{Data, Entry, KEYS, ROWS};

pub(super) fn entries(data: &Data) -> Vec<Entry> {
    let families =
        [slices(data), groups(data), orders(data), matches(data), windows(data), texts(data)];
    families.into_iter().flatten().collect()
}

/// Strings in view arrays, and strings in a contiguous buffer.
fn texts(data: &Data) -> Vec<Entry> {
    let texts: Vec<String> =
        data.codes.iter().map(|code| format!("SYM{code:03}-buy-100.5")).collect();
    let body = texts.concat().into_bytes();
    let of = |len: usize| -> Vec<u128> {
        let starts = texts.iter().scan(0, |end, text| {
            *end += text.len();
            Some(*end - text.len())
        });
        starts.map(|start| kernel::view_of(&body[start..start + len], 0, start as u32)).collect()
    };
    let (short, long) = (of(5), of(14));
    let cased = long.clone();
    vec![
        Entry::new("views in a different case", ROWS, move || -> Vec<u128> {
            cased.iter().map(|&view| kernel::recase_view(view, Case::Lower, 7)).collect()
        }),
        Entry::new("substrings of texts", ROWS, move || -> Vec<u128> {
            long.iter().map(|&view| kernel::subview(view, &body, 1, 5)).collect()
        }),
        Entry::new("concatenated strings in views", ROWS, move || {
            let mut created = vec![0; ROWS];
            kernel::append_views(&mut created, |row| short[row]);
            kernel::append_views(&mut created, |row| short[row]);
            created
        }),
    ]
}

/// Returns a bitmap with one bit per code.
fn bits(codes: &[i32], of: fn(i32) -> bool) -> u64 {
    let bit = |(at, &code): (usize, &i32)| u64::from(of(code)) << at;
    codes.iter().enumerate().map(bit).fold(0, |word, bit| word | bit)
}

fn slices(data: &Data) -> Vec<Entry> {
    let Data { prices, numbers, times, validity, codes, .. } = data.clone();
    let (floats, within) = (prices.clone(), numbers.clone());
    let passes: Vec<bool> = (0..KEYS).map(|key| key % 3 == 0).collect();
    let words: Vec<u64> = codes.chunks(64).map(|codes| bits(codes, |code| code % 2 == 0)).collect();
    let (retained, chosen) = (prices.clone(), (prices.clone(), words.clone()));
    let min = prices.clone();
    let greatest = numbers.clone();
    let filtered = prices.clone();
    let (sampled, buckets) = (prices.clone(), times);
    let ranges: Vec<SourceRange> =
        (0..ROWS / 8).map(|at| SourceRange { source: at % 2, start: at * 4, len: 8 }).collect();
    let sources = [prices.clone(), prices];
    vec![
        Entry::new("sum of doubles", ROWS, move || kernel::sum_float(&floats)),
        Entry::new("sum of integers", ROWS, move || kernel::sum_integer(&numbers)),
        Entry::new("least double", ROWS, move || kernel::minimum(&min)),
        Entry::new("greatest integer", ROWS, move || kernel::maximum(&greatest)),
        Entry::new("comparison of doubles", ROWS, move || {
            kernel::matching(&filtered, |v| v > 50_000.0)
        }),
        Entry::new("range of integers", ROWS, move || {
            kernel::matching(&within, |v| (1_000..=50_000).contains(&v))
        }),
        Entry::new("keys that pass", ROWS, move || kernel::matching_keys(&codes, &passes)),
        Entry::new("rows that pass", ROWS, move || kernel::compact(&retained, &words)),
        Entry::new("values from two columns", ROWS, move || {
            kernel::choose(&chosen.1, &chosen.0, &chosen.0)
        }),
        Entry::new("runs of valid rows", ROWS, move || {
            let mut rows = 0;
            Validity::new(&validity, 3).for_each_run(0..ROWS - 3, |run| rows += run.len());
            rows
        }),
        Entry::new("sums of minutes", ROWS, move || {
            let (mut row, mut sum) = (0, 0.0);
            while row < buckets.len() {
                let end = kernel::run_end(&buckets, row, buckets[row] + 60_000_000);
                sum += kernel::sum_float(&sampled[row..end]);
                row = end;
            }
            sum
        }),
        Entry::new("copies of short ranges", ROWS, move || {
            kernel::gather(&[&sources[0], &sources[1]], &ranges)
        }),
    ]
}

/// Builds an entry that processes each row's group and double, with one slot per group.
fn by<T: Clone + 'static>(
    data: &Data,
    name: &'static str,
    neutral: T,
    pass: fn(&[f64], &[u32], &mut [T]),
) -> Entry {
    let Data { prices, groups, .. } = data.clone();
    Entry::new(name, ROWS, move || {
        let mut slots = vec![neutral.clone(); KEYS as usize];
        pass(&prices, &groups, &mut slots);
        slots
    })
}

fn groups(data: &Data) -> Vec<Entry> {
    let assign = |nulls: bool| {
        let Data { codes, validity, .. } = data.clone();
        move || {
            let mut slots = vec![u32::MAX; KEYS as usize + 1];
            let (mut next, mut sink) = (0, GroupSink::default());
            let validity = nulls.then(|| Validity::new(&validity, 0));
            kernel::assign_groups(&codes, validity, 0, &mut slots, &mut next, &mut sink);
            sink.groups
        }
    };
    let Data { numbers, codes, .. } = data.clone();
    let near = numbers.clone();
    let numbers: Vec<u64> = numbers.iter().map(|&number| number as u64).collect();
    vec![
        Entry::new("groups of codes", ROWS, assign(false)),
        Entry::new("groups of codes, with nulls", ROWS, assign(true)),
        Entry::new("distances from the minimum", ROWS, move || {
            let mut distances = vec![0; ROWS];
            (kernel::distances(&near, -90_000, &mut distances), distances)
        }),
        by(data, "counts by group", 0_i64, |_, groups, slots| kernel::count_by(groups, slots)),
        by(data, "sums by group", 0.0, kernel::sum_float_by),
        by(data, "integer sums by group", 0_i64, kernel::sum_integer_by),
        by(data, "least by group", f64::MAX, kernel::minimum_by),
        by(data, "greatest by group", f64::MIN, kernel::maximum_by),
        by(data, "last by group", 0.0, kernel::last_by),
        by(data, "distances from the mean by group", Moments::default(), kernel::moments_by),
        Entry::new("groups of numbers", ROWS, move || {
            let (mut key_numbers, mut new_rows) = (vec![], vec![]);
            NumberTable::new(7).assign(&numbers, None, &mut key_numbers, &mut new_rows);
            key_numbers
        }),
        Entry::new("last row of each code", ROWS, move || {
            // The last key never occurs, so the loop must visit all rows.
            let mut seen = vec![false; KEYS as usize + 1];
            let (mut remaining, mut rows) = (KEYS as usize + 1, 0);
            kernel::pick_latest(&codes, None, &mut seen, &mut remaining, |row| rows += row);
            rows
        }),
    ]
}

fn orders(data: &Data) -> Vec<Entry> {
    let Data { prices, numbers, groups, .. } = data.clone();
    let orders: Vec<u64> = prices.iter().map(|&price| kernel::double_order(price)).collect();
    vec![
        Entry::new("order of doubles", ROWS, move || {
            prices.iter().map(|&price| kernel::double_order(price)).collect::<Vec<_>>()
        }),
        Entry::new("order of integers", ROWS, move || {
            numbers.iter().map(|&number| kernel::integer_order(number)).collect::<Vec<_>>()
        }),
        Entry::new("rows distributed over ranges", ROWS, move || {
            let sample = groups.iter().copied().zip(orders.iter().copied()).step_by(16).collect();
            let ranges = Ranges::new(sample, KEYS as usize, 16);
            let mut spread = Spread::default();
            spread.count(&ranges, &groups, &orders);
            spread.begin();
            spread.place(&orders, 0);
            spread.range(0).len()
        }),
    ]
}

fn matches(data: &Data) -> Vec<Entry> {
    /// Returns the left rows: one after every `each`-th right row.
    fn left(times: &[i64], each: usize) -> Vec<i64> {
        times.iter().step_by(each).map(|time| time + 1).collect()
    }
    let unkeyed = |each: usize| {
        let times = data.times.clone();
        let left = left(&times, each);
        move || {
            let right = [RightChunk { timestamps: &times, keys: &[] }];
            let (mut cursor, mut before) = (Cursor::default(), NO_MATCH);
            let mut matches = Vec::with_capacity(left.len());
            kernel::match_unkeyed(&left, &right, &mut cursor, &mut before, false, &mut matches);
            matches
        }
    };
    let equal = |apart: usize| {
        let (right, each) = (data.times.clone(), apart + 1);
        let left: Vec<i64> =
            right.iter().enumerate().map(|(at, time)| time + i64::from(at % each > 0)).collect();
        move || {
            let (mut at, mut pairs) = (EqualCursor::default(), EqualPairs::default());
            kernel::match_equal(&left, &right, &mut at, &mut pairs, usize::MAX, false);
            pairs
        }
    };
    let Data { times, groups, .. } = data.clone();
    let keyed_left = left(&times, 1);
    vec![
        Entry::new("equal timestamps, all", ROWS, equal(0)),
        Entry::new("equal timestamps, one of three", ROWS, equal(2)),
        Entry::new("ASOF, equal row counts", ROWS, unkeyed(1)),
        Entry::new("ASOF, few rows on the left", ROWS, unkeyed(64)),
        Entry::new("ASOF by key", ROWS, move || {
            let right = [RightChunk { timestamps: &times, keys: &groups }];
            let (mut cursor, mut last) = (Cursor::default(), vec![NO_MATCH; KEYS as usize]);
            let mut matches = Vec::with_capacity(keyed_left.len());
            let (left, cursor, last) = (&keyed_left, &mut cursor, &mut last);
            let look_back = |_: &mut [u64], _: u32| {};
            kernel::match_keyed(
                left,
                &groups,
                &right,
                cursor,
                last,
                false,
                &mut matches,
                look_back,
            );
            matches
        }),
    ]
}

fn windows(data: &Data) -> Vec<Entry> {
    let last_twenty = Reach { from: Some(19), to: 0 };
    let sums = |keyed: bool, reach: Reach| {
        let Data { prices, groups, .. } = data.clone();
        move || {
            let partitions: &[u32] = if keyed { &groups } else { &[] };
            let rows = Rows { partitions, times: None, validity: None, count: ROWS };
            let (mut states, mut sums, mut counts) = (vec![], vec![], vec![]);
            kernel::frame_sums(rows, &prices, reach, &mut states, &mut sums, &mut counts);
            sums
        }
    };
    let Data { prices, groups, times, .. } = data.clone();
    let of_minutes = prices.clone();
    let (summed, extremes) = (prices.clone(), prices);
    vec![
        Entry::new("cumulative sums", ROWS, sums(false, Reach::CUMULATIVE)),
        Entry::new("sums of twenty rows", ROWS, sums(false, last_twenty)),
        Entry::new("sums of twenty rows by key", ROWS, sums(true, last_twenty)),
        Entry::new("maximum per minute", ROWS, move || {
            let reach = Reach { from: Some(60_000_000), to: 0 };
            let rows = Rows { partitions: &[], times: Some(&times), validity: None, count: ROWS };
            let (mut states, mut found) = (vec![], vec![]);
            kernel::frame_extremes(rows, &of_minutes, reach, true, &mut states, &mut found);
            found
        }),
        Entry::new("previous row, by key", ROWS, move || {
            let rows = Rows { partitions: &groups, times: None, validity: None, count: ROWS };
            let (mut states, mut found) = (vec![], vec![]);
            let (reach, pick) = (Reach::CUMULATIVE, Pick::Back(1));
            kernel::frame_picks(rows, 0, reach, pick, &mut states, &mut found);
            found
        }),
        Entry::new("sums of ranges", ROWS, move || {
            let tree = kernel::RangeTree::<SumOfDoubles>::new(summed.clone());
            (0..ROWS).step_by(16).map(|at| tree.over(at / 2, at)).sum::<f64>()
        }),
        Entry::new("maximum per range", ROWS, move || {
            let tree = kernel::RangeTree::<GreatestDouble>::new(extremes.clone());
            (0..ROWS).step_by(16).map(|at| tree.over(at / 2, at)).fold(0.0, f64::max)
        }),
    ]
}
