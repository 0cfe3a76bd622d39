//! A workspace with something in every place where the service stores anything, and what is left of it.

use chrono::TimeDelta;
use domain::id::CoachId;
use domain::sandbox::id_prefix;
use serde_json::{Value, json};

use crate::crm::bookings::event;
use crate::event_feed::reader;
use crate::feed::erasure::{erased, life};
use crate::sandbox::{EVALUATE, EVENTS, send, store, visitor};
use crate::world::sweep::{automation, automation_deleted};
use crate::world::{
    CLIENT_EVENTS, Call, Caller, Coach, Endpoint, Fact, Receiver, World, bytes_of, fact, list, rendered, uuid,
};

/// Sort keys in the table `workspaces` of what stays, or is there again, each with its followers.
const STAYS: [&str; 11] = [
    "WORKSPACE",
    "SETTINGS",
    "ENDPOINT#",
    "ENDPOINTS",
    "BY_HAND#",
    "AUDIT#",
    "ERASURE#",
    "SANDBOX#",
    "PIPELINE#pipeline_test",
    "PROGRAMME#programme_test",
    "CALENDAR#",
];

pub(super) struct Tenant<'w> {
    pub(super) world: &'w World,
    pub(super) name: String,
    pub(super) coach: Coach<'w>,
    pub(super) key: Caller,
    pub(super) crm: Caller,
    pub(super) reader: Caller,
    pub(super) endpoint: Endpoint,
    /// An endpoint that was deleted after it had received events.
    deleted: Endpoint,
}

/// Registers an endpoint for all events about clients.
async fn endpoint(coach: &Coach<'_>, url: &str) -> Endpoint {
    let body = json!({ "url": url, "events": CLIENT_EVENTS, "payload_mode": "contact_details" });
    let made = coach.settings().await.post("/settings/webhooks", body).await.expect(201);
    Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() }
}

impl<'w> Tenant<'w> {
    /// A coach whom the sandbox gets to know, with keys, and with an endpoint at the receiver.
    pub(super) async fn new(world: &'w World, receiver: &Receiver, name: &str) -> Self {
        let coach = visitor(world, name);
        let (key, crm, reader) =
            (coach.partner_key().await, coach.crm_key().await, reader(&coach, "contact_details").await);
        let url = format!("{}/{name}", receiver.url());
        let (endpoint, deleted) = (endpoint(&coach, &url).await, endpoint(&coach, &format!("{url}/deleted")).await);
        Self { world, name: name.to_owned(), coach, key, crm, reader, endpoint, deleted }
    }

    /// The id of a client of the application, by its number.
    pub(super) fn client(&self, number: usize) -> String {
        format!("{}-c{number}", self.name)
    }

    /// The address of a client of the API, by its number.
    pub(super) fn email(&self, number: usize) -> String {
        format!("{number}@{}.example", self.name)
    }

    /// Creates a client through the API, with an external id, by a number.
    pub(super) fn create(&self, number: usize) -> Call {
        let body =
            json!({ "email": self.email(number), "full_name": "Grace", "external_id": format!("patient-{number}") });
        self.key.post("/v1/clients", body).idempotent(&format!("create-{number}"))
    }

    /// Sends a write of the CRM under an idempotency key of its own, and returns its body.
    async fn write(&self, path: &str, body: Value) -> Value {
        let key = format!("write-{}", self.world.number());
        self.crm.post(path, body).idempotent(&key).await.expect(201).body
    }

    /// Fills every table, by every way that leads there. Returns the id of a client of the API, whose intake names
    /// nobody else.
    pub(super) async fn fill(&self) -> String {
        let (world, name) = (self.world, self.name.as_str());
        let [c1, c2] = [self.client(1), self.client(2)];
        let now = world.now().await;
        let phases = json!([{ "name": "Base", "min_days": 1, "min_compliance_pct": null }]);
        let of_clients = |id: &str| Fact::client(name, id).with("occurred_at", rendered(now - TimeDelta::days(60)));
        store(&self.key, [of_clients(&c1), of_clients(&c2)]).await;
        store(&self.key, [life(&c1, "Base"), life(&c2, "Base")].concat()).await;
        let trigger = json!({ "event": "check_in_inactivity", "days": 3 });
        let automations = ["active", "off"].map(|id| {
            let saved = automation(name, &format!("{name}-{id}"), trigger.clone(), &[&self.endpoint]);
            saved.with("active", id == "active")
        });
        let programme = fact("programme.saved", json!({ "programme_id": format!("{name}-p"), "phases": phases }));
        store(&self.key, automations.into_iter().chain([programme])).await;
        // A tombstone of an automation that was never there.
        send(&self.key, [automation_deleted(name, &format!("{name}-gone"))]).await;
        let contact = |number: u64| {
            let email = format!("lead-{number}@{name}.example");
            Fact::contact(name, &uuid(number)).with("email", email).with("phone", format!("+1 415 555 260{number}"))
        };
        let at = world.midnight_in(3).await + TimeDelta::hours(5);
        store(
            &self.key,
            [
                contact(1),
                contact(2),
                contact(3),
                fact("contact.merged", json!({ "contact_id": uuid(3), "merged_into": uuid(2) })),
                Fact::pipeline(name),
                Fact::opportunity(name, &uuid(4), &uuid(1)),
                Fact::workflow(name, &uuid(5)),
                Fact::calendar(name, &uuid(6)),
                event(name, &uuid(7), Some(6), at, 60).with("lead_id", uuid(1)),
                event(name, &uuid(8), None, at, 3 * 24 * 60),
                erased(&c2),
            ],
        )
        .await;
        let made = self.create(1).await.expect(201);
        assert_eq!(made.body["welcome_email_sent"], true);
        let lead = self.write("/v1/crm/contacts", json!({ "name": "Lee", "email": self.email(9) })).await;
        let lead = lead["contact"]["id"].clone();
        self.write("/v1/crm/opportunities", json!({ "contactId": lead })).await;
        let slots = json!({ "leadId": lead, "calendarId": uuid(6) });
        let free = self.crm.post("/v1/crm/bookings/availability", slots).await.expect(200).body;
        let day = &free["calendars"][0]["days"][1];
        let slot = json!({ "leadId": lead, "calendarId": uuid(6), "date": day["date"], "time": day["slots"][0] });
        self.write("/v1/crm/bookings", slot).await;
        self.key.post(EVALUATE, json!({})).idempotent("evaluate").await.expect(200);
        self.key.post(EVENTS, json!({ "type": "phase_advanced", "client_id": c1 })).await.expect(202);
        world.settle().await;
        let path = format!("/settings/webhooks/{}", self.deleted.id);
        let settings = self.coach.settings().await;
        settings.delete(&path).await.expect(200);
        let body = json!({ "name": "x", "scope": "partner" });
        settings.post("/settings/keys", body).idempotent("a key").await.expect(201);
        made.str("client_id").to_owned()
    }

    /// Returns true for an item with the workspace's name, which its ids and addresses contain, with the id of an
    /// endpoint, or with the beginning of the ids under which its facts are marked.
    fn owns(&self, item: &Value) -> bool {
        let bytes = bytes_of(item);
        let of_facts = id_prefix(&CoachId::parse(&self.name).unwrap());
        let words = [&self.name, &self.endpoint.id, &self.deleted.id, &of_facts];
        words.iter().any(|word| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
    }

    /// The workspace's items, but for keys, the log of requests, and what a removal leaves: each as table and key.
    pub(super) async fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        for (table, item) in self.world.tables().await {
            let sk = item["sk"]["S"].as_str().unwrap_or_default();
            let stays = match table.as_str() {
                "keys" | "requests" => true,
                "workspaces" => STAYS.iter().any(|beginning| sk.starts_with(beginning)),
                "records" => sk == "WATCH",
                _ => false,
            };
            if !stays && self.owns(&item) {
                left.push(format!("{table} {} {sk}", item["pk"]["S"].as_str().unwrap()));
            }
        }
        left.sort();
        left
    }

    /// All of the workspace's items, except what its own requests change.
    pub(super) async fn items(&self) -> Vec<String> {
        let mut items = Vec::new();
        for (table, item) in self.world.tables().await {
            let is_own = self.owns(&item) && !["keys", "requests"].contains(&table.as_str());
            if is_own && item["sk"]["S"] != "SETTINGS" {
                items.push(format!("{table} {item}"));
            }
        }
        items.sort();
        items
    }

    /// The ids of the workspace's active calendars.
    pub(super) async fn calendars(&self) -> Vec<Value> {
        let listed = list(self.crm.get("/v1/crm/calendars").await.expect(200).body["data"].clone());
        listed.iter().map(|calendar| calendar["id"].clone()).collect()
    }
}
