//! `GET /v1/ping`.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn ping_names_the_keys_coach_and_nothing_else() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let reply = key.get("/v1/ping").await.expect(200);
    let expected = json!({
        "ok": true, "coach": { "id": "ada", "email": "ada@coaches.example", "name": "Coach ada" },
        "active_clients": 0, "scope": "partner",
    });
    assert_eq!(reply.body, expected);
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
}

#[tokio::test]
async fn ping_counts_active_clients_only() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let mut ids = Vec::new();
    for number in 0..2 {
        let body = json!({ "email": format!("c{number}@example.com"), "send_welcome": false });
        ids.push(key.post("/v1/clients", body).await.expect(201).str("client_id").to_owned());
    }
    assert_eq!(key.get("/v1/ping").await.body["active_clients"], 2);
    key.patch(&format!("/v1/clients/{}", ids[0]), json!({ "is_active": false })).await.expect(200);
    assert_eq!(key.get("/v1/ping").await.body["active_clients"], 1);
    key.patch(&format!("/v1/clients/{}", ids[0]), json!({ "is_active": true })).await.expect(200);
    assert_eq!(key.get("/v1/ping").await.body["active_clients"], 2);
}
