//! Costs of reading a client's records. They do not grow with the client's history.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::partner::start_with_key;
use crate::world::{Bill, Caller, Fact, World, assert_cost, fact, rendered};

const PATHS: [&str; 4] = ["/compliance", "/compliance?window_days=90", "/check-ins", "/daily-logs"];

fn ago(now: DateTime<Utc>, days: i64) -> String {
    (now - TimeDelta::days(days)).date_naive().to_string()
}

fn check_in(id: &str, at: DateTime<Utc>) -> Fact {
    let submitted_at = rendered(at);
    let detail = json!({
        "client_id": "c1", "check_in_id": id, "submitted_at": submitted_at, "scores": {}, "grades": {"gut": 3, "sleep": 4},
    });
    fact("check_in.submitted", detail)
}

/// A client with a daily log and three doses on each of `days` days, and a check-in a week.
async fn world(days: i64) -> (World, Caller) {
    let (world, key) = start_with_key().await;
    let now = world.now().await;
    let doses = ["a", "b", "c"].map(|dose| format!("018f0000-0000-7000-8000-00000000000{dose}"));
    let schedule: Vec<Value> = doses
        .iter()
        .map(|dose| json!({ "dose_id": dose, "per_day": 1, "from": ago(now, days), "until": null }))
        .collect();
    world.apply([Fact::client("ada", "c1")]).await;
    world.publish([fact("dose_schedule.saved", json!({ "client_id": "c1", "doses": schedule }))]).await;
    world.publish((0..days).map(|n| fact("daily_log.saved", json!({ "client_id": "c1", "date": ago(now, n) })))).await;
    for dose in &doses {
        let log = |n: i64| {
            let id = format!("{n}-{dose}");
            fact("dose.logged", json!({ "client_id": "c1", "dose_log_id": id, "dose_id": dose, "date": ago(now, n) }))
        };
        world.publish((0..days).map(log)).await;
    }
    world.apply((0..days / 7).map(|n| check_in(&format!("k{n}"), now - TimeDelta::days(n * 7)))).await;
    (world, key)
}

async fn read(key: &Caller, path: &str) -> Value {
    key.get(&format!("/v1/clients/c1{path}")).await.expect(200).body
}

#[tokio::test]
async fn records_of_90_days_take_one_round_trip_one_write_and_one_and_a_half_reads() {
    let (world, key) = world(90).await;
    assert_eq!(read(&key, "/compliance?window_days=80").await["doses_logged"], 240);
    assert_eq!(read(&key, "/daily-logs").await["count"], 90);
    let affordable = |bill: &Bill| bill.calls == 3 && bill.write_units == 1.0 && bill.read_units <= 1.5;
    for path in PATHS {
        assert_cost(&world, "client-records", async || drop(read(&key, path).await), affordable, 1).await;
    }
    let detail = |bill: &Bill| bill.calls == 2 && bill.write_units == 1.0 && bill.read_units <= 1.5;
    assert_cost(&world, "clients", async || drop(read(&key, "").await), detail, 1).await;
}

/// Copies of an item, each changed by its number.
async fn clone_item(world: &World, item: &Value, count: usize, change: impl Fn(&mut Value, usize)) {
    let copies: Vec<Value> = (0..count)
        .map(|n| {
            let mut copy = item.clone();
            change(&mut copy, n);
            json!({ "PutRequest": { "Item": copy } })
        })
        .collect();
    for batch in copies.chunks(25) {
        let request = json!({ "RequestItems": { "partner-api-records": batch } });
        world.anonymous().aws("DynamoDB_20120810.BatchWriteItem", &request).await;
    }
}

#[tokio::test]
async fn ten_years_of_logs_and_5000_check_ins_take_no_more_calls() {
    let (world, key) = world(8).await;
    let now = world.now().await;
    let items = world.items("records", "CLIENT#c1").await;
    let one = |prefix: &str| items.iter().find(|item| item["sk"]["S"].as_str().unwrap().starts_with(prefix)).unwrap();
    clone_item(&world, one("CHECKIN#"), 5_000, |item, n| {
        let id = format!("x{n:05}");
        let at = rendered(now - TimeDelta::minutes(1_000 * i64::try_from(n).unwrap() + 20_000));
        item["sk"]["S"] = json!(format!("CHECKIN#{id}"));
        item["check_in_id"]["S"] = json!(id);
        item["submitted_at"]["S"] = json!(at);
        item["listed_at"]["S"] = json!(format!("{at}#{id}"));
    })
    .await;
    let this_year: i32 = ago(now, 0)[..4].parse().unwrap();
    clone_item(&world, one("LOGS#"), 10, |item, n| {
        let year = this_year - 1 - i32::try_from(n).unwrap();
        item["sk"]["S"] = json!(format!("LOGS#{year}"));
        let days = (1..=12).flat_map(|month| (1..=28).map(move |day| (month, day)));
        for (month, day) in days.clone() {
            item[format!("d{month:02}{day:02}")] = json!({ "N": "1790000000000" });
        }
        item["logged"]["NS"] = days.map(|(month, day)| (100 * month + day).to_string()).collect();
    })
    .await;
    clone_item(&world, one("DOSES#20"), 120, |item, n| {
        let (year, month) = (this_year - 1 - i32::try_from(n / 12).unwrap(), n % 12 + 1);
        item["sk"]["S"] = json!(format!("DOSES#{year}-{month:02}"));
    })
    .await;
    // The sizes of a page, and the most.
    for (path, count) in
        [("/check-ins", 50), ("/check-ins?limit=201", 200), ("/daily-logs", 90), ("/daily-logs?limit=366", 365)]
    {
        assert_eq!(read(&key, path).await["count"], count, "{path}");
    }
    assert_eq!(read(&key, "/check-ins").await["check_ins"][0]["id"], "k0");
    let affordable = |bill: &Bill| bill.calls == 3 && bill.write_units == 1.0;
    for path in PATHS.iter().chain(&["/daily-logs?limit=365", "/check-ins?limit=200", "/daily-logs?to=2020-01-01"]) {
        assert_cost(&world, "client-records", async || drop(read(&key, path).await), affordable, 1).await;
    }
}
