//! API writes and facts that race for the same records, while transactions conflict and answers get lost. The events of
//! a record are its history: each begins where the one before ended, and the last one ends at what the API shows.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::crm::bookings::races::retry_until_definite;
use crate::crm::bookings::{CALENDAR, event, path};
use crate::crm::contacts::merges::pseudo_random;
use crate::event_feed::{reader_of, whole_feed};
use crate::world::{CRM_EVENTS, Call, Caller, Fact, World, rendered, uuid};

/// `cargo test -p behaviour --features long-simulation events::races` plays more of them.
const ROUNDS: i64 = if cfg!(feature = "long-simulation") { 150 } else { 12 };
/// Calls and facts for each record in a round.
const CALLS: usize = 3;
const CONTACT: u64 = 1;
const OTHER_CONTACT: u64 = 2;
const OPPORTUNITY: u64 = 20;
const BOOKING: u64 = 30;
/// Milliseconds of facts in a round. The stack's clock stands still, so the API's writes are a millisecond apart, and
/// facts are before and after them.
const ROUND_MS: i64 = 8;
/// Longer than a fact waits that met too many conflicts.
const RETRIED_S: u64 = 200;

struct Race<'w, R> {
    world: &'w World,
    random: R,
    crm: Caller,
    midnight: DateTime<Utc>,
}

impl<R: FnMut(usize) -> usize> Race<'_, R> {
    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.random)(values.len())]
    }

    fn patch(&self, path: &str, body: Value) -> Call {
        self.crm.patch(path, body).idempotent(&format!("race-{}", self.world.number()))
    }

    fn calls(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            let contact = match self.one_of(&[true, false]) {
                true => json!({ "name": self.one_of(&["Lee", "Lea"]) }),
                false => json!({ "name": self.one_of(&["Lee", "Lou"]), "doNotContact": self.one_of(&[true, false]) }),
            };
            calls.push(self.patch(&format!("/v1/crm/contacts/{}", uuid(CONTACT)), contact));
            let opportunity = match self.one_of(&[0, 1, 2]) {
                0 => json!({ "name": self.one_of(&["Package", "Other"]), "valueCents": self.one_of(&[1, 2]) }),
                1 => json!({ "stage": "lost", "lostReason": self.one_of(&["Price", "Time"]) }),
                _ => json!({ "stage": self.one_of(&["new", "warm"]), "valueCents": self.one_of(&[1, 2]) }),
            };
            calls.push(self.patch(&format!("/v1/crm/opportunities/{}", uuid(OPPORTUNITY)), opportunity));
            let (date, time) = (self.midnight.date_naive(), self.one_of(&["01:00", "02:00", "03:00"]));
            let booking = json!({ "leadId": uuid(CONTACT), "date": date, "time": time });
            calls.push(self.patch(&path(&uuid(BOOKING)), booking));
        }
        let cancel = self.crm.delete(&path(&uuid(BOOKING))).json(&json!({ "leadId": uuid(CONTACT) }));
        calls.push(cancel.idempotent(&format!("race-{}", self.world.number())));
        calls
    }

    fn facts(&mut self, at: DateTime<Utc>) -> Vec<Fact> {
        let mut facts = Vec::new();
        for _ in 0..CALLS {
            let contact = Fact::contact("ada", &uuid(CONTACT)).with("name", self.one_of(&["Lee", "Lin"]));
            let contact = contact.with("email", self.one_of(&[Some("lee@example.com"), Some("l@example.com"), None]));
            facts.push(contact.with("do_not_contact", self.one_of(&[true, false])));
            let owner = uuid(self.one_of(&[CONTACT, OTHER_CONTACT]));
            let opportunity = Fact::opportunity("ada", &uuid(OPPORTUNITY), &owner);
            let opportunity = opportunity.with("stage", self.one_of(&["new", "warm", "won"]));
            facts.push(opportunity.with("pipeline_id", self.one_of(&["pipeline-1", "pipeline-1", "pipeline-2"])));
            let on = self.one_of(&[Some(CALENDAR), Some(CALENDAR), None]);
            let starts = self.midnight + TimeDelta::hours(self.one_of(&[1, 2, 3]));
            let booking =
                event("ada", &uuid(BOOKING), on, starts, self.one_of(&[30, 60])).with("lead_id", uuid(CONTACT));
            facts.push(booking.with("status", self.one_of(&["confirmed", "confirmed", "cancelled"])));
        }
        let later = |fact: Fact, ms: usize| {
            let at = at + TimeDelta::milliseconds(ms as i64);
            fact.with("occurred_at", rendered(at))
        };
        facts.into_iter().map(|fact| later(fact, (self.random)(2 * ROUND_MS as usize))).collect()
    }

    async fn round(&mut self, number: i64) {
        let facts = self.facts(self.world.now().await + TimeDelta::milliseconds(number * ROUND_MS));
        let calls = self.calls();
        self.world.faults(json!({ "store_conflicts": 6, "store_lost_answers": 2 * (number % 2) })).await;
        let (replies, ()) =
            join(join_all(calls.into_iter().map(retry_until_definite)), self.world.publish(facts)).await;
        assert!(replies.iter().all(|reply| reply.status < 500), "{replies:?}");
        self.world.clear_faults().await;
        self.world.settle().await;
    }
}

/// The events of each record, in the order of their times. Checks that no event comes twice, and that no two events of
/// a record have the same time.
pub(crate) fn by_record(feed: &[Value]) -> BTreeMap<&str, Vec<&Value>> {
    let ids: BTreeSet<&str> = feed.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), feed.len(), "no event comes twice");
    let mut histories: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for event in feed {
        let data = &event["data"];
        let record = [&data["opportunity"]["id"], &data["booking"]["id"], &data["contact"]["id"]];
        histories.entry(record.into_iter().find_map(Value::as_str).unwrap()).or_default().push(event);
    }
    for history in histories.values_mut() {
        history.sort_by_key(|event| event["timestamp"].as_str());
        assert!(history.windows(2).all(|pair| pair[0]["timestamp"] != pair[1]["timestamp"]), "each has its own time");
    }
    histories
}

/// Checks the `changed` of an event against the members that differ between two states.
#[track_caller]
fn assert_changed(event: &Value, members: &[(&str, bool)]) {
    let differ: Vec<&str> = members.iter().filter(|(_, differs)| *differs).map(|(member, _)| *member).collect();
    assert_eq!(event["data"]["changed"], json!(differ), "{event}");
}

/// Follows the events of a contact. Returns its state at the end, with the flag that only `changed` tells of.
fn follow_contact(events: &[&Value], mut do_not_contact: bool) -> Value {
    let mut state = Value::Null;
    for event in events {
        let contact = &event["data"]["contact"];
        if state.is_null() {
            assert_eq!(event["type"], "contact_created");
        } else {
            assert_eq!(event["type"], "contact_updated");
            let changed = event["data"]["changed"].as_array().unwrap();
            let is_flipped = changed.contains(&json!("do_not_contact"));
            let differs = |member: &str| state[member] != contact[member];
            let members = [
                ("name", differs("name")),
                ("email", differs("email")),
                ("phone", differs("phone")),
                ("do_not_contact", is_flipped),
            ];
            assert_changed(event, &members);
            assert!(!changed.is_empty(), "{event}");
            do_not_contact ^= is_flipped;
        }
        state = contact.clone();
    }
    state["doNotContact"] = json!(do_not_contact);
    state
}

/// Follows the events of an opportunity. Returns the data of the last.
fn follow_opportunity(events: &[&Value]) -> Value {
    let mut before = Value::Null;
    for event in events {
        let data = &event["data"];
        if before.is_null() {
            assert_eq!(event["type"], "opportunity_created");
        } else {
            let (was, is) = (&before["opportunity"], &data["opportunity"]);
            let others = [
                ("name", was["name"] != is["name"]),
                ("value_cents", was["value_cents"] != is["value_cents"]),
                ("contact_id", before["contact"]["id"] != data["contact"]["id"]),
            ];
            assert_changed(event, &others);
            if (&was["stage"], &was["pipeline_id"]) == (&is["stage"], &is["pipeline_id"]) {
                assert_eq!(event["type"], "opportunity_updated");
                assert!(others.iter().any(|(_, differs)| *differs), "{event}");
            } else {
                assert_eq!(event["type"], "opportunity_stage_changed", "{before} {event}");
                for (from, of) in [("pipeline_id", "pipeline_id"), ("stage", "stage"), ("status", "status")] {
                    assert_eq!(data[format!("from_{from}")], was[of], "{event}");
                }
            }
        }
        before = data.clone();
    }
    before
}

/// Follows the events of a booking. Returns the booking at the end, if it is confirmed.
pub(crate) fn follow_booking(events: &[&Value]) -> Option<Value> {
    let mut seen: Option<Value> = None;
    for event in events {
        let booking = &event["data"]["booking"];
        let place = |booking: &Value| ["calendar_id", "starts_at", "ends_at"].map(|member| booking[member].clone());
        seen = match (event["type"].as_str().unwrap(), seen) {
            ("booking_created", None) => Some(booking.clone()),
            ("booking_rescheduled", Some(before)) => {
                assert_ne!(place(&before), place(booking), "{event}");
                assert_eq!(event["data"]["previous_starts_at"], before["starts_at"], "{event}");
                Some(booking.clone())
            }
            ("booking_cancelled", Some(_)) => None,
            (_, before) => panic!("{event} after {before:?}"),
        };
        assert_eq!(booking["status"], if seen.is_some() { "confirmed" } else { "cancelled" }, "{event}");
    }
    seen
}

#[tokio::test]
async fn the_events_of_a_record_are_its_history_whoever_races_for_it() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let reader = reader_of(&ada, &CRM_EVENTS, "contact_details").await;
    let crm = ada.crm_key().await;
    world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR))]).await;
    let midnight = world.midnight_in(2).await;
    let contacts = [CONTACT, OTHER_CONTACT].map(|id| Fact::contact("ada", &uuid(id)).with("do_not_contact", false));
    world.apply(contacts).await;
    let booking = event("ada", &uuid(BOOKING), Some(CALENDAR), midnight, 60).with("lead_id", uuid(CONTACT));
    world.apply([Fact::opportunity("ada", &uuid(OPPORTUNITY), &uuid(CONTACT)), booking]).await;
    let mut race = Race { world: &world, random: pseudo_random(7), crm, midnight };
    for number in 0..ROUNDS {
        race.round(number).await;
        if number % 10 == 9 {
            // Facts that met too many conflicts are retried, and the key's rate limit begins anew.
            world.advance_s(RETRIED_S).await;
        }
    }
    world.advance_s(RETRIED_S).await;
    let feed = whole_feed(&reader).await;
    let histories = by_record(&feed);
    for history in histories.values() {
        assert!(history.len() > usize::try_from(ROUNDS).unwrap() || history.len() == 1, "{}", history.len());
    }
    let shown = async |path: &str, id: u64| race.crm.get(&format!("/v1/crm/{path}/{}", uuid(id))).await;
    let contact = shown("contacts", CONTACT).await.expect(200).body["contact"].take();
    let followed = follow_contact(&histories[uuid(CONTACT).as_str()], false);
    for member in ["name", "email", "phone", "doNotContact"] {
        assert_eq!(followed[member], contact[member], "{member}");
    }
    let opportunity = shown("opportunities", OPPORTUNITY).await.expect(200).body["opportunity"].take();
    let followed = follow_opportunity(&histories[uuid(OPPORTUNITY).as_str()]);
    assert_eq!(followed["contact"]["id"], opportunity["contactId"]);
    let names = [("name", "name"), ("value_cents", "valueCents"), ("pipeline_id", "pipelineId"), ("stage", "stage")];
    for (ours, shown) in names.into_iter().chain([("status", "status")]) {
        assert_eq!(followed["opportunity"][ours], opportunity[shown], "{shown}");
    }
    let booking = shown("bookings", BOOKING).await;
    let confirmed = Some(&booking.body["booking"]).filter(|booking| booking["status"] == "confirmed");
    let span = |booking: &Value, names: [&str; 2]| names.map(|name| booking[name].clone());
    let followed = follow_booking(&histories[uuid(BOOKING).as_str()]);
    assert_eq!(
        followed.as_ref().map(|booking| span(booking, ["starts_at", "ends_at"])),
        confirmed.map(|booking| span(booking, ["startsAt", "endsAt"]))
    );
}
