//! Refusals under an idempotency key. A refusal (4xx) of the work is recorded and replayed, also once its cause is
//! gone. A refusal before the claim, or for a limit, is not recorded.

use std::collections::BTreeSet;

use compare::assert_same;
use edge::routes::{Routed, find};
use http::Method;
use serde_json::{Value, json};

use crate::idempotency::rows::{CALENDAR, LEAD, ROWS, Scene, TEST, assert_replay_of, row_of};
use crate::world::{Call, Caller, Reply, uuid};

/// Requests with their first answers.
#[derive(Default)]
struct Refused {
    answers: Vec<(Call, Reply)>,
    routes: BTreeSet<String>,
}

impl Refused {
    async fn refuse(&mut self, caller: &Caller, method: &str, path: &str, body: &str, status: u16) {
        let call = caller.call(method, path).header("content-type", "application/json").body(body.to_owned());
        let call = call.idempotent(&format!("refused-{}", self.answers.len()));
        let first = call.clone().await.expect(status);
        assert!(!first.is_replay());
        if let Routed::Known(route) = find(&Method::from_bytes(method.as_bytes()).unwrap(), path) {
            self.routes.insert(route.to_string());
        }
        self.answers.push((call, first));
    }

    async fn assert_replayed(&self) {
        for (call, first) in &self.answers {
            assert_replay_of(&call.clone().await, first);
        }
    }
}

#[tokio::test]
async fn refusals_are_replayed_also_once_their_cause_is_gone() {
    let scene = Scene::start().await;
    let (settings, crm, partner) = (&scene.settings, &scene.crm, &scene.partner);
    let mut refused = Refused::default();
    let (nobody, since) = (uuid(999), json!({ "since": "2026-01-01T00:00:00Z" }));
    let date = scene.free_hour().0;
    let booking = json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR), "date": date, "time": "10:30" });
    let elsewhen = json!({ "leadId": uuid(LEAD), "date": date, "time": "10:00" });
    let (endpoint, delivery) = scene.failed_delivery().await;
    partner.post("/v1/clients", json!({ "email": "a@example.com" })).idempotent("made").await.expect(201);
    scene.world.coach("ada").client_cap(1).await;
    for (caller, method, path, body, status) in [
        (partner, "POST", "/v1/clients", json!({ "email": "not-an-address" }), 400),
        (partner, "POST", "/v1/clients", json!({ "email": "a@example.com" }), 409),
        (partner, "POST", "/v1/clients", json!({ "email": "b@example.com" }), 409),
        (crm, "POST", "/v1/crm/contacts", json!({ "name": "Ada" }), 400),
        (crm, "PATCH", &format!("/v1/crm/contacts/{nobody}"), json!({ "name": "Ada" }), 404),
        (crm, "PATCH", "/v1/crm/contacts/nobody", json!({ "name": "Ada" }), 400),
        (crm, "POST", "/v1/crm/opportunities", json!({ "contactId": nobody }), 404),
        (crm, "PATCH", &format!("/v1/crm/opportunities/{nobody}"), json!({ "name": "Ada" }), 404),
        (crm, "POST", "/v1/crm/bookings", booking, 409),
        (crm, "PATCH", &format!("/v1/crm/bookings/{nobody}"), elsewhen, 404),
        (crm, "DELETE", &format!("/v1/crm/bookings/{nobody}"), json!({ "leadId": uuid(LEAD) }), 404),
        (settings, "POST", "/settings/keys", json!({ "name": "x" }), 400),
        (settings, "POST", "/settings/keys/key_0/rotate", json!({}), 404),
        (settings, "POST", "/settings/webhooks", json!({ "url": "http://10.0.0.1/" }), 400),
        (settings, "POST", "/settings/webhooks/we_0/rotate-secret", json!({}), 404),
        (settings, "POST", "/settings/webhooks/we_0/test", json!({}), 404),
        (settings, "POST", &format!("{endpoint}/recover"), json!({}), 400),
        (settings, "POST", &format!("{endpoint}/deliveries/dlv_0/retry"), json!({}), 404),
    ] {
        refused.refuse(caller, method, path, &body.to_string(), status).await;
    }
    for (caller, path) in [(partner, "/v1/clients"), (crm, "/v1/crm/contacts"), (settings, "/settings/keys")] {
        refused.refuse(caller, "POST", path, "{\"name\":", 400).await;
    }
    settings.patch(&endpoint, json!({ "enabled": false })).await.expect(200);
    for (path, body) in [
        (format!("{endpoint}/test"), json!({})),
        (format!("{endpoint}/recover"), since.clone()),
        (format!("{delivery}/retry"), json!({})),
    ] {
        refused.refuse(settings, "POST", &path, &body.to_string(), 409).await;
    }
    assert_same(
        "the refusals in tests/idempotency/refusals.rs",
        refused.routes.clone(),
        ROWS.iter().map(|row| row.route),
    );
    let codes: Vec<&Value> = refused.answers[1..3].iter().map(|(_, first)| &first.body["code"]).collect();
    assert_eq!(codes, ["email_taken", "plan_limit_reached"]);
    refused.assert_replayed().await;
    settings.patch(&endpoint, json!({ "enabled": true })).await.expect(200);
    scene.world.coach("ada").await;
    refused.assert_replayed().await;
    assert_eq!(scene.world.items("clients", "CLIENT#").await.len(), 2, "the application's, and the first one");
    // A replay does not repeat the `Retry-After` of a recovery that ran at the time.
    let recover = || settings.post(&format!("{endpoint}/recover"), since.clone());
    scene.world.faults(json!({ "function": "deliver", "store_failures": 1_000_000 })).await;
    recover().idempotent("first").await.expect(202);
    let running = recover().idempotent("second").await.refused(409, "recovery_running");
    assert!(running.header("retry-after").is_some());
    scene.world.clear_faults().await;
    scene.world.advance_s(300).await;
    assert_replay_of(&recover().idempotent("second").await, &running);
    recover().idempotent("third").await.expect(202);
}

#[tokio::test]
async fn a_refusal_for_a_limit_or_an_unknown_workspace_is_not_recorded() {
    let scene = Scene::start().await;
    let prepared = scene.prepare(row_of(TEST)).await;
    scene.world.advance_to_next_minute().await;
    for _ in 0..10 {
        prepared.call.clone().without("idempotency-key").await.expect(202);
    }
    for _ in 0..2 {
        let limited = prepared.send().await.refused(429, "rate_limited");
        assert!(!limited.is_replay() && limited.header("retry-after").is_some());
    }
    let prepared = scene.again(prepared).await;
    let first = prepared.send().await.expect(202);
    assert!(!first.is_replay());
    scene.assert_done_once(&prepared, &first).await;

    let bob = scene.world.settings_of("bob").await;
    let (path, body) = scene.new_key().await;
    let create = || bob.post(&path, body.clone()).idempotent("one");
    create().await.refused(409, "workspace_unknown");
    scene.world.coach("bob").await;
    assert!(!create().await.expect(201).is_replay());
    assert!(create().await.is_replay());
}
