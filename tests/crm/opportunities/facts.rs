//! Facts about opportunities and pipelines, merged with what the API has set.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::world::{Caller, Fact, World, bytes_of, fact, ids, rendered, uuid};

const OPPORTUNITIES: &str = "/v1/crm/opportunities";
const LEAD: u64 = 1;
const IT: u64 = 5;

async fn scene(world: &World) -> Caller {
    let key = world.coach("ada").await.crm_key().await;
    world.apply([Fact::pipeline("ada"), Fact::contact("ada", &uuid(LEAD))]).await;
    key
}

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

async fn update(world: &World, key: &Caller, body: Value) -> Value {
    let call = key.patch(&format!("{OPPORTUNITIES}/{}", uuid(IT)), body);
    call.idempotent(&format!("update-{}", world.number())).await.expect(200).body["opportunity"].clone()
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
async fn a_fact_waits_for_its_workspace_and_a_malformed_fact_is_set_aside() {
    let world = World::start().await;
    let early = [opportunity(), Fact::pipeline("ada"), Fact::workflow("ada", &uuid(9))];
    world.apply(early).await;
    let key = world.coach("ada").await.crm_key().await;
    world.advance_s(120).await;
    assert_eq!(shown(&key).await["status"], "open");
    assert_eq!(ids(&key.get("/v1/crm/workflows").await.expect(200).body), [uuid(9)]);

    let stage = |id: &str| json!({ "id": id, "name": "Stage", "kind": "open", "rules": "SECRET" });
    let bad = [
        opportunity().with("value_cents", -1),
        opportunity().with("value_cents", 1.5),
        opportunity().with("opportunity_id", "not-a-uuid"),
        opportunity().without("lost_reason"),
        opportunity().with("stage", Value::Null).with("notes", "SECRET"),
        Fact::pipeline("ada").with("stages", json!([stage("a"), stage("a")])),
        Fact::pipeline("ada").with("stages", json!((0..201).map(|n| stage(&format!("s{n}"))).collect::<Vec<_>>())),
        Fact::pipeline("ada").without("name"),
    ];
    let count = bad.len();
    world.apply(bad).await;
    let aside = world.set_aside().await;
    assert_eq!(aside.len(), count);
    assert!(!json!(aside).to_string().contains("SECRET"));
}

#[tokio::test]
async fn updated_at_changes_only_with_the_shown_fields() {
    let world = World::start().await;
    let key = scene(&world).await;
    let start = world.now().await;
    world.apply([dated(opportunity(), start - TimeDelta::hours(2))]).await;
    update(&world, &key, json!({ "name": "By the API" })).await;
    let named = shown(&key).await;
    world.advance_s(60).await;
    // Older than the name, but the first fact with this value.
    world
        .apply([dated(opportunity().with("value_cents", 777), start - TimeDelta::hours(1)).with("id", "valued")])
        .await;
    let valued = shown(&key).await;
    assert_eq!((&valued["name"], &valued["valueCents"]), (&json!("By the API"), &json!(777)));
    assert!(valued["updatedAt"].as_str() > named["updatedAt"].as_str(), "{valued}");
    world.advance_s(60).await;
    let again = opportunity().with("name", "By the API").with("value_cents", 777);
    world.apply([dated(again, world.now().await).with("id", "again")]).await;
    assert_eq!(shown(&key).await, valued, "nothing is shown that was not shown before");
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
async fn opportunities_of_an_erased_contact_are_erased_and_do_not_return() {
    let world = World::start().await;
    let key = scene(&world).await;
    let partner = world.coach("ada").await.partner_key().await;
    world.apply([Fact::contact("ada", &uuid(2)).with("email", "zoe@example.com").with("name", "Zoe Zebra")]).await;
    let body = json!({ "email": "zoe@example.com", "send_welcome": false });
    let client = partner.post("/v1/clients", body).await.expect(201).str("client_id").to_owned();
    let create = key.post(OPPORTUNITIES, json!({ "contactId": uuid(2) })).idempotent("create");
    assert_eq!(create.clone().await.expect(201).body["opportunity"]["name"], "Zoe Zebra");
    world.apply([Fact::opportunity("ada", &uuid(IT), &uuid(2)).with("name", "Zoe Zebra's package")]).await;
    assert_eq!(ids(&key.get(OPPORTUNITIES).await.expect(200).body).len(), 2);

    world.apply([fact("client.erased", json!({ "client_id": client }))]).await;
    world.advance_s(1_000).await;
    assert_eq!(ids(&key.get(OPPORTUNITIES).await.expect(200).body), [] as [String; 0]);
    key.post(OPPORTUNITIES, json!({ "contactId": uuid(2) })).idempotent("again").await.refused(404, "not_found");
    world.apply([Fact::opportunity("ada", &uuid(IT), &uuid(2)).with("name", "Zoe Zebra's package")]).await;
    assert_eq!(ids(&key.get(OPPORTUNITIES).await.expect(200).body), [] as [String; 0]);
    create.await.refused(409, "person_erased");
    for (table, item) in world.tables().await {
        let bytes = bytes_of(&item);
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("Zebra"), "{table}: {text}");
    }
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
        let call = key.patch(&format!("{OPPORTUNITIES}/{}", uuid(IT)), change);
        call.idempotent(&format!("refused-{}", world.number())).await.refused(409, "stage_payment_controlled");
    }
    // A stage that returns has its new meaning.
    world.apply([Fact::pipeline("ada").with("stages", json!([stage("won", "open")]))]).await;
    assert_eq!(shown(&key).await["status"], "open");
}
