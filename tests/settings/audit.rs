//! `GET /settings/audit`: who changed what, newest first.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::feed::erasure::erased;
use crate::settings::start_with_session;
use crate::settings::webhooks::retry::{path, retry};
use crate::world::{Answer, Bill, Caller, Fact, World, list, made_up_cursor, members, rendered, time};

const DAY_S: u64 = 86_400;

async fn trail(settings: &Caller) -> Vec<Value> {
    list(settings.get("/settings/audit?limit=200").await.expect(200).body["data"].clone())
}

/// The pages of the trail from a cursor on.
async fn pages(settings: &Caller, limit: usize, cursor: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor) = (Vec::new(), cursor.to_owned());
    loop {
        let page = settings.get(&format!("/settings/audit?limit={limit}&cursor={cursor}")).await.expect(200).body;
        pages.push(list(page["data"].clone()));
        assert!(pages.len() < 100, "{pages:?}");
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return pages,
        }
    }
}

/// A line of the coach `ada` as it is stored.
fn stored(at: &str, distinguisher: usize, [action, actor, target]: [&str; 3], detail: Value) -> Value {
    json!({
        "pk": { "S": "COACH#ada" }, "sk": { "S": format!("AUDIT#{at}#{distinguisher:012x}") }, "at": { "S": at },
        "action": { "S": action }, "subject": { "S": target }, "actor": { "S": actor }, "detail": { "M": detail },
    })
}

#[tokio::test]
async fn every_change_leaves_a_line_with_its_actor_and_details() {
    let scene = EndpointScene::new().await;
    let world = &scene.world;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let mut expected: Vec<[Value; 3]> = Vec::new();
    let mut note = async |action: &str, target: &Value, detail: Value| {
        expected.push([json!(action), target.clone(), detail]);
        world.advance_s(1).await;
    };

    let key = ada.new_key(json!({ "name": "EMR", "scope": "partner" })).await;
    note("key.created", &key.body["id"], json!({ "name": "EMR", "scope": "partner" })).await;
    let key_path = format!("/settings/keys/{}", key.str("id"));
    settings.patch(&key_path, json!({ "name": "Desk", "expires_at": null })).await.expect(200);
    note("key.updated", &key.body["id"], json!({ "name": "EMR", "changed": ["name", "expires_at"] })).await;
    let new = settings.post(&format!("{key_path}/rotate"), json!({})).await.expect(201);
    note("key.rotated", &key.body["id"], json!({ "name": "Desk", "new_key_id": new.body["id"] })).await;
    settings.delete(&format!("/settings/keys/{}", new.str("id"))).await.expect(200);
    note("key.revoked", &new.body["id"], json!({ "name": "Desk" })).await;

    let url = format!("{}/private-path?token=gwendolyn", scene.receiver.url());
    let endpoint = ada.endpoint(&url, "identifiers").await;
    let id = json!(endpoint.id);
    note("endpoint.created", &id, json!({ "host": "127.0.0.1" })).await;
    let endpoint_path = format!("/settings/webhooks/{}", endpoint.id);
    for enabled in [false, true] {
        settings.patch(&endpoint_path, json!({ "enabled": enabled, "description": "d" })).await.expect(200);
        let status = if enabled { "enabled" } else { "disabled" };
        let changed = json!({ "host": "127.0.0.1", "changed": ["description", "enabled"], "status": status });
        note("endpoint.updated", &id, changed).await;
    }
    let rotated = settings.post(&path(&endpoint, "rotate-secret"), json!({})).await.expect(200);
    note("endpoint.secret_rotated", &id, json!({ "host": "127.0.0.1" })).await;
    let test = settings.post(&path(&endpoint, "test"), json!({ "type": "compliance_drop" })).await.expect(202);
    let sent = json!({ "host": "127.0.0.1", "type": "compliance_drop", "delivery_id": test.body["delivery_id"] });
    note("endpoint.test_sent", &id, sent).await;

    let since = world.timestamp_in(0).await;
    scene.receiver.script((0..9).map(|_| Answer::status(500)));
    scene.event("c1").await;
    world.advance_s(2 * DAY_S).await;
    let settings = ada.settings().await;
    let recovered = settings.post(&path(&endpoint, "recover"), json!({ "since": since })).await.expect(202);
    assert_eq!(recovered.body["deliveries"], 1);
    note("deliveries.recovered", &id, json!({ "host": "127.0.0.1", "since": since, "deliveries": 1 })).await;
    let delivery = ada.deliveries(&endpoint).await.remove(0);
    settings.post(&retry(&endpoint, &delivery), json!({})).await.expect(202);
    let retried = json!({ "host": "127.0.0.1", "type": "new_client", "endpoint_id": id });
    note("delivery.retried", &delivery["id"], retried).await;
    scene.receiver.otherwise(Answer::status(410));
    scene.event("c2").await;
    world.settle().await;
    note("endpoint.disabled", &id, json!({ "host": "127.0.0.1", "status": "gone" })).await;
    settings.delete(&endpoint_path).await.expect(200);
    note("endpoint.deleted", &id, json!({ "host": "127.0.0.1" })).await;

    let answer = settings.get("/settings/audit").await.expect(200);
    assert_eq!((answer.members(), &answer.body["next_cursor"]), (vec!["data", "next_cursor"], &Value::Null));
    let lines = list(answer.body["data"].clone());
    let shown: Vec<[Value; 3]> =
        lines.iter().rev().map(|line| ["action", "target", "detail"].map(|name| line[name].clone())).collect();
    assert_eq!(shown, expected);
    for line in &lines {
        assert_eq!(members(line), ["action", "actor", "at", "detail", "target"]);
        assert_eq!(line["actor"], if line["action"] == "endpoint.disabled" { "service" } else { "ada" }, "{line}");
    }
    assert!(lines.is_sorted_by_key(|line| std::cmp::Reverse(time(&line["at"]))));
    for secret in ["private-path", "gwendolyn", key.str("key"), new.str("key"), rotated.str("secret")] {
        assert!(!answer.text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn a_refused_change_leaves_no_line() {
    let (_world, settings) = start_with_session().await;
    let key = settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })).await.expect(201);
    let path = format!("/settings/keys/{}", key.str("id"));
    settings.delete(&path).await.expect(200);
    let before = trail(&settings).await;
    settings.patch(&path, json!({ "name": "y" })).await.refused(409, "key_revoked");
    settings.post(&format!("{path}/rotate"), json!({})).await.refused(409, "key_not_live");
    settings.delete(&path).await.expect(200);
    settings.post("/settings/keys", json!({ "name": "x", "scope": "crm" })).await.refused_for("permissions");
    settings.post("/settings/webhooks/we_0/test", json!({})).await.refused(404, "not_found");
    assert_eq!(trail(&settings).await, before);
}

#[tokio::test]
async fn a_change_whose_function_dies_after_the_commit_has_its_line() {
    let (world, settings) = start_with_session().await;
    let key = settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })).await.expect(201);
    let path = format!("/settings/keys/{}", key.str("id"));
    world.faults(json!({ "function": "settings", "crash_after_commit": 1 })).await;
    settings.patch(&path, json!({ "name": "y" })).await.expect(500);
    world.clear_faults().await;
    let actions: Vec<Value> = trail(&settings).await.iter().map(|line| line["action"].clone()).collect();
    assert_eq!(actions, ["key.updated", "key.created"]);
    assert_eq!(settings.get("/settings/keys").await.expect(200).body["keys"][0]["name"], "y");
}

#[tokio::test]
async fn a_trail_is_read_page_by_page_without_loss_or_repetition() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let began = world.now().await;
    // Six lines in each millisecond.
    let lines = [
        ("key.created", "ada"),
        ("endpoint.updated", "ada"),
        ("endpoint.disabled", "service"),
        ("key.revoked", "ada"),
        ("endpoint.deleted", "ada"),
        ("key.rotated", "ada"),
    ];
    let (mut items, mut expected) = (Vec::new(), BTreeSet::new());
    for number in 0..60 {
        let (action, actor) = lines[number % lines.len()];
        let at = rendered(began - TimeDelta::milliseconds((number / lines.len()) as i64));
        let (distinguisher, target) = ((number * 0x9e37_79b9) % 0xffff_ffff, format!("t{number}"));
        items.push(stored(&at, distinguisher, [action, actor, &target], json!({})));
        expected.insert(json!([at, actor, action, target, {}]).to_string());
    }
    world.put_items("workspaces", &items).await;
    let texts = |lines: &[Value]| -> Vec<String> {
        let text = |line: &Value| ["at", "actor", "action", "target", "detail"].map(|name| line[name].clone());
        lines.iter().map(|line| json!(text(line)).to_string()).collect()
    };
    let whole = texts(&trail(&settings).await);
    assert_eq!((whole.len(), whole.iter().cloned().collect::<BTreeSet<_>>()), (60, expected));
    for limit in [1, 3, 6, 7, 10, 59, 60, 61] {
        world.advance_to_next_minute().await;
        assert_eq!(texts(&pages(&settings, limit, "").await.concat()), whole, "limit {limit}");
    }
    // A line that is added between two pages is on neither.
    let first = settings.get("/settings/audit?limit=10").await.expect(200).body;
    ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let mut read = list(first["data"].clone());
    read.extend(pages(&settings, 25, first["next_cursor"].as_str().unwrap()).await.concat());
    assert_eq!(texts(&read), whole);
    assert_eq!(trail(&settings).await[0]["detail"]["name"], "x");
}

#[tokio::test]
async fn a_trail_shows_the_acts_of_operators_with_their_reason() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    let actions = ["dead.redriven", "dead.dropped", "client.exported", "counts.rebuilt", "key.revoked"];
    let (at, reason) = (world.timestamp_in(0).await, "The fact was broken");
    let line = |(number, action): (usize, &&str)| {
        let detail = json!({ "reason": { "S": reason } });
        stored(&at, number, [action, "operator:role/oncall", "fact-1"], detail)
    };
    let items: Vec<Value> = actions.iter().enumerate().map(line).collect();
    world.put_items("workspaces", &items).await;
    let lines = trail(&settings).await;
    let shown: Vec<&Value> = lines.iter().rev().map(|line| &line["action"]).collect();
    assert_eq!(shown, actions);
    for line in &lines {
        assert_eq!((&line["actor"], &line["target"]), (&json!("operator:role/oncall"), &json!("fact-1")));
        assert_eq!(line["detail"], json!({ "reason": reason }));
    }
}

#[tokio::test]
async fn a_trail_shows_no_erasures() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for name in ["one", "two", "three"] {
        ada.new_key(json!({ "name": name, "scope": "partner" })).await;
        world.apply([Fact::client("ada", name)]).await;
        world.apply([erased(name)]).await;
    }
    let is_erasure = |item: &Value| {
        item["action"]["S"] == "client.erased" && item["sk"]["S"].as_str().unwrap().starts_with("ERASURE#")
    };
    assert_eq!(world.items("workspaces", "COACH#ada").await.iter().filter(|item| is_erasure(item)).count(), 3);
    // Each page is full: erasures have keys of their own.
    let read = pages(&ada.settings().await, 1, "").await;
    assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
}

#[tokio::test]
async fn a_page_of_the_trail_takes_three_calls_from_any_position() {
    let (world, settings) = start_with_session().await;
    for far in ["000000000000000000000000000", "999999999999999ffffffffffff"] {
        let made_up = made_up_cursor("ada", "audit", far);
        settings.get(&format!("/settings/audit?cursor={made_up}")).await.expect(200);
    }
    let bill = Bill::of(&world.calls("settings").await[0]);
    assert!(bill.calls == 3 && bill.write_units == 1.0, "{bill:?}");
}
