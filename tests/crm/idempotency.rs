//! Idempotency of CRM writes: replays, refusals, and the scope and lifetime of a key.

use std::future::IntoFuture;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::world::{Call, Caller, Fact, Reply, World, the_one_answer, uuid};

/// Each write of the CRM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    CreateContact,
    UpdateContact,
    CreateOpportunity,
    UpdateOpportunity,
    Book,
    Reschedule,
    Cancel,
}

pub(crate) const WRITES: [Write; 7] = [
    Write::CreateContact,
    Write::UpdateContact,
    Write::CreateOpportunity,
    Write::UpdateOpportunity,
    Write::Book,
    Write::Reschedule,
    Write::Cancel,
];

impl Write {
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::CreateContact | Self::UpdateContact => "crm-contacts",
            Self::CreateOpportunity | Self::UpdateOpportunity => "crm-opportunities",
            Self::Book | Self::Reschedule | Self::Cancel => "crm-bookings",
        }
    }

    /// The type of the change that the write emits.
    fn fact(self) -> &'static str {
        match self {
            Self::CreateContact => "contact.created",
            Self::UpdateContact => "contact.updated",
            Self::CreateOpportunity => "opportunity.created",
            Self::UpdateOpportunity => "opportunity.updated",
            Self::Book => "booking.created",
            Self::Reschedule => "booking.rescheduled",
            Self::Cancel => "booking.cancelled",
        }
    }

    /// The member of the answer and of the change that holds the record.
    fn record(self) -> &'static str {
        match self {
            Self::CreateContact | Self::UpdateContact => "contact",
            Self::CreateOpportunity | Self::UpdateOpportunity => "opportunity",
            Self::Book | Self::Reschedule | Self::Cancel => "booking",
        }
    }

    pub(crate) fn status(self) -> u16 {
        match self {
            Self::CreateContact | Self::CreateOpportunity | Self::Book => 201,
            Self::UpdateContact | Self::UpdateOpportunity | Self::Reschedule | Self::Cancel => 200,
        }
    }
}

/// A prepared request with its idempotency key.
pub(crate) struct Prepared {
    pub(crate) write: Write,
    pub(crate) call: Call,
}

impl Prepared {
    pub(crate) async fn send(&self) -> Reply {
        self.call.clone().await
    }
}

/// A coach with all that the writes need.
pub(crate) struct CrmScene {
    pub(crate) world: World,
    pub(crate) key: Caller,
    began: DateTime<Utc>,
}

const CALENDAR: u64 = 1;
const LEAD: u64 = 2;

impl CrmScene {
    pub(crate) async fn start() -> Self {
        let world = World::start().await;
        let key = world.coach("ada").await.crm_key().await;
        let lead = Fact::contact("ada", &uuid(LEAD));
        world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR)), lead]).await;
        let began = world.now().await;
        Self { world, key, began }
    }

    /// A date and a time that no earlier request has used.
    fn free_hour(&self) -> (String, String) {
        let number = i64::try_from(self.world.number()).unwrap();
        let date = (self.began + TimeDelta::days(2 + number / 24)).date_naive();
        (date.to_string(), format!("{:02}:00", number % 24))
    }

    fn prepared(&self, call: Call) -> Call {
        call.idempotent(&format!("key-{}", self.world.number()))
    }

    fn new_contact(&self) -> Call {
        let number = self.world.number();
        let body = json!({ "name": format!("Contact {number}"), "email": format!("c{number}@example.com") });
        self.prepared(self.key.post("/v1/crm/contacts", body))
    }

    fn new_opportunity(&self) -> Call {
        self.prepared(self.key.post("/v1/crm/opportunities", json!({ "contactId": uuid(LEAD), "valueCents": 5 })))
    }

    fn new_booking(&self) -> Call {
        let (date, time) = self.free_hour();
        let body = json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR), "date": date, "time": time });
        self.prepared(self.key.post("/v1/crm/bookings", body))
    }

    async fn made(&self, call: Call, record: &str) -> String {
        call.await.expect(201).body[record]["id"].as_str().unwrap().to_owned()
    }

    /// Prepares a request of this kind, including its preconditions.
    pub(crate) async fn prepare(&self, write: Write) -> Prepared {
        let call = match write {
            Write::CreateContact => self.new_contact(),
            Write::UpdateContact => {
                let id = self.made(self.new_contact(), "contact").await;
                let body = json!({ "name": "Ada Lovelace", "doNotContact": true });
                self.prepared(self.key.patch(&format!("/v1/crm/contacts/{id}"), body))
            }
            Write::CreateOpportunity => self.new_opportunity(),
            Write::UpdateOpportunity => {
                let id = self.made(self.new_opportunity(), "opportunity").await;
                let body = json!({ "stage": "lost", "lostReason": "Too far away" });
                self.prepared(self.key.patch(&format!("/v1/crm/opportunities/{id}"), body))
            }
            Write::Book => self.new_booking(),
            Write::Reschedule => {
                let id = self.made(self.new_booking(), "booking").await;
                let (date, time) = self.free_hour();
                let body = json!({ "leadId": uuid(LEAD), "date": date, "time": time });
                self.prepared(self.key.patch(&format!("/v1/crm/bookings/{id}"), body))
            }
            Write::Cancel => {
                let id = self.made(self.new_booking(), "booking").await;
                let path = format!("/v1/crm/bookings/{id}");
                self.prepared(self.key.delete(&path).json(&json!({ "leadId": uuid(LEAD) })))
            }
        };
        Prepared { write, call }
    }

    /// Asserts that the write was done once, that `reply` is replayed and that one change was emitted.
    pub(crate) async fn assert_done_once(&self, prepared: &Prepared, reply: &Reply) {
        let write = prepared.write;
        assert_eq!(reply.status, write.status(), "{write:?}: {}", reply.text);
        assert_replay_of(&prepared.send().await, reply);
        self.world.settle().await;
        let record = &reply.body[write.record()];
        let emitted = self.world.changes(write.fact()).await;
        let emitted: Vec<&Value> =
            emitted.iter().map(|fact| &fact[write.record()]).filter(|emitted| emitted["id"] == record["id"]).collect();
        assert_eq!(emitted, [record], "{write:?}");
    }
}

/// Asserts that `replay` repeats the answer `first` and is marked as a replay.
#[track_caller]
pub(crate) fn assert_replay_of(replay: &Reply, first: &Reply) {
    assert!(replay.is_replay(), "{}", replay.text);
    assert_eq!((replay.status, &replay.text), (first.status, &first.text));
}

#[tokio::test]
async fn every_write_is_done_once_and_its_answer_is_replayed_byte_for_byte() {
    let scene = CrmScene::start().await;
    for write in WRITES {
        let prepared = scene.prepare(write).await;
        let first = prepared.send().await;
        assert!(!first.is_replay());
        for _ in 0..2 {
            scene.assert_done_once(&prepared, &first).await;
        }
    }
}

#[tokio::test]
async fn of_sixteen_simultaneous_requests_with_one_key_one_writes_and_the_others_replay() {
    let scene = CrmScene::start().await;
    for write in WRITES {
        let prepared = scene.prepare(write).await;
        let replies = futures::future::join_all((0..16).map(|_| prepared.call.clone().into_future())).await;
        scene.assert_done_once(&prepared, the_one_answer(&replies)).await;
    }
}

#[tokio::test]
async fn refusals_are_replayed_too() {
    let scene = CrmScene::start().await;
    let nobody = uuid(999);
    let date = scene.free_hour().0;
    for (method, path, body, status) in [
        ("POST", "/v1/crm/contacts".to_owned(), json!({ "name": "Ada" }), 400),
        ("PATCH", format!("/v1/crm/contacts/{nobody}"), json!({ "name": "Ada" }), 404),
        ("PATCH", "/v1/crm/contacts/nobody".to_owned(), json!({ "name": "Ada" }), 400),
        ("POST", "/v1/crm/opportunities".to_owned(), json!({ "contactId": nobody }), 404),
        ("PATCH", format!("/v1/crm/opportunities/{nobody}"), json!({ "name": "Ada" }), 404),
        (
            "POST",
            "/v1/crm/bookings".to_owned(),
            json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR), "date": date, "time": "10:30" }),
            409,
        ),
        ("DELETE", format!("/v1/crm/bookings/{nobody}"), json!({ "leadId": uuid(LEAD) }), 404),
    ] {
        let call = scene.prepared(scene.key.call(method, &path).json(&body));
        let first = call.clone().await;
        assert_eq!(first.status, status, "{method} {path}: {}", first.text);
        assert!(!first.is_replay());
        assert_replay_of(&call.await, &first);
    }
    let broken = scene.prepared(scene.key.post("/v1/crm/contacts", json!({})).body("{\"name\":"));
    let first = broken.clone().await.refused(400, "invalid_request");
    assert_replay_of(&broken.await, &first);
}

#[tokio::test]
async fn another_payload_under_a_key_is_refused_but_the_order_of_members_is_ignored() {
    let scene = CrmScene::start().await;
    let send = |body: &str| scene.key.post("/v1/crm/contacts", json!({})).body(body.to_owned()).idempotent("one");
    let first = send(r#"{"name":"Ada","email":"ada@example.com"}"#).await.expect(201);
    assert_replay_of(&send(r#"{ "email": "ada@example.com", "name": "Ada" }"#).await, &first);
    for other in [r#"{"name":"Ada B","email":"ada@example.com"}"#, r#"{"name":"Ada"}"#, "{}", "", "{"] {
        let reply = send(other).await.refused(409, "idempotency_payload_mismatch");
        assert_eq!((reply.header("retry-after"), reply.is_replay()), (None, false));
    }
    assert_replay_of(&send(r#"{"name":"Ada","email":"ada@example.com"}"#).await, &first);
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_method_and_path() {
    let scene = CrmScene::start().await;
    let [one, other] =
        [scene.made(scene.new_contact(), "contact").await, scene.made(scene.new_contact(), "contact").await];
    let name = json!({ "name": "Ada" });
    scene.key.patch(&format!("/v1/crm/contacts/{one}"), name.clone()).idempotent("one").await.expect(200);
    for (method, path) in [
        ("PATCH", format!("/v1/crm/contacts/{other}")),
        ("PATCH", format!("/v1/crm/opportunities/{one}")),
        ("POST", "/v1/crm/contacts".to_owned()),
        ("DELETE", format!("/v1/crm/bookings/{one}")),
    ] {
        let call = scene.key.call(method, &path).json(&name).idempotent("one");
        call.await.refused(409, "idempotency_payload_mismatch");
    }
    let listed = scene.key.get("/v1/crm/contacts").await.expect(200);
    let named: Vec<&Value> =
        listed.body["data"].as_array().unwrap().iter().filter(|contact| contact["name"] == "Ada").collect();
    assert_eq!(named.len(), 1);
}

#[tokio::test]
async fn an_idempotency_key_is_shared_by_a_coachs_api_keys_and_by_nobody_else() {
    let scene = CrmScene::start().await;
    let body = json!({ "name": "Ada", "email": "ada@example.com" });
    let post = |key: &Caller| key.post("/v1/crm/contacts", body.clone()).idempotent("one");
    let first = post(&scene.key).await.expect(201);
    let ada = scene.world.coach("ada").await;
    assert_replay_of(&post(&ada.crm_key().await).await, &first);
    let bob = scene.world.coach("bob").await;
    let theirs = post(&bob.crm_key().await).await.expect(201);
    assert!(!theirs.is_replay());
    assert_ne!(theirs.body["contact"]["id"], first.body["contact"]["id"]);
    // The partner API has keys of its own.
    let client = ada.partner_key().await.post("/v1/clients", json!({ "email": "x@example.com" })).idempotent("one");
    assert!(!client.await.expect(201).is_replay());
    // A key without the permission does not get another key's recorded answer.
    ada.crm_key_with(&["contacts.read"])
        .await
        .post("/v1/crm/contacts", body.clone())
        .idempotent("one")
        .await
        .refused(403, "permission_missing");
}

#[tokio::test]
async fn an_idempotency_key_expires_after_24_hours() {
    let scene = CrmScene::start().await;
    let prepared = scene.prepare(Write::CreateOpportunity).await;
    let first = prepared.send().await.expect(201);
    scene.world.advance_s(24 * 3600 - 60).await;
    assert_replay_of(&prepared.send().await, &first);
    scene.world.advance_s(61).await;
    let again = prepared.send().await.expect(201);
    assert!(!again.is_replay());
    assert_ne!(again.body["opportunity"]["id"], first.body["opportunity"]["id"]);
    let other = scene.key.post("/v1/crm/opportunities", json!({ "contactId": uuid(LEAD) })).idempotent("older");
    other.await.expect(201);
    scene.world.advance_s(24 * 3600 + 1).await;
    let changed =
        scene.key.post("/v1/crm/opportunities", json!({ "contactId": uuid(LEAD), "name": "New" })).idempotent("older");
    assert_eq!(changed.await.expect(201).body["opportunity"]["name"], "New");
}

#[tokio::test]
async fn recorded_answers_are_unreadable_in_the_table() {
    let scene = CrmScene::start().await;
    let body = json!({ "name": "Zaphod Beeblebrox", "email": "zaphod@example.com" });
    scene.key.post("/v1/crm/contacts", body).idempotent("one-two-three").await.expect(201);
    let claims = scene.world.table("idempotency").await;
    assert_eq!(claims.len(), 1);
    let stored = claims[0].to_string();
    for plain in ["Zaphod", "zaphod", "one-two-three"] {
        assert!(!stored.contains(plain), "{stored}");
    }
}

#[tokio::test]
async fn an_idempotency_key_of_unconfirmed_work_accepts_its_payload_only() {
    let scene = CrmScene::start().await;
    let world = &scene.world;
    let body = |name: &str, key: &str| json!({ "name": name, "email": format!("{key}@example.com") });
    let send = async |name: &str, key: &str| scene.key.post("/v1/crm/contacts", body(name, key)).idempotent(key).await;
    let mut unconfirmed = 0;
    for spared_calls in 0..6 {
        let key = format!("key-{spared_calls}");
        let claims = world.table("idempotency").await.len();
        world
            .faults(json!({ "function": "crm-contacts", "spared_calls": spared_calls, "store_conflicts": 1_000 }))
            .await;
        let first = send("Lee", &key).await;
        world.faults(json!({ "function": "", "spared_calls": 0, "store_conflicts": 0 })).await;
        if first.status == 201 || world.table("idempotency").await.len() == claims {
            continue;
        }
        first.refused(503, "unconfirmed");
        unconfirmed += 1;
        send("Kim", &key).await.refused(409, "idempotency_payload_mismatch");
        world.advance_s(61).await;
        send("Kim", &key).await.refused(409, "idempotency_payload_mismatch");
        assert_eq!(send("Lee", &key).await.expect(201).body["contact"]["name"], "Lee");
    }
    assert!(unconfirmed > 0);
}
