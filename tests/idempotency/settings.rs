//! Idempotency of the settings: routes that ignore the header, limits, and the costs of a key.

use edge::routes::Access;
use serde_json::{Value, json};

use crate::idempotency::rows::{Prepared, RECOVER, RETRY, ROWS, Scene, TEST, assert_replay_of, row_of};
use crate::world::Bill;

#[tokio::test]
async fn other_methods_ignore_the_header_and_a_post_without_it_takes_effect_each_time() {
    let scene = Scene::start().await;
    let ((keys, key), (endpoints, endpoint)) = (scene.new_key().await, scene.new_endpoint().await);
    let made = scene.settings.post(&endpoints, endpoint).await.expect(201);
    let at = format!("/settings/webhooks/{}", made.str("id"));
    for description in ["one", "two"] {
        let change = scene.settings.patch(&at, json!({ "description": description })).idempotent("one");
        let changed = change.await.expect(200);
        assert_eq!((changed.str("description"), changed.is_replay()), (description, false));
    }
    scene.settings.get(&at).idempotent("").await.expect(200);
    let before = scene.world.items("keys", "KEY#").await.len();
    for _ in 0..2 {
        assert!(!scene.settings.post(&keys, key.clone()).await.expect(201).is_replay());
    }
    assert_eq!(scene.world.items("keys", "KEY#").await.len(), before + 2);
    assert_eq!(scene.world.table("idempotency").await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_replay_counts_toward_the_limit_of_requests_only() {
    let scene = Scene::start().await;
    let prepared = scene.prepare(row_of(TEST)).await;
    scene.world.advance_to_next_minute().await;
    let first = prepared.send().await.expect(202);
    for replays in 1..30 {
        let replay = prepared.send().await;
        assert_replay_of(&replay, &first);
        let left = replay.header("ratelimit").unwrap();
        assert!(left.starts_with(&format!("\"settings\";r={};t=", 299 - replays)), "{left}");
    }
    for _ in 1..10 {
        prepared.call.clone().without("idempotency-key").await.expect(202);
    }
    prepared.call.clone().without("idempotency-key").await.refused(429, "rate_limited");
    assert_replay_of(&prepared.send().await, &first);
}

#[tokio::test]
async fn an_idempotency_key_costs_one_or_two_calls() {
    let scene = Scene::start().await;
    for row in ROWS.iter().filter(|row| row.access() == Access::Session) {
        let bill = async |prepared: Prepared, key: Option<&str>| {
            let call =
                key.map_or(prepared.call.clone().without("idempotency-key"), |key| prepared.call.idempotent(key));
            assert!(call.await.status < 300);
            Bill::of(&scene.world.calls("settings").await[0])
        };
        let without = bill(scene.prepare(row).await, None).await;
        let with = bill(scene.prepare(row).await, Some(row.route)).await;
        let (calls, write_units) = match row.route {
            TEST | RETRY | RECOVER => (1, 3.0),
            // The secret is an item of its own.
            _ => (1, 5.0),
        };
        assert_eq!(with.calls, without.calls + calls, "{}: {with:?} {without:?}", row.route);
        assert!(with.write_units <= without.write_units + write_units, "{}: {with:?} {without:?}", row.route);
    }
}
