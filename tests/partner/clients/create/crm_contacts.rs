//! A new client that is a CRM contact already: the contact is linked to the client and is otherwise unchanged.

use serde_json::{Value, json};

use crate::partner::start_with_key;
use crate::world::{Caller, Fact, World};

const ONE: &str = "00000000-0000-7000-8000-000000000001";
const TWO: &str = "00000000-0000-7000-8000-000000000002";

/// The contact's stored item.
async fn stored(world: &World, coach: &str, contact: &str) -> Value {
    let items = world.items("crm", &format!("COACH#{coach}")).await;
    items.into_iter().find(|item| item["sk"]["S"] == format!("CONTACT#{contact}")).unwrap()
}

async fn create(key: &Caller, email: &str, phone: Option<&str>) -> String {
    let body = json!({ "email": email, "phone": phone, "send_welcome": false });
    key.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
}

/// Asserts that the item was linked to the client and changed nothing else but its version and its time of change.
#[track_caller]
fn assert_linked(before: &Value, after: &Value, client_id: &str) {
    assert_eq!(after["clientId"], json!({ "S": client_id }));
    for (name, value) in after.as_object().unwrap() {
        if !["clientId", "version", "updatedAt", "updated", "saved_at"].contains(&name.as_str()) {
            assert_eq!(value, &before[name], "{name}");
        }
    }
}

#[tokio::test]
async fn a_contact_with_the_same_email_becomes_the_client() {
    let world = World::start().await;
    let ada = world.coach("ada").await.partner_key().await;
    world.coach("bob").await;
    world
        .apply([
            Fact::contact("ada", ONE).with("email", "Lee@Example.com"),
            Fact::contact("bob", TWO).with("email", "lee@example.com"),
        ])
        .await;
    let (before, of_bob) = (stored(&world, "ada", ONE).await, stored(&world, "bob", TWO).await);
    let client = create(&ada, "lee@example.com", None).await;
    assert_linked(&before, &stored(&world, "ada", ONE).await, &client);
    assert_eq!(stored(&world, "bob", TWO).await, of_bob, "another workspace's contact is not matched");
    world.settle().await;
    let emitted = world.changes("contact.updated").await;
    assert_eq!(emitted.len(), 1);
    assert_eq!((&emitted[0]["contact"]["id"], &emitted[0]["contact"]["clientId"]), (&json!(ONE), &json!(client)));
    assert_eq!(emitted[0]["contact"]["doNotContact"], true);
    assert_eq!(emitted[0]["contact"]["marketing"], json!({ "email": true, "sms": false }));
    // A later fact keeps the link.
    world.apply([Fact::contact("ada", ONE).with("email", "lee@example.com").with("name", "Lee Later")]).await;
    let after = stored(&world, "ada", ONE).await;
    assert_eq!((&after["name"], &after["clientId"]), (&json!({ "S": "Lee Later" }), &json!({ "S": client })));
}

#[tokio::test]
async fn the_phone_decides_if_the_contact_with_the_email_is_a_client() {
    let (world, key) = start_with_key().await;
    world
        .apply([
            Fact::contact("ada", ONE).with("email", "shared@example.com"),
            Fact::contact("ada", TWO).with("phone", "+14155552671"),
        ])
        .await;
    let first = create(&key, "shared@example.com", None).await;
    let occurred_at = world.timestamp_in(1).await;
    world.apply([Fact::client("ada", &first).with("email", "own@example.com").with("occurred_at", occurred_at)]).await;
    // Until then the derived key of the address belongs to the first request.
    world.advance_s(2 * 3_600).await;
    let second = create(&key, "shared@example.com", Some("+14155552671")).await;
    assert_eq!(stored(&world, "ada", ONE).await["clientId"], json!({ "S": first }));
    assert_eq!(stored(&world, "ada", TWO).await["clientId"], json!({ "S": second }));
}

#[tokio::test]
async fn an_address_shared_by_everybody_prevents_no_contact() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let email = "placeholder@example.com";
    world.apply([Fact::contact("ada", ONE).with("email", email)]).await;
    // The most that DynamoDB takes into one item.
    let others: Vec<String> = (1..=10_800).map(|number| format!("10000000-0000-7000-8000-{number:012}")).collect();
    let mut address = world
        .items("crm", "COACH#ada")
        .await
        .into_iter()
        .find(|item| item["sk"]["S"] == format!("EMAIL#{email}"))
        .unwrap();
    address["later_holders"] = json!({ "SS": others });
    world.put_item("crm", &address).await;
    world.apply([Fact::contact("ada", TWO).with("email", email)]).await;
    let listed = ada.crm_key().await.get("/v1/crm/contacts").await.expect(200);
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 2);
    world.apply([Fact::contact("ada", TWO).with("email", "own@example.com")]).await;
    assert_eq!(stored(&world, "ada", TWO).await["email"], json!({ "S": "own@example.com" }));
    assert!(world.set_aside().await.is_empty());
}

/// Records of contacts in a workspace of one country, and the clients that are created then. The rules for phone
/// numbers are in `domain::phone`.
struct Case {
    country: &'static str,
    /// Contact, field and value.
    contacts: &'static [(&'static str, &'static str, &'static str)],
    /// Address, phone number, and the contact that becomes the client.
    clients: &'static [(&'static str, &'static str, Option<&'static str>)],
}

const CASES: &[Case] = &[
    // The address decides before the number.
    Case {
        country: "US",
        contacts: &[(ONE, "phone", "+14155552671"), (TWO, "email", "lee@example.com")],
        clients: &[("LEE@example.com", "+14155552671", Some(TWO))],
    },
    // A contact becomes one client only.
    Case {
        country: "US",
        contacts: &[(ONE, "phone", "+1 (415) 555-2671")],
        clients: &[("a@example.com", "415.555.2671", Some(ONE)), ("b@example.com", "+14155552671", None)],
    },
    Case {
        country: "JP",
        contacts: &[(ONE, "phone", "03-1234-5678")],
        clients: &[("c@example.com", "０３－１２３４－５６７８", Some(ONE))],
    },
    Case {
        country: "US",
        contacts: &[(ONE, "phone", "030 901820")],
        clients: &[("d@example.com", "+49 30 901820", None)],
    },
    Case {
        country: "US",
        contacts: &[(ONE, "phone", "ask my sister")],
        clients: &[("e@example.com", "ask my sister", None)],
    },
    // Two numbers have the same ending.
    Case {
        country: "US",
        contacts: &[(ONE, "phone", "+868912345678"), (TWO, "phone", "+8618912345678")],
        clients: &[("f@example.com", "+86 189 1234 5678", Some(TWO))],
    },
    // A contact is found by its new number and not by its old one.
    Case {
        country: "US",
        contacts: &[(ONE, "phone", "+14155552671"), (ONE, "phone", "+14155552672")],
        clients: &[("g@example.com", "+14155552671", None), ("h@example.com", "+14155552672", Some(ONE))],
    },
];

#[tokio::test]
async fn a_contact_becomes_the_client_with_its_address_or_else_its_number() {
    let world = World::start().await;
    for (number, case) in CASES.iter().enumerate() {
        let coach = format!("coach-{number}");
        let key = world.coach(&coach).with("country", case.country).await.partner_key().await;
        for (contact, field, value) in case.contacts {
            world.apply([Fact::contact(&coach, contact).with(field, *value)]).await;
        }
        for (email, phone, expected) in case.clients {
            let client = json!({ "S": create(&key, email, Some(phone)).await });
            let mut linked = world.items("crm", &format!("COACH#{coach}")).await;
            linked.retain(|item| item["clientId"] == client);
            let linked: Vec<&str> = linked.iter().map(|item| item["sk"]["S"].as_str().unwrap()).collect();
            let expected = expected.map(|contact| format!("CONTACT#{contact}"));
            assert_eq!(linked, expected.into_iter().collect::<Vec<_>>(), "{email}");
        }
    }
}

#[tokio::test]
async fn contacts_match_under_the_present_country_of_their_workspace() {
    let world = World::start().await;
    let key = world.coach("ada").with("country", "US").await.partner_key().await;
    world.apply([Fact::contact("ada", ONE).with("phone", "030 901820")]).await;
    create(&key, "first@example.com", Some("+49 30 901820")).await;
    assert_eq!(stored(&world, "ada", ONE).await["clientId"], Value::Null, "it is nobody yet");
    world.coach("ada").with("country", "DE").await;
    let client = create(&key, "second@example.com", Some("+49 30 901820")).await;
    assert_eq!(stored(&world, "ada", ONE).await["clientId"], json!({ "S": client }));
}
