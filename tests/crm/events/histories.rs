//! Random histories of API writes, facts of the application (echoes, late, doubled, backfilled), merges and erasures,
//! with functions that die and answers of the store that get lost. The model is the difference between what the API
//! shows before and after a step: receivers learn exactly that, once.
//!
//! `cargo test -p behaviour --features long-simulation histories` runs more seeds.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, event, path};
use crate::crm::contacts::merges::pseudo_random;
use crate::event_feed::{follow, reader_of, whole_feed};
use crate::feed::erasure::{ENDED_S, erased};
use crate::world::{CRM_EVENTS, Caller, Fact, World, fact, list, uuid};

const SEEDS: std::ops::Range<u64> = if cfg!(feature = "long-simulation") { 0..40 } else { 0..3 };
const STEPS: usize = 90;
const CONTACTS: u64 = 6;
const OPPORTUNITIES: u64 = 3;
const BOOKINGS: u64 = 3;
/// Longer than a message waits after the function that had it died.
const REDELIVERED_S: u64 = 400;

/// Event type, id of the record, `changed` and id of the contact that is named.
type Expected = (String, String, Value, Value);

/// All records by their ids, as the API shows them.
#[derive(Default)]
struct Shown {
    contacts: BTreeMap<String, Value>,
    opportunities: BTreeMap<String, Value>,
    bookings: BTreeMap<String, Value>,
}

/// The step of a history.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Api,
    Fact,
    Backfill,
    Merge { from: u64, into: u64 },
    Erasure,
}

struct History<'w, R> {
    world: &'w World,
    coach: String,
    random: R,
    crm: Caller,
    partner: Caller,
    reader: Caller,
    midnight: DateTime<Utc>,
    /// The direct merges, and the contacts that are erased.
    merges: BTreeMap<u64, u64>,
    erased: BTreeSet<String>,
    /// The facts so far, with their ids and times.
    facts: Vec<Fact>,
    clients: Vec<String>,
}

impl<'w, R: FnMut(usize) -> usize> History<'w, R> {
    async fn new(world: &'w World, coach: &str, random: R) -> Self {
        let ada = world.coach(coach).await;
        world.apply([Fact::pipeline(coach), Fact::calendar(coach, &uuid(CALENDAR))]).await;
        Self {
            crm: ada.crm_key().await,
            partner: ada.partner_key().await,
            reader: reader_of(&ada, &CRM_EVENTS, "contact_details").await,
            midnight: world.midnight_in(2).await,
            merges: BTreeMap::new(),
            erased: BTreeSet::new(),
            facts: Vec::new(),
            clients: Vec::new(),
            coach: coach.to_owned(),
            world,
            random,
        }
    }

    fn pick(&mut self, below: u64) -> u64 {
        (self.random)(usize::try_from(below).unwrap()) as u64
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.random)(values.len())]
    }

    fn contact(&mut self) -> u64 {
        1 + self.pick(CONTACTS)
    }

    /// The address of a contact. No client of another coach may have it.
    fn email(&self, contact: u64) -> String {
        format!("person-{contact}@{}.example", self.coach)
    }

    /// The name of a contact, which no other contact has.
    fn name(&mut self, contact: u64) -> String {
        format!("Person-{contact}-{}", self.pick(3))
    }

    async fn shown(&self) -> Shown {
        let page = async |list_of: &str| -> BTreeMap<String, Value> {
            let path = format!("/v1/crm/{list_of}?limit=200&updated_since=2020-01-01T00:00:00Z");
            let records = list(self.crm.get(&path).await.expect(200).body["data"].clone());
            records.into_iter().map(|record| (record["id"].as_str().unwrap().to_owned(), record)).collect()
        };
        Shown {
            contacts: page("contacts").await,
            opportunities: page("opportunities").await,
            bookings: page("bookings").await,
        }
    }

    /// Takes a step. Returns its kind.
    async fn step(&mut self) -> Kind {
        let (contact, kind) = (self.contact(), self.pick(20));
        let key = format!("step-{}", self.world.number());
        let crm = self.crm.clone();
        let call = match kind {
            0 => {
                let email = self.email(contact);
                Some(crm.post("/v1/crm/contacts", json!({ "name": self.name(contact), "email": email })))
            }
            1 => {
                let change = match self.pick(3) {
                    0 => json!({ "doNotContact": true }),
                    _ => json!({ "name": self.name(contact) }),
                };
                Some(crm.patch(&format!("/v1/crm/contacts/{}", uuid(contact)), change))
            }
            2 => Some(crm.post("/v1/crm/opportunities", json!({ "contactId": uuid(contact) }))),
            3 | 4 => {
                let opportunity = uuid(20 + self.pick(OPPORTUNITIES));
                let change = match self.pick(4) {
                    0 => json!({ "name": "Package", "valueCents": self.pick(3) }),
                    1 => json!({ "stage": "lost", "lostReason": self.one_of(&["Price", "Time"]) }),
                    2 => json!({ "lostReason": self.one_of(&["Price", "Time"]) }),
                    _ => json!({ "stage": self.one_of(&["new", "warm"]), "valueCents": self.pick(3) }),
                };
                Some(crm.patch(&format!("/v1/crm/opportunities/{opportunity}"), change))
            }
            5 => {
                let time = format!("{:02}:00", self.pick(24));
                let slot = json!({
                    "leadId": uuid(contact), "calendarId": uuid(CALENDAR), "date": self.midnight.date_naive(), "time": time,
                });
                Some(crm.post("/v1/crm/bookings", slot))
            }
            6 | 7 => {
                let (booking, time) = (path(&uuid(30 + self.pick(BOOKINGS))), format!("{:02}:00", self.pick(24)));
                let to = json!({ "leadId": uuid(contact), "date": self.midnight.date_naive(), "time": time });
                Some(match self.pick(3) {
                    0 => crm.delete(&booking).json(&json!({ "leadId": uuid(contact) })),
                    _ => crm.patch(&booking, to),
                })
            }
            _ => None,
        };
        if let Some(call) = call {
            self.arm_fault(&["crm-contacts", "crm-opportunities", "crm-bookings", "relay"]).await;
            // The answer may be a refusal, or lost.
            drop(call.idempotent(&key).await);
            return Kind::Api;
        }
        match kind {
            8 | 12 => {
                let body = json!({ "email": self.email(contact), "send_welcome": false });
                let made = self.partner.post("/v1/clients", body).idempotent(&key).await;
                self.clients.extend(made.body["client_id"].as_str().map(str::to_owned));
                Kind::Api
            }
            9 => match self.clients.pop() {
                Some(client) => {
                    self.world.apply([erased(&client)]).await;
                    self.world.advance_s(ENDED_S).await;
                    Kind::Erasure
                }
                None => Kind::Api,
            },
            10 | 11 => self.merge(contact).await,
            _ => self.fact(contact).await,
        }
    }

    /// Merges a contact, unless that closes a circle or leads to an erased contact.
    async fn merge(&mut self, from: u64) -> Kind {
        let into = self.contact();
        let mut chain = vec![into];
        while let Some(next) = self.merges.get(chain.last().unwrap()) {
            chain.push(*next);
        }
        let is_erased = |number: &u64| self.erased.contains(&uuid(*number));
        if chain.contains(&from) || is_erased(&from) || chain.iter().any(is_erased) {
            return Kind::Api;
        }
        self.arm_fault(&["ingest", "relay"]).await;
        let fields = json!({ "coach_id": self.coach, "contact_id": uuid(from), "merged_into": uuid(into) });
        self.world.apply([fact("contact.merged", fields)]).await;
        Kind::Merge { from, into }
    }

    /// Applies a fact: of a new record, a changed one or the same again, now or of a time before.
    async fn fact(&mut self, contact: u64) -> Kind {
        let again = self.pick(5);
        let is_backfill = again == 1;
        let fact = match self.facts.last().filter(|_| again == 0) {
            Some(_) => self.facts[(self.random)(self.facts.len())].clone(),
            None => {
                let number = self.world.number();
                let late_s = self.one_of(&[0, 0, 0, 30, 300]);
                let fact = self.saved(contact).with("id", format!("fact-{number}"));
                let fact = fact.with("occurred_at", self.world.timestamp_in(-late_s).await);
                if is_backfill { fact.with("backfill", true) } else { fact }
            }
        };
        self.facts.push(fact.clone());
        self.arm_fault(&["ingest", "relay"]).await;
        let is_backfill = fact.detail["backfill"] == true;
        self.world.apply([fact]).await;
        if is_backfill { Kind::Backfill } else { Kind::Fact }
    }

    fn saved(&mut self, contact: u64) -> Fact {
        let coach = &self.coach.clone();
        match self.pick(3) {
            0 => {
                let fact = Fact::contact(coach, &uuid(contact)).with("name", self.name(contact));
                let fact = fact.with("email", self.email(contact));
                fact.with("do_not_contact", self.pick(2) == 0)
            }
            1 => {
                let fact = Fact::opportunity(coach, &uuid(20 + self.pick(OPPORTUNITIES)), &uuid(contact));
                let stage = self.one_of(&["new", "warm", "lost", "won"]);
                let reason = if stage == "lost" { json!("Price") } else { Value::Null };
                let fact = fact.with("value_cents", self.pick(3)).with("stage", stage).with("lost_reason", reason);
                fact.with("pipeline_id", self.one_of(&["pipeline-1", "pipeline-1", "pipeline-2"]))
            }
            _ => {
                let on = (self.pick(5) > 0).then_some(CALENDAR);
                let starts = self.midnight + TimeDelta::hours(self.one_of(&[1, 2, 3]));
                let fact = event(coach, &uuid(30 + self.pick(BOOKINGS)), on, starts, self.one_of(&[30, 60]));
                let fact = if self.pick(4) == 0 { fact } else { fact.with("lead_id", uuid(contact)) };
                fact.with("status", self.one_of(&["confirmed", "confirmed", "cancelled"]))
            }
        }
    }

    /// Arms a fault for the next step, sometimes.
    async fn arm_fault(&mut self, functions: &[&str]) {
        let function = self.one_of(functions);
        let fault = match self.pick(8) {
            0 => "crash_after_commit",
            1 => "crash_before_call",
            2 => "store_lost_answers",
            _ => return,
        };
        self.world.faults(json!({ "function": function, "spared_calls": self.pick(3), fault: 1 })).await;
    }

    /// The events of a step: the difference of what is shown.
    fn expected(&self, kind: Kind, before: &Shown, after: &Shown) -> Vec<Expected> {
        let mut all = Vec::new();
        let named = |id: &Value| match id.as_str().and_then(|id| after.contacts.get(id)) {
            Some(contact) if contact.get("mergedIntoId").is_some() => contact["mergedIntoId"].clone(),
            _ => id.clone(),
        };
        let changed = |before: &Value, record: &Value, members: &[(&str, &str)]| -> Vec<String> {
            let differs = members.iter().filter(|(member, _)| before[*member] != record[*member]);
            differs.map(|(_, name)| (*name).to_owned()).collect()
        };
        let mut expect = |event: &str, id: &str, changed: Value, contact: Value| {
            all.push((event.to_owned(), id.to_owned(), changed, contact));
        };
        match kind {
            Kind::Backfill | Kind::Erasure => return all,
            Kind::Merge { from, into } => {
                if self.merges.get(&from) != Some(&into) {
                    expect("contact_merged", &uuid(from), Value::Null, named(&json!(uuid(from))));
                }
                return all;
            }
            Kind::Api | Kind::Fact => {}
        }
        for (id, contact) in after.contacts.iter().filter(|(_, contact)| contact.get("mergedIntoId").is_none()) {
            match before.contacts.get(id) {
                None => expect("contact_created", id, Value::Null, json!(id)),
                Some(before) => {
                    let members = [
                        ("name", "name"),
                        ("email", "email"),
                        ("phone", "phone"),
                        ("doNotContact", "do_not_contact"),
                        ("marketing", "marketing"),
                        ("clientId", "client_id"),
                    ];
                    let changed = changed(before, contact, &members);
                    if !changed.is_empty() {
                        expect("contact_updated", id, json!(changed), json!(id));
                    }
                }
            }
        }
        for (id, opportunity) in &after.opportunities {
            let contact = named(&opportunity["contactId"]);
            let Some(before) = before.opportunities.get(id) else {
                expect("opportunity_created", id, Value::Null, contact);
                continue;
            };
            // Two ids of one person are no difference.
            let mut before = before.clone();
            if named(&before["contactId"]) == contact {
                before["contactId"] = opportunity["contactId"].clone();
            }
            let before = &before;
            let members = [("name", "name"), ("valueCents", "value_cents"), ("contactId", "contact_id")];
            let others = changed(before, opportunity, &members);
            if !changed(before, opportunity, &[("stage", ""), ("pipelineId", "")]).is_empty() {
                expect("opportunity_stage_changed", id, json!(others), contact);
            } else if !others.is_empty() {
                expect("opportunity_updated", id, json!(others), contact);
            }
        }
        let ids: BTreeSet<&String> = before.bookings.keys().chain(after.bookings.keys()).collect();
        for id in ids {
            let seen =
                |shown: &Shown| shown.bookings.get(id).filter(|booking| booking["status"] == "confirmed").cloned();
            let contact = |booking: &Value| named(&booking["leadId"]);
            match (seen(before), seen(after)) {
                (None, Some(booking)) => expect("booking_created", id, Value::Null, contact(&booking)),
                (Some(before), Some(booking)) => {
                    let place = |booking: &Value| ["calendarId", "startsAt", "endsAt"].map(|of| booking[of].clone());
                    if place(&before) != place(&booking) {
                        expect("booking_rescheduled", id, before["startsAt"].clone(), contact(&booking));
                    }
                }
                (Some(before), None) => {
                    let booking = after.bookings.get(id).unwrap_or(&before);
                    expect("booking_cancelled", id, Value::Null, contact(booking));
                }
                (None, None) => {}
            }
        }
        all
    }
}

/// The content of an event that is compared: its type, the record, what changed and whom it names.
fn told(event: &Value) -> Expected {
    let data = &event["data"];
    let record = [&data["opportunity"]["id"], &data["booking"]["id"], &data["merged"]["id"], &data["contact"]["id"]];
    let record = record.into_iter().find_map(Value::as_str).unwrap().to_owned();
    let changed = if data["previous_starts_at"].is_string() { &data["previous_starts_at"] } else { &data["changed"] };
    let contact = data["contact"].get("id").cloned().unwrap_or_default();
    (event["type"].as_str().unwrap().to_owned(), record, changed.clone(), contact)
}

#[tokio::test]
async fn receivers_learn_each_difference_that_the_api_shows_once_and_nothing_of_the_erased() {
    let world = World::start().await;
    for seed in SEEDS {
        let coach = format!("coach-{seed}");
        let mut history = History::new(&world, &coach, pseudo_random(seed)).await;
        let (mut before, mut cursor, mut emitted) = (history.shown().await, String::new(), 0);
        for number in 0..STEPS {
            let kind = history.step().await;
            world.clear_faults().await;
            world.advance_s(REDELIVERED_S).await;
            let after = history.shown().await;
            let (events, next) = follow(&history.reader, &cursor, 200).await;
            let mut got: Vec<Expected> = events.iter().map(told).collect();
            let mut expected = history.expected(kind, &before, &after);
            got.sort_by_key(|event| format!("{event:?}"));
            expected.sort_by_key(|event| format!("{event:?}"));
            assert_eq!(got, expected, "seed {seed}, step {number}: {kind:?}, last fact {:?}", history.facts.last());
            if let Kind::Merge { from, into } = kind {
                history.merges.insert(from, into);
            }
            history.erased.extend(before.contacts.keys().filter(|id| !after.contacts.contains_key(*id)).cloned());
            (before, cursor, emitted) = (after, next, emitted + got.len());
        }
        let feed = whole_feed(&history.reader).await;
        let ids: BTreeSet<String> = feed.iter().map(|event| event["id"].to_string()).collect();
        assert_eq!(ids.len(), feed.len(), "seed {seed}");
        assert!(emitted > STEPS / 8, "seed {seed}: {emitted} events");
        for event in feed {
            let id = event["data"]["contact"]["id"].as_str().unwrap_or_default();
            assert!(!history.erased.contains(id), "seed {seed}: {event}");
        }
        println!("seed {seed}: {emitted} events, {} erased contacts", history.erased.len());
    }
}
