//! Tests of interval strings and their expected intervals.

use super::*;
use crate::timestamp::{iso_text, parse};

const MICROS: TimestampUnit = TimestampUnit::Micros;

fn spans(text: &str) -> Vec<(String, String)> {
    let now = parse("2024-05-17T13:45:56", MICROS).unwrap();
    let short = |value| iso_text(value, MICROS).trim_end_matches(":00.000000Z").to_owned();
    parse_interval(text, MICROS, now)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .into_iter()
        .map(|(lo, hi)| (short(lo), short(hi)))
        .collect()
}

fn check(text: &str, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> =
        expected.iter().map(|(lo, hi)| ((*lo).into(), (*hi).into())).collect();
    assert_eq!(spans(text), expected, "{text}");
}

#[test]
fn timestamp_prefixes_and_durations_are_parsed() {
    check("2024", &[("2024-01-01T00:00", "2025-01-01T00:00")]);
    check("2024-01-01T12", &[("2024-01-01T12:00", "2024-01-01T13:00")]);
    check("2024-01;1h", &[("2024-01-01T00:00", "2024-01-01T01:00")]);
    check("2024-01-01;12h30m", &[("2024-01-01T00:00", "2024-01-01T12:30")]);
    check("2024-01-01;", &[]);
    check("2024-01-31;1M", &[("2024-01-31T00:00", "2024-02-29T00:00")]);
}

#[test]
fn negative_durations_shorten_the_interval() {
    check("2026-01;-3d", &[("2026-01-01T00:00", "2026-01-29T00:00")]);
    check("2026-01-05;-6h", &[("2026-01-05T00:00", "2026-01-05T18:00")]);
    check("2026;-1M", &[("2026-01-01T00:00", "2026-12-01T00:00")]);
    check("2026-01-05T12;-15m", &[("2026-01-05T12:00", "2026-01-05T12:45")]);
    check("2026-01;-3d12h", &[("2026-01-01T00:00", "2026-01-28T12:00")]);
    check(
        "2026-[01,02];-20d",
        &[("2026-01-01T00:00", "2026-01-12T00:00"), ("2026-02-01T00:00", "2026-02-09T00:00")],
    );
    check("2026-01-05@Europe/Berlin;-1h", &[("2026-01-04T23:00", "2026-01-05T22:00")]);
    for text in ["2024-01-08;-1d", "2024-01-01T00:00;-1d", "2026-01;-1M", "2026;-366d"] {
        let failure = parse_interval(text, MICROS, 0).unwrap_err();
        assert_eq!(failure.message, "Expected number before unit '-'", "{text}");
    }
}

#[test]
fn repeated_intervals_are_parsed() {
    check(
        "2024-01-01;1d;7d;3",
        &[
            ("2024-01-01T00:00", "2024-01-02T00:00"),
            ("2024-01-08T00:00", "2024-01-09T00:00"),
            ("2024-01-15T00:00", "2024-01-16T00:00"),
        ],
    );
    check(
        "2024-01-08T00:00:00;1d;-7d;2",
        &[("2024-01-01T00:00", "2024-01-02T00:00"), ("2024-01-08T00:00", "2024-01-09T00:00")],
    );
}

#[test]
fn bracket_lists_are_expanded() {
    check("2024-01-[1..5]", &[("2024-01-01T00:00", "2024-01-06T00:00")]);
    check(
        "2024-[01,03]",
        &[("2024-01-01T00:00", "2024-02-01T00:00"), ("2024-03-01T00:00", "2024-04-01T00:00")],
    );
    check(
        "[2024-01-01,2024-03]",
        &[("2024-01-01T00:00", "2024-01-02T00:00"), ("2024-03-01T00:00", "2024-04-01T00:00")],
    );
    check(
        "[2024-01-01;1h,2024-03-01]",
        &[("2024-01-01T00:00", "2024-01-01T01:00"), ("2024-03-01T00:00", "2024-03-02T00:00")],
    );
    check(
        "2024-01-05T[09:30,12:00];1h",
        &[("2024-01-05T09:30", "2024-01-05T10:30"), ("2024-01-05T12:00", "2024-01-05T13:00")],
    );
    check("2024-01-01T[00:00,12:30];13h", &[("2024-01-01T00:00", "2024-01-02T01:30")]);
}

#[test]
fn week_dates_time_zones_day_filters_and_variables_are_parsed() {
    check("2024-W[01..02]", &[("2024-01-01T00:00", "2024-01-15T00:00")]);
    check(
        "2024-W01-[1,5]",
        &[("2024-01-01T00:00", "2024-01-02T00:00"), ("2024-01-05T00:00", "2024-01-06T00:00")],
    );
    check("2024-01-01T13:30@Europe/Berlin;1h", &[("2024-01-01T12:30", "2024-01-01T13:30")]);
    check("2024-01-01T13:30@+01:00", &[("2024-01-01T12:30", "2024-01-01T12:31")]);
    check(
        "2024-01-[01..08]#workday",
        &[("2024-01-01T00:00", "2024-01-06T00:00"), ("2024-01-08T00:00", "2024-01-09T00:00")],
    );
    check("2024-01-[01..08]#Sat", &[("2024-01-06T00:00", "2024-01-07T00:00")]);
    check("$today", &[("2024-05-17T00:00", "2024-05-18T00:00")]);
    check("$today + 1bd", &[("2024-05-20T00:00", "2024-05-21T00:00")]);
    check("[$today - 2d..$today]", &[("2024-05-15T00:00", "2024-05-18T00:00")]);
    check(
        "[$today-1d..$today]T09:00;1h",
        &[("2024-05-16T09:00", "2024-05-16T10:00"), ("2024-05-17T09:00", "2024-05-17T10:00")],
    );
    check(
        "[$yesterday..$today]T09:30@Asia/Tokyo",
        &[("2024-05-16T00:30", "2024-05-16T00:31"), ("2024-05-17T00:30", "2024-05-17T00:31")],
    );
    check(
        "[$today..$today+1bd]T09:30;1m",
        &[("2024-05-17T09:30", "2024-05-17T09:31"), ("2024-05-20T09:30", "2024-05-20T09:31")],
    );
    check("$now-2h30m", &[("2024-05-17T11:15:56.000000Z", "2024-05-17T11:15:56.000001Z")]);
    check("$todayT09:30;1h", &[("2024-05-17T09:30", "2024-05-17T10:30")]);
    assert_eq!(spans("[2024-01]#workday").len(), 5);
}

#[test]
fn months_and_years_with_a_time_of_day_yield_one_interval_per_day() {
    assert_eq!(spans("[2026-02]T06:00;2h").len(), 28);
    assert_eq!(spans("2024T06:00;2h").len(), 366);
    assert_eq!(spans("2026-[01..03]T08:00").len(), 31 + 28 + 31);
    assert_eq!(spans("[2024-01]T09:00#workday;1h").len(), 23);
    assert_eq!(spans("[2024-12]T09:00;1h").last().unwrap().0, "2024-12-31T09:00");
    check(
        "[2026-05-01@Asia/Tokyo,2026-05-02@UTC]T09:00",
        &[("2026-05-01T00:00", "2026-05-01T00:01"), ("2026-05-02T09:00", "2026-05-02T09:01")],
    );
    check("[2024-01-05#Fri,2024-01-06#wd]T09:00;1h", &[("2024-01-05T09:00", "2024-01-05T10:00")]);
}

#[test]
fn error_messages_match_questdb() {
    for (text, message) in [
        ("2024-1-1", "Invalid date: 2024-1-1"),
        ("2024-13", "Invalid date: 2024-13"),
        ("2024-01-08;-1d", "Expected number before unit '-'"),
        ("2024-01-01;1d;7d", "Invalid interval format: 2024-01-01;1d;7d"),
        ("2024-01-[01,05", "Unclosed '[' in interval"),
        ("2024-01-[05..01]", "Range must be ascending: 5..1"),
        ("2024-01-[]", "Empty bracket expansion"),
        ("2024-01-01#Foo", "Invalid day name: Foo"),
        ("2024-01-01@Nowhere/City", "invalid timezone: Nowhere/City"),
        ("$tomorow", "Unknown date variable: $tomorow"),
        ("[2024-13]T09:00;1h", "Invalid date: 2024-13T09:00"),
        ("2024-W10T09:00", "Invalid date: 2024-W10T09:00"),
        ("[2024-01-01,,2024-01-02]", "Empty element in a list of dates"),
        ("[2024-01-01]X", "Expected 'T' and a time after the list of dates, got: X"),
        ("$today-", "Expected a number after the sign in $today-"),
        ("$today-3", "Expected a unit of time in $today-3"),
        ("2024-01-01#", "Empty day filter after '#'"),
    ] {
        assert_eq!(parse_interval(text, MICROS, 0).unwrap_err().message, message, "{text}");
    }
}

#[test]
fn ranges_of_timestamps_and_days_are_parsed() {
    check("$now-2h..$now", &[("2024-05-17T11:45:56.000000Z", "2024-05-17T13:45:56.000001Z")]);
    check("[$now-2h..$now];1h", &spans_of("$now-2h..$now"));
    check("$today+1h..$today+2h", &[("2024-05-17T01:00", "2024-05-17T02:00:00.000001Z")]);
    check("$today..$now", &[("2024-05-17T00:00", "2024-05-18T00:00")]);
    check("$today+24h", &[("2024-05-18T00:00", "2024-05-19T00:00")]);
    check("$nowT09:00;1m", &[("2024-05-17T13:45:56.000000Z", "2024-05-17T13:46:56.000000Z")]);
    check("$today..$today-3d", &[]);
    // A range that ends at a business day contains only business days. A range that starts at a
    // business day contains all days.
    check(
        "$today..$today+1bd",
        &[("2024-05-17T00:00", "2024-05-18T00:00"), ("2024-05-20T00:00", "2024-05-21T00:00")],
    );
    check("$today-4bd..$today+2d", &[("2024-05-13T00:00", "2024-05-20T00:00")]);
}

fn spans_of(text: &str) -> Vec<(&'static str, &'static str)> {
    let leak = |text: String| -> &'static str { text.leak() };
    spans(text).into_iter().map(|(lo, hi)| (leak(lo), leak(hi))).collect()
}

#[test]
fn intervals_across_clock_changes_are_correct() {
    // A day ends at the same local time, whereas hours are elapsed time.
    check("2024-10-27@Europe/Berlin;1d", &[("2024-10-26T22:00", "2024-10-27T23:00")]);
    check("2024-10-27@Europe/Berlin;24h", &[("2024-10-26T22:00", "2024-10-27T22:00")]);
    check("2024-03-31@Europe/Berlin", &[("2024-03-30T23:00", "2024-03-31T22:00")]);
    // A repeated hour denotes its first occurrence, as in `to_utc`.
    check("2024-10-27T02@Europe/Berlin", &[("2024-10-27T00:00", "2024-10-27T01:00")]);
    check("2024-03-31T02:30@Europe/Berlin;1h", &[("2024-03-31T01:30", "2024-03-31T02:30")]);
}

#[test]
fn the_innermost_suffix_takes_precedence() {
    check(
        "[2024-01-15T08:00,2024-01-16]T09",
        &[("2024-01-15T08:00", "2024-01-15T08:01"), ("2024-01-16T09:00", "2024-01-16T10:00")],
    );
    check("[2024-01-15@Asia/Tokyo]T09:00@UTC", &[("2024-01-15T00:00", "2024-01-15T00:01")]);
    check("[2024-01-15@UTC]T[09:00@Asia/Tokyo]", &[("2024-01-15T00:00", "2024-01-15T00:01")]);
    check(
        "[2024,2025]-01-05",
        &[("2024-01-05T00:00", "2024-01-06T00:00"), ("2025-01-05T00:00", "2025-01-06T00:00")],
    );
    // A time with an offset, or after a space, is a single timestamp.
    check(
        "2024-02-03T10:10:10+01:00;1m",
        &[("2024-02-03T09:10:10.000000Z", "2024-02-03T09:11:10.000000Z")],
    );
    check("2024-02-03 10:10", &[("2024-02-03T10:10", "2024-02-03T10:10:00.000001Z")]);
}

/// Short and long strings that would exceed the memory or time limits.
#[test]
fn intervals_that_exceed_the_expansion_limits_are_rejected() {
    let many = "too many intervals [limit=100000]";
    let list = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
    for (text, message) in [
        ("2024-01-[1..9999999]".to_owned(), many.to_owned()),
        (format!("2024-{}", "[1,2]".repeat(200_000)), "too many brackets [limit=16]".into()),
        ("2024-01-[01..28]T[00..23]:[00..59]:[00..59]".into(), many.into()),
        (list("2024-01-[01..28]", 40_000), many.into()),
        (list("2024#Mon", 50_000), many.into()),
        ("2024-01-01;1h;1d;9223372036854775807".into(), many.into()),
        ("2024-01-01;1h;0d;9223372036854775807".into(), many.into()),
        // The filter rejects every interval, but the loop still ends at the limit.
        ("2024-01-06#Sun;1h;7d;9223372036854775807".into(), many.into()),
        ("$today..$today+2000000d".into(), many.into()),
        ("$today+2147483647bd".into(), "interval is out of range".into()),
        (list("$today-99999999bd", 100_001), many.into()),
        (format!("2024-01-01;{}", "1h".repeat(400_000)), "too many units in a duration".into()),
        ("9".repeat(5 << 20), "interval is too long [bytes=5242880, limit=4194304]".into()),
        ("9".repeat(1 << 20), format!("Invalid date: {}…", "9".repeat(80))),
        (format!("2024-01-01@{}", "x".repeat(1 << 20)), "invalid timezone: xxx".into()),
        ("[".repeat(1 << 20), "Unclosed '[' in interval".into()),
        ("..".repeat(1 << 20), "Invalid date: ".into()),
        ("$\u{1f600}".into(), "Unknown date variable: $\u{1f600}".into()),
    ] {
        let error = parse_interval(&text, MICROS, 0).unwrap_err();
        assert!(error.message.starts_with(&message), "{text:.60}: {:.200}", error.message);
        assert!(error.message.len() < 300, "{text:.60}");
    }
    let days = parse_interval(&list("2024-01-01", 100_000), MICROS, 0);
    assert_eq!(days.map(|days| days.len()), Ok(1));
}
