//! `/v1/crm/contacts`: contacts are created or found by address, renamed, and suppressed for good. `lists` tests their
//! pages.

mod costs;
mod erasure;
mod erasure_orders;
mod links;
mod lists;
mod merged_addresses;
pub(crate) mod merges;

use std::collections::BTreeSet;
use std::future::IntoFuture;

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

#[tokio::test]
async fn a_body_with_unknown_or_invalid_members_is_refused() {
    let (world, key) = crm().await;
    let lee = json!({ "name": "Lee", "email": "lee@example.com" });
    let with = |field: &str, value: Value| {
        let mut body = lee.clone();
        body[field] = value;
        body
    };
    let send = async |body: Value| key.post(CONTACTS, body).idempotent(&format!("body-{}", world.number())).await;
    for (body, field) in [
        (json!({ "email": "lee@example.com" }), "name"),
        (json!({ "name": "Lee" }), "email"),
        (with("name", Value::Null), "name"),
        (with("email", Value::Null), "email"),
        (with("name", json!("")), "name"),
        (with("name", json!(7)), "name"),
        (with("name", json!("🙂".repeat(201))), "name"),
        (with("email", json!("nobody")), "email"),
        (with("email", json!(["lee@example.com"])), "email"),
        (with("phone", json!("+14155552671")), "phone"),
        (with("doNotContact", json!(true)), "doNotContact"),
        (with("marketing", json!({ "email": true })), "marketing"),
        (with("coach_id", json!("bob")), "coach_id"),
        (with("id", json!(uuid(1))), "id"),
    ] {
        let reply = send(body).await.refused_for(field);
        assert_eq!(reply.body["field"], field, "{}", reply.text);
    }
    let mut two = with("colour", json!("red"));
    two["shape"] = json!(1);
    let reply = send(two).await.refused(400, "invalid_request");
    assert!(reply.error().contains("colour") && reply.error().contains("shape"), "{}", reply.text);
    for body in [json!([]), json!("text"), json!(null), json!(5)] {
        send(body).await.expect(400);
    }
    assert_eq!(listed(&key).await, [] as [String; 0]);
    for name in ["🙂".repeat(200), "é".repeat(200), "x".to_owned(), " ".to_owned()] {
        let made = send(json!({ "name": name, "email": format!("c{}@example.com", world.number()) })).await.expect(201);
        assert_eq!(made.body["contact"]["name"], json!(name));
    }
}

#[tokio::test]
async fn an_address_has_at_most_254_characters() {
    let (world, key) = crm().await;
    let labels = ["b".repeat(60), "c".repeat(60), "d".repeat(60)].join(".");
    let of = |length: usize| format!("{}@{labels}.example", "a".repeat(length - labels.len() - 9));
    assert_eq!(of(246).len(), 246);
    let longest =
        |length: usize| format!("{}@{labels}.{}.example", "a".repeat(50), "e".repeat(length - labels.len() - 60));
    assert_eq!((longest(254).len(), longest(255).len()), (254, 255));
    assert_eq!(
        post(&world, &key, "Lee", &longest(254)).await.expect(201).body["contact"]["email"],
        json!(longest(254))
    );
    let reply = post(&world, &key, "Lee", &longest(255)).await.refused_for("email");
    assert!(reply.error().contains("254"), "{}", reply.text);
}

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
async fn confirmed_values_are_emitted_and_outdate_older_facts() {
    let (world, key) = crm().await;
    let record = |seconds: i64, suppressed: bool| {
        let world = &world;
        async move {
            let at = world.timestamp_in(seconds).await;
            Fact::contact("ada", &uuid(1)).with("do_not_contact", suppressed).with("occurred_at", at)
        }
    };
    let between = record(-300, false).await;
    world.apply([record(-600, true).await]).await;
    let confirmed = patch(&world, &key, &uuid(1), json!({ "doNotContact": true })).await.expect(200);
    world.apply([between]).await;
    assert_eq!(shown(&key, &uuid(1)).await["doNotContact"], true);
    let emitted = world.changes("contact.updated").await;
    assert_eq!(emitted.len(), 1, "the application has to know that its own facts no longer apply");
    assert_eq!(emitted[0]["contact"], confirmed.body["contact"]);
}

#[tokio::test]
async fn a_suppression_survives_a_record_from_a_clock_that_is_ahead() {
    let (world, key) = crm().await;
    let ahead = Fact::contact("ada", &uuid(1)).with("occurred_at", world.timestamp_in(600).await);
    world.apply([ahead.clone().with("id", "first")]).await;
    patch(&world, &key, &uuid(1), json!({ "doNotContact": true, "name": "By the API" })).await.expect(200);
    world.apply([ahead.with("id", "again")]).await;
    let contact = shown(&key, &uuid(1)).await;
    assert_eq!((&contact["doNotContact"], &contact["name"]), (&json!(true), &json!("By the API")));
}

#[tokio::test]
async fn a_change_needs_the_uuid_of_a_contact() {
    let (world, key) = crm().await;
    let own = "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69";
    world.apply([Fact::contact("ada", own)]).await;
    let name = json!({ "name": "Lee Later" });
    let changed = patch(&world, &key, &own.to_uppercase(), name.clone()).await.expect(200);
    assert_eq!(changed.body["contact"]["id"], own);
    for (id, status, code) in [
        ("0197a6a0-5c3b-7000-8000-2f1d3c4b5a71", 404, "not_found"),
        ("0197a6a05c3b700080002f1d3c4b5a69", 400, "invalid_request"),
        ("nobody", 400, "invalid_request"),
        ("%7B0197a6a0-5c3b-7000-8000-2f1d3c4b5a69%7D", 400, "invalid_request"),
        ("%00", 400, "invalid_request"),
        ("%FF", 400, "invalid_request"),
    ] {
        let once = format!("patch {id}");
        let send = async || key.patch(&format!("{CONTACTS}/{id}"), name.clone()).idempotent(&once).await;
        let refused = send().await.refused(status, code);
        let again = send().await.refused(status, code);
        assert!(!refused.is_replay() && again.is_replay(), "{id}: what is found out under a claim is recorded");
    }
    // The path is checked before the body.
    assert_eq!(patch(&world, &key, "nobody", json!([])).await.refused(400, "invalid_request").body["field"], "id");
    for (body, field) in [
        (json!({ "doNotContact": false }), "doNotContact"),
        (json!({ "doNotContact": null }), "doNotContact"),
        (json!({ "doNotContact": "true" }), "doNotContact"),
        (json!({ "name": null }), "name"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "é".repeat(201) }), "name"),
        (json!({ "name": "Lee", "email": "new@example.com" }), "email"),
        (json!({ "name": "Lee", "marketing": { "email": true, "sms": true } }), "marketing"),
        (json!({ "name": "Lee", "clientId": "c1" }), "clientId"),
    ] {
        assert_eq!(patch(&world, &key, own, body).await.refused_for(field).body["field"], field);
    }
    let reply = patch(&world, &key, own, json!({ "doNotContact": false })).await.refused_for("doNotContact");
    assert!(reply.error().contains("can only be true"), "{}", reply.text);
    patch(&world, &key, own, json!({})).await.refused(400, "invalid_request");
    assert_eq!(shown(&key, own).await["updatedAt"], changed.body["contact"]["updatedAt"]);
    assert_eq!(patch(&world, &key, own, json!({ "name": "é".repeat(200) })).await.expect(200).status, 200);
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
    let fact = |name: &str, suppressed: bool| {
        Fact::contact("ada", &uuid(1)).with("name", name).with("do_not_contact", suppressed)
    };
    let first = world.timestamp_in(0).await;
    world.apply([fact("First", false).with("occurred_at", first.as_str())]).await;
    world.advance_s(10).await;
    let between = world.timestamp_in(0).await;
    world.advance_s(10).await;
    patch(&world, &key, &uuid(1), json!({ "name": "Ours", "doNotContact": true })).await.expect(200);
    let late = fact("Older", false).with("phone", "+14155552671").with("occurred_at", between.as_str());
    world.apply([late]).await;
    let contact = shown(&key, &uuid(1)).await;
    assert_eq!([&contact["name"], &contact["doNotContact"]], [&json!("Ours"), &json!(true)]);
    assert_eq!(contact["phone"], "+14155552671", "fields that the API has not set follow the latest fact");
    world.advance_s(10).await;
    world.apply([fact("Theirs", false)]).await;
    let contact = shown(&key, &uuid(1)).await;
    assert_eq!(
        [&contact["name"], &contact["doNotContact"]],
        [&json!("Theirs"), &json!(false)],
        "the application may lift it"
    );
    world.apply([fact("First", true).with("occurred_at", first.as_str())]).await;
    assert_eq!(shown(&key, &uuid(1)).await, contact);

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

#[tokio::test]
async fn an_api_contact_becomes_a_client_and_stays_linked_after_a_change() {
    let (world, key) = crm().await;
    let made = id_of(&post(&world, &key, "Lee", "Lee@example.com").await.expect(201));
    let partner = world.coach("ada").await.partner_key().await;
    let client = json!({ "email": "lee@EXAMPLE.com", "send_welcome": false });
    let client = partner.post("/v1/clients", client).await.expect(201).str("client_id").to_owned();
    assert_eq!(shown(&key, &made).await["clientId"], json!(client));
    let changed = patch(&world, &key, &made, json!({ "doNotContact": true })).await.expect(200);
    assert_eq!(changed.body["contact"]["clientId"], json!(client));
    assert_eq!(post(&world, &key, "Lee", "lee@example.com").await.expect(201).body["contact"], changed.body["contact"]);
}
