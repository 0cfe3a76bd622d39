//! Faults: keeping a record never changes an answer, and a function that dies before it has done its work.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{key, requests};
use crate::world::{Caller, LAPSED_S, Reply, SDK_ATTEMPTS, World};

/// Calls of the first creation before its record is kept. The last of them stores the client, and follows the claim in
/// any case: a claim and the reads beside it come in any order.
const FIRST_CALLS: usize = 6;

fn draft(email: &str) -> Value {
    json!({ "email": email, "full_name": "Grace", "send_welcome": false })
}

/// Creates a client with an idempotency key of its own.
async fn create(partner: &Caller, name: &str) -> Reply {
    partner.post("/v1/clients", draft(&format!("{name}@example.com"))).idempotent(name).await
}

#[tokio::test]
async fn a_record_that_cannot_be_kept_is_a_figure_and_never_an_error() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, _) = key(&ada, "partner").await;
    let settings = ada.settings().await;
    for name in ["first", "usual"] {
        create(&partner, name).await.expect(201);
    }
    let calls_before = world.calls("clients").await[0]["calls"].as_array().unwrap().len() - 1;
    for fault in ["store_failures", "store_lost_answers"] {
        world.faults(json!({ "function": "clients", "spared_calls": calls_before, fault: 1 })).await;
        create(&partner, fault).await.expect(201);
        assert_eq!(world.remaining_faults().await[fault], 0, "{fault}");
        world.clear_faults().await;
    }
    // The second fault lost the answer alone. A repeat is an answer of its own.
    assert_eq!(requests(&settings, "").await.len(), 3);
    let replay = create(&partner, "store_failures").await.expect(201);
    assert!(replay.is_replay());
    assert_eq!(requests(&settings, "").await[0]["replayed"], true);
    let lines: Vec<Value> = world.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let lost: Vec<_> = lines.iter().filter_map(|line| line.get("request_log_lost")).collect();
    assert_eq!(lost, [1, 1]);
    assert!(lines.iter().all(|line| line["level"] != "ERROR"));
}

#[tokio::test]
async fn a_request_that_failed_is_kept() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, _) = key(&ada, "partner").await;
    // The check of a new key comes first, then a read that fails as often as it is tried.
    world.faults(json!({ "function": "clients", "spared_calls": 1, "store_failures": SDK_ATTEMPTS })).await;
    let failed = partner.get("/v1/clients").await.refused(500, "internal");
    let record = &requests(&ada.settings().await, "&status=5xx").await[0];
    let expected = json!([failed.header("x-request-id"), 500, "internal"]);
    assert_eq!(json!([record["id"], record["status"], record["code"]]), expected);
}

#[tokio::test]
async fn a_record_takes_a_third_of_a_second_at_most() {
    let world = World::start_in_real_time().await;
    let ada = world.coach("ada").await;
    let (partner, _) = key(&ada, "partner").await;
    partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    world.faults(json!({ "function": "clients", "spared_calls": 2, "stalled_calls": 1 })).await;
    let began = Instant::now();
    partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    let took = began.elapsed();
    assert_eq!(world.remaining_faults().await["stalled_calls"], 0);
    assert!((Duration::from_millis(250)..Duration::from_secs(3)).contains(&took), "{took:?}");
    assert_eq!(requests(&ada.settings().await, "").await.len(), 1);
}

#[tokio::test]
async fn a_function_that_dies_before_the_record_has_done_its_work() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, _) = key(&ada, "partner").await;
    let settings = ada.settings().await;
    world.faults(json!({ "function": "clients", "spared_calls": FIRST_CALLS, "crash_before_call": 1 })).await;
    let lost = create(&partner, "grace").await;
    assert!(lost.status >= 500, "{}", lost.text);
    assert_eq!(world.remaining_faults().await["crash_before_call"], 0);
    assert_eq!(requests(&settings, "").await, Vec::<Value>::new());
    let repeat = create(&partner, "grace").await.expect(201);
    assert!(repeat.is_replay());
    let [record] = &requests(&settings, "").await[..] else { panic!("the repeat is kept") };
    assert_eq!(json!([record["status"], record["replayed"]]), json!([201, true]));
    let clients = partner.get("/v1/clients").await.expect(200);
    assert_eq!(clients.body["clients"].as_array().unwrap().len(), 1);
}

/// A takeover and the attempt before it are two requests.
#[tokio::test]
async fn a_takeover_has_a_record_of_its_own() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, _) = key(&ada, "partner").await;
    let settings = ada.settings().await;
    world.faults(json!({ "function": "clients", "spared_calls": FIRST_CALLS - 1, "crash_before_call": 1 })).await;
    assert!(create(&partner, "grace").await.status >= 500);
    create(&partner, "grace").await.assert_in_progress();
    world.advance_s(LAPSED_S).await;
    create(&partner, "grace").await.expect(201);
    let shown: Vec<Value> = requests(&settings, "").await.iter().map(|record| record["status"].clone()).collect();
    assert_eq!(shown, [201, 409]);
}
