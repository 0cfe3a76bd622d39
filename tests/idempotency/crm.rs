//! Idempotency of the CRM: sealed answers, and keys of unconfirmed work.

use serde_json::json;

use crate::idempotency::rows::Scene;

#[tokio::test]
async fn recorded_answers_are_unreadable_in_the_table() {
    let scene = Scene::start().await;
    let body = json!({ "name": "Zaphod Beeblebrox", "email": "zaphod@example.com" });
    scene.crm.post("/v1/crm/contacts", body).idempotent("one-two-three").await.expect(201);
    let claims = scene.world.table("idempotency").await;
    assert_eq!(claims.len(), 1);
    let stored = claims[0].to_string();
    for plain in ["Zaphod", "zaphod", "one-two-three"] {
        assert!(!stored.contains(plain), "{stored}");
    }
}

#[tokio::test]
async fn an_idempotency_key_of_unconfirmed_work_accepts_its_payload_only() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let body = |name: &str, key: &str| json!({ "name": name, "email": format!("{key}@example.com") });
    let send = async |name: &str, key: &str| scene.crm.post("/v1/crm/contacts", body(name, key)).idempotent(key).await;
    let mut unconfirmed = 0;
    for spared_calls in 0..6 {
        let key = format!("key-{spared_calls}");
        let claims = world.table("idempotency").await.len();
        world
            .faults(json!({ "function": "crm-contacts", "spared_calls": spared_calls, "store_conflicts": 1_000 }))
            .await;
        let first = send("Lee", &key).await;
        world.faults(json!({ "function": "", "spared_calls": 0, "store_conflicts": 0 })).await;
        if first.status == 201 || world.table("idempotency").await.len() == claims {
            continue;
        }
        first.refused(503, "unconfirmed");
        unconfirmed += 1;
        send("Kim", &key).await.refused(409, "idempotency_payload_mismatch");
        world.advance_s(61).await;
        send("Kim", &key).await.refused(409, "idempotency_payload_mismatch");
        assert_eq!(send("Lee", &key).await.expect(201).body["contact"]["name"], "Lee");
    }
    assert!(unconfirmed > 0);
}
