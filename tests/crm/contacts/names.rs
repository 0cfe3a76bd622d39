//! `GET /v1/crm/contacts?name=`: contacts by a part of their names, in either order.

use serde_json::{Value, json};

use crate::crm::contacts::merges::{contact, merged};
use crate::crm::contacts::{CONTACTS, crm, patch, post};
use crate::crm::lists::{walk, walked_ids};
use crate::world::{BAD_NAME_FILTERS, Bill, FOUND_BY_NAME, Fact, NAMES, encoded, ids, uuid};

const LONG_AGO: &str = "updated_since=2000-01-01T00:00:00Z";

fn named(number: usize, name: &str) -> Fact {
    Fact::contact("ada", &uuid(number as u64)).with("name", name)
}

#[tokio::test]
async fn a_part_of_a_name_finds_the_coachs_contacts_in_any_spelling_and_order() {
    let (world, key) = crm().await;
    let bob = world.coach("bob").await.crm_key().await;
    let theirs = named(50, NAMES[0]).with("coach_id", "bob");
    world.apply(NAMES.iter().enumerate().map(|(number, name)| named(number, name)).chain([theirs])).await;
    for (text, places) in FOUND_BY_NAME {
        let query = format!("name={}", encoded(text));
        let up: Vec<String> = places.iter().map(|place| uuid(*place as u64)).collect();
        let down: Vec<String> = up.iter().rev().cloned().collect();
        for limit in [1, 2, 200] {
            assert_eq!(walked_ids(&key, "contacts", &query, limit).await, up, "{text} by {limit}");
            let found = walked_ids(&key, "contacts", &format!("{query}&order=desc"), limit).await;
            assert_eq!(found, down, "{text} by {limit}");
            let mut by_update = walked_ids(&key, "contacts", &format!("{query}&{LONG_AGO}"), limit).await;
            by_update.sort_unstable();
            assert_eq!(by_update, up, "{text} by {limit}");
        }
        world.advance_to_next_minute().await;
    }
    // A `+` is a blank.
    assert_eq!(walked_ids(&key, "contacts", "name=ada+love", 5).await, [uuid(8)]);
    assert_eq!(walked_ids(&bob, "contacts", &format!("name={}", encoded("müller")), 5).await, [uuid(50)]);
    assert!(walked_ids(&bob, "contacts", "name=lovelace", 5).await.is_empty());
}

#[tokio::test]
async fn a_name_that_is_too_short_too_long_or_does_not_show_is_refused_and_an_empty_one_is_no_filter() {
    let (world, key) = crm().await;
    world.apply([named(1, "Grace Hopper").with("email", "hopper@example.com")]).await;
    for bad in BAD_NAME_FILTERS {
        for others in ["", "&order=desc", &format!("&{LONG_AGO}")] {
            let reply = key.get(&format!("{CONTACTS}?name={}{others}", encoded(bad))).await.refused_for("name");
            assert_eq!(reply.body["field"], "name", "{bad:?}");
        }
    }
    for email in ["hopper@example.com", ""] {
        let reply = key.get(&format!("{CONTACTS}?name=grace&email={email}")).await.refused_for("name");
        assert_eq!(reply.body["field"], "name", "{email}");
        assert!(reply.error().contains("email"), "{}", reply.text);
    }
    let plain = key.get(CONTACTS).await.expect(200);
    assert_eq!(ids(&plain.body), [uuid(1)]);
    for same in ["name=", "name=&email=hopper@example.com", "name=grace", "name=&order=asc"] {
        assert_eq!(key.get(&format!("{CONTACTS}?{same}")).await.expect(200).text, plain.text, "{same}");
    }
}

#[tokio::test]
async fn a_name_finds_live_contacts_alone_by_the_name_that_they_have_now() {
    let (world, key) = crm().await;
    world.apply((1..=3).map(contact)).await;
    world.apply([merged(1, 2)]).await;
    let by_update = walk(&key, "contacts", LONG_AGO, 5).await;
    assert!(by_update.iter().any(|record| record["mergedIntoId"] == uuid(2)), "{by_update:?}");
    let live = async |query: &str| {
        let mut found = walked_ids(&key, "contacts", query, 1).await;
        found.sort_unstable();
        found
    };
    for query in ["name=gwendolyn", &format!("name=gwendolyn&{LONG_AGO}")] {
        assert_eq!(live(query).await, [2, 3].map(uuid), "{query}");
    }
    // Each write is found at once.
    patch(&world, &key, &uuid(3), json!({ "name": "Grace Hopper" })).await.expect(200);
    let made = post(&world, &key, "Gracie", "gracie@example.com").await.expect(201);
    let made = made.body["contact"]["id"].as_str().unwrap().to_owned();
    assert_eq!(live("name=gwendolyn").await, [uuid(2)]);
    assert_eq!(live("name=GRACI").await, [made.as_str()]);
    let mut both = vec![uuid(3), made];
    both.sort_unstable();
    assert_eq!(live(&format!("name=grac&{LONG_AGO}")).await, both);
    assert!(live("name=grac&updated_since=2999-01-01T00:00:00Z").await.is_empty());
}

/// Contacts that a request with a name reads.
const MOST_READ: u64 = 2_000;
/// The first contact of a roster, and the number of its contacts.
const FIRST: u64 = 1_000;
const ROSTER: u64 = 2 * MOST_READ + 400;

#[tokio::test]
async fn a_request_with_a_name_reads_a_limited_number_of_contacts_and_the_walk_finds_each_once() {
    let (world, key) = crm().await;
    world.apply([Fact::contact("ada", &uuid(FIRST))]).await;
    let items = world.items("crm", "COACH#ada").await;
    let item = items.iter().find(|item| item["sk"]["S"] == format!("CONTACT#{}", uuid(FIRST))).unwrap();
    let matches = [FIRST + 1, FIRST + 500, FIRST + 501, FIRST + MOST_READ - 1, FIRST + ROSTER - 1];
    let another = |number: u64| -> Value {
        let text = item.to_string().replace(&uuid(FIRST), &uuid(number));
        let name = if matches.contains(&number) { "Grace Hopper" } else { "Lee Lead" };
        serde_json::from_str(&text.replace("Lee Lead", name)).unwrap()
    };
    world.put_items("crm", &(FIRST + 1..FIRST + ROSTER).map(another).collect::<Vec<_>>()).await;
    let up = matches.map(uuid);
    for limit in [1, 2, 200] {
        assert_eq!(walked_ids(&key, "contacts", "name=hopper", limit).await, up, "{limit}");
        assert_eq!(walked_ids(&key, "contacts", &format!("name=hopper&{LONG_AGO}"), limit).await, up, "{limit}");
        let mut down = walked_ids(&key, "contacts", "name=hopper&order=desc", limit).await;
        down.reverse();
        assert_eq!(down, up, "{limit}");
    }
    let page =
        async |cursor: &str| key.get(&format!("{CONTACTS}?name=hopper&limit=200&cursor={cursor}")).await.expect(200);
    let first = page("").await;
    let bill = Bill::of(&world.calls("crm-contacts").await[0]);
    assert!(bill.calls == 5 && bill.read_units <= 450.0 && bill.write_units == 1.0, "{bill:?}");
    assert_eq!((ids(&first.body), first.str("next_cursor")), (up[..4].to_vec(), &*uuid(FIRST + MOST_READ - 1)));
    let second = page(first.str("next_cursor")).await;
    assert_eq!((ids(&second.body), second.str("next_cursor")), (vec![], &*uuid(FIRST + 2 * MOST_READ - 1)));
    let last = page(second.str("next_cursor")).await;
    assert_eq!((ids(&last.body), &last.body["next_cursor"]), (up[4..].to_vec(), &Value::Null));
    // A full page ends the reading.
    key.get(&format!("{CONTACTS}?name=lead&limit=2")).await.expect(200);
    let bill = Bill::of(&world.calls("crm-contacts").await[0]);
    assert!(bill.calls == 2 && bill.read_units <= 115.0, "{bill:?}");
}
