//! Opportunities under parallel changes, and the costs of their requests.

use std::future::IntoFuture;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::crm::opportunities::{LEAD, OPPORTUNITIES, listed, made, scene};
use crate::world::{Call, Caller, Fact, Reply, World, assert_cost, uuid};

fn change(world: &World, key: &Caller, id: &str, body: Value) -> Call {
    key.patch(&format!("{OPPORTUNITIES}/{id}"), body).idempotent(&format!("update-{}", world.number()))
}

/// Sends all calls at the same moment.
async fn at_once(calls: impl IntoIterator<Item = Call>) -> Vec<Reply> {
    join_all(calls.into_iter().map(Call::into_future)).await
}

#[tokio::test]
async fn parallel_changes_are_all_applied_and_each_is_emitted() {
    const ROUNDS: usize = 10;
    let world = World::start().await;
    let key = scene(&world).await;
    let id = made(&world, &key).await;
    for round in 1..=ROUNDS {
        let stage = ["new", "warm"][round % 2];
        let wanted = json!({ "name": format!("Round {round}"), "valueCents": round, "stage": stage });
        let changes =
            wanted.as_object().unwrap().iter().map(|(name, value)| change(&world, &key, &id, json!({ name: value })));
        for reply in at_once(changes).await {
            reply.expect(200);
        }
        let after = listed(&key, &id).await;
        for (name, value) in wanted.as_object().unwrap() {
            assert_eq!(after[name], *value, "round {round}");
        }
    }
    world.settle().await;
    let emitted = world.changes("opportunity.updated").await;
    assert_eq!(emitted.len(), 3 * ROUNDS);
    let mut times: Vec<&Value> = emitted.iter().map(|fact| &fact["occurred_at"]).collect();
    times.dedup();
    assert_eq!(times.len(), 3 * ROUNDS, "no two changes have one time");
    assert_eq!(
        emitted.last().unwrap()["opportunity"],
        listed(&key, &id).await,
        "the last change has the current state"
    );
}

/// Asserts that an opportunity has a lost reason if and only if its stage is lost.
#[track_caller]
fn assert_consistent(opportunity: &Value) {
    let expected = match opportunity["stage"].as_str() {
        Some("lost") => ("lost", true),
        Some("new" | "warm") => ("open", false),
        _ => panic!("{opportunity}"),
    };
    assert_eq!(
        (opportunity["status"].as_str().unwrap(), opportunity["lostReason"].is_string()),
        expected,
        "{opportunity}"
    );
}

#[tokio::test]
async fn simultaneous_losses_and_reopenings_leave_no_reason_on_an_open_stage() {
    let world = World::start().await;
    let key = scene(&world).await;
    let id = made(&world, &key).await;
    for round in 0..12 {
        let reason = format!("Reason {round}");
        let bodies = [
            json!({ "stage": "lost", "lostReason": reason }),
            json!({ "stage": "new" }),
            json!({ "lostReason": "Another" }),
            json!({ "stage": "warm", "name": "Warm" }),
            json!({ "lostReason": "A third", "valueCents": round }),
            json!({ "stage": "lost", "lostReason": "At last" }),
        ];
        for reply in at_once(bodies.map(|body| change(&world, &key, &id, body))).await {
            match reply.status {
                200 => assert_consistent(&reply.body["opportunity"]),
                // The stage was open at that moment.
                _ => drop(reply.refused(400, "lost_reason_not_allowed")),
            }
        }
        assert_consistent(&listed(&key, &id).await);
    }
    world.settle().await;
    for change in world.changes("opportunity.updated").await {
        assert_consistent(&change["opportunity"]);
    }
    let raw = world.items("crm", "COACH#ada").await;
    let raw = raw.iter().find(|item| item["sk"]["S"] == format!("OPPORTUNITY#{id}")).unwrap();
    let stored = &raw["opportunity"]["M"];
    assert_eq!(stored["stage"]["S"] == "lost", stored["lost_reason"]["S"].is_string(), "{stored}");
}

#[tokio::test]
async fn simultaneous_api_writes_and_facts_leave_the_latest_value() {
    let world = World::start().await;
    let key = scene(&world).await;
    let id = uuid(5);
    world.apply([Fact::opportunity("ada", &id, &uuid(LEAD))]).await;
    for round in 0..6 {
        world.advance_s(60).await;
        let older = world.timestamp_in(-30).await;
        let fact = Fact::opportunity("ada", &id, &uuid(LEAD)).with("occurred_at", older);
        let fact = fact.with("name", "Older").with("value_cents", round);
        let name = format!("Round {round}");
        let (reply, ()) = futures::future::join(
            change(&world, &key, &id, json!({ "name": name })).into_future(),
            world.apply([fact]),
        )
        .await;
        reply.expect(200);
        let after = listed(&key, &id).await;
        assert_eq!((&after["name"], &after["valueCents"]), (&json!(name), &json!(round)));
    }
}

#[tokio::test]
async fn a_creation_takes_four_calls_in_sequence_a_change_five_and_a_list_two() {
    let world = World::start().await;
    let key = scene(&world).await;
    let function = "crm-opportunities";
    let create = async || drop(made(&world, &key).await);
    assert_cost(&world, function, create, |bill| bill.calls == 6 && bill.write_units <= 18.0, 4).await;
    let id = made(&world, &key).await;
    let rename = async || {
        let name = format!("Name {}", world.number());
        drop(change(&world, &key, &id, json!({ "name": name })).await.expect(200));
    };
    // The event names the opportunity's contact, which is read once the opportunity is known.
    assert_cost(&world, function, rename, |bill| bill.calls == 7 && bill.write_units <= 16.0, 5).await;
    let list = async || drop(key.get(OPPORTUNITIES).await.expect(200));
    assert_cost(&world, function, list, |bill| bill.calls == 3, 2).await;
}
