//! `GET /settings/keys`: pages of keys, live ones first.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::new_key;
use crate::settings::start_with_session;
use crate::world::{Bill, Caller, World, list, made_up_cursor, position_of, rendered, time};

/// Creates keys of which some are revoked, some expire in an hour and some are rotated. Returns their ids, oldest
/// first.
async fn mixed_keys(world: &World, settings: &Caller) -> Vec<String> {
    let in_an_hour = world.timestamp_in(3600).await;
    let mut ids = Vec::new();
    for number in 0..12 {
        let expires_at = if number % 4 == 1 { json!(in_an_hour) } else { Value::Null };
        let made =
            new_key(settings, json!({ "name": format!("Key {number}"), "scope": "partner", "expires_at": expires_at }))
                .await;
        ids.push(made.str("id").to_owned());
        if number % 4 == 2 {
            settings.delete(&format!("/settings/keys/{}", made.str("id"))).await.expect(200);
        }
        if number % 4 == 3 {
            world.advance_s(1).await;
            let path = format!("/settings/keys/{}/rotate", made.str("id"));
            ids.push(settings.post(&path, json!({})).await.expect(201).str("id").to_owned());
        }
        world.advance_s(1).await;
    }
    ids
}

fn ids_of(page: &Value) -> Vec<String> {
    list(page["keys"].clone()).iter().map(|key| key["id"].as_str().unwrap().to_owned()).collect()
}

/// The pages of a list from a cursor on.
async fn pages_from(settings: &Caller, query: &str, cursor: Option<String>) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = cursor.unwrap_or_default();
    loop {
        let page = settings.get(&format!("/settings/keys?{query}&cursor={cursor}")).await.expect(200);
        pages.push(ids_of(&page.body));
        assert!(pages.len() < 30, "{pages:?}");
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn keys_are_paged_live_first_and_each_is_listed_once() {
    let (world, settings) = start_with_session().await;
    let ids = mixed_keys(&world, &settings).await;
    for advance_s in [0, 3600, 24 * 3600] {
        world.advance_s(advance_s).await;
        let now = world.now().await;
        let whole = settings.get("/settings/keys?limit=200").await.expect(200).body;
        let is_live = |key: &Value| {
            key["revoked_at"].is_null() && (key["expires_at"].is_null() || time(&key["expires_at"]) > now)
        };
        let (live, ended): (Vec<Value>, Vec<Value>) = list(whole["keys"].clone()).into_iter().partition(is_live);
        assert!(!live.is_empty() && !ended.is_empty());
        let newest_first = |keys: &[Value]| keys.is_sorted_by_key(|key| std::cmp::Reverse(time(&key["created_at"])));
        assert!(newest_first(&live) && newest_first(&ended));
        let ordered = [live.clone(), ended].concat();
        let expected = ids_of(&json!({ "keys": ordered }));
        assert_eq!(ids_of(&whole), expected, "live ones first");
        assert_eq!(expected.len(), ids.len());
        for limit in [1, 2, 3, live.len(), live.len() + 1, ids.len() - 1, ids.len(), 200] {
            let pages = pages_from(&settings, &format!("limit={limit}"), None).await;
            assert_eq!(pages.concat(), expected, "limit {limit}");
            assert_eq!(pages.len(), expected.len().div_ceil(limit), "limit {limit}");
            let pages = pages_from(&settings, &format!("status=live&limit={limit}"), None).await;
            assert_eq!(pages.concat(), expected[..live.len()], "limit {limit}");
        }
        world.advance_to_next_minute().await;
    }
}

#[tokio::test]
async fn a_key_that_ends_between_two_pages_is_listed_once() {
    let (world, settings) = start_with_session().await;
    let ids = mixed_keys(&world, &settings).await;
    let first = settings.get("/settings/keys?limit=4").await.expect(200).body;
    let all_live = ids_of(&settings.get("/settings/keys?status=live").await.expect(200).body);
    let mut listed = ids_of(&first);
    assert!(listed.iter().all(|id| all_live.contains(id)));
    let cursor = || Some(first["next_cursor"].as_str().unwrap().to_owned());
    // A key that was listed, and one that is still to come.
    for ended in [&listed[1], &all_live[6]] {
        settings.delete(&format!("/settings/keys/{ended}")).await.expect(200);
    }
    // Others expire, and a new key is created.
    world.advance_s(3601).await;
    new_key(&settings, json!({ "name": "new", "scope": "partner" })).await;
    let live = pages_from(&settings, "status=live&limit=3", cursor()).await.concat();
    assert!(!live.contains(&all_live[6]), "a list of live keys omits ended ones");
    listed.extend(pages_from(&settings, "limit=3", cursor()).await.concat());
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let mut expected = ids.clone();
    expected.sort_unstable();
    assert_eq!((sorted.len(), sorted), (listed.len(), expected));
}

#[tokio::test]
async fn a_page_of_keys_costs_the_same_for_any_number_of_ended_keys() {
    let (world, settings) = start_with_session().await;
    for _ in 0..2 {
        new_key(&settings, json!({ "name": "live", "scope": "partner" })).await;
    }
    let old = new_key(&settings, json!({ "name": "old", "scope": "partner" })).await.str("id").to_owned();
    settings.delete(&format!("/settings/keys/{old}")).await.expect(200);
    let bill = async |path: &str| {
        let page = settings.get(path).await.expect(200).body;
        (page, Bill::of(&world.calls("settings").await[0]))
    };
    let record = world.items("keys", &format!("KEY#{old}")).await.remove(0);
    let mut few_units = 0.0;
    for (count, is_first) in [(60, true), (1_200, false)] {
        let began = world.now().await;
        let mut items = Vec::new();
        for number in 0..count {
            let id = format!("key_{:032x}", count * 10_000 + number);
            let at = began - TimeDelta::days(30) - TimeDelta::seconds(number);
            let mut item = record.clone();
            item["pk"]["S"] = json!(format!("KEY#{id}"));
            item["key_id"]["S"] = json!(id);
            item["created_at"]["S"] = json!(rendered(at));
            items.push(item);
            let sk = format!("KEY#{:015}#{id}", at.timestamp_millis());
            items.push(json!({ "pk": { "S": "COACH#ada" }, "sk": { "S": sk } }));
        }
        world.put_items("keys", &items).await;
        let (page, first) = bill("/settings/keys").await;
        assert_eq!(ids_of(&page).len(), 50);
        assert!(first.calls <= 5 && first.write_units == 1.0, "{first:?}");
        let next = format!("/settings/keys?cursor={}", page["next_cursor"].as_str().unwrap());
        let (_, second) = bill(&next).await;
        assert!(second.calls <= 5 && second.write_units == 1.0, "{second:?}");
        if is_first {
            few_units = first.read_units;
        } else {
            assert!(
                first.read_units <= few_units + 1.0 && second.read_units <= few_units + 1.0,
                "{first:?} {second:?}"
            );
        }
    }
    let (page, live) = bill("/settings/keys?status=live").await;
    assert_eq!((ids_of(&page).len(), &page["next_cursor"]), (2, &Value::Null));
    assert!(live.calls <= 4 && live.read_units < few_units, "{live:?}");
}

#[tokio::test]
async fn a_cursor_that_names_a_key_twice_names_it_once() {
    let (world, settings) = start_with_session().await;
    mixed_keys(&world, &settings).await;
    let page = settings.get("/settings/keys?limit=2").await.expect(200).body;
    let cursor = page["next_cursor"].as_str().unwrap();
    let position = position_of("ada", "keys", cursor);
    let (shown, keys) = position.split_at(2);
    let twice = made_up_cursor("ada", "keys", &format!("{shown}{}{keys}", &keys[..32]));
    let next =
        async |cursor: &str| ids_of(&settings.get(&format!("/settings/keys?cursor={cursor}")).await.expect(200).body);
    assert_eq!(next(&twice).await, next(cursor).await);
    let unknown = made_up_cursor("ada", "keys", &format!("01{}{}", "0".repeat(32), "0".repeat(32)));
    settings.get(&format!("/settings/keys?cursor={unknown}")).await.expect(200);
}
