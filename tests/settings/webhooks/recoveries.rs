//! Recoveries: the deliveries that they are for, their dry runs, and the pages of their jobs.

use std::collections::BTreeSet;

use domain::delivery::PAGE_GAP_S;
use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::settings::webhooks::retry::path;
use crate::world::{Answer, Caller, Endpoint, Fact, fact, list};

const HOUR_S: u64 = 3_600;

impl EndpointScene {
    /// Adds failed deliveries, of events that an endpoint missed while it was switched off.
    pub(super) async fn fail(&self, settings: &Caller, endpoint: &Endpoint, events: usize) {
        let at = format!("/settings/webhooks/{}", endpoint.id);
        settings.patch(&at, json!({ "enabled": false })).await.expect(200);
        let clients = (0..events).map(|_| Fact::client("ada", &format!("c{}", self.world.number())));
        self.world.apply(clients.collect::<Vec<_>>()).await;
        settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    }

    /// Makes each page of a job fail.
    pub(super) async fn hold_jobs(&self) {
        self.world.faults(json!({ "function": "deliver", "store_failures": 1_000_000 })).await;
    }

    /// Lets the pages that failed run again.
    pub(super) async fn release_jobs(&self) {
        self.world.settle().await;
        self.world.clear_faults().await;
        self.world.advance_s(HOUR_S).await;
    }

    /// The items of all deliveries.
    async fn stored_deliveries(&self) -> Vec<Value> {
        let mut items = self.world.items("deliveries", "ENDPOINT#").await;
        items.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("DELIVERY#"));
        items
    }

    /// Asserts that a recovery began one chain for each of the deliveries, and that each is delivered.
    async fn assert_each_recovered_once(&self, deliveries: usize) {
        let stored = self.stored_deliveries().await;
        assert_eq!(stored.len(), deliveries);
        for item in stored {
            assert_eq!((&item["chain"]["N"], &item["status"]["S"]), (&json!("2"), &json!("delivered")));
        }
    }
}

/// The number of deliveries that a dry run counts.
async fn dry_run(settings: &Caller, endpoint: &Endpoint, body: &Value) -> Value {
    let mut body = body.clone();
    body["dry_run"] = json!(true);
    let counted = settings.post(&path(endpoint, "recover"), body).await.expect(200);
    assert_eq!(counted.members(), ["deliveries"]);
    counted.body["deliveries"].clone()
}

/// The number of failed deliveries.
async fn failed(settings: &Caller, endpoint: &Endpoint) -> usize {
    let page = settings.get(&path(endpoint, "deliveries?status=failed&limit=200")).await.expect(200).body;
    page["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_dry_run_counts_what_the_recovery_sends_and_sends_nothing() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    let events = json!({ "events": ["new_client", "message_received"] });
    settings.patch(&at, events).await.expect(200);
    let fail = async |facts: Vec<Fact>| {
        settings.patch(&at, json!({ "enabled": false })).await.expect(200);
        scene.world.apply(facts).await;
        settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    };
    let message = |id: &str| {
        let detail = json!({ "client_id": "c1", "message_id": id, "received_at": "2026-05-01T10:00:00Z" });
        fact("message.received", detail)
    };
    let mut times = vec![scene.world.timestamp_in(0).await];
    fail(vec![Fact::client("ada", "c1"), Fact::client("ada", "c2")]).await;
    scene.world.advance_s(HOUR_S).await;
    times.push(scene.world.timestamp_in(0).await);
    fail(vec![Fact::client("ada", "c3"), message("m1"), message("m2"), message("m3")]).await;
    scene.world.advance_s(HOUR_S).await;
    times.push(scene.world.timestamp_in(0).await);
    let nothing = scene.receiver.hooks().len();
    for (body, expected) in [
        (json!({ "since": times[0] }), 6),
        (json!({ "since": times[1] }), 4),
        (json!({ "since": times[0], "until": times[1] }), 2),
        (json!({ "since": times[0], "until": times[2], "types": ["message_received"] }), 3),
        (json!({ "since": times[0], "types": ["message_received", "new_client"] }), 6),
        (json!({ "since": times[0], "types": ["phase_advanced"] }), 0),
        (json!({ "since": times[1], "until": times[0] }), 0),
        (json!({ "since": times[0], "until": times[0] }), 0),
    ] {
        assert_eq!(dry_run(&settings, &endpoint, &body).await, json!(expected), "{body}");
    }
    scene.world.settle().await;
    assert_eq!((scene.receiver.hooks().len(), failed(&settings, &endpoint).await), (nothing, 6));
    // Each recovery sends what its dry run counted. The next counts the rest.
    for (body, expected) in [
        (json!({ "since": times[0], "until": times[1] }), 2),
        (json!({ "since": times[0], "types": ["message_received"] }), 3),
        (json!({ "since": times[0] }), 1),
        (json!({ "since": times[0] }), 0),
    ] {
        assert_eq!(dry_run(&settings, &endpoint, &body).await, json!(expected), "{body}");
        let recovered = settings.post(&path(&endpoint, "recover"), body).await.expect(202);
        assert_eq!(recovered.body, json!({ "deliveries": expected }));
        scene.world.settle().await;
    }
}

#[tokio::test]
async fn a_dry_run_takes_no_lock_and_leaves_no_line_in_the_audit_trail() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    scene.fail(&settings, &endpoint, 1).await;
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    let stored = async || scene.world.table("workspaces").await.len();
    let before = stored().await;
    assert_eq!(dry_run(&settings, &endpoint, &since).await, json!(1));
    assert_eq!(stored().await, before);
    scene.hold_jobs().await;
    settings.post(&path(&endpoint, "recover"), since.clone()).await.expect(202);
    settings.post(&path(&endpoint, "recover"), since.clone()).await.refused(409, "recovery_running");
    assert_eq!(dry_run(&settings, &endpoint, &since).await, json!(1));
    scene.release_jobs().await;
    assert_eq!(dry_run(&settings, &endpoint, &since).await, json!(0));
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    let body = json!({ "since": "2026-01-01T00:00:00Z", "dry_run": true });
    settings.post(&path(&endpoint, "recover"), body).await.refused(409, "endpoint_disabled");
}

#[tokio::test]
async fn a_recovery_of_a_period_finds_what_the_log_lists_as_failed_in_it() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.receiver.otherwise(Answer::status(500));
    scene.event("before").await;
    scene.world.advance_s(2 * 24 * HOUR_S).await;
    let since = scene.world.timestamp_in(0).await;
    let long_ago = scene.world.timestamp_in(-7 * 24 * 3600).await;
    // The time of the client's creation does not matter.
    let late = Fact::client("ada", "late").with("occurred_at", long_ago.clone()).with("created_at", long_ago);
    scene.world.apply([late]).await;
    scene.event("c1").await;
    scene.world.advance_s(HOUR_S).await;
    let until = scene.world.timestamp_in(0).await;
    scene.event("after").await;
    scene.world.advance_s(HOUR_S).await;
    let later = scene.world.timestamp_in(0).await;
    // All fail for good a day after they were created.
    scene.world.advance_s(2 * 24 * HOUR_S).await;
    let filter = format!("deliveries?status=failed&since={since}&until={until}");
    let listed = list(settings.get(&path(&endpoint, &filter)).await.expect(200).body["data"].clone());
    assert_eq!(listed.len(), 2);
    scene.receiver.otherwise(Answer::status(204));
    let sent = scene.receiver.hooks().len();
    assert_eq!(dry_run(&settings, &endpoint, &json!({ "since": later })).await, json!(0));
    let period = json!({ "since": since, "until": until });
    let recovered = settings.post(&path(&endpoint, "recover"), period.clone()).await.expect(202);
    assert_eq!(recovered.body, json!({ "deliveries": 2 }));
    scene.world.settle().await;
    let expected: BTreeSet<&str> = listed.iter().map(|delivery| delivery["webhook_id"].as_str().unwrap()).collect();
    assert_eq!(scene.webhook_ids()[sent..].iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    assert_eq!(scene.webhook_ids().len(), sent + 2);
    assert_eq!(dry_run(&settings, &endpoint, &period).await, json!(0));
}

#[tokio::test]
async fn a_recovery_goes_on_page_by_page_with_a_pause_until_everything_is_sent() {
    const FAILED: usize = 310;
    const PAGE: usize = 100;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.fail(&settings, &endpoint, FAILED).await;
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    let recovered = settings.post(&path(&endpoint, "recover"), since).await.expect(202);
    assert_eq!(recovered.body, json!({ "deliveries": FAILED }));
    scene.world.settle().await;
    assert_eq!(scene.receiver.hooks().len(), PAGE);
    for pages in 2..=FAILED.div_ceil(PAGE) {
        scene.world.advance_s(u64::from(PAGE_GAP_S) + 1).await;
        assert_eq!(scene.receiver.hooks().len(), FAILED.min(pages * PAGE));
    }
    scene.assert_each_recovered_once(FAILED).await;
    assert_eq!(failed(&settings, &endpoint).await, 0);
}

#[tokio::test]
async fn a_page_that_dies_at_any_call_is_repeated_and_sends_each_event_once() {
    const FAILED: usize = 3;
    /// The calls of a page: the lock, the endpoint, the index, the records, a transaction each, the lock again.
    const CALLS: usize = 5 + FAILED;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    for spared_calls in 0..CALLS {
        scene.fail(&settings, &endpoint, FAILED).await;
        let sent = scene.receiver.hooks().len();
        let fault = json!({ "function": "deliver", "spared_calls": spared_calls, "crash_before_call": 1 });
        scene.world.faults(fault).await;
        let recovered = settings.post(&path(&endpoint, "recover"), since.clone()).await.expect(202);
        assert_eq!(recovered.body, json!({ "deliveries": FAILED }));
        scene.world.advance_s(HOUR_S).await;
        assert_eq!(scene.world.remaining_faults().await["crash_before_call"], 0, "{spared_calls}");
        scene.world.clear_faults().await;
        scene.assert_each_recovered_once(FAILED * (spared_calls + 1)).await;
        // The function may have died within an attempt, which is then made again.
        let sent = scene.receiver.hooks().len() - sent;
        assert!((FAILED..=FAILED + 1).contains(&sent), "{sent} sent when it died after {spared_calls} calls");
        assert_eq!(failed(&settings, &endpoint).await, 0);
    }
}

#[tokio::test]
async fn messages_of_a_recovery_that_arrive_twice_send_each_event_once() {
    const FAILED: usize = 130;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.fail(&settings, &endpoint, FAILED).await;
    scene.world.faults(json!({ "duplicate_messages": true })).await;
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    settings.post(&path(&endpoint, "recover"), since.clone()).await.expect(202);
    scene.world.advance_s(HOUR_S).await;
    scene.assert_each_recovered_once(FAILED).await;
    assert_eq!(scene.receiver.hooks().len(), FAILED);
}

#[tokio::test]
async fn a_recovery_stops_when_its_endpoint_is_switched_off() {
    const FAILED: usize = 3;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    scene.fail(&settings, &endpoint, FAILED).await;
    let recover = || settings.post(&path(&endpoint, "recover"), json!({ "since": "2026-01-01T00:00:00Z" }));
    scene.hold_jobs().await;
    recover().await.expect(202);
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    scene.release_jobs().await;
    assert_eq!((scene.receiver.hooks().len(), failed(&settings, &endpoint).await), (0, FAILED));
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    assert_eq!(recover().await.expect(202).body, json!({ "deliveries": FAILED }));
    scene.hold_jobs().await;
    settings.delete(&at).await.expect(200);
    scene.release_jobs().await;
    assert!(scene.receiver.hooks().len() <= FAILED);
    assert!(scene.world.take_messages("delivery-retries").await.is_empty());
}

#[tokio::test]
async fn a_count_stops_at_ten_thousand_failed_deliveries_and_says_so() {
    const MOST: usize = 10_000;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.fail(&settings, &endpoint, 1).await;
    let one = scene.stored_deliveries().await.remove(0);
    let copy = |number: usize| {
        let (id, mut item) = (format!("{}{number:08}", &one["id"]["S"].as_str().unwrap()[..28]), one.clone());
        item["sk"]["S"] = format!("DELIVERY#{id}").into();
        item["id"]["S"] = id.into();
        item
    };
    let since = json!({ "since": "2026-01-01T00:00:00Z", "dry_run": true });
    for (copies, expected) in
        [(1..MOST, json!({ "deliveries": MOST })), (MOST..MOST + 1, json!({ "deliveries": MOST, "more": true }))]
    {
        scene.world.put_items("deliveries", &copies.map(copy).collect::<Vec<_>>()).await;
        assert_eq!(settings.post(&path(&endpoint, "recover"), since.clone()).await.expect(200).body, expected);
    }
}
