//! `GET /v1/clients`: pages, and the filters by e-mail address and activity.

use serde_json::{Value, json};

use crate::partner::clients::{create, emails};
use crate::partner::start_with_key;
use crate::world::{Fact, World, list, time};

/// Creates clients of `ada` by facts without events.
async fn roster(world: &World, size: usize) {
    let facts = (0..size).map(|number| {
        let fact =
            Fact::client("ada", &format!("c{number:03}")).with("backfill", true).with("is_active", number % 3 != 0);
        fact.with("created_at", format!("2026-01-01T{:02}:{:02}:00Z", number / 60, number % 60))
    });
    world.apply(facts).await;
}

#[tokio::test]
async fn a_roster_of_450_is_paged_through_without_loss() {
    let (world, key) = start_with_key().await;
    roster(&world, 450).await;
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 50);
    // A page has 200 clients at most.
    for (filter, pages) in [("", vec![200, 200, 50]), ("&active=true", vec![200, 100])] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        for size in pages {
            let reply = key.get(&format!("/v1/clients?limit=201{filter}{cursor}")).await.expect(200);
            assert_eq!(reply.body["count"], size);
            seen.extend(list(reply.body["clients"].clone()));
            cursor = reply.body["next_cursor"].as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        }
        assert!(cursor.is_empty(), "the last page has no next");
        assert!(seen.windows(2).all(|pair| time(&pair[0]["created_at"]) > time(&pair[1]["created_at"])));
        assert!(filter.is_empty() || seen.iter().all(|client| client["is_active"] == true));
    }
    let first = key.get("/v1/clients?limit=200").await.expect(200);
    assert_eq!(key.get("/v1/clients?limit=200&cursor=").await.expect(200).body, first.body);
    key.get("/v1/clients?email=a@example.com&cursor=c3R1ZmY").await.refused_for("cursor");
}

#[tokio::test]
async fn only_the_exact_value_true_filters_to_active_clients() {
    let (_world, key) = start_with_key().await;
    create(&key, "on@example.com").await;
    let off = create(&key, "off@example.com").await;
    key.patch(&format!("/v1/clients/{off}"), json!({ "is_active": false })).await.expect(200);
    assert_eq!(emails(&key.get("/v1/clients?active=true").await.body["clients"]), ["on@example.com"]);
    for other in ["false", "TRUE", "True", "1", "yes", "", "true%20"] {
        let reply = key.get(&format!("/v1/clients?active={other}")).await.expect(200);
        assert_eq!(reply.body["count"], 2, "{other}");
    }
    assert_eq!(key.get("/v1/clients?active=true&email=off@example.com").await.body["count"], 0);
    assert_eq!(key.get("/v1/clients?active=false&email=off@example.com").await.body["count"], 1);
}

#[tokio::test]
async fn an_email_search_ignores_case_and_limit() {
    let (_world, key) = start_with_key().await;
    let first = create(&key, "First+Tag@Example.com").await;
    for number in 0..3 {
        create(&key, &format!("later{number}@example.com")).await;
    }
    for query in ["First%2BTag@Example.com", "first%2btag%40example.com&limit=1", "FIRST%2BTAG@EXAMPLE.COM&limit=0"] {
        let reply = key.get(&format!("/v1/clients?email={query}")).await.expect(200);
        assert_eq!((&reply.body["count"], &reply.body["next_cursor"]), (&json!(1), &Value::Null));
        assert_eq!(reply.body["clients"][0]["client_id"], first.as_str());
    }
    for nobody in
        ["", "first", "irst%2BTag@Example.com", "first@example.com", "%25@example.com", "first%2Btag@example.com%20"]
    {
        let reply = key.get(&format!("/v1/clients?email={nobody}")).await.expect(200);
        assert_eq!(reply.body["clients"], json!([]), "{nobody}");
    }
    let long = format!("{}@example.com", "a".repeat(149));
    key.get(&format!("/v1/clients?email={long}")).await.refused_for("email");
    key.get(&format!("/v1/clients?email={}", &long[1..])).await.expect(200);
}

#[tokio::test]
async fn every_shown_address_can_be_searched_for() {
    let (world, key) = start_with_key().await;
    let addresses = [
        ("c1", "taro..y.@docomo.example"),
        ("c2", "\"quoted one\"@x.example"),
        ("c3", "nobody"),
        ("c4", "Jörg@bücher.example"),
        ("c5", "a+b c@x.example"),
    ];
    world.apply(addresses.map(|(id, email)| Fact::client("ada", id).with("email", email))).await;
    let find =
        async |query: &str| key.get(&format!("/v1/clients?email={query}")).await.expect(200).body["clients"].clone();
    for (id, email) in addresses {
        let query: String = email.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = find(&query).await;
        assert_eq!((&found[0]["client_id"], &found[0]["email"]), (&json!(id), &json!(email)));
    }
    assert_eq!(find("J%C3%96RG@XN--BCHER-KVA.example").await[0]["client_id"], "c4");
    // A plus sign in a query means a blank, but a caller who writes it means a plus sign, whatever other coaches have
    // stored.
    world.coach("bob").await;
    world.apply([Fact::client("bob", "theirs").with("email", "first tag@example.com")]).await;
    create(&key, "first+tag@example.com").await;
    assert_eq!(find("first+tag@example.com").await[0]["email"], "first+tag@example.com");
    assert_eq!(find("first%20tag@example.com").await[0]["email"], "first+tag@example.com");
}

#[tokio::test]
async fn clients_who_share_an_address_are_paged_through() {
    let (world, key) = start_with_key().await;
    let shared = (0..5).map(|number| {
        let fact = Fact::client("ada", &format!("c{number}")).with("backfill", true).with("email", "all@example.com");
        fact.with("created_at", format!("2026-01-01T00:0{number}:00Z"))
    });
    world.apply(shared).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for count in [2, 2, 1] {
        let page = key.get(&format!("/v1/clients?email=ALL@example.com&limit=2{cursor}")).await.expect(200);
        assert_eq!(page.body["count"], count);
        seen.extend(list(page.body["clients"].clone()).iter().map(|client| client["client_id"].to_string()));
        cursor = page.body["next_cursor"].as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
    }
    assert_eq!(seen.concat(), r#""c4""c3""c2""c1""c0""#);
    assert!(cursor.is_empty());
}
