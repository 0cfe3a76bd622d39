//! Each write of the API and each fact, with the events that it emits.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, event, path};
use crate::crm::events::MODES;
use crate::event_feed::{follow, reader_of};
use crate::world::{CRM_EVENTS, Caller, Fact, PIPELINE, World, fact, rendered, time, uuid};

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
    saved(fact("contact.merged", json!({ "coach_id": "ada", "contact_id": uuid(from), "merged_into": uuid(into) })))
}

fn with(mut value: Value, members: Value) -> Value {
    value.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    value
}

fn contact_rows() -> Vec<Row> {
    let lead = |id: u64| format!("/v1/crm/contacts/{}", uuid(id));
    let created = |contact: Value, source: &str| {
        ("contact_created", json!({ "contact": contact, "created_at": AT, "source": source }))
    };
    let updated = |contact: Value, changed: Value| {
        ("contact_updated", json!({ "contact": contact, "changed": changed, "updated_at": AT }))
    };
    let ann = json!({ "name": "Ann", "email": "ann@example.com" });
    let new_ann = json!({ "id": NEW, "name": "Ann", "email": "ann@example.com", "phone": null });
    let free = |id| lee(id).with("do_not_contact", false);
    let addressed = |id: u64| lee(id).with("email", format!("lead{id}@example.com"));
    let client = |id: u64| Client(json!({ "email": format!("lead{id}@example.com"), "send_welcome": false }));
    let address = |id: u64| with(named(id), json!({ "email": format!("lead{id}@example.com") }));
    vec![
        row("POST creates", [], [Post("/v1/crm/contacts", ann.clone())], [created(new_ann, "crm_api")]),
        row("POST matches", [], [Post("/v1/crm/contacts", json!({ "name": "A", "email": "ANN@example.com" }))], NONE),
        row(
            "POST and its echo",
            [],
            [Post("/v1/crm/contacts", json!({ "name": "Bo", "email": "bo@example.com" })), Echo],
            [created(json!({ "id": NEW, "name": "Bo", "email": "bo@example.com", "phone": null }), "crm_api")],
        ),
        row(
            "PATCH of both members",
            [saved(free(101))],
            [Patch(lead(101), json!({ "name": "L", "doNotContact": true }))],
            [updated(with(named(101), json!({ "name": "L" })), json!(["name", "do_not_contact"]))],
        ),
        row("PATCH of the same name", [saved(lee(102))], [Patch(lead(102), json!({ "name": "Lee Lead" }))], NONE),
        row(
            "PATCH, its repetition and its echo",
            [saved(lee(103))],
            [Patch(lead(103), json!({ "name": "L" })), Patch(lead(103), json!({ "name": "L" })), Echo],
            [updated(with(named(103), json!({ "name": "L" })), json!(["name"]))],
        ),
        row("a fact creates", [], [saved(lee(104))], [created(named(104), "application")]),
        row(
            "a fact changes",
            [saved(lee(105))],
            [saved(
                lee(105)
                    .with("email", "e@example.com")
                    .with("phone", "+1 415 555 0100")
                    .with("marketing", json!({ "email": false, "sms": false })),
            )],
            [updated(
                with(named(105), json!({ "email": "e@example.com", "phone": "+1 415 555 0100" })),
                json!(["email", "phone", "marketing"]),
            )],
        ),
        row("a fact repeats", [saved(lee(106))], [saved(lee(106))], NONE),
        row(
            "an older fact",
            [saved(lee(107))],
            [saved(lee(107).with("name", "Old").with("occurred_at", "2026-01-01T00:00:00Z"))],
            NONE,
        ),
        row("a backfill creates", [], [saved(lee(108).with("backfill", true))], NONE),
        row("a backfill changes", [saved(lee(109))], [saved(lee(109).with("name", "L").with("backfill", true))], NONE),
        row(
            "a merge",
            [saved(lee(110)), saved(lee(111))],
            [merged(110, 111)],
            [("contact_merged", json!({ "contact": named(111), "merged": { "id": uuid(110) } }))],
        ),
        row("the same merge", [], [merged(110, 111)], NONE),
        row(
            "a merge into another contact",
            [saved(lee(112))],
            [merged(110, 112)],
            [("contact_merged", json!({ "contact": named(112), "merged": { "id": uuid(110) } }))],
        ),
        row("a fact about a merged contact", [], [saved(lee(110).with("name", "Late"))], NONE),
        row(
            "a merge into a merged contact",
            [saved(lee(113))],
            [merged(113, 110)],
            [("contact_merged", json!({ "contact": named(112), "merged": { "id": uuid(113) } }))],
        ),
        row(
            "a merge into a contact that is not stored",
            [saved(lee(114))],
            [merged(114, 115)],
            [("contact_merged", json!({ "contact": nameless(115), "merged": { "id": uuid(114) } }))],
        ),
        row(
            "POST of a client with a lead",
            [saved(addressed(116))],
            [client(116)],
            [updated(address(116), json!(["client_id"]))],
        ),
        row(
            "a merge that brings a client",
            [saved(lee(117))],
            [merged(116, 117)],
            [("contact_merged", json!({ "contact": named(117), "merged": { "id": uuid(116) } }))],
        ),
    ]
}

fn opportunity_rows() -> Vec<Row> {
    let at = |id: u64| format!("/v1/crm/opportunities/{}", uuid(id));
    let deal = |id: u64, contact: u64| Fact::opportunity("ada", &uuid(id), &uuid(contact));
    let shown = |id: &str, name: &str, value: u64, stage: &str, status: &str| {
        json!({
            "id": id, "name": name, "value_cents": value, "pipeline_id": PIPELINE, "stage": stage, "status": status,
        })
    };
    let package = |id: u64| shown(&uuid(id), "Package", 25_000, "new", "open");
    let created = |contact: Value, opportunity: Value| {
        ("opportunity_created", json!({ "contact": contact, "opportunity": opportunity, "created_at": AT }))
    };
    let updated = |contact: Value, opportunity: Value, changed: Value| {
        let data = json!({ "contact": contact, "opportunity": opportunity, "changed": changed, "updated_at": AT });
        ("opportunity_updated", data)
    };
    let moved = |contact: Value, opportunity: Value, (stage, status): (&str, &str), changed: Value| {
        let data = json!({
            "contact": contact, "opportunity": opportunity, "from_stage": stage, "from_status": status,
            "changed": changed, "updated_at": AT,
        });
        ("opportunity_stage_changed", data)
    };
    let (one, open) = (named(1), ("new", "open"));
    let lost = |id: u64| deal(id, 1).with("stage", "lost").with("lost_reason", "Price");
    vec![
        row(
            "POST creates, and its echo",
            [],
            [Post("/v1/crm/opportunities", json!({ "contactId": uuid(1) })), Echo],
            [created(one.clone(), shown(NEW, "Lee Lead", 0, "new", "open"))],
        ),
        row(
            "PATCH of name and value, repeated",
            [saved(deal(201, 1))],
            [
                Patch(at(201), json!({ "name": "P", "valueCents": 5 })),
                Patch(at(201), json!({ "name": "P", "valueCents": 5 })),
                Echo,
            ],
            [updated(one.clone(), shown(&uuid(201), "P", 5, "new", "open"), json!(["name", "value_cents"]))],
        ),
        row(
            "PATCH of the stage, and its echo",
            [saved(deal(202, 1))],
            [Patch(at(202), json!({ "stage": "warm" })), Echo],
            [moved(one.clone(), shown(&uuid(202), "Package", 25_000, "warm", "open"), open, json!([]))],
        ),
        row(
            "PATCH of stage, reason and value",
            [saved(deal(203, 1))],
            [Patch(at(203), json!({ "stage": "lost", "lostReason": "Price", "valueCents": 7 }))],
            [moved(one.clone(), shown(&uuid(203), "Package", 7, "lost", "lost"), open, json!(["value_cents"]))],
        ),
        row("PATCH of the reason", [], [Patch(at(203), json!({ "lostReason": "Time" }))], NONE),
        row("PATCH of the same stage", [saved(deal(204, 1))], [Patch(at(204), json!({ "stage": "new" }))], NONE),
        row("a fact creates", [], [saved(deal(205, 1))], [created(one.clone(), package(205))]),
        row("a fact repeats", [], [saved(deal(205, 1))], NONE),
        row(
            "a fact with another pipeline",
            [],
            [saved(deal(205, 1).with("pipeline_id", "pipeline-2"))],
            [moved(one.clone(), with(package(205), json!({ "pipeline_id": "pipeline-2" })), open, json!([]))],
        ),
        row(
            "a fact with another contact",
            [saved(deal(206, 1)), saved(lee(299).with("name", "Bo"))],
            [saved(deal(206, 299))],
            [updated(with(named(299), json!({ "name": "Bo" })), package(206), json!(["contact_id"]))],
        ),
        row(
            "a fact changes everything",
            [saved(deal(207, 299))],
            [saved(deal(207, 1).with("name", "P").with("value_cents", 1).with("stage", "won"))],
            [moved(
                one.clone(),
                shown(&uuid(207), "P", 1, "won", "won"),
                open,
                json!(["name", "value_cents", "contact_id"]),
            )],
        ),
        row("a fact with another reason", [saved(lost(208))], [saved(lost(208).with("lost_reason", "Time"))], NONE),
        row(
            "an older fact",
            [saved(deal(209, 1))],
            [saved(deal(209, 1).with("stage", "won").with("occurred_at", "2026-01-01T00:00:00Z"))],
            NONE,
        ),
        row("a backfill", [], [saved(deal(210, 1).with("backfill", true))], NONE),
        row(
            "a fact about a contact that is not stored",
            [],
            [saved(deal(211, 290))],
            [created(nameless(290), package(211))],
        ),
        row(
            "a fact about a merged contact's opportunity",
            [saved(lee(291)), saved(deal(212, 291)), merged(291, 1)],
            [saved(deal(212, 291).with("value_cents", 3))],
            [updated(one, with(package(212), json!({ "value_cents": 3 })), json!(["value_cents"]))],
        ),
        row(
            "a pipeline's new stages",
            [saved(deal(213, 1))],
            [saved(Fact::pipeline("ada").with("stages", json!([])))],
            NONE,
        ),
    ]
}

fn booking_rows(midnight: DateTime<Utc>) -> Vec<Row> {
    let at = |hour: i64| midnight + TimeDelta::hours(hour);
    let on = |id: u64, hour: i64| event("ada", &uuid(id), Some(CALENDAR), at(hour), 60).with("lead_id", uuid(1));
    let private = |id: u64, hour: i64| on(id, hour).with("calendar_id", Value::Null);
    let cancelled = |fact: Fact| fact.with("status", "cancelled");
    let shown = |id: &str, hour: i64, status: &str| {
        json!({
            "id": id, "calendar_id": uuid(CALENDAR), "starts_at": rendered(at(hour)), "ends_at": rendered(at(hour + 1)),
            "timezone": "UTC", "status": status,
        })
    };
    let of = |event: &'static str, booking: Value| (event, json!({ "contact": named(1), "booking": booking }));
    let booked = |id: &str, hour: i64| of("booking_created", shown(id, hour, "confirmed"));
    let ended = |id: u64, hour: i64| of("booking_cancelled", shown(&uuid(id), hour, "cancelled"));
    let moved = |id: u64, hour: i64, from: i64| {
        let data = json!({
            "contact": named(1), "booking": shown(&uuid(id), hour, "confirmed"), "previous_starts_at": rendered(at(from)),
        });
        ("booking_rescheduled", data)
    };
    let date = midnight.date_naive();
    let slot = |time: &str| json!({ "leadId": uuid(1), "calendarId": uuid(CALENDAR), "date": date, "time": time });
    let to = |time: &str| json!({ "leadId": uuid(1), "date": date, "time": time });
    let booking = |id: u64| path(&uuid(id));
    let (mut without, mut longer) = (booked(&uuid(310), 9), moved(309, 8, 8));
    without.1["contact"] = Value::Null;
    longer.1["booking"]["ends_at"] = json!(rendered(at(10)));
    vec![
        row("POST books, and its echo", [], [Post("/v1/crm/bookings", slot("01:00")), Echo], [booked(NEW, 1)]),
        row("PATCH to the same time", [saved(on(301, 2))], [Patch(booking(301), to("02:00"))], NONE),
        row("PATCH moves, and its echo", [], [Patch(booking(301), to("03:00")), Echo], [moved(301, 3, 2)]),
        row(
            "DELETE, its repetition and its echo",
            [],
            [
                Delete(booking(301), json!({ "leadId": uuid(1) })),
                Delete(booking(301), json!({ "leadId": uuid(1) })),
                Echo,
            ],
            [ended(301, 3)],
        ),
        row("a fact books", [], [saved(on(302, 4))], [booked(&uuid(302), 4)]),
        row("a fact without a contact", [], [saved(on(310, 9).with("lead_id", Value::Null))], [without]),
        row("a fact repeats", [], [saved(on(302, 4))], NONE),
        row("first seen as cancelled", [], [saved(cancelled(on(303, 5)))], NONE),
        row("confirmed after that", [], [saved(on(303, 5))], [booked(&uuid(303), 5)]),
        row("a private entry", [], [saved(private(304, 6))], NONE),
        row("moved into a calendar", [], [saved(on(304, 6))], [booked(&uuid(304), 6)]),
        row(
            "moved out, without its contact",
            [],
            [saved(private(304, 7).with("lead_id", Value::Null))],
            [ended(304, 6)],
        ),
        row("a fact moves", [saved(on(305, 6))], [saved(on(305, 7))], [moved(305, 7, 6)]),
        row("a fact cancels", [], [saved(cancelled(on(305, 7)))], [ended(305, 7)]),
        row("moved while cancelled", [], [saved(cancelled(on(305, 8)))], NONE),
        row("confirmed again", [], [saved(on(305, 8))], [booked(&uuid(305), 8)]),
        row("another contact", [saved(lee(390))], [saved(on(305, 8).with("lead_id", uuid(390)))], NONE),
        row(
            "another calendar",
            [saved(on(306, 9))],
            [saved(on(306, 9).with("calendar_id", uuid(OTHER_CALENDAR)))],
            NONE,
        ),
        row(
            "an older fact",
            [saved(on(307, 10))],
            [saved(cancelled(on(307, 10)).with("occurred_at", "2026-01-01T00:00:00Z"))],
            NONE,
        ),
        row("a backfill", [], [saved(on(308, 11).with("backfill", true))], NONE),
        row("another end", [saved(on(309, 8))], [saved(on(309, 8).with("ends_at", rendered(at(10))))], [longer]),
        row("a calendar", [], [saved(Fact::calendar("ada", &uuid(CALENDAR)).with("name", "Renamed"))], NONE),
        row("a workflow", [], [saved(Fact::workflow("ada", &uuid(399)))], NONE),
    ]
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
        self.world.settle().await;
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
    assert_rows(async |_| contact_rows()).await;
}

#[tokio::test]
async fn each_change_of_an_opportunity_is_one_event() {
    assert_rows(async |_| opportunity_rows()).await;
}

#[tokio::test]
async fn each_change_of_a_booking_is_one_event() {
    assert_rows(async |world| booking_rows(world.midnight_in(3).await)).await;
}
