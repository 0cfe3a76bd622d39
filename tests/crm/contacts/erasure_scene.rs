//! A coach whose contacts are erased while deliveries of their events wait, and the facts of a contact's life.

use serde_json::{Value, json};

use crate::crm::contacts::{CONTACTS, patch, post, stored};
use crate::crm::events::endpoint;
use crate::event_feed::{reader_of, whole_feed};
use crate::feed::erasure::{MARK, erased};
use crate::world::{
    Answer, CRM_EVENTS, Caller, Endpoint, Fact, Hook, PIPELINE, Receiver, Reply, World, fact, members, uuid,
};

pub(super) const CALENDAR: u64 = 900;
/// Longer than the retry chain of a delivery.
const CHAIN_S: u64 = 30 * 3_600;
/// Parts of the personal data of a contact that [`contact`] makes.
const PERSONAL: [&str; 3] = [MARK, "4155552671", "555 2671"];

/// A coach with an endpoint and a reader of the event feed for each payload mode. Her receiver fails every request and
/// echoes its body, so that deliveries of events wait.
pub(crate) struct ContactErasureScene {
    pub(crate) world: World,
    pub(crate) key: Caller,
    pub(crate) receiver: Receiver,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(super) partner: Caller,
    readers: Vec<Caller>,
    began_at: String,
}

impl ContactErasureScene {
    pub(crate) async fn new() -> Self {
        Self::of(&["contact_details"]).await
    }

    pub(crate) async fn of(modes: &[&str]) -> Self {
        let (world, receiver) = (World::start().await, Receiver::start().await);
        receiver.otherwise(Answer::echo(500));
        let ada = world.coach("ada").await;
        let (mut endpoints, mut readers) = (Vec::new(), Vec::new());
        for mode in modes {
            endpoints.push(endpoint(&ada, &receiver, &CRM_EVENTS, mode).await);
            readers.push(reader_of(&ada, &CRM_EVENTS, mode).await);
        }
        let (key, partner) = (ada.crm_key().await, ada.partner_key().await);
        let began_at = world.timestamp_in(0).await;
        world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR))]).await;
        Self { key, partner, receiver, endpoints, readers, began_at, world }
    }

    /// Creates a client from the contact with that number.
    pub(crate) async fn client_of(&self, number: u64) -> String {
        let body = json!({ "email": email(number), "full_name": MARK, "send_welcome": false });
        let made = self.partner.post("/v1/clients", body).await.expect(201);
        self.world.settle().await;
        made.str("client_id").to_owned()
    }

    /// Applies facts one after the other, each later than the one before.
    pub(crate) async fn apply_in_order(&self, facts: impl IntoIterator<Item = Fact>) {
        for fact in facts {
            self.world.apply([fact]).await;
            self.world.advance_s(1).await;
        }
    }

    /// The feeds of all readers.
    pub(crate) async fn feeds(&self) -> Vec<Vec<Value>> {
        futures::future::join_all(self.readers.iter().map(whole_feed)).await
    }

    pub(super) async fn write(&self, method: &str, path: &str, body: Value) -> Reply {
        self.key.call(method, path).json(&body).idempotent(&format!("write-{}", self.world.number())).await
    }

    /// Calls every CRM write on a contact, each under a key of its own, so that the answers are recorded.
    pub(super) async fn call_all_writes(&self, number: u64) {
        let id = uuid(number);
        let found = post(&self.world, &self.key, "Anybody", &email(number)).await.expect(201);
        assert_eq!(found.body["contact"]["id"], json!(id));
        patch(&self.world, &self.key, &id, json!({ "name": format!("{MARK} renamed {number}") })).await.expect(200);
        let made = self.write("POST", "/v1/crm/opportunities", json!({ "contactId": id })).await.expect(201);
        assert!(made.body["opportunity"]["name"].as_str().unwrap().contains(MARK), "{}", made.text);
        let date = (self.world.now().await + chrono::TimeDelta::days(2 + number.cast_signed())).date_naive();
        let body = json!({ "leadId": id, "calendarId": uuid(CALENDAR), "date": date.to_string(), "time": "10:00" });
        self.write("POST", "/v1/crm/bookings", body).await.expect(201);
    }

    pub(super) async fn erase(&self, client: &str) {
        self.world.apply([erased(client)]).await;
    }

    /// Sort keys in the coach's partition that begin with `prefix`.
    pub(crate) async fn keys(&self, prefix: &str) -> Vec<String> {
        let items = self.world.items("crm", "COACH#ada").await;
        let keys = items.iter().map(|item| item["sk"]["S"].as_str().unwrap().to_owned());
        keys.filter(|sk| sk.starts_with(prefix)).collect()
    }

    /// Asserts that nothing personal is left at rest or in a feed.
    async fn assert_nothing_personal(&self) {
        let at_rest = self.world.at_rest().await;
        for part in PERSONAL {
            assert_eq!(at_rest.locations_of(part), [] as [String; 0]);
        }
        assert!(!is_personal(&json!(self.feeds().await).to_string()));
    }

    /// Asserts that nothing personal is left and that these contacts are not shown.
    pub(crate) async fn assert_forgotten(&self, numbers: &[u64]) {
        self.assert_nothing_personal().await;
        let items = self.world.items("crm", "COACH#ada").await;
        for number in numbers {
            let left = stored(&self.world, &uuid(*number)).await;
            let kept = ["client_id", "contact_ref", "erased_at", "merged_at", "merged_into", "pk", "sk"];
            assert!(left["erased_at"].is_object() && members(&left).iter().all(|name| kept.contains(name)), "{left}");
            let about = format!("ada#{}", uuid(*number));
            for item in items.iter().filter(|item| !item["sk"]["S"].as_str().unwrap().starts_with("CONTACT#")) {
                let lead = [&item["lead_id"]["S"], &item["contact_ref"]["S"]];
                assert!(!lead.contains(&&json!(uuid(*number))) && !lead.contains(&&json!(about)), "{item}");
            }
            let changed = patch(&self.world, &self.key, &uuid(*number), json!({ "name": "Back" })).await;
            changed.refused(404, "not_found");
            let read = self.key.get(&format!("{CONTACTS}/{}", uuid(*number))).await.refused(404, "not_found");
            assert_eq!(read.body["mergedIntoId"], Value::Null, "{}", read.text);
        }
    }

    /// Asserts that no event of before leaves any more: neither by its retries, nor if the coach sends it again. From
    /// now on the receiver takes everything. Returns the bodies that it gets.
    pub(crate) async fn assert_nothing_leaves(&self) -> Vec<String> {
        self.assert_nothing_personal().await;
        let before = self.receiver.hooks();
        assert!(before.iter().any(|hook| is_personal(&text_of(hook))), "events were waiting");
        self.receiver.otherwise(Answer::status(204));
        self.world.advance_s(CHAIN_S).await;
        let settings = self.world.settings_of("ada").await;
        for endpoint in &self.endpoints {
            let path = format!("/settings/webhooks/{}/recover", endpoint.id);
            settings.post(&path, json!({ "since": self.began_at })).await.expect(202);
        }
        self.world.settle().await;
        self.world.advance_s(CHAIN_S).await;
        let later: Vec<String> = self.receiver.hooks()[before.len()..].iter().map(text_of).collect();
        assert!(later.iter().all(|text| !is_personal(text)), "{later:#?}");
        later
    }

    /// Number of recorded answers that are found by a contact.
    pub(super) async fn answers_about(&self, number: u64) -> usize {
        let about = json!(format!("ada#{}", uuid(number)));
        self.world.table("idempotency").await.iter().filter(|item| item["contact_ref"]["S"] == about).count()
    }
}

/// Returns true if a text has personal data of a contact that [`contact`] makes.
pub(crate) fn is_personal(text: &str) -> bool {
    PERSONAL.iter().any(|part| text.contains(part))
}

pub(crate) fn text_of(hook: &Hook) -> String {
    String::from_utf8_lossy(&hook.body).into_owned()
}

pub(super) fn email(number: u64) -> String {
    format!("{MARK}.{number}@example.com")
}

pub(crate) fn contact(number: u64) -> Fact {
    let fact =
        Fact::contact("ada", &uuid(number)).with("name", format!("{MARK} {number}")).with("email", email(number));
    fact.with("phone", "+1 415 555 2671")
}

/// The application's record of an opportunity of the contact.
pub(crate) fn opportunity(number: u64) -> Fact {
    let detail = json!({
        "opportunity_id": uuid(100 + number), "coach_id": "ada", "contact_id": uuid(number), "name": format!("for {MARK}"),
        "value_cents": 5, "pipeline_id": PIPELINE, "stage": "lost", "lost_reason": format!("{MARK} moved away"),
    });
    fact("opportunity.saved", detail)
}

/// The application's record of an event with the contact.
pub(crate) fn event(number: u64) -> Fact {
    let hour = number % 10;
    let detail = json!({
        "event_id": uuid(200 + number), "coach_id": "ada", "calendar_id": uuid(CALENDAR), "lead_id": uuid(number),
        "starts_at": format!("2027-03-01T0{hour}:00:00Z"), "ends_at": format!("2027-03-01T0{hour}:30:00Z"),
        "status": "confirmed",
    });
    fact("calendar_event.saved", detail)
}
