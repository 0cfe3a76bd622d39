//! The table of all writes that take an idempotency key, one row each, and the world that the rows share.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use edge::routes::{Access, ROUTES};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::world::{Call, Caller, Fact, Receiver, Reply, World, list, uuid};

/// Path and JSON body of a request. `null` stands for no body.
type Request = (String, Value);
/// Numbers of records, attempts and changes, by name.
pub(super) type Counts = BTreeMap<String, usize>;

/// A write. Rows in the order of `ROUTES`, since the endpoints of the settings also receive what other rows emit.
pub(super) struct Row {
    pub(super) route: &'static str,
    /// Creates what the request needs.
    prepare: for<'s> fn(&'s Scene) -> BoxFuture<'s, Request>,
    status: u16,
    /// The effect of one request.
    effect: &'static [(&'static str, usize)],
    /// The write commits more than once, so a repeat after a crash has to continue it.
    pub(super) has_stages: bool,
}

const fn row(
    route: &'static str,
    prepare: for<'s> fn(&'s Scene) -> BoxFuture<'s, Request>,
    status: u16,
    effect: &'static [(&'static str, usize)],
) -> Row {
    Row { route, prepare, status, effect, has_stages: false }
}

const fn staged(row: Row) -> Row {
    Row { has_stages: true, ..row }
}

const CLIENT: &[(&str, usize)] = &[("client.created", 1), ("clients", 1), ("intakes", 1)];
pub(super) const CREATE: &str = "POST /v1/clients";
const ROTATE_SECRET: &str = "POST /settings/webhooks/{id}/rotate-secret";
pub(super) const TEST: &str = "POST /settings/webhooks/{id}/test";
pub(super) const RECOVER: &str = "POST /settings/webhooks/{id}/recover";
pub(super) const RETRY: &str = "POST /settings/webhooks/{id}/deliveries/{delivery_id}/retry";

pub(super) const ROWS: &[Row] = &[
    row(CREATE, |scene| scene.new_client(false).boxed(), 201, CLIENT),
    staged(row(CREATE, |scene| scene.new_client(true).boxed(), 201, CLIENT)),
    row("POST /v1/crm/contacts", |scene| scene.new_contact().boxed(), 201, &[("contact.created", 1)]),
    row("PATCH /v1/crm/contacts/{id}", |scene| scene.contact().boxed(), 200, &[("contact.updated", 1)]),
    row("POST /v1/crm/opportunities", |scene| scene.new_deal().boxed(), 201, &[("opportunity.created", 1)]),
    row("PATCH /v1/crm/opportunities/{id}", |scene| scene.deal().boxed(), 200, &[("opportunity.updated", 1)]),
    row("POST /v1/crm/bookings", |scene| scene.new_booking().boxed(), 201, &[("booking.created", 1)]),
    row("PATCH /v1/crm/bookings/{id}", |scene| scene.move_of().boxed(), 200, &[("booking.rescheduled", 1)]),
    row("DELETE /v1/crm/bookings/{id}", |scene| scene.cancellation().boxed(), 200, &[("booking.cancelled", 1)]),
    row("POST /settings/keys", |scene| scene.new_key().boxed(), 201, &[("keys", 1)]),
    row("POST /settings/keys/{id}/rotate", |scene| scene.rotation().boxed(), 201, &[("keys", 1)]),
    row("POST /settings/webhooks", |scene| scene.new_endpoint().boxed(), 201, &[("endpoints", 1), ("secrets", 1)]),
    row(ROTATE_SECRET, |scene| scene.of_endpoint("rotate-secret").boxed(), 200, &[("secrets", 1)]),
    row(TEST, |scene| scene.of_endpoint("test").boxed(), 202, &[("attempts", 1), ("deliveries", 1)]),
    row(RECOVER, |scene| scene.recovery().boxed(), 202, &[("attempts", 1)]),
    row(RETRY, |scene| scene.retry().boxed(), 202, &[("attempts", 1)]),
];

impl Row {
    pub(super) fn access(&self) -> Access {
        ROUTES.iter().find(|route| route.to_string() == self.route).expect("a route of the service").access
    }

    pub(super) fn is_crm(&self) -> bool {
        matches!(self.access(), Access::Crm(_))
    }

    pub(super) fn is_partner(&self) -> bool {
        matches!(self.access(), Access::Partner(_))
    }

    pub(super) fn method(&self) -> &'static str {
        self.route.split(' ').next().unwrap()
    }

    /// The function that serves the route.
    pub(super) fn function(&self) -> &'static str {
        match self.route.split('/').skip(1).take(3).collect::<Vec<_>>()[..] {
            ["v1", "clients"] => "clients",
            ["v1", "crm", "contacts"] => "crm-contacts",
            ["v1", "crm", "opportunities"] => "crm-opportunities",
            ["v1", "crm", "bookings"] => "crm-bookings",
            ["settings", ..] => "settings",
            _ => panic!("no function for {}", self.route),
        }
    }

    /// Fewest calls of a request: authentication, claim, reads, transaction.
    pub(super) fn fewest_calls(&self) -> usize {
        match self.access() {
            Access::Partner(_) => 5,
            Access::Session => 4,
            Access::Crm(_) | Access::Events | Access::Public => 3,
        }
    }

    /// Asserts the answer to a request whose store does not answer: the write may be done or not.
    #[track_caller]
    pub(super) fn assert_unanswered(&self, reply: &Reply) {
        assert!(!reply.is_replay());
        if self.is_crm() {
            assert_eq!(reply.clone().refused(503, "unconfirmed").header("retry-after"), Some("5"));
        } else {
            reply.clone().refused(500, "internal");
        }
    }

    /// Asserts the answer to another payload under the key of `first`.
    #[track_caller]
    pub(super) fn assert_mismatch(&self, reply: &Reply, first: &Reply) {
        if self.is_partner() {
            assert_replay_of(reply, first);
            assert_eq!(reply.header("idempotency-payload-mismatch"), Some("true"));
        } else {
            let refused = reply.clone().refused(409, "idempotency_payload_mismatch");
            assert_eq!((refused.header("retry-after"), refused.is_replay()), (None, false));
        }
    }
}

/// The row of a route.
pub(super) fn row_of(route: &str) -> &'static Row {
    ROWS.iter().find(|row| row.route == route).unwrap()
}

/// A request whose preconditions hold, with an idempotency key of its own.
pub(super) struct Prepared {
    pub(super) row: &'static Row,
    pub(super) key: String,
    pub(super) call: Call,
    pub(super) body: Value,
    before: Counts,
}

impl Prepared {
    pub(super) async fn send(&self) -> Reply {
        self.call.clone().await
    }

    /// The request with another body, whose type stays JSON.
    pub(super) async fn send_body(&self, body: &str) -> Reply {
        self.call.clone().header("content-type", "application/json").body(body.to_owned()).await
    }

    /// The request under another key.
    pub(super) async fn send_under(&self, key: &str) -> Reply {
        self.call.clone().idempotent(key).await
    }
}

/// A coach with a receiver, a calendar, a pipeline and a contact, and a caller of each API.
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) receiver: Receiver,
    pub(super) settings: Caller,
    pub(super) crm: Caller,
    pub(super) partner: Caller,
    pub(super) kept_endpoints: usize,
    began: DateTime<Utc>,
}

pub(super) const CALENDAR: u64 = 1;
pub(super) const LEAD: u64 = 2;
/// Endpoints that a scene keeps, so that few receive the events of its preparations.
const KEPT_ENDPOINTS: usize = 2;

impl Scene {
    pub(super) async fn start() -> Self {
        let world = World::start().await;
        let ada = world.coach("ada").await;
        let (settings, crm, partner) = (ada.settings().await, ada.crm_key().await, ada.partner_key().await);
        let lead = Fact::contact("ada", &uuid(LEAD));
        world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR)), lead]).await;
        let began = world.now().await;
        Self { world, receiver: Receiver::start().await, settings, crm, partner, kept_endpoints: KEPT_ENDPOINTS, began }
    }

    pub(super) fn caller(&self, row: &Row) -> &Caller {
        match row.access() {
            Access::Partner(_) => &self.partner,
            Access::Crm(_) => &self.crm,
            Access::Session => &self.settings,
            Access::Events | Access::Public => panic!("{} writes nothing", row.route),
        }
    }

    /// Prepares a request of this row.
    pub(super) async fn prepare(&self, row: &'static Row) -> Prepared {
        if row.access() == Access::Session {
            self.world.advance_to_next_minute().await;
        }
        let (path, body) = (row.prepare)(self).await;
        let key = format!("action-of-a-coach-{}", self.world.number());
        let call = self.caller(row).call(row.method(), &path).idempotent(&key);
        let call = if body.is_null() { call } else { call.json(&body) };
        self.world.settle().await;
        Prepared { row, key, call, body, before: self.counts(row).await }
    }

    /// The same request in another minute, whose effect counts from now on.
    pub(super) async fn again(&self, prepared: Prepared) -> Prepared {
        self.world.advance_to_next_minute().await;
        Prepared { before: self.counts(prepared.row).await, ..prepared }
    }

    /// The records, attempts and published changes that a write of this API may add to.
    async fn counts(&self, row: &Row) -> Counts {
        let mut counts = Counts::new();
        let mut add = |name: &str, number: usize| *counts.entry(name.to_owned()).or_default() += number;
        let total =
            |items: &[Value], name: &str| items.iter().map(|item| item[name]["L"].as_array().unwrap().len()).sum();
        if row.access() == Access::Session {
            let mut endpoints = self.world.items("workspaces", "COACH#").await;
            endpoints.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("ENDPOINT#"));
            let mut deliveries = self.world.table("deliveries").await;
            deliveries.retain(|item| item["attempts"].is_object());
            add("keys", self.world.items("keys", "KEY#").await.len());
            add("endpoints", endpoints.len());
            add("secrets", total(&endpoints, "secrets"));
            add("deliveries", deliveries.len());
            add("attempts", total(&deliveries, "attempts"));
            return counts;
        }
        let changes = self.world.anonymous().get("/_local/events?source=partner-api&limit=1000").await.expect(200);
        list(changes.body).iter().for_each(|change| add(change["detail-type"].as_str().unwrap(), 1));
        if row.is_partner() {
            add("clients", self.world.items("clients", "CLIENT#").await.len());
            add("intakes", self.world.items("clients", "INTAKE#").await.len());
        }
        counts
    }

    /// The effect of all requests since the preparation.
    pub(super) async fn effect_of(&self, prepared: &Prepared) -> Counts {
        self.world.settle().await;
        let mut now = self.counts(prepared.row).await;
        for (name, number) in &mut now {
            *number = number.saturating_sub(prepared.before.get(name).copied().unwrap_or_default());
        }
        now.retain(|_, number| *number > 0);
        now
    }

    pub(super) async fn assert_no_effect(&self, prepared: &Prepared) {
        assert_eq!(self.effect_of(prepared).await, Counts::new(), "{}", prepared.row.route);
    }

    /// Asserts that the request took effect once, and that `reply` is replayed.
    pub(super) async fn assert_done_once(&self, prepared: &Prepared, reply: &Reply) {
        let row = prepared.row;
        assert_eq!(reply.status, row.status, "{}: {}", row.route, reply.text);
        assert_replay_of(&prepared.send().await, reply);
        let expected: Counts = row.effect.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        assert_eq!(self.effect_of(prepared).await, expected, "{}", row.route);
        if row.is_crm() {
            let change = row.effect[0].0;
            let member = change.split('.').next().unwrap();
            let record = &reply.body[member];
            let emitted = self.world.changes(change).await;
            let emitted: Vec<&Value> = emitted.iter().map(|change| &change[member]).collect();
            let about = emitted.into_iter().filter(|emitted| emitted["id"] == record["id"]);
            assert_eq!(about.collect::<Vec<_>>(), [record], "{}", row.route);
        }
    }

    /// Asserts that an answer without credentials has sent one mail, and another answer none.
    pub(super) async fn assert_mailed_once(&self, reply: &Reply) {
        let mails = self.world.mail().await.into_iter().filter(|mail| mail["to"] == reply.body["email"]).count();
        assert_eq!(mails, usize::from(reply.body["welcome_email_sent"] == true), "{}", reply.text);
    }

    async fn new_client(&self, send_welcome: bool) -> Request {
        let email = format!("client{}@example.com", self.world.number());
        ("/v1/clients".to_owned(), json!({ "email": email, "send_welcome": send_welcome }))
    }

    /// A date and a time that no earlier request has used.
    pub(super) fn free_hour(&self) -> (String, String) {
        let number = i64::try_from(self.world.number()).unwrap();
        let date = (self.began + TimeDelta::days(2 + number / 24)).date_naive();
        (date.to_string(), format!("{:02}:00", number % 24))
    }

    /// Creates a record of the CRM. Returns its path.
    async fn made(&self, (path, body): Request, record: &str) -> String {
        let call = self.crm.post(&path, body).idempotent(&format!("made-{}", self.world.number()));
        format!("{path}/{}", call.await.expect(201).body[record]["id"].as_str().unwrap())
    }

    async fn new_contact(&self) -> Request {
        let number = self.world.number();
        let body = json!({ "name": format!("Contact {number}"), "email": format!("c{number}@example.com") });
        ("/v1/crm/contacts".to_owned(), body)
    }

    async fn contact(&self) -> Request {
        let path = self.made(self.new_contact().await, "contact").await;
        (path, json!({ "name": "Ada Lovelace", "doNotContact": true }))
    }

    async fn new_deal(&self) -> Request {
        ("/v1/crm/opportunities".to_owned(), json!({ "contactId": uuid(LEAD), "valueCents": self.world.number() }))
    }

    async fn deal(&self) -> Request {
        let path = self.made(self.new_deal().await, "opportunity").await;
        (path, json!({ "stage": "lost", "lostReason": "Too far away" }))
    }

    async fn new_booking(&self) -> Request {
        let (date, time) = self.free_hour();
        let body = json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR), "date": date, "time": time });
        ("/v1/crm/bookings".to_owned(), body)
    }

    async fn move_of(&self) -> Request {
        let path = self.made(self.new_booking().await, "booking").await;
        let (date, time) = self.free_hour();
        (path, json!({ "leadId": uuid(LEAD), "date": date, "time": time }))
    }

    async fn cancellation(&self) -> Request {
        (self.made(self.new_booking().await, "booking").await, json!({ "leadId": uuid(LEAD) }))
    }

    pub(super) async fn new_key(&self) -> Request {
        let name = format!("Desk {}", self.world.number());
        let events = json!({ "types": ["new_client"], "payload_mode": "identifiers" });
        let body = json!({ "name": name, "scope": "partner", "permissions": ["clients.read"], "events": events });
        ("/settings/keys".to_owned(), body)
    }

    async fn rotation(&self) -> Request {
        let (path, body) = self.new_key().await;
        let id = self.settings.post(&path, body).await.expect(201).str("id").to_owned();
        (format!("{path}/{id}/rotate"), Value::Null)
    }

    pub(super) async fn new_endpoint(&self) -> Request {
        let listed = self.settings.get("/settings/webhooks").await.expect(200);
        let mut endpoints = list(listed.body["endpoints"].clone());
        endpoints.sort_by_key(|endpoint| endpoint["created_at"].to_string());
        for surplus in endpoints.iter().take(endpoints.len().saturating_sub(self.kept_endpoints)) {
            let path = format!("/settings/webhooks/{}", surplus["id"].as_str().unwrap());
            assert!(self.settings.delete(&path).await.status < 300);
        }
        let description = format!("Endpoint {}", self.world.number());
        let mut body = json!({ "url": self.receiver.url(), "events": ["new_client"], "payload_mode": "identifiers" });
        body["description"] = description.into();
        ("/settings/webhooks".to_owned(), body)
    }

    /// Registers an endpoint with a failed delivery. Returns the paths of both.
    pub(super) async fn failed_delivery(&self) -> (String, String) {
        let (path, body) = self.new_endpoint().await;
        let endpoint = format!("{path}/{}", self.settings.post(&path, body).await.expect(201).str("id"));
        self.settings.patch(&endpoint, json!({ "enabled": false })).await.expect(200);
        self.world.apply([Fact::client("ada", &format!("c{}", self.world.number()))]).await;
        self.settings.patch(&endpoint, json!({ "enabled": true })).await.expect(200);
        let log = self.settings.get(&format!("{endpoint}/deliveries")).await.expect(200);
        let delivery = format!("{endpoint}/deliveries/{}", log.body["data"][0]["id"].as_str().unwrap());
        (endpoint, delivery)
    }

    async fn of_endpoint(&self, action: &str) -> Request {
        (format!("{}/{action}", self.failed_delivery().await.0), json!({}))
    }

    async fn recovery(&self) -> Request {
        (format!("{}/recover", self.failed_delivery().await.0), json!({ "since": "2026-01-01T00:00:00Z" }))
    }

    async fn retry(&self) -> Request {
        (format!("{}/retry", self.failed_delivery().await.1), json!({}))
    }
}

/// Asserts that `replay` repeats the answer `first` and is marked as a replay.
#[track_caller]
pub(super) fn assert_replay_of(replay: &Reply, first: &Reply) {
    assert!(replay.is_replay(), "{}", replay.text);
    assert_eq!((replay.status, &replay.text), (first.status, &first.text));
    assert_eq!(replay.header("retry-after"), None);
}
