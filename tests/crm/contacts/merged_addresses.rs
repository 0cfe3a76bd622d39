//! `POST /v1/crm/contacts` with the address of a contact that was merged away returns the surviving contact.

use serde_json::Value;

use crate::crm::contacts::merges::{MARK, WAITED_S, client_of, contact, merged, merged_into};
use crate::crm::contacts::{crm, listed, post, shown};
use crate::feed::erasure::erased;
use crate::world::{Caller, World, uuid};

/// POSTs the address of a contact and returns the existing contact in the answer.
async fn found_by(world: &World, key: &Caller, number: u64) -> Value {
    let before = listed(key).await;
    let found = post(world, key, "Anew", &format!("{MARK}.{number}@example.com")).await.expect(201);
    assert_eq!(listed(key).await, before, "{}", found.text);
    assert_eq!(found.body["contact"], shown(key, found.body["contact"]["id"].as_str().unwrap()).await);
    found.body["contact"]["id"].clone()
}

#[tokio::test]
async fn a_merged_contact_and_its_address_lead_to_the_end_of_any_chain_of_merges() {
    let (world, key) = crm().await;
    world.apply((1..=5).map(contact)).await;
    // Merges arrive from the end, from the start, and from the middle.
    for (from, into) in [(3, 4), (1, 2), (2, 3), (4, 5)] {
        world.apply([merged(from, into)]).await;
    }
    for number in 1..=4 {
        assert_eq!(merged_into(&world, &key, number).await, uuid(5));
    }
    for number in 1..=5 {
        assert_eq!(found_by(&world, &key, number).await, uuid(5));
    }
    // A later merge leads to another contact.
    world.apply([contact(6)]).await;
    world.advance_s(1).await;
    world.apply([merged(1, 6)]).await;
    assert_eq!([found_by(&world, &key, 1).await, found_by(&world, &key, 2).await], [uuid(6), uuid(5)]);
    // The current holder of an address comes before its former holders.
    world.apply([contact(7).with("email", format!("{MARK}.1@example.com"))]).await;
    assert_eq!(found_by(&world, &key, 1).await, uuid(7));
    world.advance_s(1).await;
    world.apply([contact(7)]).await;
    assert_eq!(found_by(&world, &key, 1).await, uuid(6));
    // Another coach's contacts are not found.
    let bob = world.coach("bob").await.crm_key().await;
    let theirs = post(&world, &bob, "Anew", &format!("{MARK}.1@example.com")).await.expect(201);
    assert_ne!(theirs.body["contact"]["id"], uuid(6));
}

#[tokio::test]
async fn an_address_leads_to_the_surviving_contact_in_any_order_of_arrival() {
    let (world, key) = crm().await;
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2], [3, 1, 2, 0], [0, 3, 1, 2], [2, 3, 1, 0]];
    for (number, order) in orders.into_iter().enumerate() {
        let first = 3 * number as u64;
        // The contact had another address before.
        let early = contact(first).with("email", format!("early.{first}@example.com"));
        let facts = [early, contact(first), contact(first + 1), merged(first, first + 1)];
        let times = [
            world.timestamp_in(1).await,
            world.timestamp_in(2).await,
            world.timestamp_in(1).await,
            world.timestamp_in(3).await,
        ];
        for index in order {
            world.apply([facts[index].clone().with("occurred_at", times[index].as_str())]).await;
        }
        assert_eq!(found_by(&world, &key, first).await, uuid(first + 1), "{order:?}");
        let made = post(&world, &key, "Anew", &format!("early.{first}@example.com")).await.expect(201);
        let id = made.body["contact"]["id"].as_str().unwrap().to_owned();
        assert!(![first, first + 1].map(uuid).contains(&id), "{order:?}");
    }
}

#[tokio::test]
async fn a_record_from_after_the_merge_counts_only_if_it_is_the_first() {
    let (world, key) = crm().await;
    world.apply([contact(2), contact(4), merged(1, 2), contact(3), merged(3, 4)]).await;
    world.advance_s(60).await;
    let late = |number: u64| contact(number).with("email", format!("{MARK}.{}@example.com", 10 + number));
    world.apply([late(1), late(3)]).await;
    assert_eq!(found_by(&world, &key, 11).await, uuid(2));
    assert_eq!(found_by(&world, &key, 3).await, uuid(4));
    let made = post(&world, &key, "Anew", &format!("{MARK}.13@example.com")).await.expect(201);
    assert_ne!(made.body["contact"]["id"], uuid(4));
}

#[tokio::test]
async fn an_address_without_a_surviving_contact_creates_one() {
    let (world, key) = crm().await;
    world.apply([contact(1), contact(3), contact(4)]).await;
    // The first was merged into an unknown contact, the third into an erased one.
    world.apply([merged(1, 2), merged(3, 4)]).await;
    let client = client_of(&world, 4).await;
    world.settle().await;
    world.apply([erased(&client)]).await;
    world.advance_s(WAITED_S).await;
    for number in [1, 3] {
        let made = post(&world, &key, "Anew", &format!("{MARK}.{number}@example.com")).await.expect(201);
        let id = made.body["contact"]["id"].as_str().unwrap();
        assert!(!(1..=4).map(uuid).any(|other| other == id), "{}", made.text);
        assert_eq!(found_by(&world, &key, number).await, *id, "the address has a new holder");
    }
    // Once the surviving contact is known, its unclaimed address leads there.
    world.apply([contact(5), merged(5, 6)]).await;
    world.apply([contact(6)]).await;
    assert_eq!(found_by(&world, &key, 5).await, uuid(6));
}

#[tokio::test]
async fn parallel_posts_of_an_address_during_its_merge_create_no_contact() {
    let (world, key) = crm().await;
    for round in 0..5 {
        let (from, into) = (2 * round, 2 * round + 1);
        world.apply([contact(from), contact(into)]).await;
        let email = format!("{MARK}.{from}@example.com");
        let posts = futures::future::join_all((0..8).map(|_| post(&world, &key, "Anew", &email)));
        let (replies, ()) = futures::future::join(posts, world.apply([merged(from, into)])).await;
        for reply in replies {
            let id = reply.expect(201).body["contact"]["id"].clone();
            assert!([from, into].map(uuid).iter().any(|known| id == *known), "{id}");
        }
        assert_eq!(found_by(&world, &key, from).await, uuid(into));
    }
}
