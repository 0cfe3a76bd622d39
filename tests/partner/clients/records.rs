//! Check-ins and daily logs of a client: `GET /v1/clients/{clientId}/check-ins` and `/daily-logs`.

mod costs;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::partner::start_with_key;
use crate::world::{Caller, Fact, World, fact, list, rendered, until};

fn day(offset: i64) -> String {
    let epoch: DateTime<Utc> = "2026-03-01T08:30:00Z".parse().unwrap();
    (epoch + TimeDelta::days(offset)).format("%Y-%m-%d").to_string()
}

fn instant(offset: i64) -> String {
    let epoch: DateTime<Utc> = "2026-03-01T08:30:00.250Z".parse().unwrap();
    rendered(epoch + TimeDelta::days(offset))
}

fn submitted(check_in: &str, submitted_at: &str) -> Fact {
    let detail = json!({
        "client_id": "c1", "check_in_id": check_in, "submitted_at": submitted_at, "scores": {"energy": 4}, "grades": {},
    });
    fact("check_in.submitted", detail)
}

fn reviewed(check_in: &str, reviewed_at: &str) -> Fact {
    fact("check_in.reviewed", json!({ "client_id": "c1", "check_in_id": check_in, "reviewed_at": reviewed_at }))
}

fn check_in_deleted(check_in: &str) -> Fact {
    fact("check_in.deleted", json!({ "client_id": "c1", "check_in_id": check_in }))
}

fn logged(date: &str) -> Fact {
    fact("daily_log.saved", json!({ "client_id": "c1", "date": date }))
}

/// A world with a coach, her key and the client `c1`.
async fn world() -> (World, Caller) {
    let (world, key) = start_with_key().await;
    world.apply([Fact::client("ada", "c1")]).await;
    (world, key)
}

async fn check_ins(key: &Caller) -> Vec<Value> {
    list(key.get("/v1/clients/c1/check-ins").await.expect(200).body["check_ins"].clone())
}

async fn ids(key: &Caller) -> Vec<String> {
    check_ins(key).await.iter().map(|check_in| check_in["id"].as_str().unwrap().to_owned()).collect()
}

async fn dates(key: &Caller, query: &str) -> Vec<String> {
    let body = key.get(&format!("/v1/clients/c1/daily-logs{query}")).await.expect(200).body;
    let dates = list(body["dates"].clone());
    assert_eq!(body["count"], dates.len());
    assert_eq!(body["last_logged_on"], dates.first().cloned().unwrap_or_default(), "the first of the dates");
    dates.iter().map(|date| date.as_str().unwrap().to_owned()).collect()
}

async fn latest(key: &Caller) -> Value {
    key.get("/v1/clients/c1").await.expect(200).body["latest_check_in_at"].clone()
}

#[tokio::test]
async fn check_ins_are_listed_newest_first_with_their_review() {
    let (world, key) = world().await;
    assert_eq!(latest(&key).await, Value::Null);
    world.apply([("b", 2), ("a", 1), ("c", 3)].map(|(id, offset)| submitted(id, &instant(offset)))).await;
    world.apply([reviewed("b", "2026-04-01T00:00:00Z")]).await;
    let shown = check_ins(&key).await;
    let shown: Vec<[&Value; 2]> = shown.iter().map(|check_in| [&check_in["id"], &check_in["reviewed_at"]]).collect();
    let reviewed_at = json!("2026-04-01T00:00:00.000Z");
    assert_eq!(shown, [[&json!("c"), &Value::Null], [&json!("b"), &reviewed_at], [&json!("a"), &Value::Null]]);
    // The application's record of the client leaves the check-ins.
    world.apply([Fact::client("ada", "c1").with("full_name", "Renamed")]).await;
    assert_eq!(latest(&key).await, instant(3));
}

#[tokio::test]
async fn repeated_or_reordered_check_in_facts_give_the_same_result() {
    let (world, key) = world().await;
    // A review and a deletion may arrive before the check-in.
    world.apply([reviewed("early", &instant(9)), check_in_deleted("gone")]).await;
    assert!(ids(&key).await.is_empty());
    world.apply([submitted("early", &instant(1)), submitted("gone", &instant(5))]).await;
    world.apply([submitted("early", &instant(1))]).await;
    assert_eq!(ids(&key).await, ["early"]);
    assert_eq!(check_ins(&key).await[0]["reviewed_at"], instant(9));
    assert_eq!(latest(&key).await, instant(1));
    let unreviewed = reviewed("early", &instant(4)).with("occurred_at", "2026-01-01T00:00:00Z");
    world.apply([unreviewed]).await;
    assert_eq!(check_ins(&key).await[0]["reviewed_at"], instant(9));
}

#[tokio::test]
async fn deleting_the_latest_check_in_restores_the_one_before() {
    let (world, key) = world().await;
    world.apply([submitted("a", &instant(1)), submitted("b", &instant(2)), submitted("c", &instant(3))]).await;
    for (deleted, left) in [("b", json!(instant(3))), ("c", json!(instant(1))), ("a", Value::Null)] {
        world.apply([check_in_deleted(deleted), check_in_deleted(deleted)]).await;
        assert_eq!(latest(&key).await, left, "{deleted}");
    }
    assert!(ids(&key).await.is_empty());
    world.apply([submitted("c", &instant(3)).with("occurred_at", world.timestamp_in(60).await)]).await;
    assert!(ids(&key).await.is_empty(), "deleted for good");
    assert_eq!(latest(&key).await, Value::Null);
}

#[tokio::test]
async fn from_and_to_are_included_and_a_reversed_range_holds_nothing() {
    let (world, key) = world().await;
    // A log of a date counts once.
    world.apply((0..10).chain([4]).map(|n| logged(&day(n)))).await;
    for (query, expected) in [
        (format!("?from={}", day(8)), vec![day(9), day(8)]),
        (format!("?to={}", day(1)), vec![day(1), day(0)]),
        (format!("?from={}&to={}", day(4), day(5)), vec![day(5), day(4)]),
        (format!("?from={}&to={}", day(5), day(4)), vec![]),
        ("?from=0000-01-01&to=9999-12-31&limit=1".to_owned(), vec![day(9)]),
        ("?to=2024-02-29".to_owned(), vec![]),
    ] {
        assert_eq!(dates(&key, &query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn a_log_with_gaps_of_years_is_listed_completely() {
    let (world, key) = world().await;
    let sparse: Vec<String> = (2001..2026).rev().map(|year| format!("{year}-06-01")).collect();
    world.apply(sparse.iter().map(|date| logged(date))).await;
    assert_eq!(dates(&key, "").await, sparse);
    assert_eq!(dates(&key, "?to=2010-12-31&limit=4").await, sparse[15..19]);
}

#[tokio::test]
async fn a_deactivated_clients_records_can_be_read_and_an_unknown_clients_cannot() {
    let (world, key) = world().await;
    world.apply([logged(&day(1))]).await;
    key.patch("/v1/clients/c1", json!({ "is_active": false })).await.expect(200);
    assert_eq!(dates(&key, "").await, [day(1)]);
    for id in ["nobody", "c%2F1", "c1%00", "%FF", "c 1".replace(' ', "%20").as_str(), &"x".repeat(129)] {
        for what in ["compliance", "check-ins", "daily-logs"] {
            key.get(&format!("/v1/clients/{id}/{what}")).await.refused(404, "not_found");
        }
    }
}

#[tokio::test]
async fn a_check_in_deleted_while_another_arrives_leaves_the_right_latest() {
    let (world, key) = world().await;
    let mut stalled_at = 0;
    // The deletion of the latest check-in stalls before each of its calls in turn.
    for number in 0..12 {
        let [before, between, latest_id] = ["a", "b", "x"].map(|name| format!("{name}{number}"));
        let day = 3 * number;
        world.apply([submitted(&before, &instant(day)), submitted(&latest_id, &instant(day + 2))]).await;
        world.faults(json!({ "function": "ingest", "spared_calls": number, "stalled_calls": 1 })).await;
        world.publish([check_in_deleted(&latest_id)]).await;
        let stalled = tokio::select! {
            () = world.until_stalled() => true,
            () = world.settle() => false,
        };
        world.publish([submitted(&between, &instant(day + 1))]).await;
        let is_stored = |item: &Value| item["check_in_id"]["S"] == between.as_str();
        until("it is stored", async || world.items("records", "CLIENT#c1").await.iter().any(is_stored)).await;
        world.faults(json!({ "function": "", "spared_calls": 0, "stalled_calls": 0 })).await;
        world.settle().await;
        assert_eq!(ids(&key).await[0], between, "after {number} calls");
        assert_eq!(latest(&key).await, instant(day + 1), "after {number} calls");
        if !stalled {
            break;
        }
        stalled_at += 1;
    }
    assert!((4..12).contains(&stalled_at), "it stalled {stalled_at} times");
}
