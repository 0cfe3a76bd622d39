//! The events that a key may read: shown, changed, copied by a rotation, and noted on the coach's key ring.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::changes::{listed, overtaken};
use super::{new_key, path};
use crate::crm::contacts::merges::pseudo_random;
use crate::settings::start_with_session;
use crate::world::{Caller, Reply, World, list, members, time};

/// Seeds of the sequences that are compared with the model.
const SEEDS: std::ops::Range<u64> = if cfg!(feature = "long-simulation") { 0..40 } else { 0..4 };
const STEPS: usize = 40;
/// The end of a reader that never expires.
const NEVER_MS: i64 = i64::MAX;

fn contact_details() -> Value {
    json!({ "types": ["new_client", "check_in_submitted"], "payload_mode": "contact_details" })
}

fn identifiers() -> Value {
    json!({ "types": ["message_received"], "payload_mode": "identifiers" })
}

/// The keys that the coach's ring notes as readers, with their ends in milliseconds.
async fn readers(world: &World) -> BTreeMap<String, i64> {
    let items = world.items("keys", "COACH#ada").await;
    let ring = items.iter().find(|item| item["sk"]["S"] == "KEYS").unwrap();
    let noted = ring.as_object().unwrap().iter().filter_map(|(name, value)| {
        let id = name.strip_prefix("events_")?;
        Some((id.to_owned(), value["N"].as_str().unwrap().parse().unwrap()))
    });
    noted.collect()
}

/// The readers by the keys as the settings show them: live keys with events.
async fn shown_readers(settings: &Caller) -> BTreeMap<String, i64> {
    let keys = list(settings.get("/settings/keys?status=live&limit=200").await.expect(200).body["keys"].clone());
    let readers = keys.iter().filter(|key| !key["events"].is_null()).map(|key| {
        let ends_ms =
            if key["works_until"].is_null() { NEVER_MS } else { time(&key["works_until"]).timestamp_millis() };
        (key["id"].as_str().unwrap().to_owned(), ends_ms)
    });
    readers.collect()
}

/// Checks that the ring notes the live keys with events, and no other key that has not ended.
async fn assert_ring_equals_keys(world: &World, settings: &Caller, after: &str) {
    let (shown, mut noted) = (shown_readers(settings).await, readers(world).await);
    let now_ms = world.now().await.timestamp_millis();
    noted.retain(|_, ends_ms| *ends_ms > now_ms);
    assert_eq!(noted, shown, "after {after}");
}

#[tokio::test]
async fn events_are_replaced_kept_and_removed() {
    let (world, settings) = start_with_session().await;
    let made = new_key(&settings, json!({ "name": "x", "scope": "partner" })).await;
    let mut expected = listed(&settings, &made).await;
    for (change, events) in [
        (json!({ "events": contact_details() }), contact_details()),
        (json!({ "name": "y" }), contact_details()),
        (json!({ "expires_at": world.timestamp_in(3600).await }), contact_details()),
        (json!({ "events": identifiers(), "name": "z", "expires_at": null }), identifiers()),
        (json!({ "events": null }), Value::Null),
        (json!({ "events": null }), Value::Null),
    ] {
        let changed = settings.patch(&path(&made), change.clone()).await.expect(200);
        for (field, value) in change.as_object().unwrap() {
            expected[field] = value.clone();
        }
        expected["events"] = events;
        expected["works_until"] = expected["expires_at"].clone();
        assert_eq!(changed.body, expected);
        assert_eq!(listed(&settings, &made).await, expected);
        let line = &settings.get("/settings/audit?limit=1").await.expect(200).body["data"][0];
        let mut fields: Vec<&str> =
            line["detail"]["changed"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, members(&change), "{line}");
    }
}

#[tokio::test]
async fn a_rotation_copies_events_and_ends_those_of_the_old_key_with_it() {
    let (world, settings) = start_with_session().await;
    let old = new_key(&settings, json!({ "name": "x", "scope": "partner", "events": identifiers() })).await;
    let id = |key: &Reply| key.str("id").to_owned();
    assert_eq!(readers(&world).await, BTreeMap::from([(id(&old), NEVER_MS)]));
    let new = settings.post(&format!("{}/rotate", path(&old)), json!({})).await.expect(201);
    assert_eq!(new.body["events"], identifiers());
    let overlap_ends = (time(&new.body["created_at"]) + TimeDelta::hours(24)).timestamp_millis();
    assert_eq!(readers(&world).await, BTreeMap::from([(id(&old), overlap_ends), (id(&new), NEVER_MS)]));
    // The replaced key keeps its events until it ends.
    for events in [Value::Null, contact_details()] {
        let refused = settings.patch(&path(&old), json!({ "name": "y", "events": events })).await;
        refused.refused(409, "key_not_active");
    }
    settings.delete(&path(&new)).await.expect(200);
    settings.patch(&path(&new), json!({ "events": null })).await.refused(409, "key_revoked");
    assert_eq!(readers(&world).await, BTreeMap::from([(id(&old), overlap_ends)]));
    world.advance_s(86_400 + 60).await;
    let settings = world.settings_of("ada").await;
    settings.patch(&path(&old), json!({ "events": null })).await.refused(409, "key_not_active");
    assert_eq!(listed(&settings, &old).await["events"], identifiers());
}

#[tokio::test]
async fn a_change_of_events_and_a_rotation_at_once_leave_no_key_with_events_that_were_removed() {
    let (world, settings) = start_with_session().await;
    let make = async || new_key(&settings, json!({ "name": "x", "scope": "partner", "events": identifiers() })).await;
    let rotate = |key: &Reply| settings.post(&format!("{}/rotate", path(key)), json!({}));
    // The removal overtakes the rotation.
    let old = make().await;
    let new = overtaken(&world, rotate(&old), async || {
        settings.patch(&path(&old), json!({ "events": null })).await.expect(200);
    });
    assert_eq!(new.await.expect(201).body["events"], Value::Null);
    assert_ring_equals_keys(&world, &settings, "a removal beside a rotation").await;
    // The rotation overtakes the removal, which is refused: the coach learns that there is another key.
    let old = make().await;
    let removal = settings.patch(&path(&old), json!({ "events": null, "expires_at": null }));
    overtaken(&world, removal, async || drop(rotate(&old).await.expect(201))).await.refused(409, "key_not_active");
    assert_ring_equals_keys(&world, &settings, "a rotation beside a removal").await;
    // Any order.
    for _ in 0..6 {
        let old = make().await;
        let removal = settings.patch(&path(&old), json!({ "events": null }));
        let (new, removal) = futures::future::join(rotate(&old).into_future(), removal.into_future()).await;
        let new = new.expect(201);
        if removal.status == 200 {
            assert_eq!(new.body["events"], Value::Null);
        } else {
            removal.refused(409, "key_not_active");
            assert_eq!(new.body["events"], identifiers());
        }
        assert_ring_equals_keys(&world, &settings, "both at once").await;
    }
}

#[tokio::test]
async fn changes_of_a_keys_events_and_of_its_expiry_at_once_both_take_effect() {
    let (world, settings) = start_with_session().await;
    let ends = json!(world.timestamp_in(3600).await);
    let made = new_key(&settings, json!({ "name": "x", "scope": "partner" })).await;
    let expiry = settings.patch(&path(&made), json!({ "expires_at": ends }));
    let changed = overtaken(&world, expiry, async || {
        settings.patch(&path(&made), json!({ "events": identifiers() })).await.expect(200);
    });
    let changed = changed.await.expect(200);
    assert_eq!((&changed.body["events"], &changed.body["works_until"]), (&identifiers(), &ends));
    let expected = BTreeMap::from([(made.str("id").to_owned(), time(&ends).timestamp_millis())]);
    assert_eq!(readers(&world).await, expected);
    let removal = settings.patch(&path(&made), json!({ "events": null, "expires_at": null }));
    let revoked = overtaken(&world, removal, async || drop(settings.delete(&path(&made)).await.expect(200)));
    revoked.await.refused(409, "key_revoked");
    assert_eq!(readers(&world).await, BTreeMap::new());
}

#[tokio::test]
async fn a_full_ring_forgets_readers_that_have_ended() {
    let (world, settings) = start_with_session().await;
    let ends = world.timestamp_in(60).await;
    for number in 0..50 {
        let events = if number % 2 == 0 { identifiers() } else { Value::Null };
        new_key(&settings, json!({ "name": "x", "scope": "partner", "expires_at": ends, "events": events })).await;
    }
    assert_eq!(readers(&world).await.len(), 25);
    world.advance_s(61).await;
    let made = new_key(&settings, json!({ "name": "x", "scope": "partner", "events": identifiers() })).await;
    assert_eq!(readers(&world).await, BTreeMap::from([(made.str("id").to_owned(), NEVER_MS)]));
}

#[tokio::test]
async fn the_ring_equals_the_keys_after_any_sequence_of_changes() {
    for seed in SEEDS {
        let world = World::start().await;
        let ada = world.coach("ada").await;
        let mut settings = ada.settings().await;
        let mut pick = pseudo_random(seed);
        let mut keys: Vec<String> = Vec::new();
        for step in 0..STEPS {
            let events = [Value::Null, identifiers(), contact_details()][pick(3)].clone();
            let ends = [Value::Null, json!(world.timestamp_in([600, 7_200, 400_000][pick(3)]).await)][pick(2)].clone();
            let key = (!keys.is_empty()).then(|| format!("/settings/keys/{}", keys[pick(keys.len())]));
            let (what, reply) = match (pick(8), key) {
                (0 | 1, _) | (_, None) => {
                    let body = json!({ "name": "x", "scope": "partner", "events": events, "expires_at": ends });
                    ("a creation", settings.post("/settings/keys", body).await)
                }
                (2, Some(key)) => ("a rotation", settings.post(&format!("{key}/rotate"), json!({})).await),
                (3, Some(key)) => ("a revocation", settings.delete(&key).await),
                (4, Some(key)) => ("other events", settings.patch(&key, json!({ "events": events })).await),
                (5, Some(key)) => ("another expiry", settings.patch(&key, json!({ "expires_at": ends })).await),
                (6, Some(key)) => {
                    let change = json!({ "name": "y", "events": events, "expires_at": ends });
                    ("a change of all", settings.patch(&key, change).await)
                }
                (_, Some(_)) => {
                    world.advance_s([60, 3_600, 90_000][pick(3)]).await;
                    settings = ada.settings().await;
                    ("a while", settings.get("/settings/workspace").await)
                }
            };
            assert!([200, 201, 409].contains(&reply.status), "seed {seed}, step {step}, {what}: {}", reply.text);
            keys.extend((reply.status == 201).then(|| reply.str("id").to_owned()));
            assert_ring_equals_keys(&world, &settings, &format!("seed {seed}, step {step}, {what}")).await;
        }
    }
}
