//! `contact.merged`: the link of a contact to its client goes where the contact lives on.

use serde_json::{Value, json};

use crate::crm::contacts::merges::{MARK, WAITED_S, client_of, contact, merged, merged_into};
use crate::crm::contacts::{crm, listed, shown, stored};
use crate::world::{Fact, uuid};

#[tokio::test]
async fn the_link_to_the_client_goes_with_the_merge() {
    let (world, key) = crm().await;
    world.facts((1..=4).map(contact)).await;
    let client = client_of(&world, 1).await;
    world.facts([merged(1, 2)]).await;
    assert_eq!(shown(&key, &uuid(2)).await["clientId"], json!(client));
    world.facts([merged(2, 3)]).await;
    assert_eq!(shown(&key, &uuid(3)).await["clientId"], json!(client));
    // One that has become a client itself stays that client.
    let other = client_of(&world, 4).await;
    world.facts([merged(3, 4)]).await;
    assert_eq!(shown(&key, &uuid(4)).await["clientId"], json!(other));
}

#[tokio::test]
async fn the_link_goes_where_the_contact_was_said_to_live_on_last_in_whatever_order_that_comes() {
    let (world, key) = crm().await;
    world.facts((1..=8).map(contact)).await;
    let clients = [client_of(&world, 1).await, client_of(&world, 5).await];
    let times = [world.timestamp_in(1).await, world.timestamp_in(2).await, world.timestamp_in(3).await];
    let at = |fact: Fact, index: usize| fact.with("occurred_at", times[index].as_str());
    // 1 into 2, which goes into 3; then 1 was 4 after all. And the same the other way round.
    let sayings = |first: u64| {
        [at(merged(first, first + 1), 0), at(merged(first + 1, first + 2), 1), at(merged(first, first + 3), 2)]
    };
    for saying in sayings(1) {
        world.facts([saying]).await;
    }
    for saying in sayings(5).into_iter().rev() {
        world.facts([saying]).await;
    }
    for (first, client) in [(1, &clients[0]), (5, &clients[1])] {
        assert_eq!(shown(&key, &uuid(first + 2)).await["clientId"], Value::Null);
        assert_eq!(shown(&key, &uuid(first + 3)).await["clientId"], json!(client));
    }
    world.settle().await;
}

#[tokio::test]
async fn the_link_waits_for_a_contact_that_has_not_been_seen() {
    let (world, key) = crm().await;
    world.facts([contact(1), contact(3), contact(5)]).await;
    let clients = [client_of(&world, 1).await, client_of(&world, 3).await, client_of(&world, 5).await];
    world.facts([merged(1, 2), merged(3, 4), merged(5, 6)]).await;
    // What is known is stored at once.
    assert!(listed(&key).await.is_empty());
    // Of the contact, its address alone, which leads to the living one.
    world.at_rest().await.holds_only_in([format!("{MARK}.1@").as_str()], &["table clients", "table crm"]);
    world.at_rest().await.holds_none_of([format!("{MARK} 1").as_str()]);
    world.advance_s(300).await;
    world.facts([contact(2), merged(4, 7), contact(7)]).await;
    world.advance_s(120).await;
    assert_eq!(shown(&key, &uuid(2)).await["clientId"], json!(clients[0]));
    assert_eq!(shown(&key, &uuid(7)).await["clientId"], json!(clients[1]), "where it lives on in the end");
    world.advance_s(WAITED_S).await;
    assert!(world.set_aside().await.is_empty(), "it was stored all the same");
    assert_eq!(merged_into(&world, &key, 5).await, uuid(6));
    assert_eq!(stored(&world, &uuid(5)).await["client_id"]["S"], json!(clients[2]));
    // However late it comes, and by however many merges.
    world.facts([merged(6, 8)]).await;
    world.advance_s(WAITED_S).await;
    world.facts([contact(8)]).await;
    assert_eq!(shown(&key, &uuid(8)).await["clientId"], json!(clients[2]));
}
