//! `operate dead`: dead letters are listed, shown, sent again and dropped, and none is lost.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::operate::{Ran, killed_after, operate, operate_as};
use crate::world::{Answer, Caller, Coach, Endpoint, Fact, World, list};

const HOUR_S: u64 = 3_600;
/// Longer than the command holds a message.
const HELD_S: u64 = 121;
const FACTS: &str = "application-feed-dlq";
const ORDERS: &str = "deliveries-dlq.fifo";
const REASON: &str = "the workspace has arrived";
/// Texts of facts that the command never shows.
const PERSONAL: [&str; 3] = ["Marguerite", "marguerite@clients.example", "Saigon"];
/// More calls than a redrive of one dead letter makes.
const MANY_CALLS: usize = 60;

/// A client of a coach whose workspace is not known. The fact is set aside after a while.
fn client_of(coach: &str, client: &str) -> Fact {
    let fact = Fact::client(coach, client).with("id", format!("fact-of-{client}"));
    fact.with("full_name", PERSONAL[0]).with("email", PERSONAL[1]).with("health_notes", PERSONAL[2])
}

/// A fact about a client that becomes a dead letter.
async fn dead_fact(world: &World, coach: &str, client: &str) {
    world.apply([client_of(coach, client)]).await;
    world.advance_s(HOUR_S).await;
}

/// An order among the dead letters, in a lane.
async fn dead_order(world: &World, endpoint: &str, delivery: &str, lane: &str) {
    let order = json!({
        "coach_id": "ada", "endpoint_id": endpoint, "delivery_id": delivery, "chain": 1, "attempt": 2, "hop": 0,
        "due_at": "2026-01-01T00:00:00.000Z",
    });
    let id = format!("dead-{}", world.number());
    let attributes = json!({ "MessageGroupId": lane, "MessageDeduplicationId": id });
    world.send_like(ORDERS, &json!({ "Body": order.to_string(), "Attributes": attributes })).await;
}

/// A delivery whose second attempt has its order among the dead letters alone. Returns its id.
async fn delivery_with_dead_order(scene: &EndpointScene, ada: &Coach<'_>, endpoint: &Endpoint) -> String {
    scene.receiver.script([Answer::status(500)]);
    scene.event("c1").await;
    scene.world.purge("delivery-retries").await;
    let delivery = ada.deliveries(endpoint).await.remove(0)["id"].as_str().unwrap().to_owned();
    dead_order(&scene.world, &endpoint.id, &delivery, &format!("{}#1", endpoint.id)).await;
    delivery
}

/// The dead letters as the command lists them.
async fn dead(world: &World) -> Vec<Value> {
    let ran = operate(world, &["dead", "list"]).await;
    assert_eq!((ran.code, &ran.json["complete"]), (0, &json!(true)), "{}", ran.stdout);
    assert_nothing_personal(&ran);
    list(ran.json["dead"].clone())
}

async fn id_of_one(world: &World) -> String {
    let dead = dead(world).await;
    assert_eq!(dead.len(), 1, "{dead:?}");
    dead[0]["id"].as_str().unwrap().to_owned()
}

/// Runs an act with a reason, which the operator confirms.
async fn act(world: &World, command: &[&str]) -> Ran {
    let ran = operate(world, &[command, &["--reason", REASON, "--yes"]].concat()).await;
    assert_nothing_personal(&ran);
    ran
}

#[track_caller]
fn assert_nothing_personal(ran: &Ran) {
    for text in PERSONAL {
        assert!(!ran.stdout.contains(text) && !ran.stderr.contains(text), "{text}: {} {}", ran.stdout, ran.stderr);
    }
}

/// The lines of the acts on dead letters in a coach's trail: action, actor, target and detail.
async fn lines(settings: &Caller) -> Vec<[Value; 4]> {
    let trail = list(settings.get("/settings/audit?limit=200").await.expect(200).body["data"].clone());
    let lines = trail.into_iter().filter(|line| line["action"].as_str().unwrap().starts_with("dead."));
    lines.map(|line| ["action", "actor", "target", "detail"].map(|name| line[name].clone())).collect()
}

/// The messages of a queue, those in flight included.
async fn messages(world: &World, queue: &str) -> u64 {
    let feed = operate(world, &["feed"]).await.json;
    ["visible", "in_flight", "delayed"].iter().map(|state| feed["queues"][queue][state].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn a_list_names_ids_and_reasons_and_leaves_all_in_sight() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    let world = &scene.world;
    let delivery = delivery_with_dead_order(&scene, &ada, &endpoint).await;
    dead_fact(world, "grace", "c9").await;
    let listed = dead(world).await;
    let of = |queue: &str| listed.iter().find(|letter| letter["queue"] == queue).unwrap().clone();
    let (dead_fact, dead_order) = (of("facts"), of("orders"));
    assert_eq!(listed.len(), 2);
    let members =
        ["id", "queue", "type", "fact_id", "delivery_id", "coach_id", "client_id", "reason", "at", "receives"];
    for letter in &listed {
        assert_eq!(letter.as_object().unwrap().len(), members.len());
        assert!(members.iter().all(|name| letter.get(name).is_some()), "{letter}");
        assert!(letter["at"].is_string() && letter["receives"].as_u64().unwrap() >= 1, "{letter}");
    }
    let values = |letter: &Value, names: [&str; 5]| names.map(|name| letter[name].clone());
    let names = ["type", "fact_id", "delivery_id", "coach_id", "client_id"];
    let expected = [json!("client.saved"), json!("fact-of-c9"), Value::Null, json!("grace"), json!("c9")];
    assert_eq!(values(&dead_fact, names), expected);
    assert_eq!(dead_fact["reason"], "coach_id grace has not been seen");
    let expected = [json!("order"), Value::Null, json!(delivery), json!("ada"), Value::Null];
    assert_eq!(values(&dead_order, names), expected);
    for (queue, name) in [(FACTS, "facts"), (ORDERS, "orders")] {
        let ran = operate_as(world, "OperatorReadPolicy", &["dead", "list", "--queue", name]).await;
        let only = list(ran.json["dead"].clone());
        assert_eq!((ran.code, only.len(), &only[0]["id"]), (0, 1, &of(name)["id"]), "{}", ran.stdout);
        assert_eq!(world.receive_all(queue).await.len(), 1, "{queue}: in sight at once");
    }
}

#[tokio::test]
async fn a_dead_letter_is_shown_with_the_names_of_its_members_and_no_value() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    let world = &scene.world;
    delivery_with_dead_order(&scene, &ada, &endpoint).await;
    dead_fact(world, "grace", "c9").await;
    for letter in dead(world).await {
        let shown = operate(world, &["dead", "show", letter["id"].as_str().unwrap()]).await;
        assert_nothing_personal(&shown);
        assert_eq!((shown.code, &shown.json["reason"]), (0, &letter["reason"]));
        let names = list(shown.json["members"].clone());
        let name = if letter["queue"] == "facts" { "full_name" } else { "attempt" };
        assert!(names.contains(&json!(name)), "{names:?}");
    }
    assert_eq!((world.receive_all(FACTS).await.len(), world.receive_all(ORDERS).await.len()), (1, 1));
}

#[tokio::test]
async fn a_message_of_any_form_is_listed_and_shows_nothing_that_is_no_id() {
    let world = World::start().await;
    let event = json!({
        "version": "0", "detail-type": "client.saved", "source": "coaching.application", "reason": "Marguerite",
        "detail": {
            "id": "f1", "coach_id": "Marguerite Duras", "client_id": "c1", "Marguerite Duras": 1,
            "full_name": "Marguerite",
        },
    });
    let unknown = json!({ "detail-type": "Marguerite", "detail": { "id": "f2" }, "set_aside_at": "Marguerite" });
    for body in [event.to_string(), unknown.to_string(), "Marguerite".to_owned(), "{\"detail\":[".to_owned()] {
        world.send(FACTS, &body).await;
    }
    let attributes = json!({ "MessageGroupId": "we_1#1", "MessageDeduplicationId": "1" });
    world.send_like(ORDERS, &json!({ "Body": "Marguerite", "Attributes": attributes })).await;
    let dead = dead(&world).await;
    let types: BTreeSet<String> = dead.iter().map(|letter| letter["type"].to_string()).collect();
    assert_eq!((dead.len(), types), (5, BTreeSet::from(["\"client.saved\"".to_owned(), "null".to_owned()])));
    for letter in &dead {
        assert_eq!([&letter["reason"], &letter["coach_id"]], [&Value::Null; 2], "{letter}");
        let shown = operate(&world, &["dead", "show", letter["id"].as_str().unwrap()]).await;
        assert_nothing_personal(&shown);
        if letter["fact_id"] == "f1" {
            assert_eq!(shown.json["members"], json!(["client_id", "coach_id", "full_name", "id", "(1 more)"]));
        }
    }
}

#[tokio::test]
async fn a_redriven_fact_is_stored_and_leaves_a_line() {
    let scene = EndpointScene::new().await;
    let world = &scene.world;
    dead_fact(world, "ada", "c1").await;
    let (ada, _, settings) = scene.coach().await;
    let id = id_of_one(world).await;
    let ran = act(world, &["dead", "redrive", &id]).await;
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let dead_letter = json!({ "id": id, "target": "fact-of-c1", "coach_id": "ada" });
    assert_eq!(ran.json, json!({ "done": "dead.redriven", "dead": [dead_letter], "changed": true }));
    world.settle().await;
    assert_eq!(ada.partner_key().await.get("/v1/clients").await.expect(200).body["count"], 1);
    assert_eq!(scene.receiver.hooks().len(), 1);
    assert!(dead(world).await.is_empty());
    let detail = json!({ "reason": REASON, "type": "client.saved" });
    let line = [json!("dead.redriven"), json!("operator:local"), json!("fact-of-c1"), detail];
    assert_eq!(lines(&settings).await, [line]);
}

#[tokio::test]
async fn a_redriven_order_makes_its_attempt_and_leaves_a_line() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let delivery = delivery_with_dead_order(&scene, &ada, &endpoint).await;
    let id = id_of_one(&scene.world).await;
    let ran = act(&scene.world, &["dead", "redrive", &id]).await;
    assert_eq!((ran.code, &ran.json["dead"][0]["target"]), (0, &json!(delivery)), "{}", ran.stdout);
    scene.world.settle().await;
    assert_eq!(ada.deliveries(&endpoint).await[0]["status"], "delivered");
    assert_eq!(scene.receiver.hooks().len(), 2);
    let line = [json!("dead.redriven"), json!("operator:local"), json!(delivery), json!({ "reason": REASON })];
    assert_eq!(lines(&settings).await, [line]);
}

#[tokio::test]
async fn a_redrive_of_all_moves_those_of_the_queue_and_none_that_comes_back() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    // The facts fail again at once.
    for number in 0..12 {
        let detail = json!({ "id": format!("f{number}"), "coach_id": "ada" });
        world.send(FACTS, &json!({ "detail-type": "client.saved", "detail": detail }).to_string()).await;
        dead_order(&world, "we_1", &format!("dlv_{number}"), &format!("we_1#{number}")).await;
    }
    let ran = act(&world, &["dead", "redrive", "--all", "--queue", "facts"]).await;
    let done = list(ran.json["dead"].clone());
    assert_eq!((ran.code, done.len()), (0, 12), "{}", ran.stdout);
    world.settle().await;
    assert_eq!((messages(&world, FACTS).await, messages(&world, ORDERS).await), (12, 12));
    assert_eq!(lines(&settings).await.len(), 12);
    let ran = act(&world, &["dead", "redrive", "--all", "--queue", "orders"]).await;
    assert_eq!((ran.code, list(ran.json["dead"].clone()).len()), (0, 12), "{}", ran.stdout);
    assert_eq!((messages(&world, FACTS).await, messages(&world, ORDERS).await), (12, 0));
}

#[tokio::test]
async fn a_redrive_of_all_without_any_changes_nothing() {
    let world = World::start().await;
    let ran = act(&world, &["dead", "redrive", "--all"]).await;
    assert_eq!(ran.code, 0);
    assert_eq!(ran.json, json!({ "done": "dead.redriven", "dead": [], "changed": false }));
}

#[tokio::test]
async fn a_long_lane_is_listed_in_part_and_redriven_whole() {
    let world = World::start().await;
    world.coach("ada").await;
    for number in 0..25 {
        dead_order(&world, "we_1", &format!("dlv_{number}"), "we_1#1").await;
    }
    let listed = operate(&world, &["dead", "list"]).await;
    assert_eq!((list(listed.json["dead"].clone()).len(), &listed.json["complete"]), (10, &json!(false)));
    let ran = act(&world, &["dead", "redrive", "--all"]).await;
    assert_eq!((ran.code, list(ran.json["dead"].clone()).len()), (0, 25), "{}", ran.stdout);
    assert_eq!(messages(&world, ORDERS).await, 0);
}

#[tokio::test]
async fn a_dropped_dead_letter_is_gone_and_leaves_a_line() {
    let world = World::start().await;
    dead_fact(&world, "ada", "c1").await;
    dead_fact(&world, "ada", "c2").await;
    let ada = world.coach("ada").await;
    let of_c1 = dead(&world).await.into_iter().find(|letter| letter["client_id"] == "c1").unwrap();
    let ran = act(&world, &["dead", "drop", of_c1["id"].as_str().unwrap()]).await;
    let dead_letter = json!({ "id": of_c1["id"], "target": "fact-of-c1", "coach_id": "ada" });
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(ran.json, json!({ "done": "dead.dropped", "dead": [dead_letter], "changed": true }));
    world.settle().await;
    assert_eq!(dead(&world).await.iter().map(|letter| letter["client_id"].clone()).collect::<Vec<_>>(), ["c2"]);
    assert!(world.items("clients", "CLIENT#").await.is_empty());
    let lines = lines(&ada.settings().await).await;
    assert_eq!((lines.len(), &lines[0][0], &lines[0][2]), (1, &json!("dead.dropped"), &json!("fact-of-c1")));
}

#[tokio::test]
async fn an_unknown_id_or_a_no_changes_nothing() {
    let world = World::start().await;
    dead_fact(&world, "ada", "c1").await;
    let settings = world.coach("ada").await.settings().await;
    let id = id_of_one(&world).await;
    for command in ["redrive", "drop"] {
        let ran = act(&world, &["dead", command, &id, "0000"]).await;
        assert_eq!((ran.code, &ran.json["code"]), (1, &json!("not_found")), "{}", ran.stdout);
        assert!(ran.json["error"].as_str().unwrap().contains("0000"), "{}", ran.stdout);
        // The command has no input.
        let ran = operate(&world, &["dead", command, &id, "--reason", REASON]).await;
        assert_eq!((ran.code, &ran.json["code"]), (1, &json!("declined")), "{}", ran.stdout);
        assert!(ran.stderr.contains("1 dead letter") && ran.stderr.contains("client.saved"), "{}", ran.stderr);
    }
    assert_eq!(operate(&world, &["dead", "show", "0000"]).await.json["code"], "not_found");
    assert_eq!(id_of_one(&world).await, id);
    assert!(lines(&settings).await.is_empty());
}

#[tokio::test]
async fn a_dead_letter_of_no_known_coach_leaves_no_line() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    world.send(FACTS, "Marguerite").await;
    let ghost = json!({ "detail-type": "client.saved", "detail": { "id": "f1", "coach_id": "ghost" } });
    world.send(FACTS, &ghost.to_string()).await;
    let ids: Vec<String> = dead(&world).await.iter().map(|letter| letter["id"].as_str().unwrap().to_owned()).collect();
    let ran = act(&world, &["dead", "drop", &ids[0], &ids[1]]).await;
    assert_eq!((ran.code, list(ran.json["dead"].clone()).len()), (0, 2), "{}", ran.stdout);
    for id in &ids {
        assert!(ran.stderr.contains(&format!("{id} leaves no audit line")), "{}", ran.stderr);
    }
    assert!(lines(&settings).await.is_empty());
    assert!(world.items("workspaces", "COACH#ghost").await.is_empty());
}

/// A fact about a client names no coach: the client's coach gets the line.
#[tokio::test]
async fn a_fact_that_names_a_client_alone_leaves_a_line_with_the_clients_coach() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    world.apply([Fact::client("ada", "c1")]).await;
    let body = json!({ "detail-type": "check_in.submitted", "detail": { "id": "f1", "client_id": "c1" } });
    world.send(FACTS, &body.to_string()).await;
    let ran = act(&world, &["dead", "drop", &id_of_one(&world).await]).await;
    assert_eq!((ran.code, &ran.json["dead"][0]["coach_id"]), (0, &json!("ada")), "{}", ran.stdout);
    assert_eq!(lines(&settings).await[0][2], "f1");
}

#[tokio::test]
async fn a_redrive_that_is_killed_before_any_call_loses_no_fact_and_stores_it_once() {
    let scene = EndpointScene::new().await;
    let world = &scene.world;
    dead_fact(world, "ada", "c1").await;
    let (ada, _, _) = scene.coach().await;
    let key = ada.partner_key().await;
    let stored = async || key.get("/v1/clients").await.expect(200).body["count"].as_u64().unwrap();
    for calls in 0..MANY_CALLS {
        killed_after(world, calls, &["dead", "redrive", "--all", "--reason", REASON, "--yes"]).await;
        world.settle().await;
        let is_dead = messages(world, FACTS).await > 0;
        assert!(is_dead || stored().await == 1, "lost before call {calls}");
        if !is_dead {
            break;
        }
        assert!(calls < MANY_CALLS - 1, "never done");
        // The messages that the killed process held come into sight again.
        world.advance_s(HELD_S).await;
    }
    assert_eq!((messages(world, FACTS).await, stored().await, scene.receiver.hooks().len()), (0, 1, 1));
}

#[tokio::test]
async fn a_redrive_that_is_killed_before_any_call_loses_no_order_and_delivers_it_once() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    let world = &scene.world;
    let delivery = delivery_with_dead_order(&scene, &ada, &endpoint).await;
    let is_delivered = async || ada.deliveries(&endpoint).await[0]["status"] == "delivered";
    for calls in 0..MANY_CALLS {
        killed_after(world, calls, &["dead", "redrive", "--all", "--reason", REASON, "--yes"]).await;
        world.settle().await;
        let is_dead = messages(world, ORDERS).await > 0;
        assert!(is_dead || is_delivered().await, "lost before call {calls}");
        if !is_dead {
            break;
        }
        assert!(calls < MANY_CALLS - 1, "never done");
        // The next run finds the message in sight. The clock stays, since the relay finds a lost order in time.
        world.purge(ORDERS).await;
        dead_order(world, &endpoint.id, &delivery, &format!("{}#1", endpoint.id)).await;
    }
    assert_eq!((messages(world, ORDERS).await, is_delivered().await), (0, true));
    assert_eq!(scene.receiver.hooks().len(), 2, "the attempt that failed, and one more");
}
