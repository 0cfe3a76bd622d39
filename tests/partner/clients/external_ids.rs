//! A coach's own ids for clients: shown, searched for, and unique among the coach's clients, whatever happens at once.

mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::future::IntoFuture;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::partner::clients::create;
use crate::partner::start_with_key;
use crate::world::{Call, Caller, Reply, SDK_ATTEMPTS, World, time};

/// More calls than a write of a client makes.
const MOST_CALLS: usize = 20;

fn post(key: &Caller, email: &str, external_id: &str) -> Call {
    let body = json!({ "email": email, "external_id": external_id, "send_welcome": false });
    key.post("/v1/clients", body).idempotent(email)
}

async fn set(key: &Caller, client: &str, external_id: impl Into<Value>) -> Reply {
    let body = json!({ "is_active": true, "external_id": external_id.into() });
    key.patch(&format!("/v1/clients/{client}"), body).await
}

/// The ids of the clients that a search finds.
async fn find(key: &Caller, query: &str) -> Vec<String> {
    let found = key.get(&format!("/v1/clients?external_id={query}")).await.expect(200).body;
    assert_eq!(
        (&found["count"], &found["next_cursor"]),
        (&json!(found["clients"].as_array().unwrap().len()), &Value::Null)
    );
    found["clients"].as_array().unwrap().iter().map(|client| client["client_id"].as_str().unwrap().to_owned()).collect()
}

async fn shown(key: &Caller, client: &str) -> Value {
    key.get(&format!("/v1/clients/{client}")).await.expect(200).body["external_id"].clone()
}

/// Asserts that the locks are those of the records. Returns the clients with an external id.
pub(super) async fn assert_locked(world: &World) -> BTreeMap<String, String> {
    let text = |item: &Value, name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    let records = world.items("clients", "CLIENT#").await.into_iter().filter(|item| item["external_id"].is_object());
    let records = records.map(|item| {
        (format!("EXTERNAL_ID#{}#{}", text(&item, "owner"), text(&item, "external_id")), text(&item, "client_id"))
    });
    let records: Vec<(String, String)> = records.collect();
    let locks = world.items("clients", "EXTERNAL_ID#").await;
    let locks: BTreeMap<String, String> = locks.iter().map(|item| (text(item, "pk"), text(item, "holder"))).collect();
    assert_eq!(records.len(), locks.len(), "{records:?} {locks:?}");
    assert_eq!(records.into_iter().collect::<BTreeMap<_, _>>(), locks);
    locks
}

#[tokio::test]
async fn an_external_id_is_shown_and_found_from_the_creation_on() {
    let (world, key) = start_with_key().await;
    let bare = create(&key, "bare@example.com").await;
    assert_eq!(shown(&key, &bare).await, Value::Null);
    let made = post(&key, "a@example.com", "emr#7+ é/x").await.expect(201);
    let client = made.str("client_id");
    let query = "emr%237%2B%20%C3%A9/x";
    let found = key.get(&format!("/v1/clients?external_id={query}")).await.expect(200);
    assert_eq!(found.body["clients"][0]["external_id"], "emr#7+ é/x");
    assert_eq!(found.body["clients"][0], key.get("/v1/clients").await.body["clients"][0]);
    assert_eq!(shown(&key, client).await, "emr#7+ é/x");
    let patched = key.patch(&format!("/v1/clients/{client}"), json!({ "is_active": false })).await.expect(200);
    assert_eq!(patched.body["external_id"], "emr#7+ é/x", "a PATCH without it keeps it");
    for (composed, count) in [
        ("", 1),
        ("&limit=1", 1),
        ("&limit=0", 1),
        ("&active=false", 1),
        ("&active=true", 0),
        ("&email=A@example.com", 1),
        ("&email=bare@example.com", 0),
        ("&updated_since=2000-01-01T00:00:00Z", 1),
        ("&updated_since=2999-01-01T00:00:00Z", 0),
    ] {
        assert_eq!(find(&key, &format!("{query}{composed}")).await.len(), count, "{composed}");
    }
    for nobodys in ["", "EMR%237%2B%20%C3%A9/x", "emr%237", "emr%237+%20%C3%A9/x", "%00", &"x".repeat(128)] {
        assert!(find(&key, nobodys).await.is_empty(), "{nobodys}");
    }
    for long in ["x".repeat(129), "é".repeat(129)] {
        key.get(&format!("/v1/clients?external_id={long}")).await.refused_for("external_id");
        post(&key, "long@example.com", &long).await.refused_for("external_id");
        set(&key, &bare, long).await.refused_for("external_id");
    }
    assert_eq!(set(&key, &bare, "é".repeat(128)).await.expect(200).body["external_id"], "é".repeat(128));
    assert_locked(&world).await;
}

#[tokio::test]
async fn a_taken_id_is_refused_creates_nothing_and_the_refusal_is_replayed() {
    let world = World::start().await;
    let key = world.coach("ada").client_cap(2).await.partner_key().await;
    let first = post(&key, "a@example.com", "emr-7").await.expect(201);
    let refused = post(&key, "b@example.com", "emr-7").await.refused(400, "external_id_taken");
    assert_eq!(refused.body["field"], "external_id");
    assert_eq!(key.get("/v1/ping").await.body["active_clients"], 1);
    assert!(find(&key, "emr-7").await == [first.str("client_id")]);
    set(&key, first.str("client_id"), Value::Null).await.expect(200);
    let replay = post(&key, "b@example.com", "emr-7").await.refused(400, "external_id_taken");
    assert!(replay.is_replay() && replay.text == refused.text);
    post(&key, "b@example.com", "emr-7").idempotent("anew").await.expect(201);
    // Of several causes the address comes first, as before.
    post(&key, "a@example.com", "emr-7").idempotent("both").await.refused(409, "email_taken");
    post(&key, "c@example.com", "emr-7").idempotent("full").await.refused(400, "external_id_taken");
    world.settle().await;
    assert_eq!(world.changes("client.created").await.len(), 2);
    assert_eq!(assert_locked(&world).await.len(), 1);
}

#[tokio::test]
async fn another_coach_may_use_the_same_id_and_finds_its_own_client_alone() {
    let world = World::start().await;
    let (ada, bob) = (world.coach("ada").await.partner_key().await, world.coach("ada.b").await.partner_key().await);
    for (number, id) in ["emr-7", "b#emr-7", "#", "ada#emr-7"].into_iter().enumerate() {
        let encoded = id.replace('#', "%23");
        let ours = post(&ada, &format!("ours{number}@example.com"), id).await.expect(201);
        assert!(find(&bob, &encoded).await.is_empty());
        let theirs = post(&bob, &format!("theirs{number}@example.com"), id).await.expect(201);
        assert_eq!(find(&ada, &encoded).await, [ours.str("client_id")]);
        assert_eq!(find(&bob, &encoded).await, [theirs.str("client_id")]);
        set(&bob, ours.str("client_id"), "mine-now").await.refused(404, "not_found");
        assert!(find(&bob, &format!("{encoded}&email=ours{number}@example.com")).await.is_empty());
    }
    assert_eq!(assert_locked(&world).await.len(), 8);
}

#[tokio::test]
async fn a_patch_sets_moves_keeps_or_removes_the_id_and_tells_the_application() {
    let (world, key) = start_with_key().await;
    let (client, other) = (create(&key, "a@example.com").await, create(&key, "b@example.com").await);
    set(&key, &other, "emr-other").await.expect(200);
    let path = format!("/v1/clients/{client}");
    let mut expected = Vec::new();
    for (body, id, is_change) in [
        (json!({ "is_active": true, "external_id": "emr-1" }), json!("emr-1"), true),
        (json!({ "is_active": true, "external_id": "emr-1" }), json!("emr-1"), false),
        (json!({ "is_active": true }), json!("emr-1"), false),
        (json!({ "is_active": true, "external_id": "emr-2" }), json!("emr-2"), true),
        (json!({ "is_active": false, "external_id": "emr-3" }), json!("emr-3"), true),
        (json!({ "is_active": true }), json!("emr-3"), true),
        (json!({ "is_active": true, "external_id": null }), Value::Null, true),
        (json!({ "is_active": true, "external_id": null }), Value::Null, false),
    ] {
        let before = key.get(&path).await.expect(200).body;
        let reply = key.patch(&path, body.clone()).await.expect(200);
        assert_eq!((&reply.body["external_id"], &reply.body["is_active"]), (&id, &body["is_active"]));
        let is_update = time(&reply.body["updated_at"]) > time(&before["updated_at"]);
        assert_eq!(is_update, is_change, "{body}");
        if is_change {
            expected.push(key.get(&path).await.expect(200).body);
        }
        assert_eq!(find(&key, id.as_str().unwrap_or("emr-3")).await.len(), usize::from(id.is_string()));
        assert!(find(&key, "emr-gone").await.is_empty());
    }
    key.patch(&path, json!({ "external_id": "emr-4" })).await.refused_for("is_active");
    let refused = set(&key, &client, "emr-other").await.refused(400, "external_id_taken");
    assert_eq!(refused.body["field"], "external_id");
    assert_eq!(key.get(&path).await.expect(200).body, *expected.last().unwrap(), "a refusal changes nothing");
    world.settle().await;
    let mut changes = world.changes("client.activation_changed").await;
    changes.retain(|change| change["client"]["client_id"] == client.as_str());
    let clients: Vec<&Value> = changes.iter().map(|change| &change["client"]).collect();
    assert_eq!(clients, expected.iter().collect::<Vec<_>>());
    let ids: BTreeSet<&str> = changes.iter().map(|change| change["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), changes.len());
    assert_eq!(assert_locked(&world).await.len(), 1);
}

#[tokio::test]
async fn of_parallel_writes_with_one_id_exactly_one_gets_it() {
    let (world, key) = start_with_key().await;
    let mut clients = Vec::new();
    for number in 0..5 {
        clients.push(create(&key, &format!("old{number}@example.com")).await);
    }
    for round in 0..4 {
        let id = format!("emr-{round}");
        let posts = (0..4).map(|number| post(&key, &format!("new{round}{number}@example.com"), &id).into_future());
        let patches = clients.iter().map(|client| {
            let body = json!({ "is_active": true, "external_id": id });
            key.patch(&format!("/v1/clients/{client}"), body).into_future()
        });
        let replies = join_all(posts.chain(patches)).await;
        let (done, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status < 300);
        assert_eq!(done.len(), 1, "{refused:?}");
        assert_eq!(find(&key, &id).await, [done[0].str("client_id")]);
        for reply in refused {
            reply.refused(400, "external_id_taken");
        }
        for number in 0..4 {
            let replay = post(&key, &format!("new{round}{number}@example.com"), &id).await;
            assert!(replay.is_replay(), "{}", replay.text);
        }
        assert_locked(&world).await;
    }
}

#[tokio::test]
async fn parallel_patches_of_one_client_are_never_refused_for_its_own_id() {
    let (world, key) = start_with_key().await;
    let client = create(&key, "a@example.com").await;
    for round in 0..3 {
        let calls = (0..8).map(|number| {
            let external_id =
                if number % 4 == 3 { Value::Null } else { json!(format!("emr-{}", (round + number) % 3)) };
            let body = json!({ "is_active": number % 2 == 0, "external_id": external_id });
            key.patch(&format!("/v1/clients/{client}"), body).into_future()
        });
        for reply in join_all(calls).await {
            reply.expect(200);
        }
        let locked = assert_locked(&world).await;
        assert_eq!(locked.len(), usize::from(shown(&key, &client).await.is_string()));
    }
}

/// A PATCH meets a fault at each of its calls in turn. The repeat succeeds, and the lock follows the record.
async fn fault_at_each_call(fault: &str, times: usize) {
    let (world, key) = start_with_key().await;
    let client = create(&key, "a@example.com").await;
    for spared_calls in 0..MOST_CALLS {
        let id = format!("emr-{spared_calls}");
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, fault: times })).await;
        let reply = set(&key, &client, id.as_str()).await;
        let is_over = world.remaining_faults().await["spared_calls"] != 0;
        world.clear_faults().await;
        assert_locked(&world).await;
        assert!([200, 500].contains(&reply.status), "{}", reply.text);
        let reply = if reply.status == 200 { reply } else { set(&key, &client, id.as_str()).await.expect(200) };
        assert_eq!((&reply.body["external_id"], assert_locked(&world).await.len()), (&json!(id), 1));
        if is_over {
            return;
        }
    }
    panic!("{MOST_CALLS} calls are not all");
}

#[tokio::test]
async fn a_patch_that_meets_a_fault_or_dies_at_any_call_can_be_repeated() {
    let faults = [
        ("store_lost_answers", 1),
        ("store_lost_answers", SDK_ATTEMPTS),
        ("store_conflicts", 1),
        ("store_failures", SDK_ATTEMPTS),
        ("crash_before_call", 1),
        ("crash_after_commit", 1),
    ];
    join_all(faults.map(|(fault, times)| fault_at_each_call(fault, times))).await;
}

#[tokio::test]
async fn an_overtaken_write_takes_no_id_that_another_got_meanwhile() {
    let (world, key) = start_with_key().await;
    for spared_calls in 0..6 {
        let id = format!("emr-{spared_calls}");
        let slow = create(&key, &format!("slow{spared_calls}@example.com")).await;
        let quick = create(&key, &format!("quick{spared_calls}@example.com")).await;
        let patch = |client: &str| {
            let body = json!({ "is_active": true, "external_id": id });
            key.patch(&format!("/v1/clients/{client}"), body).into_future()
        };
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        let stalled = tokio::spawn(patch(&slow));
        tokio::select! {
            () = world.until_stalled() => {}
            () = crate::world::until("the request ends", async || stalled.is_finished()) => {}
        }
        let quicker = patch(&quick).await;
        world.clear_faults().await;
        let slower = stalled.await.unwrap();
        let (done, refused) = if quicker.status == 200 { (quicker, slower) } else { (slower, quicker) };
        refused.refused(400, "external_id_taken");
        assert_eq!(find(&key, &id).await, [done.expect(200).str("client_id")], "after {spared_calls} calls");
        assert_locked(&world).await;
    }
}
