//! Opportunities through the API: initial stage, and allowed changes.

mod facts;
mod races;

use serde_json::{Value, json};

use crate::crm::contacts::merges::merged;
use crate::world::{Caller, Fact, PIPELINE, Reply, World, ids, members, uuid};

const OPPORTUNITIES: &str = "/v1/crm/opportunities";
const LEAD: u64 = 1;
const MEMBERS: [&str; 10] =
    ["contactId", "createdAt", "id", "lostReason", "name", "pipelineId", "stage", "status", "updatedAt", "valueCents"];

/// A coach with a stored pipeline and a stored contact.
async fn scene(world: &World) -> Caller {
    let key = world.coach("ada").await.crm_key().await;
    world.apply([Fact::pipeline("ada"), Fact::contact("ada", &uuid(LEAD))]).await;
    key
}

async fn create(world: &World, key: &Caller, body: Value) -> Reply {
    key.post(OPPORTUNITIES, body).idempotent(&format!("create-{}", world.number())).await
}

/// Creates an opportunity and returns its id.
async fn made(world: &World, key: &Caller) -> String {
    let reply = create(world, key, json!({ "contactId": uuid(LEAD) })).await.expect(201);
    reply.body["opportunity"]["id"].as_str().unwrap().to_owned()
}

async fn update(world: &World, key: &Caller, id: &str, body: Value) -> Reply {
    key.patch(&format!("{OPPORTUNITIES}/{id}"), body).idempotent(&format!("update-{}", world.number())).await
}

async fn listed(key: &Caller, id: &str) -> Value {
    let page = key.get(OPPORTUNITIES).await.expect(200).body;
    let found = page["data"].as_array().unwrap().iter().find(|opportunity| opportunity["id"] == *id);
    found.unwrap_or_else(|| panic!("{id} is not in {page}")).clone()
}

/// Asserts that the list shows the opportunity as the answer did.
async fn assert_listed(key: &Caller, reply: &Reply) {
    let opportunity = &reply.body["opportunity"];
    assert_eq!(listed(key, opportunity["id"].as_str().unwrap()).await, *opportunity);
}

#[tokio::test]
async fn an_opportunity_starts_in_the_configured_stage_with_its_contacts_name() {
    let world = World::start().await;
    let key = scene(&world).await;
    let reply = create(&world, &key, json!({ "contactId": uuid(LEAD) })).await.expect(201);
    assert_eq!(reply.members(), ["opportunity"]);
    let opportunity = &reply.body["opportunity"];
    assert_eq!(members(opportunity), MEMBERS);
    let mut expected = json!({
        "contactId": uuid(LEAD), "name": "Lee Lead", "valueCents": 0, "pipelineId": PIPELINE, "stage": "new",
        "status": "open", "lostReason": null,
    });
    for own in ["id", "createdAt", "updatedAt"] {
        expected[own] = opportunity[own].clone();
    }
    assert_eq!(*opportunity, expected);
    assert_eq!(opportunity["createdAt"], opportunity["updatedAt"]);
    assert_eq!(opportunity["id"].as_str().unwrap().as_bytes()[14], b'7', "a UUID of version 7");
    assert_listed(&key, &reply).await;

    world.settle().await;
    let emitted = world.changes("opportunity.created").await;
    assert_eq!(emitted.len(), 1);
    assert_eq!(members(&emitted[0]), ["coach_id", "id", "occurred_at", "opportunity"]);
    assert_eq!((&emitted[0]["opportunity"], &emitted[0]["coach_id"]), (opportunity, &json!("ada")));
    assert_eq!(emitted[0]["occurred_at"], opportunity["createdAt"]);

    let given = json!({ "contactId": uuid(LEAD).to_uppercase(), "name": "Ten calls", "valueCents": 1_000_000_000 });
    let reply = create(&world, &key, given).await.expect(201);
    let opportunity = &reply.body["opportunity"];
    assert_eq!((&opportunity["name"], &opportunity["valueCents"]), (&json!("Ten calls"), &json!(1_000_000_000)));
    assert_eq!(opportunity["contactId"], uuid(LEAD));
    assert_listed(&key, &reply).await;
}

#[tokio::test]
async fn an_opportunity_needs_an_existing_contact() {
    let world = World::start().await;
    let key = scene(&world).await;
    world.apply([2, 3].map(|number| Fact::contact("ada", &uuid(number)))).await;
    world.apply([merged(2, 3), merged(3, LEAD)]).await;
    create(&world, &key, json!({ "contactId": uuid(8) })).await.refused(404, "not_found");
    for gone in [2, 3] {
        let reply = create(&world, &key, json!({ "contactId": uuid(gone) })).await.refused(409, "contact_merged");
        assert_eq!(reply.body["mergedIntoId"], uuid(LEAD), "the one who lives");
    }
    world.apply([Fact::contact("ada", &uuid(8))]).await;
    create(&world, &key, json!({ "contactId": uuid(8) })).await.expect(201);
    world.settle().await;
    assert_eq!(world.changes("opportunity.created").await.len(), 1);
}

#[tokio::test]
async fn no_opportunity_starts_in_a_missing_pipeline_or_a_stage_that_is_not_open() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    world.apply([Fact::contact("ada", &uuid(LEAD))]).await;
    let body = json!({ "contactId": uuid(LEAD) });
    let early = key.post(OPPORTUNITIES, body.clone()).idempotent("early");
    early.clone().await.refused(403, "owner_configuration_missing");
    update(&world, &key, &uuid(5), json!({ "name": "n" })).await.refused(403, "owner_configuration_missing");
    world.apply([Fact::pipeline("ada")]).await;
    // The earlier refusal is not recorded against the request.
    assert!(!early.await.expect(201).is_replay());
    create(&world, &key, body.clone()).await.expect(201);
    world.apply([Fact::contact("ada", &uuid(2))]).await;
    for stage in ["won", "lost", "gone", "NEW"] {
        world.coach("ada").with("crm", json!({ "pipeline_id": PIPELINE, "initial_stage": stage })).await;
        create(&world, &key, body.clone()).await.refused(403, "owner_configuration_missing");
    }
    world.coach("ada").with("crm", json!({ "pipeline_id": "another", "initial_stage": "new" })).await;
    create(&world, &key, body.clone()).await.refused(403, "owner_configuration_missing");
    let mended = |lead: u64| key.post(OPPORTUNITIES, json!({ "contactId": uuid(lead) })).idempotent("mended");
    mended(LEAD).await.refused(403, "owner_configuration_missing");
    world.coach("ada").with("crm", json!({ "pipeline_id": PIPELINE, "initial_stage": "warm" })).await;
    assert_eq!(create(&world, &key, body).await.expect(201).body["opportunity"]["stage"], "warm");
    // The earlier state is not recorded either.
    assert_eq!(mended(2).await.expect(201).body["opportunity"]["contactId"], uuid(2));
}

#[tokio::test]
async fn an_opportunity_moves_between_open_and_lost_stages_with_a_reason_for_lost_ones() {
    let world = World::start().await;
    let key = scene(&world).await;
    let id = made(&world, &key).await;
    let before = listed(&key, &id).await;
    for (body, status, code) in [
        (json!({ "stage": "gone" }), 400, "stage_unknown"),
        (json!({ "stage": "won" }), 409, "stage_payment_controlled"),
        (json!({ "stage": "lost" }), 400, "lost_reason_required"),
        (json!({ "stage": "warm", "lostReason": "r" }), 400, "lost_reason_not_allowed"),
    ] {
        let refused = update(&world, &key, &id, body).await.refused(status, code);
        assert!(code != "stage_unknown" || refused.error().ends_with(": new, warm, lost."), "{}", refused.text);
        assert_eq!(listed(&key, &id).await, before, "{code}");
    }
    let lost = |reason: &str| json!({ "stage": "lost", "status": "lost", "lostReason": reason });
    for (body, expected) in [
        (json!({ "stage": "lost", "lostReason": "Price" }), lost("Price")),
        (json!({ "name": "Renamed", "valueCents": 7 }), lost("Price")),
        (json!({ "lostReason": "Distance" }), lost("Distance")),
        (json!({ "stage": "new" }), json!({ "stage": "new", "status": "open", "lostReason": null })),
        (json!({ "name": "Again" }), json!({ "name": "Again", "stage": "new", "valueCents": 7 })),
    ] {
        let reply = update(&world, &key, &id, body.clone()).await.expect(200);
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(reply.body["opportunity"][name], *value, "{name} after {body}");
        }
        assert_listed(&key, &reply).await;
    }
    let after = listed(&key, &id).await;
    for same in [json!({ "name": "Again" }), json!({ "valueCents": 7, "stage": "new" })] {
        assert_eq!(update(&world, &key, &id, same).await.expect(200).body["opportunity"], after);
    }
    world.settle().await;
    let emitted = world.changes("opportunity.updated").await;
    assert_eq!(emitted.len(), 5, "one for each change, none for what was refused or had no effect");
    assert_eq!(emitted[4]["opportunity"], after);
}

#[tokio::test]
async fn an_opportunity_is_written_in_the_configured_pipeline_and_listed_in_any() {
    let world = World::start().await;
    let key = scene(&world).await;
    let other = Fact::pipeline("ada").with("pipeline_id", "other");
    let elsewhere = Fact::opportunity("ada", &uuid(7), &uuid(LEAD)).with("pipeline_id", "other").with("stage", "lost");
    world.apply([other, elsewhere]).await;
    let id = made(&world, &key).await;
    for missing in [7, 99] {
        update(&world, &key, &uuid(missing), json!({ "name": "n" })).await.refused(404, "not_found");
    }
    let page = key.get(OPPORTUNITIES).await.expect(200).body;
    assert_eq!(ids(&page), [uuid(7), id]);
    assert_eq!((&page["data"][0]["status"], &page["data"][1]["status"]), (&json!("lost"), &json!("open")));
}
