//! `POST /v1/test/events`: the example of any event, about a person of the workspace or about nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::future::IntoFuture;

use domain::event::{EventGroup, EventName};
use domain::mode::Mode;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::crm::contacts::merges::merged;
use crate::event_feed::{reader, whole_feed};
use crate::feed::erasure::{ENDED_S, erased};
use crate::sandbox::{EVENTS, send, start, store, visitor};
use crate::world::{
    Caller, Coach, Endpoint, Fact, Hook, Receiver, World, emitted_events, members, the_one_answer, uuid,
};

const CONTACT: u64 = 1;

/// A workspace with a client, a contact and an endpoint of each kind.
struct Scene {
    world: World,
    receiver: Receiver,
}

/// The endpoints of a scene, by their paths at the receiver.
const SUBSCRIBED: &str = "/hook/subscribed";
const DETAILED: &str = "/hook/detailed";
const OF_STEPS: &str = "/hook/of-steps";
const DISABLED: &str = "/hook/disabled";

impl Scene {
    async fn new() -> Self {
        Self { world: start(Mode::Test).await, receiver: Receiver::start().await }
    }

    async fn endpoint(&self, coach: &Coach<'_>, path: &str, events: &[&str], payload_mode: &str) -> Endpoint {
        let url = self.receiver.url().replace("/hook", path);
        let body = json!({ "url": url, "events": events, "payload_mode": payload_mode });
        let made = coach.settings().await.post("/settings/webhooks", body).await.expect(201);
        Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() }
    }

    /// Registers the four endpoints. Returns their secrets by path.
    async fn endpoints(&self, coach: &Coach<'_>) -> BTreeMap<&'static str, String> {
        let all = emitted_events();
        let mut secrets = BTreeMap::new();
        for (path, events, payload_mode) in [
            (SUBSCRIBED, &all[..], "identifiers"),
            (DETAILED, &all[..], "contact_details"),
            (OF_STEPS, &all[..0], "identifiers"),
            (DISABLED, &all[..], "identifiers"),
        ] {
            let endpoint = self.endpoint(coach, path, events, payload_mode).await;
            if path == DISABLED {
                let path = format!("/settings/webhooks/{}", endpoint.id);
                coach.settings().await.patch(&path, json!({ "enabled": false })).await.expect(200);
            }
            secrets.insert(path, endpoint.secret);
        }
        secrets
    }

    /// The requests of an event, by the paths that they came to.
    fn hooks(&self, id: &str) -> BTreeMap<String, Vec<Hook>> {
        let mut hooks: BTreeMap<String, Vec<Hook>> = BTreeMap::new();
        for hook in self.receiver.hooks().into_iter().filter(|hook| hook.header("webhook-id") == id) {
            hooks.entry(hook.path.clone()).or_default().push(hook);
        }
        hooks
    }
}

/// A client and a contact of a coach, without events.
async fn people(key: &Caller, client: &str) {
    let client = Fact::client("", client).with("full_name", "Grace Hopper").with("phone", "+1 415 555 2671");
    let contact = Fact::contact("", &uuid(CONTACT)).with("email", "lee@leads.example");
    store(key, [client.with("backfill", true), contact.with("backfill", true)]).await;
}

/// Emits an event and returns its id.
async fn emit(key: &Caller, body: Value) -> String {
    let reply = key.post(EVENTS, body).await.expect(202);
    assert_eq!(reply.members(), ["id"]);
    reply.str("id").to_owned()
}

fn is_emitted(event: EventName) -> bool {
    matches!(event, EventName::Emitted(_))
}

/// The member that names the person of an event, with the parameter that chooses the person.
fn subject(event: EventName) -> (&'static str, &'static str) {
    if event.group() == EventGroup::Client { ("client", "client_id") } else { ("contact", "contact_id") }
}

#[tokio::test]
async fn an_emitted_event_goes_to_its_subscribers_and_the_feed_and_a_computed_one_to_every_enabled_endpoint() {
    let scene = Scene::new().await;
    let ada = visitor(&scene.world, "ada");
    let (key, reader) = (ada.partner_key().await, reader(&ada, "identifiers").await);
    let secrets = scene.endpoints(&ada).await;
    let mut sent = Vec::new();
    for event in EventName::all() {
        sent.push((event, emit(&key, json!({ "type": event.as_str() })).await));
    }
    scene.world.settle().await;
    let feed = whole_feed(&reader).await;
    for (event, id) in &sent {
        let hooks = scene.hooks(id);
        let expected =
            if is_emitted(*event) { vec![DETAILED, SUBSCRIBED] } else { vec![DETAILED, OF_STEPS, SUBSCRIBED] };
        assert_eq!(hooks.keys().collect::<Vec<_>>(), expected, "{event:?}");
        for (path, hooks) in &hooks {
            let [hook] = &hooks[..] else { panic!("one request of {event:?} to {path}") };
            assert!(hook.is_signed_with(&secrets[path.as_str()]));
            assert_eq!(hook.header("x-service-event"), event.as_str());
            assert_eq!(hook.json()["type"], event.as_str());
        }
        let fed = feed.iter().filter(|item| item["id"] == **id && item["type"] == event.as_str()).count();
        assert_eq!(fed, usize::from(is_emitted(*event)), "{event:?}");
    }
    let ids: BTreeSet<&String> = sent.iter().map(|(_, id)| id).collect();
    assert_eq!((ids.len(), feed.len()), (sent.len(), emitted_events().len()));
    assert_eq!(scene.receiver.hooks().len(), 2 * 15 + 3 * 5);
}

#[tokio::test]
async fn an_event_is_the_example_with_the_person_that_is_named() {
    let scene = Scene::new().await;
    let ada = visitor(&scene.world, "ada");
    let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
    scene.endpoints(&ada).await;
    people(&key, "c1").await;
    let client = json!({
        "id": "c1", "name": "Grace Hopper", "email": "c1@clients.example", "phone": "+1 415 555 2671", "external_id": null,
    });
    let contact = json!({ "id": uuid(CONTACT), "name": "Lee Lead", "email": "lee@leads.example", "phone": null });
    let mut sent = Vec::new();
    for (number, event) in EventName::all().enumerate() {
        let (_, parameter) = subject(event);
        let id = if parameter == "client_id" { "c1".to_owned() } else { uuid(CONTACT) };
        // A key of either scope may.
        let caller = if number % 2 == 0 { &key } else { &crm };
        let example = emit(caller, json!({ "type": event.as_str() })).await;
        sent.push((event, example, emit(caller, json!({ "type": event.as_str(), parameter: id })).await));
    }
    scene.world.settle().await;
    for (event, example, named) in &sent {
        let (member, _) = subject(*event);
        let person = if member == "client" { &client } else { &contact };
        let (examples, hooks) = (scene.hooks(example), scene.hooks(named));
        for path in hooks.keys() {
            let (mut shown, body) = (examples[path][0].json(), hooks[path][0].json());
            let shows_details = path == DETAILED;
            let found = &body["data"][member];
            assert_eq!(found["id"], person["id"], "{event:?}");
            assert_ne!(found["id"], shown["data"][member]["id"], "{event:?}");
            for detail in members(person).into_iter().filter(|detail| *detail != "id") {
                let expected = if shows_details { Some(&person[detail]) } else { None };
                assert_eq!(found.get(detail), expected, "{event:?}: {detail} at {path}");
            }
            assert_eq!(members(found), members(&shown["data"][member]), "{event:?}");
            // The rest is the example's.
            shown["data"][member] = found.clone();
            shown["timestamp"] = body["timestamp"].clone();
            assert_eq!(members(&shown["data"]), members(&body["data"]), "{event:?}");
        }
        assert_eq!(hooks.keys().collect::<Vec<_>>(), examples.keys().collect::<Vec<_>>());
    }
    // No record has changed.
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 1);
    let clients = key.get("/v1/clients/c1/check-ins").await.expect(200);
    assert_eq!(clients.body["count"], 0);
}

#[tokio::test]
async fn a_person_of_nobody_or_of_another_workspace_is_not_found() {
    let scene = Scene::new().await;
    let (ada, bob) = (visitor(&scene.world, "ada"), visitor(&scene.world, "bob"));
    let (key, other) = (ada.partner_key().await, bob.partner_key().await);
    scene.endpoints(&ada).await;
    people(&key, "c1").await;
    store(&key, [Fact::client("", "gone").with("backfill", true), erased("gone")]).await;
    let contacts = [2, 3].map(|number| Fact::contact("", &uuid(number)).with("backfill", true));
    store(&key, contacts.into_iter().chain([merged(2, 3).with("backfill", true)])).await;
    let hooks = scene.receiver.hooks().len();
    for (event, parameter, id) in [
        ("new_client", "client_id", "nobody".to_owned()),
        ("compliance_drop", "client_id", "gone".to_owned()),
        ("contact_created", "contact_id", uuid(99)),
        ("booking_created", "contact_id", uuid(98)),
    ] {
        let refused = key.post(EVENTS, json!({ "type": event, parameter: id })).await.refused(404, "not_found");
        let foreign = if parameter == "client_id" { "c1".to_owned() } else { uuid(CONTACT) };
        let of_other = other.post(EVENTS, json!({ "type": event, parameter: foreign })).await.refused(404, "not_found");
        assert_eq!(of_other.error(), refused.error(), "{event}");
    }
    let into = key.post(EVENTS, json!({ "type": "contact_updated", "contact_id": uuid(2) })).await;
    assert_eq!(into.refused(404, "not_found").body["mergedIntoId"], uuid(3));
    scene.world.settle().await;
    assert_eq!(scene.receiver.hooks().len(), hooks);
}

#[tokio::test]
async fn an_id_of_another_kind_and_every_other_bad_body_is_refused_by_its_field() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    people(&key, "c1").await;
    for event in EventName::all() {
        let (event, (_, right)) = (event.as_str(), subject(event));
        let both = json!({ "type": event, "client_id": "c1", "contact_id": uuid(CONTACT) });
        let refused = key.post(EVENTS, both).await.refused_for("contact_id");
        assert_eq!(refused.body["field"], "contact_id", "{event}");
        let (wrong, id) =
            if right == "client_id" { ("contact_id", uuid(CONTACT)) } else { ("client_id", "c1".to_owned()) };
        let refused = key.post(EVENTS, json!({ "type": event, wrong: id })).await.refused_for(wrong);
        assert_eq!(refused.body["field"], wrong, "{event}");
    }
    for (body, field) in [
        (json!({}), "type"),
        (json!({ "type": null }), "type"),
        (json!({ "type": "new_moon" }), "type"),
        (json!({ "type": 5 }), "type"),
        (json!({ "type": "new_client", "client_id": "a b" }), "client_id"),
        (json!({ "type": "contact_created", "contact_id": "1" }), "contact_id"),
        (json!({ "type": "new_client", "endpoint_id": "we_1" }), "endpoint_id"),
    ] {
        assert_eq!(key.post(EVENTS, body.clone()).await.refused_for(field).body["field"], field, "{body}");
    }
    assert_eq!(world.table("outbox").await, [] as [Value; 0]);
}

#[tokio::test]
async fn an_idempotency_key_stands_for_one_event() {
    let scene = Scene::new().await;
    let ada = visitor(&scene.world, "ada");
    let key = ada.partner_key().await;
    scene.endpoint(&ada, SUBSCRIBED, &["new_client"], "identifiers").await;
    let once = |event: &str| key.post(EVENTS, json!({ "type": event })).idempotent("one");
    let replies = join_all((0..8).map(|_| once("new_client").into_future())).await;
    let first = the_one_answer(&replies);
    once("new_client").await.expect(202);
    once("phase_advanced").await.refused(409, "idempotency_payload_mismatch");
    let id = emit(&key, json!({ "type": "new_client" })).await;
    scene.world.settle().await;
    let received: BTreeSet<String> =
        scene.receiver.hooks().iter().map(|hook| hook.header("webhook-id").to_owned()).collect();
    assert_eq!(received, BTreeSet::from([first.str("id").to_owned(), id]));
    assert_eq!(scene.receiver.hooks().len(), 2);
}

#[tokio::test]
async fn an_event_of_an_erased_client_is_erased() {
    let scene = Scene::new().await;
    let ada = visitor(&scene.world, "ada");
    let (key, reader) = (ada.partner_key().await, reader(&ada, "contact_details").await);
    scene.endpoints(&ada).await;
    people(&key, "c1").await;
    emit(&key, json!({ "type": "message_received", "client_id": "c1" })).await;
    scene.world.settle().await;
    assert!(scene.world.at_rest().await.locations_of("Grace Hopper").iter().any(|place| place.contains("clients")));
    assert_eq!(send(&key, [erased("c1")]).await[0]["result"], "stored");
    scene.world.advance_s(ENDED_S).await;
    assert!(!Value::from(whole_feed(&reader).await).to_string().contains("Grace"));
    assert_eq!(scene.world.at_rest().await.locations_of("Grace Hopper"), [] as [String; 0]);
}
