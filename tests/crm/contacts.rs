//! `/v1/crm/contacts`: contacts are created or found by address, renamed, and suppressed for good. `lists` tests their
//! pages.

mod changes;
mod costs;
mod erasure;
mod erasure_orders;
pub(crate) mod erasure_scene;
mod links;
mod lists;
mod merged_addresses;
pub(crate) mod merges;
mod names;

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::world::{Caller, Fact, Reply, World, ids, members, uuid};

pub(crate) const CONTACTS: &str = "/v1/crm/contacts";

/// A world with a coach and a caller with her CRM key.
pub(crate) async fn crm() -> (World, Caller) {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    (world, key)
}

/// Sends a POST under an idempotency key of its own.
pub(crate) async fn post(world: &World, key: &Caller, name: &str, email: &str) -> Reply {
    let body = json!({ "name": name, "email": email });
    key.post(CONTACTS, body).idempotent(&format!("post-{}", world.number())).await
}

/// Sends a PATCH under an idempotency key of its own.
pub(crate) async fn patch(world: &World, key: &Caller, id: &str, body: Value) -> Reply {
    key.patch(&format!("{CONTACTS}/{id}"), body).idempotent(&format!("patch-{}", world.number())).await
}

/// The ids on the first page, which has room for all.
pub(crate) async fn listed(key: &Caller) -> Vec<String> {
    let page = key.get(&format!("{CONTACTS}?limit=200")).await.expect(200);
    assert_eq!(page.body["next_cursor"], Value::Null);
    ids(&page.body)
}

/// The contact as the list shows it.
pub(crate) async fn shown(key: &Caller, id: &str) -> Value {
    let page = key.get(&format!("{CONTACTS}?limit=200")).await.expect(200);
    let found = page.body["data"].as_array().unwrap().iter().find(|contact| contact["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {}", page.text)).clone()
}

/// The stored item of a contact.
pub(crate) async fn stored(world: &World, id: &str) -> Value {
    let items = world.items("crm", "COACH#ada").await;
    items.into_iter().find(|item| item["sk"]["S"] == format!("CONTACT#{id}")).unwrap_or_default()
}

fn id_of(reply: &Reply) -> String {
    reply.body["contact"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_contact_is_created_listed_and_emitted() {
    let (world, key) = crm().await;
    let made = post(&world, &key, "Léa 🙂", "Lea@Example.com").await.expect(201);
    assert_eq!(made.members(), ["contact"]);
    let contact = &made.body["contact"];
    let names = ["clientId", "createdAt", "doNotContact", "email", "id", "marketing", "name", "phone", "updatedAt"];
    assert_eq!(members(contact), names);
    let id = id_of(&made);
    assert!(id.len() == 36 && id[14..].starts_with('7') && id == id.to_lowercase(), "{id}");
    assert_eq!([&contact["name"], &contact["email"]], ["Léa 🙂", "Lea@Example.com"], "as given");
    assert_eq!(contact["marketing"], json!({ "email": false, "sms": false }));
    assert_eq!(
        [&contact["doNotContact"], &contact["phone"], &contact["clientId"]],
        [&json!(false), &Value::Null, &Value::Null]
    );
    assert_eq!(contact["createdAt"], contact["updatedAt"]);
    assert_eq!(key.get(CONTACTS).await.expect(200).body, json!({ "data": [contact], "next_cursor": null }));

    world.settle().await;
    let facts = world.changes("contact.created").await;
    assert_eq!(facts.len(), 1);
    assert_eq!(members(&facts[0]), ["coach_id", "contact", "id", "occurred_at"]);
    assert_eq!((&facts[0]["coach_id"], &facts[0]["contact"]), (&json!("ada"), contact));
    assert_eq!(facts[0]["occurred_at"], contact["createdAt"]);
    assert!(world.mail().await.is_empty(), "no mail is sent");
    assert!(world.table("clients").await.is_empty(), "no client is created");
}

#[tokio::test]
async fn a_match_in_any_case_leaves_the_contact_unchanged() {
    let (world, key) = crm().await;
    let fact = Fact::contact("ada", &uuid(1)).with("email", "LEE@example.com").with("phone", "+1 415 555 2671");
    world.apply([fact]).await;
    let before = stored(&world, &uuid(1)).await;
    for email in ["lee@example.com", "Lee@Example.COM"] {
        let found = post(&world, &key, "Somebody Else", email).await.expect(201);
        assert_eq!(found.body, json!({ "contact": shown(&key, &uuid(1)).await }));
        assert_eq!(found.body["contact"]["marketing"], json!({ "email": true, "sms": false }));
        assert_eq!(
            [&found.body["contact"]["doNotContact"], &found.body["contact"]["name"]],
            [&json!(true), &json!("Lee Lead")]
        );
    }
    assert_eq!(stored(&world, &uuid(1)).await, before);
    world.settle().await;
    assert_eq!(world.changes("contact.created").await.len() + world.changes("contact.updated").await.len(), 0);
    assert_eq!(listed(&key).await, [uuid(1)]);
    // Another coach's contact is invisible.
    let bob = world.coach("bob").await.crm_key().await;
    assert_ne!(id_of(&post(&world, &bob, "Lee", "lee@example.com").await.expect(201)), uuid(1));
}

#[tokio::test]
async fn the_oldest_contact_with_an_address_is_found() {
    let (world, key) = crm().await;
    let with = |number: u64, email: &str| Fact::contact("ada", &uuid(number)).with("email", email);
    for number in [3, 1, 2] {
        world.apply([with(number, "lee@example.com")]).await;
        world.advance_s(1).await;
    }
    // The oldest contact, whichever was changed last.
    world.apply([with(3, "lee@example.com").with("name", "Renamed")]).await;
    assert_eq!(id_of(&post(&world, &key, "Lee", "lee@example.com").await.expect(201)), uuid(3));
    world.apply([with(3, "other@example.com")]).await;
    assert_eq!(id_of(&post(&world, &key, "Lee", "lee@example.com").await.expect(201)), uuid(1));
    assert_eq!(id_of(&post(&world, &key, "Lee", "OTHER@example.com").await.expect(201)), uuid(3));
    world.apply([with(1, "a@example.com"), with(2, "b@example.com")]).await;
    let made = id_of(&post(&world, &key, "Lee", "lee@example.com").await.expect(201));
    assert!(![1, 2, 3].map(uuid).contains(&made), "the address was free again");
}

#[tokio::test]
async fn parallel_requests_with_one_address_create_one_contact_and_all_return_it() {
    let (world, key) = crm().await;
    for round in 0..4 {
        world.faults(json!({ "store_conflicts": round * 3 })).await;
        let requests = (0..16).map(|number: u32| {
            let (name, domain) =
                (format!("Lee {number}"), if number.is_multiple_of(2) { "example.com" } else { "EXAMPLE.com" });
            let body = json!({ "name": name, "email": format!("lee.{round}@{domain}") });
            tokio::spawn(key.post(CONTACTS, body).idempotent(&format!("{round}-{number}")).into_future())
        });
        let replies: Vec<Reply> = join_all(requests).await.into_iter().map(Result::unwrap).collect();
        let bodies: BTreeSet<String> = replies.into_iter().map(|reply| reply.expect(201).text).collect();
        assert_eq!(bodies.len(), 1, "{bodies:?}");
    }
    assert_eq!(listed(&key).await.len(), 4);
    world.settle().await;
    assert_eq!(world.changes("contact.created").await.len(), 4);
    let addresses =
        world.table("crm").await.into_iter().filter(|item| item["sk"]["S"].as_str().unwrap().starts_with("EMAIL#"));
    assert!(addresses.into_iter().all(|item| item.get("later_holders").is_none()));
}
