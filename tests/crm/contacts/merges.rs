//! `contact.merged`: two contacts become one. The merged contact keeps only its ids; the surviving one takes over the
//! link to the client.

use serde_json::{Value, json};

use crate::crm::contacts::{CONTACTS, crm, listed, patch, post, shown, stored};
use crate::event_feed::{reader_of, whole_feed};
use crate::feed::stalls;
use crate::world::{Caller, Fact, World, fact, members, uuid};

pub(crate) const MARK: &str = "gwendolyn";
/// Longer than any fact waits.
pub(crate) const WAITED_S: u64 = 20 * 60;
/// `cargo test -p behaviour --features long-simulation merges` tries more of them.
const SEEDS: std::ops::Range<u64> = if cfg!(feature = "long-simulation") { 0..10 } else { 0..2 };
/// More polls than storing a fact takes.
const POLLS: usize = 40;

pub(crate) fn merged(from: u64, into: u64) -> Fact {
    fact("contact.merged", json!({ "coach_id": "ada", "contact_id": uuid(from), "merged_into": uuid(into) }))
}

/// A contact with all fields set.
pub(crate) fn contact(number: u64) -> Fact {
    Fact::contact("ada", &uuid(number))
        .with("name", format!("{MARK} {number}"))
        .with("email", format!("{MARK}.{number}@example.com"))
        .with("phone", format!("+1 415 555 26{number:02}"))
}

/// The contact that the refusals to change and to read a merged contact name.
pub(crate) async fn merged_into(world: &World, key: &Caller, id: u64) -> Value {
    let unchanged = patch(world, key, &uuid(id), json!({ "name": "Lee" })).await.refused(409, "contact_merged");
    let unread = key.get(&format!("{CONTACTS}/{}", uuid(id))).await.refused(404, "not_found");
    assert_eq!(unread.body["mergedIntoId"], unchanged.body["mergedIntoId"]);
    unchanged.body["mergedIntoId"].clone()
}

/// Creates a client from the contact through the API.
pub(crate) async fn client_of(world: &World, number: u64) -> String {
    let partner = world.coach("ada").await.partner_key().await;
    let body = json!({ "email": format!("{MARK}.{number}@example.com"), "send_welcome": false });
    partner.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
}

#[tokio::test]
async fn a_merged_contact_keeps_ids_and_an_address_key_that_leads_to_the_survivor() {
    let (world, key) = crm().await;
    world
        .apply([contact(1), contact(2).with("name", "Lee").with("email", "lee@example.com").with("phone", Value::Null)])
        .await;
    let before = shown(&key, &uuid(2)).await;
    world.apply([merged(1, 2)]).await;
    assert_eq!(listed(&key).await, [uuid(2)]);
    assert_eq!(shown(&key, &uuid(2)).await, before, "the surviving contact is unchanged");
    let left = stored(&world, &uuid(1)).await;
    assert_eq!(members(&left), LEFT);
    assert_eq!(left["contact_ref"]["S"], format!("ada#{}", uuid(2)), "erasing the surviving contact finds this one");
    let name = format!("{MARK} 1");
    world.at_rest().await.assert_absent([name.as_str(), "4155552601", "+1 415 555 2601"]);
    assert_eq!(merged_into(&world, &key, 1).await, uuid(2));
    world.at_rest().await.assert_absent([name.as_str()]);
    // Its address is free for a client that is not this contact.
    let client = client_of(&world, 1).await;
    assert_eq!(shown(&key, &uuid(2)).await["clientId"], Value::Null, "{client}");
    for email in [format!("{MARK}.1@example.com"), format!("{}.1@Example.com", MARK.to_uppercase())] {
        let found = post(&world, &key, "Anew", &email).await.expect(201);
        assert_eq!(found.body["contact"], before, "{email}");
    }
    // A later record of the merged contact changes nothing.
    let left = stored(&world, &uuid(1)).await;
    world.advance_s(60).await;
    world.apply([contact(1).with("email", "back@example.com")]).await;
    assert_eq!(stored(&world, &uuid(1)).await, left);
    world.at_rest().await.assert_absent(["back@example.com"]);
    assert_eq!(listed(&key).await, [uuid(2)]);
    let problem = key.get(&format!("{CONTACTS}/{}", uuid(1))).header("accept", "application/problem+json").await;
    let names = ["code", "detail", "error", "mergedIntoId", "request_id", "status", "title", "type"];
    assert_eq!(problem.members(), names);
    world.settle().await;
    let emitted = world.changes("contact.created").await.len() + world.changes("contact.updated").await.len();
    assert_eq!(emitted, 0, "a match emits nothing");
}

/// Attributes that remain of a merged contact.
const LEFT: [&str; 9] =
    ["contact_ref", "email_key", "email_set_at", "merged_at", "merged_into", "pk", "sk", "updated", "version"];

#[tokio::test]
async fn a_merge_that_would_close_a_circle_is_set_aside() {
    let (world, key) = crm().await;
    world.apply((1..=3).map(contact)).await;
    world.apply([merged(1, 1)]).await;
    assert_eq!(listed(&key).await, [1, 2, 3].map(uuid));
    world.apply([merged(1, 2), merged(2, 3)]).await;
    world.apply([merged(3, 1), merged(2, 1)]).await;
    // The same for contacts that are known only as targets of merges.
    world.apply([merged(8, 9), merged(9, 8)]).await;
    assert_eq!(listed(&key).await, [uuid(3)]);
    assert_eq!(merged_into(&world, &key, 1).await, uuid(3));
    assert_eq!(merged_into(&world, &key, 8).await, uuid(9));
    assert_eq!(world.set_aside().await.len(), 1, "a later merge may still break their circle");
    world.advance_s(WAITED_S).await;
    let set_aside = world.set_aside().await;
    assert_eq!(set_aside.len(), 3);
    assert!(set_aside.iter().all(|letter| letter["reason"].as_str().unwrap().contains("merged")), "{set_aside:?}");
}

#[tokio::test]
async fn a_circle_that_a_later_merge_breaks_is_accepted_in_any_order_of_arrival() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (world, key) = crm().await;
        world.apply((1..=3).map(contact)).await;
        let merges = [(2, 1), (2, 3), (1, 2)];
        for number in order {
            let (from, into) = merges[number];
            let occurred_at = format!("2026-01-01T00:00:0{number}Z");
            world.apply([merged(from, into).with("occurred_at", occurred_at)]).await;
        }
        world.advance_s(WAITED_S).await;
        assert_eq!(listed(&key).await, [uuid(3)], "{order:?}");
        assert_eq!([merged_into(&world, &key, 1).await, merged_into(&world, &key, 2).await], [uuid(3), uuid(3)]);
        assert!(world.set_aside().await.is_empty());
    }
}

#[tokio::test]
async fn a_merge_into_a_chain_of_about_a_hundred_merges_is_an_event_or_set_aside_with_a_reason() {
    const LINKS: u64 = 100;
    let (world, key) = crm().await;
    world.apply((1..=LINKS + 1).map(contact)).await;
    for number in 1..=LINKS {
        world.apply([merged(number, number + 1)]).await;
    }
    assert_eq!(merged_into(&world, &key, 1).await, uuid(LINKS + 1));
    let reader = reader_of(&world.coach("ada").await, &["contact_merged"], "identifiers").await;
    let assert_applied = async |from: u64, into: u64| {
        assert_eq!(merged_into(&world, &key, from).await, uuid(LINKS + 1), "into {into}");
        let event = whole_feed(&reader).await.pop().unwrap();
        assert_eq!(event["data"], json!({ "contact": { "id": uuid(LINKS + 1) }, "merged": { "id": uuid(from) } }));
    };
    let mut applied = 0;
    // Contacts without addresses and with some, into chains of 101 contacts and fewer.
    for (from, into) in (1_000..1_016).zip((1..=8).flat_map(|into| [into, into])) {
        let has_addresses = from % 2 == 0;
        let all_set = contact(from).with("phone", "+1 415 555 0100");
        world.apply([if has_addresses { all_set } else { Fact::contact("ada", &uuid(from)) }]).await;
        world.apply([merged(from, into)]).await;
        let set_aside = world.set_aside().await;
        if let Some(letter) = set_aside.first() {
            assert_eq!(set_aside.len(), 1, "{set_aside:?}");
            assert!(letter["reason"].as_str().unwrap().contains("name the last of them"), "into {into}: {letter}");
            continue;
        }
        assert!(into > 1, "a chain of a hundred merges takes no other");
        applied += 1;
        assert_applied(from, into).await;
    }
    assert!((1..14).contains(&applied), "{applied}");
    world.apply([merged(1_000, LINKS + 1)]).await;
    assert_applied(1_000, LINKS + 1).await;
    assert_eq!(whole_feed(&reader).await.len(), applied + 1);
}

#[tokio::test]
async fn concurrent_merges_close_no_circle() {
    let (world, key) = crm().await;
    let pairs: Vec<u64> = (0..20).collect();
    world.apply(pairs.iter().flat_map(|n| [contact(2 * n), contact(2 * n + 1)])).await;
    world
        .apply(pairs.iter().map(|n| merged(2 * n, 2 * n + 1)).chain(pairs.iter().map(|n| merged(2 * n + 1, 2 * n))))
        .await;
    world.advance_s(WAITED_S).await;
    assert_eq!(listed(&key).await.len(), pairs.len(), "one contact of each pair is left");
    assert_eq!(world.set_aside().await.len(), pairs.len());
}

#[tokio::test]
async fn a_merge_that_stalls_during_the_opposite_merge_closes_no_circle() {
    let (world, key) = crm().await;
    let mut stalled_at = 0;
    // The first merge stalls before each of its calls in turn.
    for spared_calls in 0..10 {
        let (one, other) = (2 * spared_calls, 2 * spared_calls + 1);
        world.apply([contact(one), contact(other)]).await;
        let stalled = stalls(&world, "ingest", spared_calls, merged(one, other)).await;
        if stalled {
            stalled_at += 1;
            world.publish([merged(other, one)]).await;
            // The fact is either stored or waiting. The test cannot see which.
            for _ in 0..POLLS {
                if stored(&world, &uuid(other)).await.get("merged_into").is_some() {
                    break;
                }
            }
        }
        world.clear_faults().await;
        world.advance_s(WAITED_S).await;
        let set_aside = world.set_aside().await.len();
        assert_eq!((listed(&key).await.len() as u64, set_aside), (spared_calls + 1, usize::from(stalled)));
        if !stalled {
            break;
        }
    }
    assert!((4..10).contains(&stalled_at), "it stalled {stalled_at} times");
}

#[tokio::test]
async fn a_merge_that_stalls_while_its_target_chain_is_reversed_closes_no_circle() {
    let (world, key) = crm().await;
    let mut stalled_at = 0;
    for spared_calls in 0..12 {
        let [one, other, end] = [0, 1, 2].map(|number| 3 * spared_calls + number);
        world.apply([contact(one), contact(other), contact(end)]).await;
        world.apply([merged(other, end)]).await;
        let stalled = stalls(&world, "ingest", spared_calls, merged(one, other)).await;
        if !stalled {
            break;
        }
        stalled_at += 1;
        world.publish([merged(other, one)]).await;
        for _ in 0..POLLS {
            if stored(&world, &uuid(other)).await["merged_into"]["S"] == uuid(one) {
                break;
            }
        }
        world.clear_faults().await;
        world.advance_s(WAITED_S).await;
        assert_eq!(world.set_aside().await.len(), 1, "one of the two, after {spared_calls} calls");
        for contact in [one, other, end] {
            let changed = patch(&world, &key, &uuid(contact), json!({ "name": "Changed" })).await;
            assert!([200, 409].contains(&changed.status), "after {spared_calls} calls: {}", changed.text);
        }
    }
    assert!((4..12).contains(&stalled_at), "it stalled {stalled_at} times");
}

/// Pseudo-random numbers, the same in each run.
pub(crate) fn pseudo_random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// Records and merges of a few contacts, each at a time of its own. Merges lead upwards, so that none closes a circle.
fn facts_of(coach: &str, seed: u64, times: &[String]) -> Vec<Fact> {
    let mut pick = pseudo_random(seed);
    let mut facts = Vec::new();
    for at in times {
        let number = pick(9);
        let fact = match pick(4) {
            0 => merged(number as u64, (number + 1 + pick(3)) as u64),
            _ => Fact::contact("ada", &uuid(number as u64))
                .with("name", format!("Said at {at}"))
                .with("email", format!("c{}@example.com", pick(4)))
                .with("do_not_contact", pick(2) == 0),
        };
        facts.push(fact.with("coach_id", coach).with("occurred_at", at.as_str()));
    }
    facts
}

#[tokio::test]
async fn facts_in_any_order_and_with_repeats_leave_the_same_contacts() {
    futures::future::join_all(SEEDS.map(play_in_three_orders)).await;
}

/// Plays the facts of a seed in order for one coach, and shuffled with repeats for two others.
async fn play_in_three_orders(seed: u64) {
    let world = World::start().await;
    let mut keys = Vec::new();
    for coach in ["ada", "bob", "eve"] {
        keys.push(world.coach(coach).await.crm_key().await);
    }
    let mut times = Vec::new();
    for second in 0..40 {
        times.push(world.timestamp_in(second - 40).await);
    }
    world.apply(facts_of("ada", seed, &times)).await;
    for (coach, twist) in [("bob", 1_000), ("eve", 2_000)] {
        let mut pick = pseudo_random(seed + twist);
        let mut facts = facts_of(coach, seed, &times);
        let again: Vec<Fact> = (0..20).map(|_| facts[pick(times.len())].clone()).collect();
        facts.extend(again);
        for index in (1..facts.len()).rev() {
            facts.swap(index, pick(index + 1));
        }
        for fact in facts {
            // One after the other, to fix the order of arrival.
            world.apply([fact]).await;
        }
    }
    let mut left = Vec::new();
    for key in &keys {
        let mut page = key.get("/v1/crm/contacts?limit=200").await.expect(200).body;
        for contact in page["data"].as_array_mut().unwrap() {
            contact["createdAt"] = Value::Null;
            contact["updatedAt"] = Value::Null;
        }
        left.push(page);
    }
    assert_eq!((&left[0], &left[0]), (&left[1], &left[2]), "seed {seed}");
    assert!(!left[0]["data"].as_array().unwrap().is_empty());
}
