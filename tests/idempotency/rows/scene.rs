//! The world that the rows share, and the requests that it prepares.

use chrono::{DateTime, TimeDelta, Utc};
use edge::routes::Access;
use serde_json::{Value, json};

use super::{Counts, Prepared, Request, Row, assert_replay_of};
use crate::world::{Caller, Fact, Receiver, Reply, World, list, uuid};

/// A coach with a receiver, a calendar, a pipeline and a contact, and a caller of each API.
pub(in crate::idempotency) struct Scene {
    pub(in crate::idempotency) world: World,
    pub(in crate::idempotency) receiver: Receiver,
    pub(in crate::idempotency) settings: Caller,
    pub(in crate::idempotency) crm: Caller,
    pub(in crate::idempotency) partner: Caller,
    pub(in crate::idempotency) kept_endpoints: usize,
    began: DateTime<Utc>,
}

pub(in crate::idempotency) const CALENDAR: u64 = 1;
pub(in crate::idempotency) const LEAD: u64 = 2;
/// Endpoints that a scene keeps, so that few receive the events of its preparations.
const KEPT_ENDPOINTS: usize = 2;

impl Scene {
    pub(in crate::idempotency) async fn start() -> Self {
        let world = World::start().await;
        let ada = world.coach("ada").await;
        let (settings, crm, partner) = (ada.settings().await, ada.crm_key().await, ada.partner_key().await);
        let lead = Fact::contact("ada", &uuid(LEAD));
        world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR)), lead]).await;
        let began = world.now().await;
        Self { world, receiver: Receiver::start().await, settings, crm, partner, kept_endpoints: KEPT_ENDPOINTS, began }
    }

    pub(in crate::idempotency) fn caller(&self, row: &Row) -> &Caller {
        match row.access() {
            Access::Partner(_) => &self.partner,
            Access::Crm(_) => &self.crm,
            Access::Session => &self.settings,
            Access::Events | Access::AnyKey | Access::Sandbox | Access::Assistant | Access::Public => {
                panic!("{} writes nothing", row.route)
            }
        }
    }

    /// Prepares a request of this row.
    pub(in crate::idempotency) async fn prepare(&self, row: &'static Row) -> Prepared {
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
    pub(in crate::idempotency) async fn again(&self, prepared: Prepared) -> Prepared {
        self.world.advance_to_next_minute().await;
        Prepared { before: self.counts(prepared.row).await, ..prepared }
    }

    /// The records, attempts and published changes that a write of this API may add to.
    pub(super) async fn counts(&self, row: &Row) -> Counts {
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
    pub(in crate::idempotency) async fn effect_of(&self, prepared: &Prepared) -> Counts {
        self.world.settle().await;
        let mut now = self.counts(prepared.row).await;
        for (name, number) in &mut now {
            *number = number.saturating_sub(prepared.before.get(name).copied().unwrap_or_default());
        }
        now.retain(|_, number| *number > 0);
        now
    }

    pub(in crate::idempotency) async fn assert_no_effect(&self, prepared: &Prepared) {
        assert_eq!(self.effect_of(prepared).await, Counts::new(), "{}", prepared.row.route);
    }

    /// Asserts that the request took effect once, and that `reply` is replayed.
    pub(in crate::idempotency) async fn assert_done_once(&self, prepared: &Prepared, reply: &Reply) {
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
    pub(in crate::idempotency) async fn assert_mailed_once(&self, reply: &Reply) {
        let mails = self.world.mail().await.into_iter().filter(|mail| mail["to"] == reply.body["email"]).count();
        assert_eq!(mails, usize::from(reply.body["welcome_email_sent"] == true), "{}", reply.text);
    }

    pub(super) async fn new_client(&self, send_welcome: bool) -> Request {
        let email = format!("client{}@example.com", self.world.number());
        ("/v1/clients".to_owned(), json!({ "email": email, "send_welcome": send_welcome }))
    }

    /// A date and a time that no earlier request has used.
    pub(in crate::idempotency) fn free_hour(&self) -> (String, String) {
        let number = i64::try_from(self.world.number()).unwrap();
        let date = (self.began + TimeDelta::days(2 + number / 24)).date_naive();
        (date.to_string(), format!("{:02}:00", number % 24))
    }

    /// Creates a record of the CRM. Returns its path.
    pub(super) async fn made(&self, (path, body): Request, record: &str) -> String {
        let call = self.crm.post(&path, body).idempotent(&format!("made-{}", self.world.number()));
        format!("{path}/{}", call.await.expect(201).body[record]["id"].as_str().unwrap())
    }

    pub(super) async fn new_contact(&self) -> Request {
        let number = self.world.number();
        let body = json!({ "name": format!("Contact {number}"), "email": format!("c{number}@example.com") });
        ("/v1/crm/contacts".to_owned(), body)
    }

    pub(super) async fn contact(&self) -> Request {
        let path = self.made(self.new_contact().await, "contact").await;
        (path, json!({ "name": "Ada Lovelace", "doNotContact": true }))
    }

    pub(super) async fn new_deal(&self) -> Request {
        ("/v1/crm/opportunities".to_owned(), json!({ "contactId": uuid(LEAD), "valueCents": self.world.number() }))
    }

    pub(super) async fn deal(&self) -> Request {
        let path = self.made(self.new_deal().await, "opportunity").await;
        (path, json!({ "stage": "lost", "lostReason": "Too far away" }))
    }

    pub(super) async fn new_booking(&self) -> Request {
        let (date, time) = self.free_hour();
        let body = json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR), "date": date, "time": time });
        ("/v1/crm/bookings".to_owned(), body)
    }

    pub(super) async fn move_of(&self) -> Request {
        let path = self.made(self.new_booking().await, "booking").await;
        let (date, time) = self.free_hour();
        (path, json!({ "leadId": uuid(LEAD), "date": date, "time": time }))
    }

    pub(super) async fn cancellation(&self) -> Request {
        (self.made(self.new_booking().await, "booking").await, json!({ "leadId": uuid(LEAD) }))
    }

    pub(in crate::idempotency) async fn new_key(&self) -> Request {
        let name = format!("Desk {}", self.world.number());
        let events = json!({ "types": ["new_client"], "payload_mode": "identifiers" });
        let body = json!({ "name": name, "scope": "partner", "permissions": ["clients.read"], "events": events });
        ("/settings/keys".to_owned(), body)
    }

    pub(super) async fn rotation(&self) -> Request {
        let (path, body) = self.new_key().await;
        let id = self.settings.post(&path, body).await.expect(201).str("id").to_owned();
        (format!("{path}/{id}/rotate"), Value::Null)
    }

    pub(in crate::idempotency) async fn new_endpoint(&self) -> Request {
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
    pub(in crate::idempotency) async fn failed_delivery(&self) -> (String, String) {
        let (path, body) = self.new_endpoint().await;
        let endpoint = format!("{path}/{}", self.settings.post(&path, body).await.expect(201).str("id"));
        self.settings.patch(&endpoint, json!({ "enabled": false })).await.expect(200);
        self.world.apply([Fact::client("ada", &format!("c{}", self.world.number()))]).await;
        self.settings.patch(&endpoint, json!({ "enabled": true })).await.expect(200);
        let log = self.settings.get(&format!("{endpoint}/deliveries")).await.expect(200);
        let delivery = format!("{endpoint}/deliveries/{}", log.body["data"][0]["id"].as_str().unwrap());
        (endpoint, delivery)
    }

    pub(super) async fn of_endpoint(&self, action: &str) -> Request {
        (format!("{}/{action}", self.failed_delivery().await.0), json!({}))
    }

    pub(super) async fn recovery(&self) -> Request {
        (format!("{}/recover", self.failed_delivery().await.0), json!({ "since": "2026-01-01T00:00:00Z" }))
    }

    pub(super) async fn retry(&self) -> Request {
        (format!("{}/retry", self.failed_delivery().await.1), json!({}))
    }
}
