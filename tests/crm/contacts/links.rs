//! `contact.merged`: the link to the client moves to the contact that the merge keeps.

use serde_json::{Value, json};

use crate::crm::contacts::merges::{MARK, WAITED_S, client_of, contact, merged, merged_into};
use crate::crm::contacts::{crm, listed, patch, shown, stored};
use crate::world::{Fact, uuid};

#[tokio::test]
async fn the_link_follows_the_latest_merge_in_any_order_of_arrival() {
    let (world, key) = crm().await;
    world.apply((1..=8).map(contact)).await;
    let clients = [client_of(&world, 1).await, client_of(&world, 5).await];
    let times = [world.timestamp_in(1).await, world.timestamp_in(2).await, world.timestamp_in(3).await];
    let at = |fact: Fact, index: usize| fact.with("occurred_at", times[index].as_str());
    // 1 into 2, which goes into 3; then a correction: 1 into 4. And the same the other way round.
    let facts_of = |first: u64| {
        [at(merged(first, first + 1), 0), at(merged(first + 1, first + 2), 1), at(merged(first, first + 3), 2)]
    };
    for fact in facts_of(1) {
        world.apply([fact]).await;
    }
    for fact in facts_of(5).into_iter().rev() {
        world.apply([fact]).await;
    }
    for (first, client) in [(1, &clients[0]), (5, &clients[1])] {
        assert_eq!(shown(&key, &uuid(first + 2)).await["clientId"], Value::Null);
        assert_eq!(shown(&key, &uuid(first + 3)).await["clientId"], json!(client));
    }
    world.settle().await;
}

#[tokio::test]
async fn the_link_waits_for_an_unknown_contact() {
    let (world, key) = crm().await;
    world.apply([contact(1), contact(3), contact(5)]).await;
    let clients = [client_of(&world, 1).await, client_of(&world, 3).await, client_of(&world, 5).await];
    world.apply([merged(1, 2), merged(3, 4), merged(5, 6)]).await;
    // The known contact is stored at once.
    assert!(listed(&key).await.is_empty());
    // Of the contact only its address stays, which leads to the surviving contact.
    world.at_rest().await.assert_only_in([format!("{MARK}.1@").as_str()], &["table clients", "table crm"]);
    world.at_rest().await.assert_absent([format!("{MARK} 1").as_str()]);
    world.advance_s(300).await;
    world.apply([contact(2), merged(4, 7), contact(7)]).await;
    world.advance_s(120).await;
    assert_eq!(shown(&key, &uuid(2)).await["clientId"], json!(clients[0]));
    assert_eq!(shown(&key, &uuid(7)).await["clientId"], json!(clients[1]), "at the last merge's target");
    world.advance_s(WAITED_S).await;
    assert!(world.set_aside().await.is_empty(), "the merge was stored anyway");
    assert_eq!(merged_into(&world, &key, 5).await, uuid(6));
    patch(&world, &key, &uuid(6), json!({ "name": "Lee" })).await.refused(404, "not_found");
    assert_eq!(stored(&world, &uuid(5)).await["client_id"]["S"], json!(clients[2]));
    // However late, and over however many merges.
    world.apply([merged(6, 8)]).await;
    world.advance_s(WAITED_S).await;
    world.apply([contact(8)]).await;
    assert_eq!(shown(&key, &uuid(8)).await["clientId"], json!(clients[2]));
}
