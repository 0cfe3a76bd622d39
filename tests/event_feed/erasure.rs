//! An erasure reaches the feeds of all coaches whose client it was, and the events that name the client's contacts.

use serde_json::json;

use super::{follow, ids, page, reader, whole_feed};
use crate::crm::contacts::erasure_scene::{contact, opportunity};
use crate::crm::contacts::merges::merged;
use crate::feed::erasure::{ENDED_S, MARK, application_client, erased, life};
use crate::world::{Fact, World, uuid};

/// All text of the feeds' table.
async fn stored(world: &World) -> String {
    serde_json::to_string(&world.items("events", "").await).unwrap()
}

#[tokio::test]
async fn an_erased_client_is_gone_from_the_feeds_of_all_its_coaches() {
    let world = World::start().await;
    let (ada, eve) = (world.coach("ada").await, world.coach("eve").await);
    let keys = [reader(&ada, "contact_details").await, reader(&eve, "contact_details").await];
    world.apply([application_client("c1"), Fact::client("ada", "stays")]).await;
    world.apply(life("c1", "Build")).await;
    world.apply(life("stays", "Build")).await;
    world.apply([application_client("c1").with("coach_id", "eve")]).await;
    world.apply([super::message("c1", 77, &world.timestamp_in(0).await)]).await;
    let [of_ada, of_eve] = [whole_feed(&keys[0]).await, whole_feed(&keys[1]).await];
    assert_eq!((of_ada.len(), of_eve.len()), (8, 1));
    let middle = page(&keys[0], "limit=1").await.next_cursor.unwrap();
    let end = follow(&keys[0], "", 9).await.1;
    let of_client = json!({ "client_id": { "S": "c1" } }).to_string().trim_matches(['{', '}']).to_owned();
    assert!(stored(&world).await.contains(&of_client));
    world.apply([erased("c1")]).await;
    world.advance_s(ENDED_S).await;
    assert!(whole_feed(&keys[1]).await.is_empty());
    let rest = whole_feed(&keys[0]).await;
    let kept: Vec<_> = of_ada.into_iter().filter(|event| event["data"]["client"]["id"] == "stays").collect();
    assert_eq!(ids(&rest), ids(&kept));
    // A reader in the middle goes on, and the next event follows.
    assert_eq!(follow(&keys[0], &middle, 1).await.0.len(), 4);
    world.apply([super::message("stays", 78, &world.timestamp_in(0).await)]).await;
    assert_eq!(follow(&keys[0], &end, 9).await.0.len(), 1);
    let stored = stored(&world).await;
    assert!(!stored.contains(&of_client) && !stored.contains(MARK), "{stored}");
}

#[tokio::test]
async fn an_event_that_the_relay_stores_while_its_client_is_erased_goes_too() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    world.apply([application_client("c1")]).await;
    for spared_calls in [1, 3, 4, 5] {
        world.faults(json!({ "function": "relay", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        let at = world.timestamp_in(0).await;
        world.publish([super::message("c1", spared_calls, &at)]).await;
        world.until_stalled().await;
        if spared_calls == 5 {
            world.publish([erased("c1")]).await;
        }
        world.clear_faults().await;
        world.settle().await;
    }
    world.advance_s(ENDED_S).await;
    assert!(whole_feed(&key).await.is_empty());
}

#[tokio::test]
async fn a_reader_among_the_events_of_erased_contacts_goes_on_with_those_of_others() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (key, partner) = (reader(&ada, "contact_details").await, ada.partner_key().await);
    let stranger = || Fact::contact("ada", &uuid(9));
    for fact in [Fact::pipeline("ada"), contact(1), contact(2), stranger(), merged(2, 1), opportunity(2)] {
        world.apply([fact]).await;
    }
    let body = json!({ "email": format!("{MARK}.1@example.com"), "full_name": MARK, "send_welcome": false });
    let client = partner.post("/v1/clients", body).idempotent("link").await.expect(201);
    world.settle().await;
    world.apply([stranger().with("name", "Renamed")]).await;
    let all = whole_feed(&key).await;
    let types: Vec<_> = all.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let at_once = ["contact_created", "contact_created", "contact_created", "contact_merged", "opportunity_created"];
    assert_eq!(types[..5], at_once);
    assert_eq!(types[7], "contact_updated", "after the events of the new client and of the link");
    // Positions before, among and after the events that are erased.
    let mut cursors = Vec::new();
    for limit in 1..=all.len() {
        cursors.push(page(&key, &format!("limit={limit}")).await.next_cursor.unwrap());
    }
    world.apply([erased(client.str("client_id"))]).await;
    world.advance_s(ENDED_S).await;
    for (cursor, read) in cursors.iter().zip(1..) {
        let left = all[read..].iter().filter(|event| event["data"]["contact"]["id"] == json!(uuid(9)));
        assert_eq!(follow(&key, cursor, 1).await.0, left.cloned().collect::<Vec<_>>(), "after {read}");
    }
    let stored = stored(&world).await;
    assert!(!stored.contains(&uuid(1)) && !stored.contains(&uuid(2)) && stored.contains(&uuid(9)), "{stored}");
}
