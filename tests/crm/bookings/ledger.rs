//! Invariants of a coach's bookings and events under concurrency, checked in the tables and in the lists.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;
use serde_json::{Value, json};

use crate::crm::bookings::races::Owner;
use crate::crm::events::races::{by_record, follow_booking};
use crate::crm::lists::walk;
use crate::event_feed::whole_feed;
use crate::world::{World, time};

/// A stored event: its calendar, its time and its buffers.
#[derive(Debug, Clone)]
struct Stored {
    id: String,
    is_booking: bool,
    span: [i64; 2],
    buffers: [i64; 2],
}

impl Stored {
    fn confirmed(item: &Value) -> Option<Self> {
        let number = |value: &Value| value["N"].as_str().unwrap().parse::<i64>().unwrap();
        let id = item["sk"]["S"].as_str().unwrap().strip_prefix("EVENT#")?.to_owned();
        let buffers = &item["buffers"]["M"];
        (item["status"]["S"] == "confirmed").then(|| Self {
            id,
            is_booking: item["calendar_id"].is_object(),
            span: [number(&item["starts_at"]), number(&item["ends_at"])],
            buffers: [number(&buffers["before_min"]), number(&buffers["after_min"])],
        })
    }

    fn entry(&self) -> Value {
        json!([self.span[0], self.span[1], self.buffers[0], self.buffers[1]])
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.span[0] < other.span[1] && other.span[0] < self.span[1]
    }

    /// Returns true if the gap between the two is shorter than the longer of the buffers that face it.
    fn conflicts(&self, other: &Self) -> bool {
        let [first, second] = if self.span <= other.span { [self, other] } else { [other, self] };
        let gap = first.buffers[1].max(second.buffers[0]) * 60_000;
        second.span[0] < first.span[1] + gap
    }

    fn days(&self) -> impl Iterator<Item = String> {
        let day = |ms: i64| DateTime::from_timestamp_millis(ms).unwrap().date_naive();
        let last = day(self.span[1] - 1);
        day(self.span[0]).iter_days().take_while(move |day| *day <= last).map(|day| day.to_string())
    }
}

/// Conflicts on the bus by the id of the causing fact: the two events and the payload.
pub(crate) type EmittedConflicts = BTreeMap<String, (String, BTreeSet<String>, Value)>;

/// Adds the conflicts that were emitted since the last call.
pub(crate) async fn read_conflicts(world: &World, emitted: &mut EmittedConflicts) {
    for fact in world.changes("booking.conflict").await {
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        let pair = BTreeSet::from([id(&fact["booking"]["id"]), id(&fact["conflicts_with"]["event_id"])]);
        let times =
            json!([fact["booking"]["startsAt"], fact["conflicts_with"]["starts_at"], fact["booking"]["updatedAt"]]);
        emitted.insert(id(&fact["id"]), (id(&fact["coach_id"]), pair, times));
    }
}

/// Asserts: no booking conflicts with another or with an event stored before it; each overlap caused by the application
/// was reported; the buckets hold exactly the confirmed events.
pub(crate) async fn assert_invariants(owner: &Owner<'_>, emitted: &EmittedConflicts) {
    let items = owner.world.items("crm", &format!("COACH#{}", owner.id)).await;
    let events: Vec<Stored> = items.iter().filter_map(Stored::confirmed).collect();
    let mut overlaps = 0;
    for (n, one) in events.iter().enumerate() {
        for other in events[n + 1..].iter().filter(|other| one.conflicts(other)) {
            let made_here = [one, other].map(|event| owner.booked.contains(&event.id));
            let before = [one, other].map(|event| owner.stored_before.contains(&event.id));
            assert!(made_here != [true, true], "{one:?} and {other:?} are both booked");
            let over_a_stored_one = (made_here[0] && before[1]) || (made_here[1] && before[0]);
            assert!(!over_a_stored_one, "{one:?} and {other:?}: one was booked over the other");
            if one.overlaps(other) && (one.is_booking || other.is_booking) {
                overlaps += 1;
                let pair = BTreeSet::from([one.id.clone(), other.id.clone()]);
                assert!(
                    emitted.values().any(|(_, emitted, _)| *emitted == pair),
                    "{one:?} over {other:?} was not emitted"
                );
            }
        }
    }
    assert!(overlaps > 0, "the application has put events over bookings");

    let mut expected: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for event in &events {
        for day in event.days() {
            expected.entry(day).or_default().insert(event.id.clone(), event.entry());
        }
    }
    let buckets = owner.world.buckets(&owner.id).await;
    let found: BTreeMap<String, BTreeMap<String, Value>> = buckets
        .into_iter()
        .map(|(day, entries)| (day, serde_json::from_value(entries).unwrap()))
        .filter(|(_, entries): &(String, BTreeMap<String, Value>)| !entries.is_empty())
        .collect();
    assert_eq!(found, expected, "buckets hold exactly the confirmed events");
    assert!(items.iter().all(|item| item["conflict_check"].is_null()), "no overlap is left to be emitted");
}

/// Asserts that the list holds exactly the confirmed events on a calendar.
pub(crate) async fn assert_lists(owner: &Owner<'_>) {
    let span = |booking: &Value| [&booking["startsAt"], &booking["endsAt"]].map(|at| time(at).timestamp_millis());
    let listed = walk(&owner.keys[0], "bookings", "", 200).await;
    let listed = listed.iter().map(|booking| (booking["id"].as_str().unwrap().to_owned(), span(booking)));
    let listed: BTreeMap<String, [i64; 2]> = listed.collect();
    let items = owner.world.items("crm", &format!("COACH#{}", owner.id)).await;
    let confirmed = items.iter().filter_map(Stored::confirmed).filter(|event| event.is_booking);
    assert_eq!(listed, confirmed.map(|event| (event.id, event.span)).collect());
}

/// Asserts that the events of each booking lead to the confirmed bookings, from one time to the next.
pub(crate) async fn assert_events(owner: &Owner<'_>) {
    let feed = whole_feed(&owner.reader).await;
    let items = owner.world.items("crm", &format!("COACH#{}", owner.id)).await;
    let confirmed = items.iter().filter_map(Stored::confirmed).filter(|event| event.is_booking);
    let span = |booking: &Value| [&booking["starts_at"], &booking["ends_at"]].map(|at| time(at).timestamp_millis());
    let followed = by_record(&feed).into_iter().filter_map(|(id, events)| {
        let booking = follow_booking(&events)?;
        Some((id.to_owned(), span(&booking)))
    });
    assert_eq!(
        followed.collect::<BTreeMap<String, [i64; 2]>>(),
        confirmed.map(|event| (event.id, event.span)).collect()
    );
}
