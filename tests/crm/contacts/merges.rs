//! `contact.merged`: two contacts turn out to be one. Of the one that is no more, ids stay; the other takes its place, and the link to its
//! client.

use serde_json::{Value, json};

use crate::crm::contacts::{crm, listed, patch, post, shown, stored};
use crate::world::{Caller, Fact, World, fact, members, uuid};

pub(crate) const MARK: &str = "gwendolyn";
/// All waiting has ended by then.
pub(crate) const WAITED_S: u64 = 20 * 60;
/// More than a fact takes to be stored.
const LOOKS: usize = 40;

pub(crate) fn merged(from: u64, into: u64) -> Fact {
    fact("contact.merged", json!({ "coach_id": "ada", "contact_id": uuid(from), "merged_into": uuid(into) }))
}

/// A contact with everything in it.
pub(crate) fn contact(number: u64) -> Fact {
    Fact::contact("ada", &uuid(number))
        .with("name", format!("{MARK} {number}"))
        .with("email", format!("{MARK}.{number}@example.com"))
        .with("phone", format!("+1 415 555 26{number:02}"))
}

pub(crate) async fn merged_into(world: &World, key: &Caller, id: u64) -> Value {
    let refused = patch(world, key, &uuid(id), json!({ "name": "Lee" })).await.refused(409, "contact_merged");
    refused.body["mergedIntoId"].clone()
}

/// A client whom the API made of the contact.
pub(crate) async fn client_of(world: &World, number: u64) -> String {
    let partner = world.coach("ada").await.partner_key().await;
    let body = json!({ "email": format!("{MARK}.{number}@example.com"), "send_welcome": false });
    partner.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
}

#[tokio::test]
async fn a_contact_that_was_merged_away_keeps_ids_and_the_address_that_leads_to_the_living_one() {
    let (world, key) = crm().await;
    world
        .facts([contact(1), contact(2).with("name", "Lee").with("email", "lee@example.com").with("phone", Value::Null)])
        .await;
    let before = shown(&key, &uuid(2)).await;
    world.facts([merged(1, 2)]).await;
    assert_eq!(listed(&key).await, [uuid(2)]);
    assert_eq!(shown(&key, &uuid(2)).await, before, "nothing of the other changes");
    let left = stored(&world, &uuid(1)).await;
    assert_eq!(members(&left), LEFT);
    assert_eq!(left["contact_ref"]["S"], format!("ada#{}", uuid(2)), "who erases that one finds this one");
    let name = format!("{MARK} 1");
    world.at_rest().await.holds_none_of([name.as_str(), "4155552601", "+1 415 555 2601"]);
    assert_eq!(merged_into(&world, &key, 1).await, uuid(2));
    world.at_rest().await.holds_none_of([name.as_str()]);
    // Its address is free for a client, who is not this contact.
    let client = client_of(&world, 1).await;
    assert_eq!(shown(&key, &uuid(2)).await["clientId"], Value::Null, "{client}");
    for email in [format!("{MARK}.1@example.com"), format!("{}.1@Example.com", MARK.to_uppercase())] {
        let found = post(&world, &key, "Anew", &email).await.expect(201);
        assert_eq!(found.body["contact"], before, "{email}");
    }
    assert_eq!(listed(&key).await, [uuid(2)]);
    world.settle().await;
    let told = world.outgoing("contact.created").await.len() + world.outgoing("contact.updated").await.len();
    assert_eq!(told, 0, "a match tells nothing");
}

/// The attributes of a contact that was merged away.
const LEFT: [&str; 8] = ["contact_ref", "email_key", "email_set_at", "merged_at", "merged_into", "pk", "sk", "version"];

#[tokio::test]
async fn whatever_comes_first_the_end_is_the_same() {
    let (world, key) = crm().await;
    let at = world.timestamp_in(0).await;
    let facts = |first: u64| {
        [contact(first), contact(first + 1), merged(first, first + 1)].map(|fact| fact.with("occurred_at", at.as_str()))
    };
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (number, order) in orders.into_iter().enumerate() {
        let facts = facts(2 * number as u64);
        for index in order {
            world.facts([facts[index].clone()]).await;
        }
    }
    assert_eq!(listed(&key).await, [1, 3, 5, 7, 9, 11].map(uuid));
    let keys: Vec<_> = [0, 2, 4, 6, 8, 10].map(uuid).into();
    for id in keys {
        assert_eq!(members(&stored(&world, &id).await), LEFT);
    }
    world.advance_s(WAITED_S).await;
    assert!(world.set_aside().await.is_empty(), "one that was never seen waits for nothing");
}

#[tokio::test]
async fn a_later_record_of_a_contact_that_is_no_more_changes_nothing() {
    let (world, key) = crm().await;
    world.facts([contact(1), contact(2), merged(1, 2)]).await;
    let left = stored(&world, &uuid(1)).await;
    world.advance_s(60).await;
    world.facts([contact(1).with("email", "back@example.com")]).await;
    assert_eq!(stored(&world, &uuid(1)).await, left);
    assert_eq!(listed(&key).await, [uuid(2)]);
    assert!(world.at_rest().await.places_of("back@example.com").is_empty());
}

#[tokio::test]
async fn the_living_one_is_named_at_the_end_of_however_many_merges() {
    let (world, key) = crm().await;
    world.facts((1..=5).map(contact)).await;
    // Told from the end, from the start, and from the middle.
    for (from, into) in [(3, 4), (1, 2), (2, 3), (4, 5)] {
        world.facts([merged(from, into)]).await;
    }
    for number in 1..=4 {
        assert_eq!(merged_into(&world, &key, number).await, uuid(5));
    }
    // The last of them has not been seen: it is named all the same, and is not there.
    world.facts([merged(5, 6)]).await;
    assert_eq!(merged_into(&world, &key, 1).await, uuid(6));
    patch(&world, &key, &uuid(6), json!({ "name": "Lee" })).await.refused(404, "not_found");
    assert!(listed(&key).await.is_empty());
}

#[tokio::test]
async fn what_was_said_last_of_where_a_contact_went_counts() {
    let (world, key) = crm().await;
    world.facts((1..=3).map(contact)).await;
    let times = [world.timestamp_in(1).await, world.timestamp_in(2).await, world.timestamp_in(3).await];
    world.facts([merged(1, 2).with("occurred_at", times[1].as_str())]).await;
    world.facts([merged(1, 3).with("occurred_at", times[0].as_str())]).await;
    assert_eq!(merged_into(&world, &key, 1).await, uuid(2));
    world.facts([merged(1, 3).with("occurred_at", times[2].as_str())]).await;
    assert_eq!(merged_into(&world, &key, 1).await, uuid(3));
    let left = stored(&world, &uuid(1)).await;
    world.facts([merged(1, 3).with("occurred_at", times[2].as_str())]).await;
    assert_eq!(stored(&world, &uuid(1)).await, left, "told again it is the same");
}

#[tokio::test]
async fn a_merge_that_would_lead_nowhere_is_set_aside() {
    let (world, key) = crm().await;
    world.facts((1..=3).map(contact)).await;
    world.facts([merged(1, 1)]).await;
    assert_eq!(listed(&key).await, [1, 2, 3].map(uuid));
    world.facts([merged(1, 2), merged(2, 3)]).await;
    world.facts([merged(3, 1), merged(2, 1)]).await;
    // A contact that is known only from where others went is no different.
    world.facts([merged(8, 9), merged(9, 8)]).await;
    assert_eq!(listed(&key).await, [uuid(3)]);
    assert_eq!(merged_into(&world, &key, 1).await, uuid(3));
    assert_eq!(merged_into(&world, &key, 8).await, uuid(9));
    assert_eq!(world.set_aside().await.len(), 1, "another merge may still lead those in a circle elsewhere");
    world.advance_s(WAITED_S).await;
    let set_aside = world.set_aside().await;
    assert_eq!(set_aside.len(), 3);
    assert!(set_aside.iter().all(|letter| letter["reason"].as_str().unwrap().contains("merged")), "{set_aside:?}");
}

#[tokio::test]
async fn a_circle_that_a_later_merge_opens_is_none_in_whatever_order_they_come() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (world, key) = crm().await;
        world.facts((1..=3).map(contact)).await;
        let merges = [(2, 1), (2, 3), (1, 2)];
        for told in order {
            let (from, into) = merges[told];
            let said = format!("2026-01-01T00:00:0{told}Z");
            world.facts([merged(from, into).with("occurred_at", said)]).await;
        }
        world.advance_s(WAITED_S).await;
        assert_eq!(listed(&key).await, [uuid(3)], "{order:?}");
        assert_eq!([merged_into(&world, &key, 1).await, merged_into(&world, &key, 2).await], [uuid(3), uuid(3)]);
        assert!(world.set_aside().await.is_empty());
    }
}

#[tokio::test]
async fn a_merge_into_a_contact_that_lives_on_through_a_hundred_others_is_set_aside_with_what_would_be_right() {
    const LINKS: u64 = 100;
    let (world, key) = crm().await;
    world.facts((0..=LINKS + 1).map(contact)).await;
    for number in 1..=LINKS {
        world.facts([merged(number, number + 1)]).await;
    }
    assert_eq!(merged_into(&world, &key, 1).await, uuid(LINKS + 1));
    world.facts([merged(0, 1)]).await;
    let set_aside = world.set_aside().await;
    assert!(
        set_aside.len() == 1 && set_aside[0]["reason"].as_str().unwrap().contains("name the last of them"),
        "{set_aside:?}"
    );
    world.facts([merged(0, LINKS + 1)]).await;
    assert_eq!(merged_into(&world, &key, 0).await, uuid(LINKS + 1));
}

#[tokio::test]
async fn merges_that_meet_close_no_circle() {
    let (world, key) = crm().await;
    let pairs: Vec<u64> = (0..20).collect();
    world.facts(pairs.iter().flat_map(|n| [contact(2 * n), contact(2 * n + 1)])).await;
    world
        .facts(pairs.iter().map(|n| merged(2 * n, 2 * n + 1)).chain(pairs.iter().map(|n| merged(2 * n + 1, 2 * n))))
        .await;
    world.advance_s(WAITED_S).await;
    assert_eq!(listed(&key).await.len(), pairs.len(), "of each two one is left");
    assert_eq!(world.set_aside().await.len(), pairs.len());
}

#[tokio::test]
async fn a_merge_that_stalls_while_the_other_way_is_told_closes_no_circle() {
    let (world, key) = crm().await;
    let mut stalled_at = 0;
    // The first stalls before each of its calls in turn.
    for spared_calls in 0..10 {
        let (one, other) = (2 * spared_calls, 2 * spared_calls + 1);
        world.facts([contact(one), contact(other)]).await;
        world.faults(json!({ "function": "ingest", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        world.put([merged(one, other)]).await;
        let stalled = tokio::select! {
            () = world.until_stalled() => true,
            () = world.settle() => false,
        };
        if stalled {
            stalled_at += 1;
            world.put([merged(other, one)]).await;
            // It is stored, or waits: which it does is not seen from here.
            for _ in 0..LOOKS {
                if stored(&world, &uuid(other)).await.get("merged_into").is_some() {
                    break;
                }
            }
        }
        world.faults(json!({ "stalled_calls": 0, "spared_calls": 0, "function": "" })).await;
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
async fn a_merge_that_stalls_while_the_way_that_it_leads_is_turned_round_closes_no_circle() {
    let (world, key) = crm().await;
    let mut stalled_at = 0;
    for spared_calls in 0..12 {
        let [one, other, end] = [0, 1, 2].map(|number| 3 * spared_calls + number);
        world.facts([contact(one), contact(other), contact(end)]).await;
        world.facts([merged(other, end)]).await;
        world.faults(json!({ "function": "ingest", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        world.put([merged(one, other)]).await;
        let stalled = tokio::select! {
            () = world.until_stalled() => true,
            () = world.settle() => false,
        };
        if !stalled {
            break;
        }
        stalled_at += 1;
        world.put([merged(other, one)]).await;
        for _ in 0..LOOKS {
            if stored(&world, &uuid(other)).await["merged_into"]["S"] == uuid(one) {
                break;
            }
        }
        world.faults(json!({ "stalled_calls": 0, "spared_calls": 0, "function": "" })).await;
        world.advance_s(WAITED_S).await;
        assert_eq!(world.set_aside().await.len(), 1, "one of the two, after {spared_calls} calls");
        for contact in [one, other, end] {
            let changed = patch(&world, &key, &uuid(contact), json!({ "name": "Changed" })).await;
            assert!([200, 409].contains(&changed.status), "after {spared_calls} calls: {}", changed.text);
        }
    }
    assert!((4..12).contains(&stalled_at), "it stalled {stalled_at} times");
}

#[tokio::test]
async fn a_merge_names_a_workspace_that_is_known() {
    let (world, key) = crm().await;
    world.facts([contact(1), merged(1, 2).with("coach_id", "bob")]).await;
    assert_eq!(listed(&key).await, [uuid(1)]);
    let bob = world.coach("bob").await.crm_key().await;
    world.advance_s(120).await;
    assert_eq!(merged_into(&world, &bob, 1).await, uuid(2));
    assert_eq!(listed(&key).await, [uuid(1)], "another workspace's contact with the same id");
    world
        .facts([
            merged(1, 2).with("coach_id", "eve"),
            merged(1, 2).without("merged_into"),
            merged(1, 2).with("contact_id", "1"),
        ])
        .await;
    world.advance_s(WAITED_S).await;
    assert_eq!(world.set_aside().await.len(), 3);
}

/// Numbers that look random and are the same in each run.
pub(crate) fn scrambled(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// Records and merges of a few contacts, each said at a time of its own. Merges lead upwards, so that none closes a circle.
fn sayings(coach: &str, seed: u64, times: &[String]) -> Vec<Fact> {
    let mut pick = scrambled(seed);
    let mut facts = Vec::new();
    for at in times {
        let number = pick(9);
        let saying = match pick(4) {
            0 => merged(number as u64, (number + 1 + pick(3)) as u64),
            _ => Fact::contact("ada", &uuid(number as u64))
                .with("name", format!("Said at {at}"))
                .with("email", format!("c{}@example.com", pick(4)))
                .with("do_not_contact", pick(2) == 0),
        };
        facts.push(saying.with("coach_id", coach).with("occurred_at", at.as_str()));
    }
    facts
}

#[tokio::test]
async fn in_whatever_order_and_however_often_facts_come_the_same_contacts_are_left() {
    let world = World::start().await;
    let mut keys = Vec::new();
    for coach in ["ada", "bob", "eve"] {
        keys.push(world.coach(coach).await.crm_key().await);
    }
    let mut times = Vec::new();
    for second in 0..40 {
        times.push(world.timestamp_in(second - 40).await);
    }
    for seed in 0..3 {
        let ordered = sayings("ada", seed, &times);
        world.facts(ordered).await;
        for (coach, twist) in [("bob", 1_000), ("eve", 2_000)] {
            let mut pick = scrambled(seed + twist);
            let mut facts = sayings(coach, seed, &times);
            let again: Vec<Fact> = (0..20).map(|_| facts[pick(times.len())].clone()).collect();
            facts.extend(again);
            for index in (1..facts.len()).rev() {
                facts.swap(index, pick(index + 1));
            }
            for fact in facts {
                // One after the other: the order is this one.
                world.facts([fact]).await;
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
        world.advance_s(60).await;
        for at in &mut times {
            *at = crate::world::rendered(crate::world::time(&json!(at)) + chrono::TimeDelta::seconds(60));
        }
    }
}
