//! `GET /settings/webhooks/{id}/deliveries/{delivery_id}`: the request as its receiver got it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::feed::erasure::erased;
use crate::world::{Answer, Caller, Endpoint, Hook, Receiver, World, list, members, until};

/// The newest delivery of an endpoint, as the single read shows it.
pub(crate) async fn newest(settings: &Caller, endpoint: &Endpoint) -> Value {
    let path = format!("/settings/webhooks/{}/deliveries", endpoint.id);
    let listed = settings.get(&format!("{path}?limit=1")).await.expect(200).body["data"][0].clone();
    let mut read = settings.get(&format!("{path}/{}", listed["id"].as_str().unwrap())).await.expect(200).body;
    let found = read.clone();
    for own in ["request", "body_erased"] {
        read.as_object_mut().unwrap().remove(own).unwrap_or_else(|| panic!("no {own} in {found}"));
    }
    assert_eq!(read, listed, "the other members are those of the list");
    found
}

/// Asserts that the shown request is the one that the receiver got.
#[track_caller]
pub(crate) fn assert_sent(delivery: &Value, hook: &Hook) {
    let request = &delivery["request"];
    assert_eq!(members(request), ["body", "headers", "url_host"]);
    assert_eq!(request["url_host"], "127.0.0.1");
    assert_eq!(request["body"].as_str().unwrap().as_bytes(), hook.body);
    assert_eq!(delivery["body_erased"], false);
    let shown = request["headers"].as_object().unwrap();
    for (name, value) in shown {
        assert_eq!(value.as_str(), Some(hook.header(name)), "{name}");
    }
    let mut received: Vec<&str> = hook.headers.keys().map(|name| name.as_str()).collect();
    received.retain(|name| !["content-length", "host"].contains(name));
    received.sort_unstable();
    assert_eq!(shown.keys().map(String::as_str).collect::<Vec<_>>(), received);
}

/// Asserts that no delivery holds a signature.
async fn assert_no_signature_stored(world: &World) {
    for item in world.table("deliveries").await {
        assert!(!item.to_string().contains("v1,"), "{item}");
    }
}

#[tokio::test]
async fn a_delivery_shows_the_request_of_its_latest_attempt_as_it_was_sent() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.receiver.script([Answer::status(500), Answer::status(500)]);
    scene.event("c1").await;
    for (attempts, gap_s) in [(1, 10), (2, 70), (3, 0)] {
        let hooks = scene.receiver.hooks();
        let delivery = newest(&settings, &endpoint).await;
        assert_eq!((hooks.len(), list(delivery["attempts"].clone()).len()), (attempts, attempts));
        assert_sent(&delivery, &hooks[attempts - 1]);
        let signatures = delivery["request"]["headers"]["webhook-signature"].as_str().unwrap().split(' ').count();
        assert_eq!(signatures, attempts, "one of each secret");
        settings.post(&format!("/settings/webhooks/{}/rotate-secret", endpoint.id), json!({})).await.expect(200);
        scene.world.advance_s(gap_s).await;
    }
    let text = settings.get(&format!("/settings/webhooks/{}/deliveries", endpoint.id)).await.text;
    assert!(
        !text.contains("v1,") && !text.contains("@clients.example"),
        "the list has no signature and no body: {text}"
    );
}

#[tokio::test]
async fn a_request_is_that_of_its_time_whatever_became_of_the_endpoint() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.event("c1").await;
    let sent = newest(&settings, &endpoint).await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&at, json!({ "url": "https://elsewhere.example.com/x" })).await.expect(200);
    settings.post(&format!("{at}/rotate-secret"), json!({})).await.expect(200);
    assert_eq!(newest(&settings, &endpoint).await, sent);
    assert_sent(&sent, &scene.receiver.hooks()[0]);
}

#[tokio::test]
async fn there_is_no_request_before_the_first_attempt() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    scene.event("missed").await;
    let missed = newest(&settings, &endpoint).await;
    assert_eq!((&missed["request"], &missed["status"]), (&Value::Null, &json!("failed")));
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    let id = missed["id"].as_str().unwrap();
    scene.receiver.script([Answer::status(204).after(Duration::from_secs(10))]);
    settings.post(&format!("{at}/deliveries/{id}/retry"), json!({})).await.expect(202);
    let under_way = newest(&settings, &endpoint).await;
    assert_eq!((&under_way["request"], &under_way["status"]), (&Value::Null, &json!("pending")));
    scene.world.settle().await;
    assert_sent(&newest(&settings, &endpoint).await, &scene.receiver.hooks()[0]);
    for unknown in ["dlv_1", "dlv_00000000000000000000000000000000", "x"] {
        settings.get(&format!("{at}/deliveries/{unknown}")).await.refused(404, "not_found");
    }
    settings.get(&format!("/settings/webhooks/we_1/deliveries/{id}")).await.refused(404, "not_found");
}

#[tokio::test]
async fn an_erasure_takes_body_and_signature_and_leaves_the_other_headers() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.event("c1").await;
    let mut expected = newest(&settings, &endpoint).await;
    scene.world.apply([erased("c1")]).await;
    expected["body_erased"] = json!(true);
    expected["request"]["body"] = Value::Null;
    expected["request"]["headers"].as_object_mut().unwrap().remove("webhook-signature").unwrap();
    assert_eq!(newest(&settings, &endpoint).await, expected);
    assert_no_signature_stored(&scene.world).await;
}

#[tokio::test]
async fn an_attempt_that_ends_after_its_clients_erasure_leaves_no_signature() {
    let scene = EndpointScene::new().await;
    let (ada, _, settings) = scene.coach().await;
    let slow = Receiver::start().await;
    let endpoint = ada.endpoint(&slow.url(), "contact_details").await;
    slow.script([Answer::status(500)]);
    slow.otherwise(Answer::status(500).after(Duration::from_secs(4)));
    scene.event("c1").await;
    // The first attempt has left a signature. The second is under way.
    let clock = scene.world.advance_s(10);
    let erase = async {
        until("the second attempt", async || slow.hooks().len() == 2).await;
        scene.world.publish([erased("c1")]).await;
    };
    futures::future::join(clock, erase).await;
    scene.world.settle().await;
    let delivery = newest(&settings, &endpoint).await;
    assert_eq!((&delivery["body_erased"], &delivery["request"]["body"]), (&json!(true), &Value::Null));
    let headers = &delivery["request"]["headers"];
    assert_eq!(headers["webhook-timestamp"], slow.hooks()[1].header("webhook-timestamp"));
    assert!(headers.get("webhook-signature").is_none(), "{headers}");
    assert_no_signature_stored(&scene.world).await;
}
