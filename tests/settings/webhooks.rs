//! `/settings/webhooks`: register, change and delete endpoints.

mod activity;
mod health;
mod limits;
mod recoveries;
pub(crate) mod retry;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::settings::start_with_session;
use crate::world::list;

fn endpoint(url: &str) -> Value {
    json!({ "url": url, "events": ["new_client"], "payload_mode": "identifiers" })
}

#[tokio::test]
async fn an_endpoints_secret_is_shown_once() {
    let (_world, settings) = start_with_session().await;
    let mut body = endpoint("https://hooks.example.com/a?b=c");
    body["events"] = json!(["message_received", "new_client", "new_client"]);
    let made = settings.post("/settings/webhooks", body).await.expect(201);
    let mut view = made.body.clone();
    let secret = view.as_object_mut().unwrap().remove("secret").unwrap();
    assert_eq!(STANDARD.decode(secret.as_str().unwrap().strip_prefix("whsec_").unwrap()).unwrap().len(), 32);
    assert_eq!((&view["url"], &view["status"]), (&json!("https://hooks.example.com/a?b=c"), &json!("enabled")));
    assert_eq!(view["events"], json!(["new_client", "message_received"]), "each once");
    assert_eq!(settings.get(&format!("/settings/webhooks/{}", made.str("id"))).await.expect(200).body, view);
    assert_eq!(settings.get("/settings/webhooks").await.expect(200).body, json!({ "endpoints": [view] }));
}

#[tokio::test]
async fn a_refused_url_is_not_quoted_and_a_name_need_not_resolve() {
    let (_world, settings) = start_with_session().await;
    for (url, reason) in [
        ("https://user:password@hooks.example.com/", "user name or password"),
        ("https://169.254.169.254/latest/meta-data", "special address"),
    ] {
        let refused = settings.post("/settings/webhooks", endpoint(url)).await.refused_for("url");
        assert!(refused.error().contains(reason), "{url}: {}", refused.text);
        assert!(!refused.text.contains("password@") && !refused.text.contains("latest"), "{}", refused.text);
    }
    assert_eq!(settings.get("/settings/webhooks").await.body["endpoints"], json!([]));
    settings.post("/settings/webhooks", endpoint("https://does-not-resolve.example.com/")).await.expect(201);
}

#[tokio::test]
async fn a_change_sets_its_fields_and_keeps_the_others() {
    let (world, settings) = start_with_session().await;
    let made = settings.post("/settings/webhooks", endpoint("https://hooks.example.com/a")).await.expect(201);
    let path = format!("/settings/webhooks/{}", made.str("id"));
    let mut expected = settings.get(&path).await.expect(200).body;
    for (field, value) in [
        ("url", json!("https://hooks.example.com/b")),
        ("events", json!(["phase_advanced"])),
        // Automations may send to an endpoint without subscriptions.
        ("events", json!([])),
        ("description", json!("New")),
        ("description", Value::Null),
    ] {
        let changed = settings.patch(&path, json!({ field: value })).await.expect(200);
        expected[field] = value;
        assert_eq!(changed.body, expected);
        assert_eq!(settings.get(&path).await.body, expected);
    }
    let off = settings.patch(&path, json!({ "enabled": false })).await.expect(200);
    assert_eq!((&off.body["status"], off.body["disabled_at"].is_string()), (&json!("disabled"), true));
    assert!(off.body["disabled_reason"].is_string());
    world.advance_s(60).await;
    assert_eq!(settings.patch(&path, json!({ "enabled": false })).await.body, off.body, "off is off");
    assert_eq!(settings.patch(&path, json!({ "enabled": true })).await.expect(200).body, expected);
    settings.patch(&path, json!({ "url": "http://10.0.0.1/" })).await.refused_for("url");
    assert_eq!(settings.get(&path).await.body, expected);
}

#[tokio::test]
async fn a_deleted_endpoint_is_gone() {
    let (_world, settings) = start_with_session().await;
    let made = settings.post("/settings/webhooks", endpoint("https://hooks.example.com/a")).await.expect(201);
    let path = format!("/settings/webhooks/{}", made.str("id"));
    settings.delete(&path).await.expect(200);
    for call in [
        settings.get(&path),
        settings.delete(&path),
        settings.patch(&path, json!({ "enabled": true })),
        settings.get(&format!("{path}/deliveries")),
    ] {
        call.await.refused(404, "not_found");
    }
    assert_eq!(settings.get("/settings/webhooks").await.body["endpoints"], json!([]));
}

#[tokio::test]
async fn a_workspace_has_at_most_20_endpoints() {
    let (_world, settings) = start_with_session().await;
    let make = || settings.post("/settings/webhooks", endpoint("https://hooks.example.com/a"));
    for _ in 0..19 {
        make().await.expect(201);
    }
    let replies = futures::future::join_all((0..4).map(|_| std::future::IntoFuture::into_future(make()))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1, "at 19, of four at once one is made");
    make().await.refused(409, "endpoint_limit_reached");
    let listed = list(settings.get("/settings/webhooks").await.body["endpoints"].clone());
    assert_eq!(listed.len(), 20);
    settings.delete(&format!("/settings/webhooks/{}", listed[0]["id"].as_str().unwrap())).await.expect(200);
    make().await.expect(201);
}
