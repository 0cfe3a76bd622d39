//! `GET /v1/clients?name=`: clients by a part of their names. `partner::costs` has a roster that exceeds one request.

use crate::partner::clients::create;
use crate::partner::start_with_key;
use crate::world::{BAD_NAME_FILTERS, Caller, FOUND_BY_NAME, Fact, NAMES, World, encoded, list};

const ALL: &str = "updated_since=2000-01-01T00:00:00Z";

/// The ids of all clients of a list, over its pages.
async fn found(key: &Caller, query: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = key.get(&format!("/v1/clients?{query}{cursor}")).await.expect(200).body;
        let clients = list(page["clients"].clone());
        assert_eq!(page["count"], clients.len());
        ids.extend(clients.iter().map(|client| client["client_id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { return ids };
        cursor = format!("&cursor={next}");
    }
}

fn id(number: usize) -> String {
    format!("c{number:02}")
}

/// A client of `ada`, younger than the clients of smaller numbers.
fn named(number: usize, name: &str) -> Fact {
    let client = Fact::client("ada", &id(number)).with("full_name", name).with("backfill", true);
    client.with("created_at", format!("2026-01-01T00:{number:02}:00Z"))
}

/// Six clients of `ada`, every second one with the name. Two are not active.
async fn six(world: &World) {
    for number in 0..6 {
        let name = if number % 2 == 0 { "Grace Hopper" } else { "Ada Lovelace" };
        world.apply([named(number, name).with("is_active", number % 3 != 0)]).await;
        world.advance_s(1).await;
    }
}

#[tokio::test]
async fn a_part_of_a_name_finds_the_coachs_clients_in_any_spelling_newest_first() {
    let (world, key) = start_with_key().await;
    let bob = world.coach("bob").await.partner_key().await;
    let theirs = Fact::client("bob", "theirs").with("full_name", NAMES[0]);
    world.apply(NAMES.iter().enumerate().map(|(number, name)| named(number, name)).chain([theirs])).await;
    for (text, places) in FOUND_BY_NAME {
        let query = format!("name={}", encoded(text));
        let expected: Vec<String> = places.iter().rev().map(|place| id(*place)).collect();
        for limit in ["", "&limit=1", "&limit=2"] {
            assert_eq!(found(&key, &format!("{query}{limit}")).await, expected, "{text}{limit}");
        }
    }
    // A `+` is a blank.
    assert_eq!(found(&key, "name=ada+love").await, [id(8)]);
    assert_eq!(found(&bob, &format!("name={}", encoded("müller"))).await, ["theirs"]);
    assert!(found(&bob, "name=lovelace").await.is_empty());
    let by_name = key.get("/v1/clients?name=lovelace").await.expect(200);
    let listed = key.get("/v1/clients").await.expect(200);
    let of_list = list(listed.body["clients"].clone()).into_iter().find(|client| client["client_id"] == id(8).as_str());
    assert_eq!(Some(&by_name.body["clients"][0]), of_list.as_ref(), "the same form");
    assert_eq!(by_name.members(), listed.members());
}

#[tokio::test]
async fn a_name_that_is_too_short_too_long_or_does_not_show_is_refused_and_an_empty_one_is_no_filter() {
    let (_world, key) = start_with_key().await;
    create(&key, "hopper@example.com").await;
    for bad in BAD_NAME_FILTERS {
        for others in ["", "&active=true", "&limit=1&updated_since=2026-01-01T00:00:00Z"] {
            let reply = key.get(&format!("/v1/clients?name={}{others}", encoded(bad))).await.refused_for("name");
            assert_eq!(reply.body["field"], "name", "{bad:?}");
        }
    }
    let longest = encoded(&"ß".repeat(100));
    assert!(found(&key, &format!("name={longest}")).await.is_empty());
    let plain = key.get("/v1/clients").await.expect(200);
    assert_eq!(plain.body["count"], 1);
    assert_eq!(key.get("/v1/clients?name=").await.expect(200).text, plain.text);
    assert_eq!(key.get("/v1/clients?name=&email=hopper@example.com").await.expect(200).body["count"], 1);
    assert_eq!(key.get("/v1/clients?name=&external_id=x").await.expect(200).body["count"], 0);
    for other in ["email=hopper@example.com", "email=", "external_id=x", "external_id="] {
        let reply = key.get(&format!("/v1/clients?name=hopper&{other}")).await.refused_for("name");
        assert_eq!(reply.body["field"], "name", "{other}");
        assert!(reply.error().contains(other.split('=').next().unwrap()), "{}", reply.text);
    }
}

#[tokio::test]
async fn a_name_goes_with_activity_updates_and_cursors_of_the_list() {
    let (world, key) = start_with_key().await;
    six(&world).await;
    let ids = |numbers: &[usize]| numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
    for (query, expected) in [
        (String::new(), vec![4, 2, 0]),
        ("&active=true".to_owned(), vec![4, 2]),
        ("&active=false".to_owned(), vec![4, 2, 0]),
        (format!("&{ALL}"), vec![0, 2, 4]),
        (format!("&{ALL}&active=true"), vec![2, 4]),
        ("&updated_since=2999-01-01T00:00:00Z".to_owned(), vec![]),
    ] {
        for limit in [1, 2, 3, 200] {
            assert_eq!(
                found(&key, &format!("name=GRACE{query}&limit={limit}")).await,
                ids(&expected),
                "{query} {limit}"
            );
        }
    }
    // The order is the list's, so cursors go with and without the name.
    let after = async |query: &str| {
        let page = key.get(&format!("/v1/clients?{query}")).await.expect(200);
        format!("cursor={}", page.str("next_cursor"))
    };
    let third = after("limit=3").await;
    assert_eq!(found(&key, &format!("name=grace&{third}")).await, ids(&[2, 0]));
    let first = after("name=grace&limit=1").await;
    assert_eq!(found(&key, &first).await, ids(&[3, 2, 1, 0]));
    key.get(&format!("/v1/clients?name=grace&{ALL}&{third}")).await.refused_for("cursor");
    let update = key.get(&format!("/v1/clients/{}", id(2))).await.expect(200).body["updated_at"].clone();
    let since = format!("name=grace&updated_since={}", update.as_str().unwrap());
    assert_eq!(found(&key, &since).await, ids(&[2, 4]));
}

#[tokio::test]
async fn a_client_is_found_by_its_present_name_at_its_present_coach() {
    let world = World::start().await;
    let (ada, bob) = (world.coach("ada").await.partner_key().await, world.coach("bob").await.partner_key().await);
    world.apply([named(1, "Grace Hopper")]).await;
    assert_eq!(found(&ada, "name=hopper").await, [id(1)]);
    world.advance_s(1).await;
    world.apply([named(1, "Grace Murray")]).await;
    assert!(found(&ada, "name=hopper").await.is_empty());
    assert_eq!(found(&ada, "name=murray").await, [id(1)]);
    world.advance_s(1).await;
    world.apply([named(1, "Grace Murray").with("coach_id", "bob")]).await;
    assert!(found(&ada, "name=murray").await.is_empty());
    assert_eq!(found(&bob, "name=murray").await, [id(1)]);
}
