//! Who may use the settings API, and from which page.

use serde_json::json;

use crate::world::{World, members};

#[tokio::test]
async fn a_session_opens_the_settings_and_nothing_else_does() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    ada.settings().await.get("/settings/keys").await.expect(200);
    let key = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let token = world.anonymous().post("/_local/session", json!({ "coach_id": "ada" })).await.str("token").to_owned();
    let (head, signature) = token.rsplit_once('.').unwrap();
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    let elsewhere = World::start().await;
    let foreign =
        elsewhere.anonymous().post("/_local/session", json!({ "coach_id": "ada" })).await.str("token").to_owned();
    for bad in
        [key.str("key"), &format!("{head}.{flipped}{}", &signature[1..]), &format!("{head}."), head, &foreign, "x"]
    {
        world.anonymous().bearing(bad).get("/settings/keys").await.expect(401);
        world.anonymous().bearing(bad).post("/settings/webhooks", json!({})).await.expect(401);
    }
    world.anonymous().get("/settings/keys").await.expect(401);
    world.anonymous().with("x-api-key", key.str("key")).get("/settings/keys").await.expect(401);
    // The gateway refuses by itself, with its own body.
    let refused = world.anonymous().get("/settings/keys").await;
    assert_eq!(members(&refused.body), ["message"]);
}

#[tokio::test]
async fn a_session_does_not_open_the_api() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    for path in ["/v1/ping", "/v1/clients"] {
        settings.get(path).await.refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn there_are_no_settings_before_the_workspace() {
    let world = World::start().await;
    let settings = world.settings_of("ada").await;
    for call in [
        settings.get("/settings/keys"),
        settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })),
        settings.post("/settings/keys/key_0/rotate", json!({})),
        settings.delete("/settings/keys/key_0"),
        settings.get("/settings/webhooks"),
        settings.post("/settings/webhooks", json!({})),
        settings.get("/settings/webhooks/we_0"),
        settings.patch("/settings/webhooks/we_0", json!({ "enabled": true })),
        settings.delete("/settings/webhooks/we_0"),
        settings.get("/settings/webhooks/we_0/deliveries"),
    ] {
        call.await.refused(409, "workspace_unknown");
    }
    world.coach("ada").await;
    settings.get("/settings/keys").await.expect(200);
}

#[tokio::test]
async fn the_settings_page_alone_may_call_from_a_browser() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    let page = world.base_url();
    let preflight = |origin: &str, path: &str| {
        let call = world.anonymous().call("OPTIONS", path).header("origin", origin);
        call.header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type")
    };
    let allowed = preflight(&page, "/settings/keys").await.expect(204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(page.as_str()));
    let listed = |name: &str| allowed.header(name).unwrap().to_ascii_lowercase();
    for method in ["get", "post", "patch", "delete"] {
        assert!(listed("access-control-allow-methods").contains(method));
    }
    for header in ["authorization", "content-type"] {
        assert!(listed("access-control-allow-headers").contains(header));
    }
    let other = preflight("https://elsewhere.example", "/settings/keys").await;
    assert_eq!(other.header("access-control-allow-origin"), None);
    let answer = settings.get("/settings/keys").header("origin", &page).await.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(page.as_str()));
    let answer = settings.get("/settings/keys").header("origin", "https://elsewhere.example").await;
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
