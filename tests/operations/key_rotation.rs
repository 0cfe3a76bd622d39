//! Rotation of the service's own keys: a new key is added, then made current once every environment has it. Everything
//! stays readable.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Value, json};

use crate::partner::clients::login_link::{client, mint};
use crate::webhooks::automations::{automation, check_in, on};
use crate::world::{Answer, Caller, Coach, Endpoint, Fact, Receiver, Reply, World, list};

const HOUR_S: u64 = 3_600;

const ENCRYPTION: &str = "EncryptionSecret";
const SIGNING: &str = "SigningSecret";
/// The service's own secrets, by their names in template.yaml.
pub(crate) const SECRETS: [&str; 2] = [ENCRYPTION, SIGNING];

impl World {
    /// The value of a secret.
    pub(crate) async fn secret(&self, id: &str) -> Value {
        let answer = self.anonymous().aws("secretsmanager.GetSecretValue", &json!({ "SecretId": id })).await;
        serde_json::from_str(answer["SecretString"].as_str().unwrap()).unwrap()
    }

    /// Stores another value. Running functions keep the value that they have read.
    pub(crate) async fn put_secret(&self, id: &str, value: &Value) {
        let put = json!({ "SecretId": id, "SecretString": value.to_string() });
        self.anonymous().aws("secretsmanager.PutSecretValue", &put).await;
    }

    /// Adds a key that is not current.
    async fn add_key(&self, secret: &str, id: &str) {
        let mut ring = self.secret(secret).await;
        ring[id] = format!("{id}{}", "x".repeat(63)).into();
        self.put_secret(secret, &ring).await;
    }

    async fn make_current(&self, secret: &str, id: &str) {
        let mut ring = self.secret(secret).await;
        ring["current"] = id.into();
        self.put_secret(secret, &ring).await;
    }

    /// The function's environment dies at its next call, so that the next environment reads the secrets.
    async fn kill_environment(&self, function: &str) {
        self.faults(json!({ "function": function, "crash_before_call": 1 })).await;
    }
}

/// Ids of the keys that sealed the current secrets of all endpoints, sorted.
async fn sealed_by(world: &World) -> Vec<u8> {
    let endpoints = world.items("workspaces", "COACH#").await.into_iter().filter(|item| item["secrets"].is_object());
    let key_id = |item: Value| {
        let sealed = item["secrets"]["L"][0]["M"]["sealed"]["B"].as_str().unwrap().to_owned();
        STANDARD.decode(sealed).unwrap()[1]
    };
    let mut ids: Vec<u8> = endpoints.map(key_id).collect();
    ids.sort_unstable();
    ids
}

/// A coach with everything that is sealed: recorded answers, endpoint secrets, bodies and answers of deliveries,
/// grades.
struct RotationScene<'w> {
    world: &'w World,
    ada: Coach<'w>,
    key: Caller,
    receiver: Receiver,
    busy: Receiver,
    endpoints: Vec<Endpoint>,
    recorded: Vec<(String, Reply)>,
}

impl<'w> RotationScene<'w> {
    async fn new(world: &'w World, receiver: Receiver, busy: Receiver) -> Self {
        let ada = world.coach("ada").await;
        let key = ada.partner_key().await;
        receiver.otherwise(Answer::status(200).body("thank you"));
        busy.otherwise(Answer::status(503).header("retry-after", "3600"));
        let endpoints = vec![ada.endpoint(&receiver.url(), "contact_details").await];
        ada.endpoint(&busy.url(), "contact_details").await;
        world.apply([Fact::client("ada", "c1"), automation("fell", on("system_grade_drop"), &[&endpoints[0]])]).await;
        Self { world, ada, key, receiver, busy, endpoints, recorded: Vec::new() }
    }

    fn body(phase: &str) -> Value {
        json!({ "email": format!("{phase}@example.com"), "send_welcome": false })
    }

    /// Seals data of each kind, and reads all that was sealed in earlier phases.
    async fn seal_and_read(&mut self, phase: usize) {
        let name = format!("phase{phase}");
        let made = self.key.post("/v1/clients", Self::body(&name)).idempotent(&name).await.expect(201);
        self.recorded.push((name, made));
        for (name, first) in &self.recorded {
            let replay = self.key.post("/v1/clients", Self::body(name)).idempotent(name).await;
            assert!(replay.is_replay() && replay.text == first.text, "{phase}: {}", replay.text);
        }
        self.world.settle().await;
        self.endpoints.push(self.ada.endpoint(&self.receiver.url(), "contact_details").await);
        let before = self.receiver.hooks().len();
        let grades = json!({ "sleep": 90 - phase });
        let day = u32::try_from(phase).unwrap() + 1;
        let fell = check_in(&format!("k{phase}"), day, json!({}), grades);
        self.world.apply([Fact::client("ada", &format!("client{phase}")), fell]).await;
        let hooks = self.receiver.hooks().split_off(before);
        let clients: Vec<_> = hooks.iter().filter(|hook| hook.header("x-service-event") == "new_client").collect();
        assert_eq!(clients.len(), self.endpoints.len(), "{phase}");
        for endpoint in &self.endpoints {
            assert!(clients.iter().any(|hook| hook.is_signed_with(&endpoint.secret)), "{phase}: {}", endpoint.id);
            for delivery in self.ada.deliveries(endpoint).await {
                assert_eq!(delivery["attempts"][0]["response_excerpt"], "thank you", "{phase}: {delivery}");
            }
        }
        assert_eq!(hooks.len() - clients.len(), usize::from(phase > 0), "{phase}: the grade fell");
    }
}

#[tokio::test]
async fn adding_a_key_before_making_it_current_keeps_everything_readable() {
    let world = World::start().await;
    let mut scene = RotationScene::new(&world, Receiver::start().await, Receiver::start().await).await;
    scene.seal_and_read(0).await;
    world.add_key(ENCRYPTION, "2").await;
    scene.seal_and_read(1).await;
    world.kill_and_restart().await;
    scene.seal_and_read(2).await;
    assert!(sealed_by(&world).await.iter().all(|id| *id == 1));
    world.make_current(ENCRYPTION, "2").await;
    // Environments that seal with either key work side by side.
    let settings = scene.ada.settings().await;
    world.kill_environment("settings").await;
    settings.get("/settings/webhooks").await.expect(500);
    world.kill_environment("clients").await;
    scene.key.get("/v1/clients").await.expect(500);
    scene.seal_and_read(3).await;
    assert!(sealed_by(&world).await.ends_with(&[1, 2]));
    world.kill_and_restart().await;
    scene.seal_and_read(4).await;
    assert!(sealed_by(&world).await.ends_with(&[1, 2, 2]));
    // The waiting deliveries were sealed before.
    let waiting = scene.busy.hooks().len();
    scene.busy.otherwise(Answer::status(204));
    world.advance_s(2 * HOUR_S).await;
    let arrived = scene.busy.hooks().split_off(waiting);
    assert_eq!(arrived.len(), waiting);
    assert!(world.take_messages("deliveries-dlq.fifo").await.is_empty() && world.set_aside().await.is_empty());
}

#[tokio::test]
async fn data_under_an_unknown_key_waits_for_an_environment_that_has_it() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let old = ada.endpoint(&receiver.url(), "identifiers").await;
    world.apply([Fact::client("ada", "c1")]).await;
    assert_eq!(receiver.hooks().len(), 1);
    settings.delete(&format!("/settings/webhooks/{}", old.id)).await.expect(200);
    // In a single step, against the guide: an environment seals with a key that the others do not have.
    world.add_key(ENCRYPTION, "2").await;
    world.make_current(ENCRYPTION, "2").await;
    world.kill_environment("settings").await;
    settings.get("/settings/webhooks").await.expect(500);
    let new = ada.endpoint(&receiver.url(), "identifiers").await;
    assert_eq!(sealed_by(&world).await, [2]);
    world.apply([Fact::client("ada", "c2")]).await;
    assert_eq!(receiver.hooks().len(), 1, "the deliverer cannot sign for it");
    world.kill_and_restart().await;
    world.advance_s(HOUR_S).await;
    let hooks = receiver.hooks();
    assert!(hooks.len() == 2 && hooks[1].is_signed_with(&new.secret), "{}", hooks.len());
    assert!(world.take_messages("deliveries-dlq.fifo").await.is_empty());
}

/// Signs a client in and returns the assertion.
async fn assertion(world: &World, key: &Caller, client: &str) -> String {
    let made = mint(key, client).await.expect(200);
    let token = made.str("login_url").rsplit_once('/').unwrap().1.to_owned();
    let reply = world.anonymous().call("POST", &format!("/login/{token}")).await.expect(303);
    reply.header("location").unwrap().split_once("#token=").unwrap().1.to_owned()
}

/// The currently published keys.
async fn published(world: &World) -> JwkSet {
    serde_json::from_value(world.anonymous().get("/.well-known/jwks.json").await.expect(200).body).unwrap()
}

/// The id of the key in `keys` that verifies the assertion.
fn verified(token: &str, keys: &JwkSet) -> Option<String> {
    let kid = decode_header(token).unwrap().kid.unwrap();
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.set_audience(&["https://ada.example"]);
    decode::<Value>(token, &DecodingKey::from_jwk(keys.find(&kid)?).unwrap(), &validation).unwrap();
    Some(kid)
}

#[tokio::test]
async fn an_assertion_verifies_by_keys_read_at_any_adjacent_step() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let client = client(&world, &key).await;
    let mut read = Vec::new();
    let mut signed = Vec::new();
    for step in ["before", "added", "current"] {
        match step {
            "added" => world.add_key(SIGNING, "2").await,
            "current" => world.make_current(SIGNING, "2").await,
            _ => {}
        }
        world.kill_and_restart().await;
        read.push(published(&world).await);
        signed.push(assertion(&world, &key, &client).await);
    }
    assert_eq!(read.iter().map(|keys| keys.keys.len()).collect::<Vec<_>>(), [1, 2, 2]);
    let kids: Vec<_> = signed.iter().map(|token| verified(token, &read[2]).unwrap()).collect();
    assert!(kids[0] == kids[1] && kids[1] != kids[2], "{kids:?}");
    // The new key's assertions verify by any copy of the keys that was read since the key was added.
    assert_eq!(verified(&signed[2], &read[1]), Some(kids[2].clone()));
    assert_eq!(verified(&signed[1], &read[0]), Some(kids[1].clone()));
    assert_eq!(verified(&signed[2], &read[0]), None, "which is why it is added first");
    // The old key is removed once its last assertion has expired.
    let mut ring = world.secret(SIGNING).await;
    ring.as_object_mut().unwrap().remove("1");
    world.put_secret(SIGNING, &ring).await;
    world.kill_and_restart().await;
    let last = published(&world).await;
    assert_eq!(list(serde_json::to_value(&last).unwrap()["keys"].clone()).len(), 1);
    assert_eq!(verified(&assertion(&world, &key, &client).await, &last), Some(kids[2].clone()));
}
