//! `/settings/deliveries` and the list below an endpoint: every delivery once, newest first, under any filter.

mod costs;
pub(crate) mod requests;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::delivery::deliveries::DELIVERY;
use crate::delivery::endpoint_states::EndpointScene;
use crate::delivery::simulation::SimulationRandom;
use crate::world::{Caller, Endpoint, Fact, World, list, members, rendered, time};

const DAY_S: u64 = 86_400;
/// The number of the endpoint that is deleted.
const DELETED: usize = 2;
/// Longest time between an event and its deliveries of which nothing is noted.
const NEAR_S: u64 = 600;
/// `cargo test -p behaviour --features long-simulation filter` tries more of them.
const SEEDS: &[u64] = if cfg!(feature = "long-simulation") { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[1] };
const STORED: usize = if cfg!(feature = "long-simulation") { 5_200 } else { 2_600 };
const FILTERS: usize = if cfg!(feature = "long-simulation") { 20 } else { 10 };

/// All pages of a list.
async fn walk(settings: &Caller, path: &str) -> Vec<Value> {
    const MOST_PAGES: usize = 400;
    let (mut all, mut cursor) = (Vec::new(), String::new());
    for _ in 0..MOST_PAGES {
        let page = settings.get(&format!("{path}{cursor}")).await.expect(200).body;
        assert_eq!(members(&page), ["data", "next_cursor"]);
        all.extend(list(page["data"].clone()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
    panic!("{path} has no last page");
}

fn ids(deliveries: &[Value]) -> Vec<String> {
    deliveries.iter().map(|delivery| delivery["id"].as_str().unwrap().to_owned()).collect()
}

/// A delivery as a filter sees it.
#[derive(Clone)]
struct ModelDelivery {
    id: String,
    endpoint: usize,
    event: &'static str,
    webhook_id: String,
    status: &'static str,
    created_ms: i64,
    is_expired: bool,
}

/// A filter, with the query that asks for it.
#[derive(Default)]
struct ModelFilter {
    endpoint: Option<usize>,
    event: Option<&'static str>,
    webhook_id: Option<String>,
    status: Option<&'static str>,
    since_ms: Option<i64>,
    until_ms: Option<i64>,
}

impl ModelFilter {
    fn random(random: &mut SimulationRandom, model: &[ModelDelivery], span_ms: [i64; 2]) -> Self {
        let mut filter = Self::default();
        let any = model[usize::try_from(random.below(model.len() as u64)).unwrap()].clone();
        let mut is_asked = |one_in: u64| random.below(one_in) == 0;
        filter.endpoint = is_asked(3).then_some(any.endpoint);
        filter.event = is_asked(3).then_some(any.event);
        filter.webhook_id = is_asked(5).then(|| any.webhook_id.clone());
        filter.status = is_asked(3).then_some(any.status);
        let width = u64::try_from(span_ms[1] - span_ms[0]).unwrap();
        if random.below(2) == 0 {
            filter.since_ms = Some(span_ms[0] + i64::try_from(random.below(width)).unwrap());
        }
        match random.below(4) {
            0 => filter.until_ms = Some(span_ms[0] + i64::try_from(random.below(width)).unwrap()),
            // The instant of a delivery: it is outside.
            1 => filter.until_ms = Some(any.created_ms),
            _ => {}
        }
        filter
    }

    fn shows(&self, delivery: &ModelDelivery) -> bool {
        !delivery.is_expired
            && self.endpoint.is_none_or(|endpoint| endpoint == delivery.endpoint)
            && self.event.is_none_or(|event| event == delivery.event)
            && self.webhook_id.as_ref().is_none_or(|id| *id == delivery.webhook_id)
            && self.status.is_none_or(|status| status == delivery.status)
            && self.since_ms.is_none_or(|since| since <= delivery.created_ms)
            && self.until_ms.is_none_or(|until| delivery.created_ms < until)
    }

    /// The query without the endpoint.
    fn query(&self) -> String {
        let time = |ms: &i64| rendered(chrono::DateTime::from_timestamp_millis(*ms).unwrap());
        let mut query = String::new();
        for (name, value) in [
            ("type", self.event.map(str::to_owned)),
            ("webhook_id", self.webhook_id.clone()),
            ("status", self.status.map(str::to_owned)),
            ("since", self.since_ms.as_ref().map(time)),
            ("until", self.until_ms.as_ref().map(time)),
        ] {
            query.extend(value.map(|value| format!("&{name}={value}")));
        }
        query
    }
}

/// Stores deliveries with random members over three days, in the form of a real one. Returns them, newest first. An
/// event has one or more deliveries of one time, which is near its own, or is noted as the relay does.
async fn store_random(
    world: &World,
    random: &mut SimulationRandom,
    coach: &str,
    endpoints: &[Endpoint],
    count: usize,
) -> Vec<ModelDelivery> {
    const EVENTS: [&str; 4] = ["new_client", "message_received", "compliance_drop", "phase_eligible"];
    const STATUSES: [&str; 3] = ["pending", "delivered", "failed"];
    let stored = world.delivery_items().await.remove(0);
    let now_ms = world.now().await.timestamp_millis();
    let mut model: Vec<ModelDelivery> = Vec::new();
    let (mut items, mut noted) = (Vec::new(), BTreeMap::new());
    for number in 0..count {
        let choose = |random: &mut SimulationRandom, most: usize| usize::try_from(random.below(most as u64)).unwrap();
        let same_event = model.last().filter(|_| random.below(3) == 0).cloned();
        let created_ms = match &same_event {
            Some(delivery) => delivery.created_ms,
            None => now_ms - i64::try_from(random.below(3 * DAY_S)).unwrap() * 1_000,
        };
        let webhook_id = same_event.map_or_else(
            || {
                let earlier_s = if random.below(3) == 0 { random.below(7 * DAY_S) } else { random.below(NEAR_S) };
                let at_ms = created_ms - i64::try_from(earlier_s).unwrap() * 1_000;
                format!("evt_{at_ms:012x}{number:020x}")
            },
            |delivery| delivery.webhook_id,
        );
        let delivery = ModelDelivery {
            id: format!("dlv_{created_ms:012x}{number:020x}"),
            endpoint: choose(random, endpoints.len()),
            event: EVENTS[choose(random, EVENTS.len())],
            webhook_id,
            // A status that is rare leaves long gaps.
            status: STATUSES[choose(random, 40).saturating_sub(37)],
            created_ms,
            is_expired: random.below(20) == 0,
        };
        let mut item = stored.clone();
        let created_at = rendered(chrono::DateTime::from_timestamp_millis(created_ms).unwrap());
        for (name, value) in [
            ("pk", format!("ENDPOINT#{}", endpoints[delivery.endpoint].id)),
            ("sk", format!("DELIVERY#{}", delivery.id)),
            ("id", delivery.id.clone()),
            ("event_id", delivery.webhook_id.clone()),
            ("event_type", delivery.event.to_owned()),
            ("status", delivery.status.to_owned()),
            ("made_at", created_at),
        ] {
            item[name] = json!({ "S": value });
        }
        let members = item.as_object_mut().unwrap();
        members.retain(|name, _| !["pending_of", "failed_of"].contains(&name.as_str()));
        if delivery.status != "delivered" {
            members.insert(format!("{}_of", delivery.status), members["pk"].clone());
        }
        let event_ms = i64::from_str_radix(&delivery.webhook_id[4..16], 16).unwrap();
        if (created_ms - event_ms).unsigned_abs() > NEAR_S * 1_000 {
            let sk = format!("EVENT#{}#{created_ms:015}", delivery.webhook_id);
            noted.insert(sk.clone(), json!({ "pk": { "S": format!("COACH#{coach}") }, "sk": { "S": sk } }));
        }
        if delivery.is_expired {
            item["expires_at"] = json!({ "N": (now_ms / 1_000 - 1).to_string() });
        }
        items.push(item);
        model.push(delivery);
    }
    items.extend(noted.into_values());
    world.put_items("deliveries", &items).await;
    model.sort_by(|a, b| b.id.cmp(&a.id));
    model
}

#[tokio::test]
async fn a_log_shows_what_its_filter_includes_once_and_newest_first() {
    for seed in SEEDS {
        println!("seed {seed}");
        let mut random = SimulationRandom(*seed);
        let scene = EndpointScene::new().await;
        let (ada, first, settings) = scene.coach().await;
        let url = scene.receiver.url();
        let endpoints = [first, ada.endpoint(&url, "identifiers").await, ada.endpoint(&url, "identifiers").await];
        let began_ms = scene.world.now().await.timestamp_millis();
        scene.event("c1").await;
        // The log keeps the deliveries of a deleted endpoint.
        settings.delete(&format!("/settings/webhooks/{}", endpoints[DELETED].id)).await.expect(200);
        let model = store_random(&scene.world, &mut random, &ada.id, &endpoints, STORED).await;
        // The stored deliveries are older than the real ones.
        let until = rendered(chrono::DateTime::from_timestamp_millis(began_ms).unwrap());
        let span_ms = [began_ms - i64::try_from(3 * DAY_S).unwrap() * 1_000, began_ms];
        scene.world.advance_to_next_minute().await;
        for _ in 0..FILTERS {
            let mut filter = ModelFilter::random(&mut random, &model, span_ms);
            filter.until_ms = Some(filter.until_ms.map_or(began_ms, |until| until.min(began_ms)));
            let shown = |delivery: &&ModelDelivery| filter.shows(delivery);
            let expected: Vec<String> = model.iter().filter(shown).map(|delivery| delivery.id.clone()).collect();
            let limit = 20 + random.below(200);
            let query = format!("?limit={limit}{}", filter.query());
            let endpoint = filter.endpoint.map(|number| &endpoints[number].id);
            let of_all = endpoint.map_or_else(String::new, |id| format!("&endpoint_id={id}"));
            scene.world.advance_to_next_minute().await;
            assert_eq!(
                ids(&walk(&settings, &format!("/settings/deliveries{query}{of_all}")).await),
                expected,
                "{query}"
            );
            if let Some(id) = endpoint.filter(|_| filter.endpoint != Some(DELETED)) {
                let path = format!("/settings/webhooks/{id}/deliveries{query}");
                scene.world.advance_to_next_minute().await;
                assert_eq!(ids(&walk(&settings, &path).await), expected, "{path}");
            }
        }
        scene.world.advance_to_next_minute().await;
        let all = walk(&settings, "/settings/deliveries?limit=200").await;
        let listed: Vec<&Value> = all.iter().filter(|one| one["created_at"].as_str() < Some(&until)).collect();
        let stored = |delivery: &&ModelDelivery| !delivery.is_expired && delivery.created_ms < began_ms;
        assert_eq!(listed.len(), model.iter().filter(stored).count());
    }
}

#[tokio::test]
async fn a_delivery_names_its_endpoint_its_client_and_the_time_of_its_creation() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let before = scene.world.timestamp_in(0).await;
    // The event happened long before it came.
    let long_ago = scene.world.timestamp_in(-7 * 24 * 3_600).await;
    let late = Fact::client("ada", "c1").with("occurred_at", long_ago.clone()).with("created_at", long_ago);
    scene.world.apply([late]).await;
    let after = scene.world.timestamp_in(1).await;
    settings.post(&format!("/settings/webhooks/{}/test", endpoint.id), json!({})).await.expect(202);
    scene.world.settle().await;
    let [test, real] = <[Value; 2]>::try_from(ada.deliveries(&endpoint).await).unwrap();
    for delivery in [&test, &real] {
        assert_eq!(members(delivery), DELIVERY);
        assert_eq!(delivery["endpoint_id"], json!(endpoint.id));
    }
    assert_eq!((&real["client_id"], &real["test"]), (&json!("c1"), &json!(false)));
    assert_eq!((&test["client_id"], &test["test"]), (&Value::Null, &json!(true)));
    let created_at = real["created_at"].as_str().unwrap();
    assert!((before.as_str()..after.as_str()).contains(&created_at), "{created_at}");
    assert!(time(&real["created_at"]) <= time(&real["attempts"][0]["at"]));
    assert_eq!(walk(&settings, "/settings/deliveries?").await, [test.clone(), real.clone()]);
    // `since` is inclusive, `until` exclusive.
    let tested_at = test["created_at"].as_str().unwrap();
    for (query, expected) in [
        (format!("since={created_at}"), vec![&test, &real]),
        (format!("since={created_at}&until={tested_at}"), vec![&real]),
        (format!("until={created_at}"), vec![]),
        (format!("since={tested_at}"), vec![&test]),
        (format!("since={tested_at}&until={created_at}"), vec![]),
    ] {
        for path in ["/settings/deliveries", &format!("/settings/webhooks/{}/deliveries", endpoint.id)] {
            let found = walk(&settings, &format!("{path}?{query}")).await;
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{path}?{query}");
        }
    }
}

#[tokio::test]
async fn an_unknown_or_malformed_filter_is_refused_by_its_name() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let of_endpoint = format!("/settings/webhooks/{}/deliveries", endpoint.id);
    for path in ["/settings/deliveries", &of_endpoint] {
        for (name, value) in [
            ("status", "Failed"),
            ("type", "new_client,phase_advanced"),
            ("webhook_id", "evt_019A9F0C6D5E8B3C8F1A2B3C4D5E6F72"),
            ("since", "1790000000"),
            ("until", "tomorrow"),
            ("cursor", "%20"),
            ("state", "failed"),
            ("Status", "failed"),
        ] {
            let refused = settings.get(&format!("{path}?{name}={value}")).await.refused_for(name);
            assert_eq!(refused.body["field"], json!(name), "{}", refused.text);
        }
        for query in [
            "",
            "?limit=0",
            "?cursor=",
            "?type=compliance_drop&status=failed&limit=3",
            "?status=&type=&webhook_id=&since=&until=",
            "?since=2026-11-20T00:00:00+00:00&until=2026-11-20T02:00:00+02:00",
        ] {
            assert_eq!(settings.get(&format!("{path}{query}")).await.expect(200).body["data"], json!([]));
        }
    }
    settings.get("/settings/deliveries?endpoint_id=x").await.refused_for("endpoint_id");
    settings.get(&format!("{of_endpoint}?endpoint_id={}", endpoint.id)).await.refused_for("endpoint_id");
}

#[tokio::test]
async fn deliveries_of_a_deleted_endpoint_are_listed_and_read() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.event("c1").await;
    let stored = ada.deliveries(&endpoint).await;
    let [delivery] = &stored[..] else { panic!("{stored:?}") };
    let at = format!("/settings/webhooks/{}", endpoint.id);
    settings.delete(&at).await.expect(200);
    assert_eq!(walk(&settings, "/settings/deliveries?").await, stored);
    let of_endpoint = format!("/settings/deliveries?endpoint_id={}&", endpoint.id);
    assert_eq!(walk(&settings, &of_endpoint).await, stored);
    let at = format!("{at}/deliveries/{}", delivery["id"].as_str().unwrap());
    let read = settings.get(&at).await.expect(200).body;
    assert_eq!((&read["id"], read["request"]["body"].is_string()), (&delivery["id"], true));
    settings.post(&format!("{at}/retry"), json!({})).await.refused(404, "not_found");
    let bobs = scene.world.coach("bob").await.settings().await;
    bobs.get(&at).await.refused(404, "not_found");
    assert_eq!(walk(&bobs, &of_endpoint).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_late_event_is_found_by_its_id_in_one_page() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let other = ada.endpoint(&format!("{}/other", scene.receiver.url()), "identifiers").await;
    let ahead = scene.world.timestamp_in(3_600).await;
    let long_ago = scene.world.timestamp_in(-40 * 24 * 3_600).await;
    for (client, at) in [("late", &long_ago), ("ahead", &ahead)] {
        let fact = Fact::client("ada", client).with("occurred_at", at.clone()).with("created_at", at.clone());
        scene.world.apply([fact]).await;
    }
    scene.event("now").await;
    for (number, client) in ["now", "ahead", "late"].into_iter().enumerate() {
        let [of_one, of_other] =
            [ada.deliveries(&endpoint).await[number].clone(), ada.deliveries(&other).await[number].clone()];
        assert_eq!((&of_one["client_id"], &of_other["client_id"]), (&json!(client), &json!(client)));
        let path = format!("/settings/deliveries?webhook_id={}", of_one["webhook_id"].as_str().unwrap());
        let page = settings.get(&path).await.expect(200).body;
        let mut expected = [of_one.clone(), of_other.clone()];
        expected.sort_by(|a, b| b["id"].as_str().cmp(&a["id"].as_str()));
        assert_eq!(page, json!({ "data": expected, "next_cursor": null }), "{client}");
        let of_endpoint = format!("{path}&endpoint_id={}", other.id);
        assert_eq!(settings.get(&of_endpoint).await.expect(200).body["data"], json!([of_other]), "{client}");
    }
}
