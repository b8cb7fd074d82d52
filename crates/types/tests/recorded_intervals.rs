//! Interval strings as `QuestDB` reads them, recorded by `npm run tick-differential`. Both units
//! must produce the same intervals and reject the same strings, apart from deliberate differences.

use serde::Deserialize;
use tidemark_types::TimestampUnit;
use tidemark_types::interval::parse_interval;

const RECORDED: &str = include_str!("../../../test/correctness/ticks/recorded.jsonl");

/// Maximum number of intervals that the recorded EXPLAIN output shows.
const SHOWN: usize = 1_000;

#[derive(Deserialize)]
struct Recorded {
    text: String,
    /// The first start, followed by lengths and gaps in alternation; `None` if the string was
    /// rejected.
    peer: Option<Vec<i64>>,
    ours: Option<Vec<i64>>,
    /// Reason for the difference from `QuestDB`, if any.
    why: Option<String>,
    /// Recording time, if the result depends on it.
    #[serde(default)]
    now: i64,
}

fn read(case: &Recorded, unit: TimestampUnit) -> Option<Vec<i64>> {
    let found = parse_interval(&case.text, unit, case.now).ok()?;
    let mut at = 0;
    let bounds = found.into_iter().take(SHOWN).flat_map(|(lo, hi)| [lo, hi]);
    Some(
        bounds
            .map(|bound| {
                let step = bound - at;
                at = bound;
                step
            })
            .collect(),
    )
}

/// Whether a string has digits below a microsecond or denotes a single timestamp. Such strings have
/// different intervals in the two units.
fn is_fine(text: &str) -> bool {
    let digits = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = text.match_indices('.').any(|(at, _)| digits(&text[at + 1..]) > 6);
    let before = |at: usize| text[..at].ends_with(|c: char| c.is_ascii_digit());
    let nanos = text.match_indices('n').any(|(at, _)| before(at));
    let timestamps = ['Z', ' ', '+', '$'].iter().any(|mark| text.contains(*mark));
    fraction || nanos || timestamps
}

#[test]
fn interval_strings_match_the_recorded_results() {
    let cases: Vec<Recorded> =
        RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() > 3_000, "{}", cases.len());
    for case in &cases {
        let expected = match &case.why {
            Some(_) => case.ours.clone(),
            None => case.peer.clone(),
        };
        let micros = read(case, TimestampUnit::Micros);
        assert_eq!(micros, expected, "{}", case.text);
        if !is_fine(&case.text) {
            let nanos = read(case, TimestampUnit::Nanos);
            let scaled = expected.map(|steps| steps.iter().map(|step| step * 1_000).collect());
            assert_eq!(nanos, scaled, "{} in nanoseconds", case.text);
        }
    }
}
