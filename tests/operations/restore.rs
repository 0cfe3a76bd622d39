//! A restore: the tables at one moment, in a new stack with the same secrets and empty queues. Tables about writes that
//! may be lost (claims, remembered facts, login links) start empty.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::slot;
use crate::operations::key_rotation::SECRETS;
use crate::world::sweep::{ComputedEvent, automation, check_in};
use crate::world::{ATTEMPTS, Answer, CRM_PERMISSIONS, Caller, Endpoint, Fact, Receiver, World, ids, rendered, until};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;
/// The tables that template.yaml backs up continuously. The outbox is last: the local stack publishes an entry as soon
/// as it is stored.
const BACKED_UP: [&str; 8] = ["keys", "workspaces", "clients", "records", "crm", "deliveries", "events", "outbox"];

/// The backed-up tables of a world.
struct Backup {
    taken_at: chrono::DateTime<chrono::Utc>,
    secrets: Vec<(&'static str, Value)>,
    tables: Vec<(&'static str, Vec<Value>)>,
}

impl Backup {
    async fn of(world: &World) -> Self {
        let (mut secrets, mut tables) = (Vec::new(), Vec::new());
        for id in SECRETS {
            secrets.push((id, world.secret(id).await));
        }
        for name in BACKED_UP {
            tables.push((name, world.table(name).await));
        }
        Self { taken_at: world.now().await, secrets, tables }
    }

    /// Replaces a table by that of another backup.
    fn with(mut self, name: &str, other: &Self) -> Self {
        let held = other.tables.iter().find(|(table, _)| *table == name).unwrap().1.clone();
        self.tables.iter_mut().find(|(table, _)| *table == name).unwrap().1 = held;
        self
    }

    /// A new stack with these tables. The secrets are set before any function starts.
    async fn restored(&self) -> World {
        let world = World::start().await;
        for (id, value) in &self.secrets {
            world.put_secret(id, value).await;
        }
        world.advance_to(self.taken_at).await;
        for (name, items) in &self.tables {
            world.put_items(name, items).await;
        }
        world
    }
}

impl World {
    /// Re-enqueues the waiting deliveries of all endpoints, as an operator does.
    async fn resume(&self) {
        for endpoint in self.table("workspaces").await {
            let part = |name: &str, prefix: &str| endpoint[name]["S"].as_str()?.strip_prefix(prefix).map(str::to_owned);
            if let (Some(coach), Some(id)) = (part("pk", "COACH#"), part("sk", "ENDPOINT#")) {
                let job = json!({ "coach_id": coach, "endpoint_id": id, "work": "resume" });
                self.send("delivery-retries", &job.to_string()).await;
            }
        }
        self.settle().await;
    }
}

impl Receiver {
    /// Client and event id of each received webhook, in order.
    fn received_events(&self) -> Vec<(String, String)> {
        self.hooks().iter().map(ComputedEvent::of).map(|event| (event.client, event.webhook_id)).collect()
    }

    /// Answers 503 with a `Retry-After` of an hour from now on.
    fn answer_busy(&self) {
        self.otherwise(Answer::status(503).header("retry-after", "3600"));
    }

    fn is_back(&self) {
        self.otherwise(Answer::status(204));
    }
}

/// A world with a coach, keys, and an endpoint for new clients.
struct RestoreScene {
    world: World,
    receiver: Receiver,
    endpoint: Endpoint,
    keys: [String; 2],
}

impl RestoreScene {
    async fn new() -> Self {
        let (world, receiver) = (World::start().await, Receiver::start().await);
        world.booking_coach("ada").await;
        let ada = world.coach("ada").client_cap(4).await;
        let mut keys = [const { String::new() }; 2];
        for (key, body) in keys.iter_mut().zip([
            json!({ "name": "Automation", "scope": "partner" }),
            json!({ "name": "CRM", "scope": "crm", "permissions": CRM_PERMISSIONS }),
        ]) {
            *key = ada.new_key(body).await.str("key").to_owned();
        }
        let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
        Self { world, receiver, endpoint, keys }
    }

    /// Callers of that world with the partner key and with the CRM key.
    fn callers(&self, world: &World) -> [Caller; 2] {
        self.keys.each_ref().map(|key| world.anonymous().with_bearer(key))
    }

    /// Creates a client through a fact.
    async fn client(&self, id: &str) {
        let created_at = self.world.timestamp_in(0).await;
        self.world.apply([Fact::client("ada", id).with("created_at", created_at)]).await;
    }
}

#[tokio::test]
async fn a_restored_stack_continues_from_its_tables_and_repeats_nothing() {
    let scene = RestoreScene::new().await;
    let (old, receiver) = (&scene.world, &scene.receiver);
    let [partner, crm] = scene.callers(old);
    let silent = json!({ "event": "daily_log_inactivity", "days": 3 });
    old.apply([automation("ada", "silent", silent, &[&scene.endpoint])]).await;
    scene.client("delivered").await;
    let tomorrow = old.midnight_in(1).await.date_naive();
    let booked = crm.post("/v1/crm/bookings", slot(tomorrow, "10:00")).idempotent("book").await.expect(201);
    receiver.answer_busy();
    scene.client("waits").await;
    // The relay fails from here on, as in a stack that is about to be lost.
    old.faults(json!({ "function": "relay", "store_failures": 1_000_000 })).await;
    let draft = json!({ "email": "new@example.com", "send_welcome": false });
    let created = partner.post("/v1/clients", draft.clone()).idempotent("create").await.expect(201);
    let unsent = created.str("client_id").to_owned();
    let clients = partner.get("/v1/clients").await.expect(200).text;
    let backup = Backup::of(old).await;
    let seen = receiver.received_events();
    receiver.is_back();

    let new = backup.restored().await;
    new.settle().await;
    let [partner, crm] = scene.callers(&new);
    assert_eq!(partner.get("/v1/clients").await.expect(200).text, clients);
    let bookings = crm.get("/v1/crm/bookings").await.expect(200).body;
    assert_eq!(ids(&bookings), [booked.body["booking"]["id"].as_str().unwrap()]);
    crm.post("/v1/crm/bookings", slot(tomorrow, "10:00")).idempotent("again").await.refused(409, "slot_unavailable");
    let now = receiver.received_events().split_off(seen.len());
    assert_eq!(now.iter().map(|(client, _)| client.as_str()).collect::<Vec<_>>(), [unsent.as_str()]);
    assert_eq!(new.changes("client.created").await.len(), 1);
    // The claim is gone: the address is what prevents a second creation.
    partner.post("/v1/clients", draft).idempotent("create").await.refused(409, "email_taken");
    let last = json!({ "email": "last@example.com", "send_welcome": false });
    partner.post("/v1/clients", last.clone()).await.expect(201);
    let full = json!({ "email": "full@example.com", "send_welcome": false });
    partner.post("/v1/clients", full).await.refused(409, "plan_limit_reached");

    // The message for the second attempt is gone with the queues, and the relay has not missed it yet.
    new.advance_s(HOUR_S + HOUR_S / 4).await;
    let tries =
        |receiver: &Receiver| receiver.received_events().into_iter().filter(|(client, _)| client == "waits").count();
    assert_eq!(tries(receiver), 1);
    new.resume().await;
    let waited: Vec<_> = receiver.received_events().into_iter().filter(|(client, _)| client == "waits").collect();
    assert!(waited.len() == 2 && waited[0] == waited[1], "{waited:?}");
    new.resume().await;
    new.advance_s(4 * DAY_S).await;
    assert_eq!(tries(receiver), 2 + 1, "two attempts and the automation's event");
    let mut silent: Vec<String> =
        receiver.hooks_of("daily_log_inactivity").iter().map(ComputedEvent::of).map(|event| event.client).collect();
    silent.sort();
    assert!(silent.len() == 4 && silent.windows(2).all(|pair| pair[0] != pair[1]), "{silent:?}");
    assert!(receiver.hooks().iter().all(|hook| hook.is_signed_with(&scene.endpoint.secret)));
    for queue in ["deliveries-dlq.fifo", "application-feed-dlq"] {
        assert!(new.take_messages(queue).await.is_empty(), "{queue}");
    }
}

#[tokio::test]
async fn a_restored_outbox_entry_that_was_published_is_not_delivered_again() {
    let scene = RestoreScene::new().await;
    let world = &scene.world;
    world.faults(json!({ "function": "relay", "store_failures": 1_000_000 })).await;
    world.publish([Fact::client("ada", "c1")]).await;
    until("an outbox entry", async || !world.table("outbox").await.is_empty()).await;
    let before = Backup::of(world).await;
    world.faults(json!({ "function": "", "store_failures": 0 })).await;
    world.advance_s(HOUR_S).await;
    assert_eq!(scene.receiver.received_events().len(), 1);
    // A table may be restored a moment behind another: here the outbox behind the deliveries.
    let new = Backup::of(world).await.with("outbox", &before).restored().await;
    new.settle().await;
    new.resume().await;
    new.advance_s(DAY_S).await;
    assert_eq!(scene.receiver.received_events().len(), 1);
    assert_eq!(new.table("outbox").await, Vec::<Value>::new());
}

#[tokio::test]
async fn facts_repeated_after_a_restore_recreate_missing_records_with_the_same_event_ids() {
    let scene = RestoreScene::new().await;
    scene.client("kept").await;
    let backup = Backup::of(&scene.world).await;
    let occurred_at = scene.world.timestamp_in(0).await;
    let lost = |fact: Fact| fact.with("id", "fact-of-lost").with("occurred_at", occurred_at.clone());
    scene.world.apply([lost(Fact::client("ada", "lost"))]).await;
    let before = scene.receiver.received_events();
    assert_eq!(before.len(), 2);

    let new = backup.restored().await;
    let [partner, _] = scene.callers(&new);
    partner.get("/v1/clients/lost").await.refused(404, "not_found");
    // Client facts since some time before the restored moment, that of `kept` included.
    let kept = Fact::client("ada", "kept").with("occurred_at", occurred_at.clone());
    new.apply([kept, lost(Fact::client("ada", "lost"))]).await;
    partner.get("/v1/clients/lost").await.expect(200);
    assert_eq!(scene.receiver.received_events().split_off(2), before[1..], "its receiver knows the id");
}

#[tokio::test]
async fn no_inactivity_is_emitted_while_facts_are_repeated_with_automations_off() {
    let scene = RestoreScene::new().await;
    let old = &scene.world;
    let quiet = |active: bool| {
        let trigger = json!({ "event": "check_in_inactivity", "days": 1 });
        automation("ada", "quiet", trigger, &[&scene.endpoint]).with("active", active)
    };
    old.apply([quiet(true)]).await;
    scene.client("active").await;
    scene.client("silent").await;
    old.advance_s(20 * HOUR_S).await;
    let backup = Backup::of(old).await;

    let new = backup.restored().await;
    new.faults(json!({ "function": "sweep", "store_failures": 1_000_000 })).await;
    new.advance_s(6 * HOUR_S).await;
    let switched = |world_now: String, active: bool| quiet(active).with("occurred_at", world_now);
    new.apply([switched(new.timestamp_in(0).await, false)]).await;
    let then = new.now().await - TimeDelta::hours(4);
    new.apply([check_in("active", "meanwhile", then).with("occurred_at", rendered(then))]).await;
    new.apply([switched(new.timestamp_in(1).await, true)]).await;
    new.faults(json!({ "function": "", "store_failures": 0 })).await;
    new.advance_s(HOUR_S).await;
    let quiet_ones = || {
        scene
            .receiver
            .hooks_of("check_in_inactivity")
            .iter()
            .map(|hook| ComputedEvent::of(hook).client)
            .collect::<Vec<_>>()
    };
    assert_eq!(quiet_ones(), [""; 0], "inactivity that began before is not emitted either");
    new.advance_s(DAY_S).await;
    assert_eq!(quiet_ones(), ["active"], "inactive since the restore");
}

#[tokio::test]
async fn enqueuing_deliveries_that_are_still_queued_changes_nothing() {
    let scene = RestoreScene::new().await;
    let world = &scene.world;
    let ada = world.coach("ada").client_cap(9).await;
    scene.receiver.otherwise(Answer::status(500));
    for id in ["c1", "c2", "c3"] {
        scene.client(id).await;
        world.resume().await;
        // On to a wait of several hops.
        world.advance_s(HOUR_S).await;
        world.resume().await;
    }
    for _ in 0..40 {
        world.advance_s(HOUR_S).await;
        world.resume().await;
    }
    for delivery in ada.deliveries(&scene.endpoint).await {
        assert_eq!((&delivery["status"], delivery["attempts"].as_array().unwrap().len()), (&json!("failed"), ATTEMPTS));
    }
    assert_eq!(scene.receiver.received_events().len(), 3 * ATTEMPTS);
    assert!(world.take_messages("deliveries-dlq.fifo").await.is_empty());
}

#[tokio::test]
async fn waiting_deliveries_are_found_behind_any_length_of_log() {
    const EARLIER: usize = 1_200;
    let scene = RestoreScene::new().await;
    scene.client("c1").await;
    scene.receiver.answer_busy();
    scene.client("c2").await;
    let backup = Backup::of(&scene.world).await;
    scene.receiver.is_back();
    let new = backup.restored().await;
    let done = new.table("deliveries").await.into_iter().find(|item| item["status"]["S"] == "delivered").unwrap();
    let earlier: Vec<Value> = (0..EARLIER)
        .map(|n| {
            let (id, mut item) = (format!("dlv_{n:032}"), done.clone());
            item["id"]["S"] = id.clone().into();
            item["sk"]["S"] = format!("DELIVERY#{id}").into();
            item
        })
        .collect();
    new.put_items("deliveries", &earlier).await;
    new.advance_s(HOUR_S + 60).await;
    new.resume().await;
    let received_events = scene.receiver.received_events();
    assert_eq!((received_events.len(), received_events[2].0.as_str()), (3, "c2"));
}

#[tokio::test]
async fn an_unknown_endpoint_has_no_waiting_deliveries() {
    let scene = RestoreScene::new().await;
    let job = json!({ "coach_id": "ada", "endpoint_id": "we_00000000000000000000000000000000", "work": "resume" });
    scene.world.send("delivery-retries", &job.to_string()).await;
    scene.world.settle().await;
    scene.world.advance_s(HOUR_S).await;
    assert!(scene.world.take_messages("deliveries-dlq.fifo").await.is_empty());
    assert_eq!(scene.receiver.received_events(), []);
}
