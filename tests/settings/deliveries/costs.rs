//! Costs of the delivery log: of a page, whatever the length of the log, and of a delivery.

use std::ops::Range;

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::world::{Bill, Endpoint, World, assert_cost, list};

/// Stores deliveries of an endpoint over the days before, all delivered, in the form of a real one.
async fn store_delivered(world: &World, endpoint: &Endpoint, numbers: Range<u64>) {
    let mut delivered = world.delivery_items().await.remove(0);
    delivered["pk"] = json!({ "S": format!("ENDPOINT#{}", endpoint.id) });
    let now_ms = u64::try_from(world.now().await.timestamp_millis()).unwrap();
    let items: Vec<Value> = numbers
        .map(|number| {
            let id = format!("dlv_{:012x}{number:020x}", now_ms - number * 500_000);
            let mut item = delivered.clone();
            (item["id"], item["sk"]) = (json!({ "S": id }), json!({ "S": format!("DELIVERY#{id}") }));
            item
        })
        .collect();
    world.put_items("deliveries", &items).await;
}

#[tokio::test]
async fn a_page_costs_the_same_whatever_the_length_of_the_log() {
    const LENGTHS: [u64; 2] = [2_500, 5_000];
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.event("delivered").await;
    let webhook_id = ada.deliveries(&endpoint).await[0]["webhook_id"].clone();
    let webhook_id = webhook_id.as_str().unwrap();
    let long_ago = scene.world.timestamp_in(-20 * 24 * 3_600).await;
    let queries = [
        ("limit=50".to_owned(), 60.0),
        ("status=failed".to_owned(), 5.0),
        ("status=pending".to_owned(), 5.0),
        (format!("webhook_id={webhook_id}"), 5.0),
        ("type=phase_advanced".to_owned(), 400.0),
        ("status=delivered&type=phase_advanced".to_owned(), 400.0),
        (format!("type=phase_advanced&until={long_ago}"), 400.0),
    ];
    let mut units = Vec::new();
    let mut stored = 1;
    for length in LENGTHS {
        store_delivered(&scene.world, &endpoint, stored..length).await;
        stored = length;
        let mut bills = Vec::new();
        for (query, most) in &queries {
            settings.get(&format!("/settings/deliveries?{query}")).await.expect(200);
            let bill = Bill::of(&scene.world.calls("settings").await[0]);
            assert!(bill.read_units <= *most && bill.calls <= 18, "{query} of {length}: {bill:?}");
            bills.push(bill.read_units);
        }
        units.push(bills);
    }
    assert_eq!(units[0][..4], units[1][..4]);
    // A filter that shows nothing is read to its end over some pages.
    let (mut cursor, mut pages) = (String::new(), 0);
    loop {
        let path = format!("/settings/deliveries?type=phase_advanced{cursor}");
        let page = settings.get(&path).await.expect(200).body;
        assert_eq!(page["data"], json!([]));
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(pages, LENGTHS[1].div_ceil(2_000));
}

#[tokio::test]
async fn a_page_of_a_log_costs_few_calls() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.event("c1").await;
    scene.event("c2").await;
    for (path, calls) in [
        ("/settings/deliveries".to_owned(), 5),
        (format!("/settings/webhooks/{}/deliveries", endpoint.id), 4),
        ("/settings/webhooks".to_owned(), 5),
        (format!("/settings/webhooks/{}", endpoint.id), 5),
    ] {
        let get = async || drop(settings.get(&path).await.expect(200));
        let affordable = |bill: &Bill| bill.calls == calls && bill.write_units == 1.0 && bill.read_units <= 5.0;
        assert_cost(&scene.world, "settings", get, affordable, 3).await;
    }
}

/// Two indexes name a new delivery. A success removes it from one, and the counts of the batch are an item.
#[tokio::test]
async fn a_delivery_costs_three_write_units_to_create_and_three_to_attempt() {
    let scene = EndpointScene::new().await;
    let (_, _, _) = scene.coach().await;
    scene.event("c1").await;
    let units = async |function: &str| {
        let calls = scene.world.calls(function).await.into_iter().flat_map(|call| list(call["calls"].clone()));
        let of_table = calls.filter(|call| call["tables"] == json!(["partner-api-deliveries"]));
        of_table.map(|call| call["write_units"].as_f64().unwrap()).sum::<f64>()
    };
    assert_eq!((units("relay").await, units("deliver").await), (3.0, 3.0));
}
