//! Opportunities through the API: initial stage, allowed changes, ownership and lists.

mod facts;
mod races;

use serde_json::{Value, json};

use crate::world::{Caller, Fact, PIPELINE, Reply, World, fact, ids, members, uuid};

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
async fn a_body_accepts_its_own_members_in_their_types_only() {
    let world = World::start().await;
    let key = scene(&world).await;
    let id = made(&world, &key).await;
    update(&world, &key, &id, json!({ "valueCents": 1.5 })).await.refused_for("valueCents");
    create(&world, &key, json!({ "name": "Nobody's" })).await.refused_for("contactId");
    create(&world, &key, json!({ "contactId": uuid(LEAD), "stage": "warm" })).await.refused_for("stage");
    let reply = update(&world, &key, &id, json!({ "owner": 1, "labels": [], "name": "n" })).await.refused_for("owner");
    assert!(reply.error().contains("labels"), "{}", reply.text);
    update(&world, &key, &id, json!({})).await.refused_for("lostReason");
    for odd in ["not-a-uuid", &id.replace('-', ""), &format!("{id}0")] {
        let reply = update(&world, &key, odd, json!({ "name": "n" })).await.refused_for("id");
        assert_eq!(reply.body["field"], "id");
    }
    assert_eq!(ids(&key.get(OPPORTUNITIES).await.body), [id.as_str()], "none was made");
    assert_eq!(listed(&key, &id).await["name"], "Lee Lead", "nor changed");
    world.settle().await;
    assert_eq!(world.changes("opportunity.updated").await, [] as [Value; 0]);
}

#[tokio::test]
async fn an_opportunity_needs_an_existing_contact_of_the_workspace() {
    let world = World::start().await;
    let key = scene(&world).await;
    world.coach("bob").await;
    let merged = |from: u64, into: u64| {
        let detail = json!({ "coach_id": "ada", "contact_id": uuid(from), "merged_into": uuid(into) });
        fact("contact.merged", detail)
    };
    world.apply([2, 3].map(|number| Fact::contact("ada", &uuid(number)))).await;
    world.apply([Fact::contact("bob", &uuid(9)), merged(2, 3), merged(3, LEAD)]).await;
    for unknown in [8, 9] {
        create(&world, &key, json!({ "contactId": uuid(unknown) })).await.refused(404, "not_found");
    }
    for gone in [2, 3] {
        let reply = create(&world, &key, json!({ "contactId": uuid(gone) })).await.refused(409, "contact_merged");
        assert_eq!(reply.body["mergedIntoId"], uuid(LEAD), "the one who lives");
    }
    let once = key.post(OPPORTUNITIES, json!({ "contactId": uuid(8) })).idempotent("early");
    once.clone().await.refused(404, "not_found");
    world.apply([Fact::contact("ada", &uuid(8))]).await;
    assert!(once.await.refused(404, "not_found").is_replay(), "a refusal is recorded under its key");
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

/// A change and its result: an error code, or the expected members.
type Step = (Value, Result<Value, (u16, &'static str)>);

async fn assert_steps(world: &World, key: &Caller, id: &str, steps: Vec<Step>) {
    for (body, expected) in steps {
        let before = listed(key, id).await;
        let reply = update(world, key, id, body.clone()).await;
        match expected {
            Ok(expected) => {
                let reply = reply.expect(200);
                for (name, value) in expected.as_object().unwrap() {
                    assert_eq!(reply.body["opportunity"][name], *value, "{name} after {body}");
                }
                assert_listed(key, &reply).await;
            }
            Err((status, code)) => {
                reply.refused(status, code);
                assert_eq!(listed(key, id).await, before, "{body}");
            }
        }
    }
}

const REQUIRED: (u16, &str) = (400, "lost_reason_required");
const NOT_ALLOWED: (u16, &str) = (400, "lost_reason_not_allowed");
const CONTROLLED: (u16, &str) = (409, "stage_payment_controlled");
const UNKNOWN: (u16, &str) = (400, "stage_unknown");

#[tokio::test]
async fn an_opportunity_moves_between_open_and_lost_stages_with_a_reason_for_lost_ones() {
    let world = World::start().await;
    let key = scene(&world).await;
    let id = made(&world, &key).await;
    let open = |stage: &str| Ok(json!({ "stage": stage, "status": "open", "lostReason": null }));
    let lost = |reason: &str| Ok(json!({ "stage": "lost", "status": "lost", "lostReason": reason }));
    let steps = vec![
        (json!({ "stage": "gone" }), Err(UNKNOWN)),
        (json!({ "stage": "won" }), Err(CONTROLLED)),
        (json!({ "stage": "lost" }), Err(REQUIRED)),
        (json!({ "stage": "warm", "lostReason": "r" }), Err(NOT_ALLOWED)),
        (json!({ "stage": "lost", "lostReason": "Price" }), lost("Price")),
        (json!({ "name": "Renamed", "valueCents": 7 }), lost("Price")),
        (json!({ "lostReason": "Distance" }), lost("Distance")),
        (json!({ "stage": "new" }), open("new")),
        (json!({ "name": "Again" }), Ok(json!({ "name": "Again", "stage": "new", "valueCents": 7 }))),
    ];
    assert_steps(&world, &key, &id, steps).await;
    let unknown = update(&world, &key, &id, json!({ "stage": "gone" })).await.refused(400, "stage_unknown");
    assert!(unknown.error().ends_with(": new, warm, lost."), "{}", unknown.text);
    world.settle().await;
    let emitted = world.changes("opportunity.updated").await;
    assert_eq!(emitted.len(), 5, "one for each change, none for what was refused");
    assert_eq!(emitted[4]["opportunity"], listed(&key, &id).await);
}

#[tokio::test]
async fn a_change_without_effect_is_answered_and_not_emitted() {
    let world = World::start().await;
    let key = scene(&world).await;
    let id = made(&world, &key).await;
    let before = listed(&key, &id).await;
    for same in [json!({ "name": "Lee Lead" }), json!({ "valueCents": 0, "stage": "new" })] {
        assert_eq!(update(&world, &key, &id, same).await.expect(200).body["opportunity"], before);
    }
    world.settle().await;
    assert_eq!(world.changes("opportunity.updated").await, [] as [Value; 0]);
    let changed = update(&world, &key, &id, json!({ "valueCents": 9 })).await.expect(200);
    assert!(changed.body["opportunity"]["updatedAt"].as_str() > before["updatedAt"].as_str());
    world.settle().await;
    assert_eq!(world.changes("opportunity.updated").await[0]["opportunity"], changed.body["opportunity"]);
}

#[tokio::test]
async fn an_opportunity_can_be_written_in_the_configured_pipeline_only() {
    let world = World::start().await;
    let ada = scene(&world).await;
    let other = Fact::pipeline("ada").with("pipeline_id", "other");
    let elsewhere = Fact::opportunity("ada", &uuid(7), &uuid(LEAD)).with("pipeline_id", "other").with("stage", "lost");
    world.apply([other, elsewhere]).await;
    let id = made(&world, &ada).await;
    for body in
        [json!({ "name": "n" }), json!({ "stage": "new" }), json!({ "stage": "won" }), json!({ "valueCents": 1 })]
    {
        update(&world, &ada, &uuid(7), body).await.refused(404, "not_found");
    }
    update(&world, &ada, &uuid(99), json!({ "name": "n" })).await.refused(404, "not_found");
    // The list shows all pipelines, with each status from the opportunity's own pipeline.
    let page = ada.get(OPPORTUNITIES).await.expect(200).body;
    assert_eq!(ids(&page), [uuid(7), id.clone()]);
    assert_eq!((&page["data"][0]["status"], &page["data"][1]["status"]), (&json!("lost"), &json!("open")));
    assert_eq!(listed(&ada, &id).await["name"], "Lee Lead");
}

#[tokio::test]
async fn a_list_is_ordered_by_uuid_and_a_cursor_need_not_exist() {
    let world = World::start().await;
    let key = scene(&world).await;
    assert_eq!(key.get(OPPORTUNITIES).await.expect(200).body, json!({ "data": [], "next_cursor": null }));
    let all: Vec<String> = (10..17).map(|number| uuid(number * 2)).collect();
    world.apply(all.iter().rev().map(|id| Fact::opportunity("ada", id, &uuid(LEAD)))).await;
    let page = key.get(&format!("{OPPORTUNITIES}?limit=3")).await.expect(200);
    assert_eq!((ids(&page.body), page.str("next_cursor")), (all[..3].to_vec(), all[2].as_str()));
    let after =
        async |number: u64| ids(&key.get(&format!("{OPPORTUNITIES}?cursor={}", uuid(number))).await.expect(200).body);
    assert_eq!(after(23).await, all[2..], "a cursor between two ids");
    assert_eq!(after(32).await, [] as [String; 0]);
}
