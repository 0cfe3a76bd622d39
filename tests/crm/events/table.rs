//! Each write of the API and each fact, with the events that it emits.

mod bookings;
mod contacts;
mod opportunities;

use serde_json::{Value, json};

use crate::crm::bookings::CALENDAR;
use crate::crm::contacts::merges;
use crate::crm::events::MODES;
use crate::event_feed::{follow, reader_of};
use crate::world::{CRM_EVENTS, Caller, Fact, World, fact, time, uuid};

const OTHER_CALENDAR: u64 = 11;

/// A write of the API, or facts.
#[derive(Clone)]
enum Step {
    Post(&'static str, Value),
    Patch(String, Value),
    Delete(String, Value),
    /// `POST /v1/clients`.
    Client(Value),
    Fact(Fact),
    /// The application's copy of the contact, opportunity or booking of the last answer.
    Echo,
}
use Step::{Client, Delete, Echo, Patch, Post};

fn saved(fact: Fact) -> Step {
    Step::Fact(fact)
}

/// One row of the table: after `given`, `when` emits `then`, with the data for contact details.
struct Row {
    name: &'static str,
    given: Vec<Step>,
    when: Vec<Step>,
    then: Vec<(&'static str, Value)>,
}

fn row(
    name: &'static str,
    given: impl IntoIterator<Item = Step>,
    when: impl IntoIterator<Item = Step>,
    then: impl IntoIterator<Item = (&'static str, Value)>,
) -> Row {
    Row { name, given: given.into_iter().collect(), when: when.into_iter().collect(), then: then.into_iter().collect() }
}

const NONE: [(&str, Value); 0] = [];
/// The id of a record that the API created.
const NEW: &str = "<new>";
/// The time of the change.
const AT: &str = "<at>";
/// Times of facts from before every write of the API.
const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

fn lee(id: u64) -> Fact {
    Fact::contact("ada", &uuid(id))
}

/// `data.contact` of a contact as [`lee`] makes it.
fn named(id: u64) -> Value {
    json!({ "id": uuid(id), "name": "Lee Lead", "email": null, "phone": null })
}

fn nameless(id: u64) -> Value {
    json!({ "id": uuid(id), "name": null, "email": null, "phone": null })
}

fn merged(from: u64, into: u64) -> Step {
    saved(merges::merged(from, into))
}

fn with(mut value: Value, members: Value) -> Value {
    value.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    value
}

/// A coach with readers of the feed in both modes.
struct Scene {
    world: World,
    crm: Caller,
    partner: Caller,
    readers: [Caller; 2],
}

impl Scene {
    async fn new() -> Self {
        let world = World::start().await;
        let ada = world.coach("ada").await;
        let [bare, detailed] = MODES.map(|mode| reader_of(&ada, &CRM_EVENTS, mode));
        let readers = [bare.await, detailed.await];
        let (crm, partner) = (ada.crm_key().await, ada.partner_key().await);
        let calendars = [CALENDAR, OTHER_CALENDAR].map(|id| Fact::calendar("ada", &uuid(id)));
        world.apply(calendars.into_iter().chain([Fact::pipeline("ada"), lee(1)])).await;
        Self { world, crm, partner, readers }
    }

    /// Carries out steps. Between two steps a second passes, so that an echo is later than its write.
    async fn carry_out(&self, steps: &[Step]) {
        let mut last = Value::Null;
        for step in steps {
            self.world.advance_s(1).await;
            let call = match step {
                Post(path, body) => self.crm.post(path, body.clone()),
                Patch(path, body) => self.crm.patch(path, body.clone()),
                Delete(path, body) => self.crm.delete(path).json(body),
                Client(body) => self.partner.post("/v1/clients", body.clone()),
                Step::Fact(fact) => {
                    self.world.apply([fact.clone()]).await;
                    continue;
                }
                Echo => {
                    self.world.apply([echo(&last)]).await;
                    continue;
                }
            };
            let reply = call.idempotent(&format!("row-{}", self.world.number())).await;
            assert!(reply.status < 300, "{reply:?}");
            last = reply.body;
        }
        // Longer than an event waits for its contact.
        self.world.advance_s(121).await;
    }

    /// Checks that the time of an event is that of its record.
    async fn assert_time_of_record(&self, event: &Value, then: &str) {
        let data = &event["data"];
        let (path, id) = match then.split_once('_').unwrap().0 {
            "contact" => ("contacts", &data["contact"]["id"]),
            "opportunity" => ("opportunities", &data["opportunity"]["id"]),
            _ => ("bookings", &data["booking"]["id"]),
        };
        let found = self.crm.get(&format!("/v1/crm/{path}/{}", id.as_str().unwrap())).await;
        if found.status == 200 && then != "contact_merged" {
            let record = found.body.as_object().unwrap().values().next().unwrap();
            assert_eq!(event["timestamp"], record["updatedAt"], "{event}");
        }
    }
}

/// The application's copy of a record that an answer showed.
fn echo(body: &Value) -> Fact {
    let copy = |name: &str, record: &Value, members: &[(&str, &str)]| {
        let fields = members.iter().map(|(field, member)| ((*field).to_owned(), record[member].clone()));
        fact(name, Value::Object(fields.chain([("coach_id".to_owned(), json!("ada"))]).collect()))
    };
    if let Some(contact) = body.get("contact") {
        let members = [
            ("contact_id", "id"),
            ("name", "name"),
            ("email", "email"),
            ("phone", "phone"),
            ("do_not_contact", "doNotContact"),
            ("marketing", "marketing"),
        ];
        copy("contact.saved", contact, &members)
    } else if let Some(opportunity) = body.get("opportunity") {
        let members = [
            ("opportunity_id", "id"),
            ("contact_id", "contactId"),
            ("name", "name"),
            ("value_cents", "valueCents"),
            ("pipeline_id", "pipelineId"),
            ("stage", "stage"),
            ("lost_reason", "lostReason"),
        ];
        copy("opportunity.saved", opportunity, &members)
    } else {
        let members = [
            ("event_id", "id"),
            ("calendar_id", "calendarId"),
            ("lead_id", "leadId"),
            ("starts_at", "startsAt"),
            ("ends_at", "endsAt"),
            ("status", "status"),
        ];
        copy("calendar_event.saved", &body["booking"], &members)
    }
}

/// The data of an event with the ids that the API chose and the time of the change replaced.
fn comparable(event: &Value) -> Value {
    let mut data = event["data"].clone();
    for member in ["contact", "opportunity", "booking"] {
        let is_new = data[member]["id"].as_str().is_some_and(|id| !id.starts_with("00000000"));
        if is_new {
            data[member]["id"] = json!(NEW);
        }
    }
    for member in ["created_at", "updated_at"] {
        if let Some(at) = data.get_mut(member) {
            assert_eq!(*at, event["timestamp"], "{event}");
            *at = json!(AT);
        }
    }
    time(&event["timestamp"]);
    data
}

/// The data for receivers of identifiers.
fn bare(data: &Value) -> Value {
    let mut data = data.clone();
    if data["contact"].is_object() {
        data["contact"] = json!({ "id": data["contact"]["id"] });
    }
    if let Some(opportunity) = data.get_mut("opportunity") {
        opportunity.as_object_mut().unwrap().remove("name");
    }
    data
}

async fn assert_rows(rows: impl AsyncFnOnce(&World) -> Vec<Row>) {
    let scene = Scene::new().await;
    let mut cursors = [String::new(), String::new()];
    for Row { name, given, when, then } in rows(&scene.world).await {
        scene.carry_out(&given).await;
        for (reader, cursor) in scene.readers.iter().zip(&mut cursors) {
            *cursor = follow(reader, cursor, 200).await.1;
        }
        scene.carry_out(&when).await;
        let mut emitted = Vec::new();
        for (reader, cursor) in scene.readers.iter().zip(&mut cursors) {
            let (events, next) = follow(reader, cursor, 200).await;
            *cursor = next;
            emitted.push(events);
        }
        let as_shown = |events: &[Value]| -> Vec<(String, Value)> {
            events.iter().map(|event| (event["type"].as_str().unwrap().to_owned(), comparable(event))).collect()
        };
        let expected: Vec<(String, Value)> = then.iter().map(|(of, data)| ((*of).to_owned(), data.clone())).collect();
        let expected_bare: Vec<_> = expected.iter().map(|(of, data)| (of.clone(), bare(data))).collect();
        assert_eq!(as_shown(&emitted[1]), expected, "{name}");
        assert_eq!(as_shown(&emitted[0]), expected_bare, "{name}");
        for (event, (then, _)) in emitted[1].iter().zip(&then) {
            scene.assert_time_of_record(event, then).await;
        }
    }
}

#[tokio::test]
async fn each_change_of_a_contact_is_one_event() {
    assert_rows(async |_| contacts::rows()).await;
}

#[tokio::test]
async fn each_change_of_an_opportunity_is_one_event() {
    assert_rows(async |_| opportunities::rows()).await;
}

#[tokio::test]
async fn each_change_of_a_booking_is_one_event() {
    assert_rows(async |world| bookings::rows(world.midnight_in(3).await)).await;
}
