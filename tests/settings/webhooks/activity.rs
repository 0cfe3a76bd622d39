//! `/settings/webhooks/{id}/activity` and `/settings/deliveries/activity`: what happened in each hour.

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::settings::webhooks::retry::path;
use crate::world::{Answer, Bill, Caller, Endpoint, World, assert_cost, list, members, time};

const HOUR_S: u64 = 3_600;
/// The activity of all endpoints.
const OF_ALL: &str = "/settings/deliveries/activity";
const MAX_ENDPOINTS: usize = 20;
/// Three, and some of the twenty parallel calls that a busy machine serialises.
const IN_SEQUENCE: usize = 6;

/// The activity of a period, which has consecutive hours up to the current one.
async fn activity(world: &World, settings: &Caller, path: &str, hours: usize) -> Vec<Value> {
    let answer = settings.get(path).await.expect(200);
    assert_eq!(answer.members(), ["data"]);
    let shown = list(answer.body["data"].clone());
    assert_eq!(shown.len(), hours);
    for pair in shown.windows(2) {
        assert_eq!(time(&pair[1]["at"]) - time(&pair[0]["at"]), chrono::TimeDelta::hours(1));
    }
    let last = shown.last().unwrap();
    assert_eq!(members(last), ["at", "delivered", "failed"]);
    let age = world.now().await - time(&last["at"]);
    assert!(age >= chrono::TimeDelta::zero() && age < chrono::TimeDelta::hours(1), "{last}");
    assert_eq!(time(&last["at"]).timestamp() % 3_600, 0, "{last}");
    shown
}

/// The hours with numbers, by how long ago they were.
async fn busy_hours(world: &World, settings: &Caller, path: &str, hours: usize) -> Vec<(usize, u64, u64)> {
    let shown = activity(world, settings, path, hours).await.into_iter().rev().enumerate();
    let numbers = shown.map(|(ago, hour)| (ago, hour["delivered"].as_u64().unwrap(), hour["failed"].as_u64().unwrap()));
    numbers.filter(|(_, delivered, failed)| delivered + failed > 0).collect()
}

/// Moves to the beginning of an hour, so that the next minutes are in one.
pub(super) async fn begin_hour(world: &World) {
    let into_hour_s = u64::try_from(world.now().await.timestamp() % 3_600).unwrap();
    world.advance_s(HOUR_S - into_hour_s + 1).await;
}

#[tokio::test]
async fn activity_has_every_hour_with_its_deliveries_and_failed_attempts() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let other = ada.endpoint(&format!("{}/other", scene.receiver.url()), "identifiers").await;
    let world = &scene.world;
    let [of_one, of_other] = [&endpoint, &other].map(|endpoint| path(endpoint, "activity"));
    begin_hour(world).await;
    assert_eq!(busy_hours(world, &settings, &of_one, 24).await, []);
    scene.event("c1").await;
    // The first attempt fails, and so does the one after five seconds.
    scene.receiver.otherwise(Answer::status(500));
    settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
    world.settle().await;
    world.advance_s(10).await;
    assert_eq!(busy_hours(world, &settings, &of_one, 24).await, [(0, 1, 2)]);
    assert_eq!(busy_hours(world, &settings, &of_other, 24).await, [(0, 1, 0)]);
    assert_eq!(busy_hours(world, &settings, OF_ALL, 24).await, [(0, 2, 2)]);
    // What waits is not attempted any more.
    settings.patch(&format!("/settings/webhooks/{}", endpoint.id), json!({ "enabled": false })).await.expect(200);
    world.advance_s(30 * HOUR_S).await;
    scene.receiver.otherwise(Answer::status(204));
    scene.event("c2").await;
    assert_eq!(busy_hours(world, &settings, &of_one, 24).await, []);
    for path in [&format!("{of_one}?hours=31"), &format!("{of_one}?hours=720")] {
        let hours = path.rsplit('=').next().unwrap().parse().unwrap();
        assert_eq!(busy_hours(world, &settings, path, hours).await, [(30, 1, 2)], "{path}");
    }
    assert_eq!(busy_hours(world, &settings, &format!("{OF_ALL}?hours=720"), 720).await, [(0, 1, 0), (30, 2, 2)]);
    // A deleted endpoint has no activity.
    settings.delete(&format!("/settings/webhooks/{}", other.id)).await.expect(200);
    settings.get(&of_other).await.refused(404, "not_found");
    assert_eq!(busy_hours(world, &settings, &format!("{OF_ALL}?hours=31"), 31).await, [(30, 1, 2)]);
}

#[tokio::test]
async fn activity_is_of_24_to_720_hours_and_of_the_coach() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let of_one = path(&endpoint, "activity");
    scene.event("c1").await;
    for path in [OF_ALL, &of_one] {
        settings.get(&format!("{path}?hours=23")).await.refused_for("hours");
        settings.get(&format!("{path}?days=2")).await.refused_for("days");
        activity(&scene.world, &settings, &format!("{path}?hours=24"), 24).await;
    }
    let bobs = scene.world.coach("bob").await.settings().await;
    assert_eq!(busy_hours(&scene.world, &bobs, OF_ALL, 24).await, []);
}

/// Twenty endpoints, each with 5,000 deliveries and 500 failed attempts in every hour of a month, and with some
/// deliveries that wait: the first endpoint has more than are counted.
async fn store_a_busy_month(scene: &EndpointScene) -> Caller {
    let (ada, first, settings) = scene.coach().await;
    let mut endpoints: Vec<Endpoint> = vec![first];
    while endpoints.len() < MAX_ENDPOINTS {
        endpoints.push(ada.endpoint(&format!("{}/{}", scene.receiver.url(), endpoints.len()), "identifiers").await);
    }
    let now = scene.world.now().await;
    let of_hour = |hour: u32| {
        [("delivered", 5_000), ("failed_attempts", 500), ("failed", 50)]
            .map(|(name, count)| (format!("h{hour:02}_{name}"), json!({ "N": count.to_string() })))
    };
    let counts: serde_json::Map<String, Value> = (0..24).flat_map(of_hour).collect();
    let mut items = Vec::new();
    for (number, endpoint) in endpoints.iter().enumerate() {
        for waiting in 0..if number == 0 { 1_200 } else { 10 } {
            let id = format!("dlv_{waiting:032}");
            items.push(json!({
                "pk": { "S": format!("ENDPOINT#{}", endpoint.id) }, "sk": { "S": format!("DELIVERY#{id}") },
                "pending_of": { "S": format!("ENDPOINT#{}", endpoint.id) }, "event_type": { "S": "new_client" },
            }));
        }
        for ago in 0..31 {
            let mut day = counts.clone();
            let date = (now - chrono::TimeDelta::days(ago)).date_naive();
            day.insert("pk".to_owned(), json!({ "S": format!("ENDPOINT#{}", endpoint.id) }));
            day.insert("sk".to_owned(), json!({ "S": format!("ACTIVITY#{date}") }));
            items.push(Value::Object(day));
        }
    }
    scene.world.put_items("deliveries", &items).await;
    settings
}

#[tokio::test]
async fn numbers_of_twenty_busy_endpoints_cost_few_read_units() {
    let scene = EndpointScene::new().await;
    let settings = store_a_busy_month(&scene).await;
    let listed = settings.get("/settings/webhooks").await.expect(200).body["endpoints"].clone();
    let counts = |pending: u64| json!({ "delivered": 120_000, "failed": 1_200, "pending": pending });
    assert_eq!([&listed[0]["last_24h"], &listed[1]["last_24h"]], [&counts(1_000), &counts(10)]);
    for (path, calls, read_units) in [
        (OF_ALL, 23, 15.0),
        ("/settings/deliveries/activity?hours=720", 23, 105.0),
        ("/settings/webhooks", 43, 50.0),
        ("/settings/deliveries?status=failed", 24, 15.0),
    ] {
        let get = async || drop(settings.get(path).await.expect(200));
        let affordable = |bill: &Bill| bill.calls == calls && bill.write_units == 1.0 && bill.read_units <= read_units;
        assert_cost(&scene.world, "settings", get, affordable, IN_SEQUENCE).await;
    }
}
