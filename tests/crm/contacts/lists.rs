//! `GET /v1/crm/contacts`: the size of a page, and the contacts of an address. `crm::lists` has the order of pages.

use serde_json::json;

use crate::crm::contacts::merges::{client_of, merged};
use crate::crm::contacts::{CONTACTS, crm, post};
use crate::crm::lists::walked_ids;
use crate::feed::erasure::erased;
use crate::world::{Fact, assert_cost, ids, uuid};

#[tokio::test]
async fn a_page_holds_50_contacts_by_default_and_200_at_most() {
    let (world, key) = crm().await;
    world.apply((0..201).map(|number| Fact::contact("ada", &uuid(number)))).await;
    for (query, size) in [("", 50), ("?limit=201", 200)] {
        let page = key.get(&format!("{CONTACTS}{query}")).await.expect(200);
        assert_eq!((ids(&page.body).len(), &page.body["next_cursor"]), (size, &json!(uuid(size as u64 - 1))));
    }
}

#[tokio::test]
async fn an_address_finds_its_listed_contacts_in_any_case_and_form() {
    let (world, key) = crm().await;
    let bob = world.coach("bob").await.crm_key().await;
    let with = |number: u64, email: &str| Fact::contact("ada", &uuid(number)).with("email", email);
    world
        .apply([
            with(3, "Ada+News@Example.com"),
            with(1, "ada+news@example.com"),
            with(2, "ADA+NEWS@EXAMPLE.COM"),
            with(4, "ada+news@example.com.au"),
            with(5, "ada+newsletter@example.com"),
            with(6, "bob@bücher.example"),
            with(7, "merged@example.com"),
            merged(7, 6),
            with(8, "ada+news@example.com").with("coach_id", "bob"),
        ])
        .await;
    let all = [1, 2, 3].map(uuid);
    for same in ["ada%2Bnews@example.com", "ADA+News@example.COM", "ada%20news%40example.com"] {
        assert_eq!(walked_ids(&key, "contacts", &format!("email={same}"), 200).await, all, "{same}");
    }
    for same in ["bob@bücher.example", "BOB@xn--bcher-kva.example", "bob@b%C3%9Ccher.example"] {
        let same = same.replace('ü', "%C3%BC");
        assert_eq!(walked_ids(&key, "contacts", &format!("email={same}"), 200).await, [uuid(6)], "{same}");
    }
    for limit in 1..=4 {
        assert_eq!(walked_ids(&key, "contacts", "email=ada%2Bnews@example.com", limit).await, all);
        let mut down = walked_ids(&key, "contacts", "email=ada%2Bnews@example.com&order=desc", limit).await;
        down.reverse();
        assert_eq!(down, all);
        let since = "email=ada%2Bnews@example.com&updated_since=2000-01-01T00:00:00Z";
        let mut by_update = walked_ids(&key, "contacts", since, limit).await;
        by_update.sort_unstable();
        assert_eq!(by_update, all);
    }
    assert_eq!(walked_ids(&bob, "contacts", "email=ada%2Bnews@example.com", 1).await, [uuid(8)]);
    for nobody in ["nobody@example.com", "merged@example.com", "merged@example.com%01", "ada", "@", "%20", "%00"] {
        assert!(walked_ids(&key, "contacts", &format!("email={nobody}"), 5).await.is_empty(), "{nobody}");
    }
    let found = key.get("/v1/crm/contacts?email=ada%2Bnews@example.com&limit=1").await.expect(200);
    let listed = key.get("/v1/crm/contacts?limit=1").await.expect(200);
    assert_eq!(found.text, listed.text, "the same form and cursor");
    for query in ["email=", "email=&order=desc", "email=&updated_since=2000-01-01T00:00:00Z"] {
        let empty = key.get(&format!("/v1/crm/contacts?{query}")).await.expect(200);
        assert_eq!(empty.text, r#"{"data":[],"next_cursor":null}"#, "an empty address is nobody's: {query}");
    }
    let long = format!("{}@example.com", "a".repeat(254));
    let reply = key.get(&format!("/v1/crm/contacts?email={long}")).await.refused_for("email");
    assert_eq!(reply.body["field"], "email");
    let find = async || drop(key.get("/v1/crm/contacts?email=ada%2Bnews@example.com").await.expect(200));
    assert_cost(&world, "crm-contacts", find, |bill| bill.calls == 2 && bill.read_units <= 2.0, 2).await;
}

#[tokio::test]
async fn an_address_that_only_the_application_accepts_finds_its_contact() {
    let (world, key) = crm().await;
    let longest = format!("{}@{}", "\u{1f600}".repeat(127), "\u{1f600}".repeat(126));
    for (number, (shown, filters)) in [
        ("taro..y@docomo.example", vec!["taro..y@docomo.example", "TARO..Y@docomo.example"]),
        ("taro.@docomo.example", vec!["taro.@docomo.example"]),
        ("ann@localhost", vec!["ann@localhost"]),
        ("\"ann marie+x\"@example.com", vec!["%22ann%20marie%2Bx%22@example.com", "%22ann+marie%2Bx%22@example.com"]),
        ("Ann <ann@example.com>", vec!["Ann%20%3Cann@example.com%3E", "ann+%3Cann@example.com%3E"]),
        ("n/a", vec!["n/a", "N%2FA"]),
        (longest.as_str(), vec![]),
    ]
    .into_iter()
    .enumerate()
    {
        let id = uuid(number as u64);
        world.apply([Fact::contact("ada", &id).with("email", shown)]).await;
        let encoded: String = shown.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for filter in filters.into_iter().chain([encoded.as_str()]) {
            let found = key.get(&format!("/v1/crm/contacts?email={filter}")).await.expect(200);
            assert_eq!(ids(&found.body), [id.as_str()], "{shown} by {filter}");
            assert_eq!(found.body["data"][0]["email"], shown);
        }
    }
    // An encoded blank, and a `+` that was not encoded.
    world.apply([Fact::contact("ada", &uuid(20)).with("email", "a b@example.com")]).await;
    world.apply([Fact::contact("ada", &uuid(21)).with("email", "a+b@example.com")]).await;
    assert_eq!(walked_ids(&key, "contacts", "email=a+b@example.com", 1).await, [20, 21].map(uuid));
    assert_eq!(walked_ids(&key, "contacts", "email=a%2Bb@example.com", 1).await, [uuid(21)]);
}

#[tokio::test]
async fn a_contact_is_found_by_its_address_as_soon_as_it_is_created_and_until_it_is_erased() {
    let (world, key) = crm().await;
    for number in 1..=10 {
        let email = format!("gwendolyn.{number}@example.com");
        let made = post(&world, &key, "Lee", &email).await.expect(201);
        let found = key.get(&format!("/v1/crm/contacts?email={email}")).await.expect(200);
        assert_eq!(found.body["data"][0], made.body["contact"]);
    }
    let client = client_of(&world, 3).await;
    world.apply([erased(&client)]).await;
    assert!(walked_ids(&key, "contacts", "email=gwendolyn.3@example.com", 5).await.is_empty());
    assert_eq!(walked_ids(&key, "contacts", "email=gwendolyn.4@example.com", 5).await.len(), 1);
}
