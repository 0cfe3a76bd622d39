//! `Idempotency-Key` of every write that takes one: replays, refusals, and the scope and lifetime of a key. A new write
//! is covered by a row in `rows`. The modules of one API hold what is special to its writes.

mod creations;
mod faults;
mod fingerprints;
mod refusals;
mod rows;
mod secrets;
mod settings;

use std::future::IntoFuture;

use compare::assert_same;
use domain::mode::Mode;
use edge::routes::{Idempotency, served};
use serde_json::{Value, json};

use crate::idempotency::rows::{Prepared, RECOVER, ROWS, Row, Scene, assert_replay_of};
use crate::idempotency::secrets::assert_replay_without_secret;
use crate::world::{Call, Caller, Reply, the_one_answer};

#[test]
fn every_write_that_takes_an_idempotency_key_has_a_row() {
    let rows = ROWS.iter().map(|row| row.route);
    assert_same(
        "ROWS in tests/idempotency/rows.rs",
        rows,
        // The routes of a sandbox have tests beside it.
        served(Mode::Live).filter(|route| route.idempotency() != Idempotency::None),
    );
}

#[tokio::test]
async fn of_twenty_simultaneous_requests_with_one_key_one_takes_effect_and_is_replayed_byte_for_byte() {
    let scene = Scene::start().await;
    for row in ROWS {
        let prepared = scene.prepare(row).await;
        let replies = futures::future::join_all((0..20).map(|_| prepared.call.clone().into_future())).await;
        let first = the_one_answer(&replies);
        scene.assert_done_once(&prepared, first).await;
        scene.assert_mailed_once(first).await;
    }
}

/// The body with its members in reverse order and more white space.
fn respelled(body: &Value) -> String {
    let members = body.as_object().unwrap().iter().rev();
    format!("{{ {} }}", members.map(|(name, value)| format!("\"{name}\" : {value}")).collect::<Vec<_>>().join(" , "))
}

/// Other payloads than this body: a member changed or left out, an empty object, no body, no JSON.
fn other_bodies(body: &Value) -> Vec<String> {
    let mut others = vec![json!({}).to_string(), String::new(), "{".to_owned(), "nonsense".to_owned()];
    for name in body.as_object().into_iter().flat_map(|members| members.keys()) {
        let mut changed = body.clone();
        changed[name] = json!("Other");
        others.push(changed.to_string());
        changed.as_object_mut().unwrap().remove(name);
        others.push(changed.to_string());
    }
    let own = if body.is_null() { String::new() } else { body.to_string() };
    others.retain(|other| *other != own);
    others
}

#[tokio::test]
async fn another_payload_is_no_repeat_but_the_order_of_members_is_ignored() {
    let scene = Scene::start().await;
    for row in ROWS {
        let prepared = scene.prepare(row).await;
        let first = prepared.send().await;
        if !prepared.body.is_null() {
            let same = prepared.send_body(&respelled(&prepared.body)).await;
            assert_replay_of(&same, &first);
            assert_eq!(same.header("idempotency-payload-mismatch"), None, "{}", row.route);
        }
        for other in other_bodies(&prepared.body) {
            row.assert_mismatch(&prepared.send_body(&other).await, &first);
        }
        scene.assert_done_once(&prepared, &first).await;
    }
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_request() {
    let scene = Scene::start().await;
    let mut last: Option<(Prepared, Reply)> = None;
    for row in ROWS {
        let (other, prepared) = (scene.prepare(row).await, scene.prepare(row).await);
        let first = prepared.send().await;
        row.assert_mismatch(&other.send_under(&prepared.key).await, &first);
        if let Some((last, reply)) = last.filter(|(last, _)| is_same_api(last.row, row)) {
            row.assert_mismatch(&other.send_under(&last.key).await, &reply);
        }
        scene.assert_done_once(&prepared, &first).await;
        last = Some((prepared, first));
    }
}

fn is_same_api(one: &Row, other: &Row) -> bool {
    (one.is_crm(), one.is_partner()) == (other.is_crm(), other.is_partner())
}

#[tokio::test]
async fn a_wrong_header_is_refused_and_records_nothing() {
    let scene = Scene::start().await;
    for row in ROWS {
        let prepared = scene.prepare(row).await;
        let records = scene.world.table("idempotency").await;
        for bad in ["", &"k".repeat(256), "zo\u{eb}", "zo\u{fffd}", "a\tb"] {
            for _ in 0..2 {
                let refused = prepared.send_under(bad).await.refused_for("Idempotency-Key");
                assert!(!refused.is_replay());
            }
        }
        if row.is_crm() {
            let refused = prepared.call.clone().without("idempotency-key").await;
            let refused = refused.refused(400, "idempotency_key_required");
            assert!(refused.error().contains("Idempotency-Key") && !refused.is_replay(), "{}", refused.text);
        }
        scene.assert_no_effect(&prepared).await;
        assert_eq!(scene.world.table("idempotency").await.len(), records.len(), "{}", row.route);
        let longest = format!("{:k<255}", prepared.key);
        let first = prepared.send_under(&longest).await;
        assert!(first.status < 300 && !first.is_replay(), "{}", first.text);
        assert_replay_of(&prepared.send_under(&longest).await, &first);
    }
}

#[tokio::test]
async fn an_idempotency_key_counts_for_24_hours() {
    let mut scene = Scene::start().await;
    scene.kept_endpoints = 2 * ROWS.len();
    let mut sent = Vec::new();
    for row in ROWS {
        sent.push((scene.prepare(row).await, scene.prepare(row).await));
    }
    let replies: Vec<[Reply; 2]> = {
        let send = async |(one, two): &(Prepared, Prepared)| [one.send().await, two.send().await];
        futures::future::join_all(sent.iter().map(send)).await
    };
    let ends = scene.world.now().await.timestamp() + 24 * 3_600;
    scene.world.advance_s(24 * 3_600 - 60).await;
    scene.settings = scene.world.settings_of("ada").await;
    for ((one, two), firsts) in sent.iter().zip(&replies) {
        for (prepared, first) in [one, two].into_iter().zip(firsts) {
            assert!(first.status < 300 && !first.is_replay(), "{}: {}", prepared.row.route, first.text);
            assert_replay_without_secret(&prepared.send().await, first);
        }
    }
    let left = ends - scene.world.now().await.timestamp();
    scene.world.advance_s(left.unsigned_abs() + 1).await;
    for ((one, two), [first, second]) in sent.iter().zip(&replies) {
        // The same payload runs again. A second creation differs, but for a contact, which is found by its e-mail.
        let again = one.send().await;
        assert!(!again.is_replay(), "{}: {}", one.row.route, again.text);
        let is_found = again.status != 201 || one.row.route == "POST /v1/crm/contacts";
        assert!(is_found || again.text != first.text, "{}: {}", one.row.route, again.text);
        // Another payload takes effect.
        let other = scene.prepare(one.row).await;
        let reply = other.send_under(&two.key).await;
        assert!(reply.status < 300 && !reply.is_replay(), "{}: {}", one.row.route, reply.text);
        assert!(one.row.route == RECOVER || reply.text != second.text, "{}: {}", one.row.route, reply.text);
        assert_eq!(reply.header("idempotency-payload-mismatch"), None);
    }
}

#[tokio::test]
async fn an_idempotency_key_is_shared_by_a_coachs_credentials_and_by_no_other_coach_or_api() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.world.coach("ada").await, scene.world.coach("bob").await);
    let client = |name: &str| json!({ "email": format!("{name}@example.com"), "send_welcome": false });
    let contact = json!({ "name": "Ada", "email": "ada@example.com" });
    let key = json!({ "name": "Front desk", "scope": "partner" });
    let once =
        |caller: &Caller, path: &str, body: &Value| -> Call { caller.post(path, body.clone()).idempotent("one") };
    let (partner, crm, settings) = (ada.partner_key().await, ada.crm_key().await, ada.settings().await);
    let (their_partner, their_crm, theirs) = (bob.partner_key().await, bob.crm_key().await, bob.settings().await);
    let mut answered = Vec::new();
    for (path, id, callers, bodies) in [
        ("/v1/clients", "/client_id", [&scene.partner, &partner, &their_partner], [client("ada"), client("bob")]),
        ("/v1/crm/contacts", "/contact/id", [&scene.crm, &crm, &their_crm], [contact.clone(), contact.clone()]),
        ("/settings/keys", "/id", [&scene.settings, &settings, &theirs], [key.clone(), key]),
    ] {
        let [caller, again, other] = callers;
        let first = once(caller, path, &bodies[0]).await.expect(201);
        assert!(!first.is_replay());
        assert_replay_of(&once(again, path, &bodies[0]).await, &first);
        let foreign = once(other, path, &bodies[1]).await.expect(201);
        assert!(!foreign.is_replay());
        assert_ne!(foreign.body.pointer(id).unwrap(), first.body.pointer(id).unwrap());
        answered.push((once(caller, path, &bodies[0]), first));
    }
    for (call, first) in answered {
        assert_replay_of(&call.await, &first);
    }
    // A key without the permission does not get another key's recorded answer.
    let reader = ada.crm_key_with(&["contacts.read"]).await;
    once(&reader, "/v1/crm/contacts", &contact).await.refused(403, "permission_missing");
}
