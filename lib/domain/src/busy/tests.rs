//! Conflicts between events, and the buckets that they involve.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// An instant `YYYY-MM-DDTHH:MMZ`.
pub(super) fn at(text: &str) -> Timestamp {
    Timestamp::parse(&text.replace('Z', ":00Z")).unwrap()
}

pub(in crate::busy) fn busy(start: &str, end: &str, before_min: u32, after_min: u32) -> Busy {
    Busy { span: Span { starts_at: at(start), ends_at: at(end) }, buffers: Buffers { before_min, after_min } }
}

fn day(text: &str) -> Bucket {
    Bucket::Day(text.parse().unwrap())
}

#[test]
fn an_event_without_length_conflicts_with_nothing_and_has_no_bucket() {
    let nothing = busy("2026-07-01T10:30Z", "2026-07-01T10:30Z", 60, 60);
    let event = busy("2026-07-01T10:00Z", "2026-07-01T11:00Z", 60, 60);
    assert!(!nothing.conflicts_with(&event) && !event.conflicts_with(&nothing) && !nothing.conflicts_with(&nothing));
    assert_eq!(entry_buckets(nothing.span), []);
    assert_eq!(feed_writes(None, Some(&nothing)), []);
    let gone = BucketWrite { bucket: day("2026-07-01"), change: EntryChange::Remove, only_if: None };
    assert_eq!(feed_writes(Some(event.span), Some(&nothing)), [gone]);
}

#[rstest::rstest]
#[case::within_a_day("2026-07-01T10:00Z", "2026-07-01T11:00Z", &["2026-07-01"])]
#[case::to_midnight("2026-07-01T23:00Z", "2026-07-02T00:00Z", &["2026-07-01"])]
#[case::from_midnight("2026-07-02T00:00Z", "2026-07-02T01:00Z", &["2026-07-02"])]
#[case::over_midnight("2026-12-31T23:59Z", "2027-01-01T00:01Z", &["2026-12-31", "2027-01-01"])]
fn an_event_has_an_entry_on_each_utc_day_that_it_touches(
    #[case] start: &str,
    #[case] end: &str,
    #[case] days: &[&str],
) {
    let days: Vec<Bucket> = days.iter().map(|text| day(text)).collect();
    assert_eq!(entry_buckets(busy(start, end, 0, 0).span), days);
}

#[test]
fn an_event_is_long_from_31_days_and_a_millisecond_on() {
    let starts_at = at("2026-07-01T12:00Z");
    let days = Span { starts_at, ends_at: starts_at + LONG_EVENT };
    assert_eq!(entry_buckets(days).len(), 32);
    assert_eq!(entry_buckets(Span { ends_at: days.ends_at + TimeDelta::milliseconds(1), ..days }), [Bucket::Long]);
}

#[rstest::rstest]
#[case::midday("2026-07-01T10:00Z", "2026-07-01T11:00Z", &["2026-07-01"])]
#[case::four_hours_into_the_day("2026-07-01T04:00Z", "2026-07-01T20:00Z", &["2026-07-01"])]
#[case::a_minute_less("2026-07-01T03:59Z", "2026-07-01T20:01Z", &["2026-06-30", "2026-07-01", "2026-07-02"])]
fn a_booking_guards_the_days_within_the_longest_buffer(#[case] start: &str, #[case] end: &str, #[case] days: &[&str]) {
    let expected: Vec<Bucket> = days.iter().map(|text| day(text)).chain([Bucket::Long]).collect();
    assert_eq!(guarded_buckets(busy(start, end, 0, 0).span), expected);
}

#[test]
fn no_change_exceeds_the_limit_of_buckets() {
    let span = |start: &str| Span { starts_at: at(start), ends_at: at(start) + LONG_EVENT };
    let moved = Busy { span: span("2026-09-01T12:00Z"), buffers: Buffers::default() };
    assert_eq!(feed_writes(Some(span("2026-07-01T12:00Z")), Some(&moved)).len(), MAX_BUCKET_WRITES);
    let slot = busy("2026-09-01T03:00Z", "2026-09-02T03:00Z", 0, 0);
    assert_eq!(booking_writes(Some(span("2026-07-01T12:00Z")), &slot, &BTreeMap::new()).len(), 36);
}

fn buffers() -> impl Strategy<Value = Buffers> {
    let minutes = || prop_oneof![Just(0), Just(MAX_BUFFER_MINUTES), 0..=MAX_BUFFER_MINUTES];
    (minutes(), minutes()).prop_map(|(before_min, after_min)| Buffers { before_min, after_min })
}

const MINUTE_MS: i64 = 60_000;

/// Generates a slot: up to a day, anywhere, at any second.
fn slots() -> impl Strategy<Value = Busy> {
    let start =
        prop_oneof![0..20_000 * 86_400_i64, (0..20_000_i64, -600..600_i64).prop_map(|(day, s)| day * 86_400 + s)];
    (start, 5..=1_440_i64, buffers()).prop_map(|(start_s, length, buffers)| {
        let starts_at = Timestamp::from_ms(start_s * 1_000);
        Busy { span: Span { starts_at, ends_at: starts_at + TimeDelta::minutes(length) }, buffers }
    })
}

/// Generates an event that begins or ends near a slot, to the millisecond. Some last for weeks.
fn events_near(slot: Busy) -> impl Strategy<Value = Busy> {
    let away_ms = prop_oneof![-300 * MINUTE_MS..300 * MINUTE_MS, -242 * MINUTE_MS..-238 * MINUTE_MS];
    let days = prop_oneof![8 => Just(0), 1 => 1..29_i64, 2 => 30..34_i64, 1 => 34..400_i64];
    (any::<bool>(), away_ms, days, 0..1_440 * MINUTE_MS, buffers()).prop_map(
        move |(before, away_ms, days, length_ms, buffers)| {
            let length = TimeDelta::days(days) + TimeDelta::milliseconds(length_ms);
            let starts_at = if before {
                slot.span.starts_at + TimeDelta::milliseconds(away_ms) + -length
            } else {
                slot.span.ends_at + TimeDelta::milliseconds(-away_ms)
            };
            Busy { span: Span { starts_at, ends_at: starts_at + length }, buffers }
        },
    )
}

/// Returns the buckets with an entry after these writes, if only `old` had entries before.
fn entries_after(old: Option<Span>, writes: &[BucketWrite]) -> BTreeSet<Bucket> {
    let mut standing: BTreeSet<Bucket> = old.into_iter().flat_map(entry_buckets).collect();
    for write in writes {
        match write.change {
            EntryChange::Put(_) => assert!(standing.insert(write.bucket) || old.is_some()),
            EntryChange::Remove => assert!(standing.remove(&write.bucket)),
            EntryChange::Keep => {}
        }
    }
    standing
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn each_of_two_events_in_conflict_guards_a_bucket_of_the_other(
        (slot, event) in slots().prop_flat_map(|slot| (Just(slot), events_near(slot))),
    ) {
        prop_assert_eq!(slot.conflicts_with(&event), event.conflicts_with(&slot));
        // The rule as worded.
        let minutes = |count: u32| TimeDelta::minutes(i64::from(count));
        let since = minutes(event.buffers.after_min.max(slot.buffers.before_min));
        let until = minutes(slot.buffers.after_min.max(event.buffers.before_min));
        let clear = event.span.starts_at == event.span.ends_at
            || event.span.ends_at + since <= slot.span.starts_at
            || slot.span.ends_at + until <= event.span.starts_at;
        prop_assert_eq!(slot.conflicts_with(&event), !clear);
        if !clear {
            let guards = |one: Span, other: Span| {
                let guarded = guarded_buckets(one);
                entry_buckets(other).iter().any(|bucket| guarded.contains(bucket))
            };
            prop_assert!(guards(slot.span, event.span));
            if event.span.ends_at.ms() - event.span.starts_at.ms() <= 1_440 * MINUTE_MS {
                prop_assert!(guards(event.span, slot.span));
            }
        }
    }

    #[test]
    fn a_change_names_each_bucket_once_and_leaves_the_entry_where_the_event_is(
        (new, old) in slots().prop_flat_map(|slot| (Just(slot), prop::option::of(events_near(slot)))),
        versions in prop::collection::vec(0..100_u64, 8),
    ) {
        let old = old.map(|old| old.span);
        let guarded = guarded_buckets(new.span);
        let versions: BTreeMap<Bucket, u64> = guarded.iter().copied().zip(versions).collect();
        let booked = booking_writes(old, &new, &versions);
        let by_feed = feed_writes(old, Some(&new));
        for writes in [&booked, &by_feed, &feed_writes(old, None)] {
            let named: BTreeSet<Bucket> = writes.iter().map(|write| write.bucket).collect();
            prop_assert_eq!(named.len(), writes.len());
            prop_assert!(writes.len() <= MAX_BUCKET_WRITES);
        }
        for writes in [&booked, &by_feed] {
            prop_assert_eq!(entries_after(old, writes), entry_buckets(new.span).into_iter().collect());
        }
        prop_assert!(entries_after(old, &feed_writes(old, None)).is_empty());
        prop_assert!(by_feed.iter().all(|write| write.only_if.is_none() && write.change != EntryChange::Keep));
        for bucket in &guarded {
            let write = booked.iter().find(|write| write.bucket == *bucket).unwrap();
            prop_assert_eq!(write.only_if, Some(versions.get(bucket).copied().unwrap_or(0)));
        }
        prop_assert!(entry_buckets(new.span).iter().all(|bucket| guarded.contains(bucket)));
    }
}
