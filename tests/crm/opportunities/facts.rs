//! Facts about opportunities and pipelines, merged with what the API has set.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::crm::opportunities::{LEAD, OPPORTUNITIES, scene, update};
use crate::world::{Caller, Fact, World, ids, rendered, uuid};

const IT: u64 = 5;

fn opportunity() -> Fact {
    Fact::opportunity("ada", &uuid(IT), &uuid(LEAD))
}

fn dated(fact: Fact, at: DateTime<Utc>) -> Fact {
    fact.with("occurred_at", rendered(at))
}

async fn shown(key: &Caller) -> Value {
    let page = key.get(OPPORTUNITIES).await.expect(200).body;
    assert_eq!(ids(&page), [uuid(IT)]);
    page["data"][0].clone()
}

#[tokio::test]
async fn a_page_ends_before_it_exceeds_the_size_of_an_answer() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    let large = |number: u64| {
        let fact = Fact::opportunity("ada", &uuid(number), &uuid(98)).with("name", "n".repeat(1_000));
        fact.with("stage", "lost").with("lost_reason", "r".repeat(10_000))
    };
    world.apply([Fact::pipeline("ada")]).await;
    world.apply((1..=200).map(large)).await;
    let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = key.get(&format!("{OPPORTUNITIES}?limit=200{cursor}")).await.expect(200);
        assert!(page.text.len() <= 2 * 1024 * 1024, "{}", page.text.len());
        seen.extend(ids(&page.body));
        pages += 1;
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((seen, pages), ((1..=200).map(uuid).collect(), 2));
}

#[tokio::test]
async fn an_opportunity_is_stored_for_any_contact_in_any_pipeline() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    let lost = Fact::opportunity("ada", &uuid(6), &uuid(98)).with("stage", "x").with("lost_reason", "Price");
    let immense = Fact::opportunity("ada", &uuid(7), &uuid(97)).with("value_cents", 9_007_199_254_740_991_u64);
    world.apply([opportunity(), lost, immense]).await;
    let page = key.get(OPPORTUNITIES).await.expect(200).body;
    assert_eq!(ids(&page), [5, 6, 7].map(uuid));
    let statuses: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["open", "lost", "open"], "as far as is known");
    assert_eq!(page["data"][1]["lostReason"], "Price");
    assert_eq!(page["data"][2]["valueCents"], 9_007_199_254_740_991_u64);
    assert_eq!(world.set_aside().await, [] as [Value; 0]);

    // A stage's meaning follows the pipeline, once it comes and whenever it changes.
    let stages = |kind: &str| json!([{ "id": "new", "name": "Renamed", "kind": kind }]);
    for (kind, reason) in [("open", Value::Null), ("lost", json!("Left")), ("won", Value::Null)] {
        let pipeline = Fact::pipeline("ada").with("stages", stages(kind));
        world.apply([pipeline, opportunity().with("lost_reason", "Left")]).await;
        let opportunity = key.get(OPPORTUNITIES).await.expect(200).body["data"][0].clone();
        assert_eq!((&opportunity["status"], &opportunity["lostReason"]), (&json!(kind), &reason));
    }
    world.settle().await;
    for name in ["opportunity.created", "opportunity.updated"] {
        assert_eq!(world.changes(name).await, [] as [Value; 0], "no change for the application's own facts");
    }
}

#[tokio::test]
async fn an_api_opportunity_changes_by_the_applications_later_facts() {
    let world = World::start().await;
    let key = scene(&world).await;
    let body = json!({ "contactId": uuid(LEAD), "name": "Made here", "valueCents": 3 });
    let made = key.post(OPPORTUNITIES, body).idempotent("make").await.expect(201).body["opportunity"].clone();
    let id = made["id"].as_str().unwrap();
    let before = world.now().await - TimeDelta::hours(1);
    world.apply([dated(Fact::opportunity("ada", id, &uuid(42)).with("stage", "warm"), before)]).await;
    let after = key.get(OPPORTUNITIES).await.expect(200).body["data"][0].clone();
    assert_eq!(after, made, "all fields are the API's, and later");
    let moved = Fact::opportunity("ada", id, &uuid(42)).with("occurred_at", world.timestamp_in(60).await);
    world.apply([moved]).await;
    let after = key.get(OPPORTUNITIES).await.expect(200).body["data"][0].clone();
    assert_eq!((&after["contactId"], &after["name"]), (&json!(uuid(42)), &json!("Package")));
}

#[tokio::test]
async fn a_won_opportunity_stays_won_in_any_order_of_pipeline_facts() {
    let world = World::start().await;
    let key = scene(&world).await;
    let start = world.now().await + TimeDelta::hours(1);
    let pipeline = |stage: &str, kind: &str| {
        Fact::pipeline("ada").with("stages", json!([{ "id": stage, "name": stage, "kind": kind }]))
    };
    world.apply([opportunity().with("stage", "paid"), dated(pipeline("new", "open"), start)]).await;
    assert_eq!(shown(&key).await["status"], "open");
    world.apply([dated(pipeline("paid", "won"), start - TimeDelta::hours(1))]).await;
    assert_eq!(shown(&key).await["status"], "won");
}

#[tokio::test]
async fn a_won_opportunity_stays_won_when_its_stage_is_removed() {
    let world = World::start().await;
    let key = scene(&world).await;
    world.apply([opportunity().with("stage", "won")]).await;
    let stage = |id: &str, kind: &str| json!({ "id": id, "name": id, "kind": kind });
    let rearranged = [stage("new", "open"), stage("paid", "won")];
    world.apply([Fact::pipeline("ada").with("stages", json!(rearranged))]).await;
    assert_eq!(shown(&key).await["status"], "won");
    for change in [json!({ "valueCents": 0 }), json!({ "stage": "new" })] {
        update(&world, &key, &uuid(IT), change).await.refused(409, "stage_payment_controlled");
    }
    // A stage that returns has its new meaning.
    world.apply([Fact::pipeline("ada").with("stages", json!([stage("won", "open")]))]).await;
    assert_eq!(shown(&key).await["status"], "open");
}
