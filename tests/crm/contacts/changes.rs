//! `PATCH /v1/crm/contacts/{id}`: changes keep other fields, and the latest write wins.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::crm::contacts::{CONTACTS, crm, id_of, patch, post, shown};
use crate::world::{Fact, Reply, uuid};

#[tokio::test]
async fn a_change_is_listed_emitted_and_keeps_other_fields() {
    let (world, key) = crm().await;
    let fact = Fact::contact("ada", &uuid(1)).with("do_not_contact", false).with("email", "lee@example.com");
    world.apply([fact.with("phone", "+14155552671")]).await;
    let before = shown(&key, &uuid(1)).await;
    world.advance_s(60).await;
    let renamed = patch(&world, &key, &uuid(1), json!({ "name": "Lee Later" })).await.expect(200);
    assert_eq!(renamed.members(), ["contact"]);
    let suppressed = patch(&world, &key, &uuid(1), json!({ "doNotContact": true })).await.expect(200);
    let mut expected = before.clone();
    expected["name"] = json!("Lee Later");
    expected["updatedAt"] = renamed.body["contact"]["updatedAt"].clone();
    assert_eq!(renamed.body["contact"], expected);
    assert!(expected["updatedAt"].as_str() > before["updatedAt"].as_str());
    expected["doNotContact"] = json!(true);
    expected["updatedAt"] = suppressed.body["contact"]["updatedAt"].clone();
    assert_eq!(suppressed.body["contact"], expected);
    assert_eq!(shown(&key, &uuid(1)).await, expected);
    world.settle().await;
    let emitted: Vec<Value> =
        world.changes("contact.updated").await.into_iter().map(|fact| fact["contact"].clone()).collect();
    assert_eq!(emitted, [renamed.body["contact"].clone(), expected.clone()]);

    // Confirming the current value is recorded anew, but emits no change.
    let same = patch(&world, &key, &uuid(1), json!({ "name": "Lee Later", "doNotContact": true })).await.expect(200);
    assert_eq!(same.body["contact"], expected);
    world.settle().await;
    assert_eq!(world.changes("contact.updated").await.len(), 2);
}

#[tokio::test]
async fn parallel_changes_are_all_applied_and_emitted_one_by_one() {
    let (world, key) = crm().await;
    world.apply([Fact::contact("ada", &uuid(1)).with("do_not_contact", false)]).await;
    let changes = (0..12).map(|number: u32| {
        let body =
            if number == 5 { json!({ "doNotContact": true }) } else { json!({ "name": format!("Lee {number}") }) };
        let call = key.patch(&format!("{CONTACTS}/{}", uuid(1)), body).idempotent(&format!("change-{number}"));
        tokio::spawn(call.into_future())
    });
    let replies: Vec<Reply> = join_all(changes).await.into_iter().map(|reply| reply.unwrap().expect(200)).collect();
    assert_eq!(shown(&key, &uuid(1)).await["doNotContact"], true);
    world.settle().await;
    let emitted: BTreeSet<String> =
        world.changes("contact.updated").await.into_iter().map(|fact| fact["contact"].to_string()).collect();
    let answered: BTreeSet<String> = replies.iter().map(|reply| reply.body["contact"].to_string()).collect();
    assert_eq!((emitted.len(), emitted), (12, answered));
}

#[tokio::test]
async fn api_writes_survive_older_facts_and_yield_to_later_ones() {
    let (world, key) = crm().await;
    let first = world.timestamp_in(0).await;
    world.advance_s(10).await;
    // The application's record of our own contact is merged with what the API has set.
    let made = id_of(&post(&world, &key, "Made", "made@example.com").await.expect(201));
    let theirs = Fact::contact("ada", &made).with("name", "Older").with("phone", "+14155552672");
    world.apply([theirs.clone().with("occurred_at", first.as_str())]).await;
    let contact = shown(&key, &made).await;
    assert_eq!([&contact["name"], &contact["email"]], ["Made", "made@example.com"]);
    assert_eq!((&contact["phone"], &contact["doNotContact"]), (&json!("+14155552672"), &json!(true)));
    world.advance_s(10).await;
    world.apply([theirs]).await;
    assert_eq!(shown(&key, &made).await["email"], Value::Null);
    assert_ne!(id_of(&post(&world, &key, "Made", "made@example.com").await.expect(201)), made);
}
