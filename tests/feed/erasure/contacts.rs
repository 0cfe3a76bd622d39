//! The events of erased contacts: in deliveries that wait for their next attempt, in the delivery log and in the feed.
//! Receivers log everything that they get; nothing personal leaves after the erasure.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::crm::contacts::erasure_scene::{ContactErasureScene, contact, event, is_personal, opportunity, text_of};
use crate::crm::contacts::merges::merged;
use crate::crm::contacts::stored;
use crate::crm::events::{MODES, endpoint};
use crate::event_feed::{reader_of, whole_feed};
use crate::feed::erasure::{ENDED_S, MARK, erased};
use crate::feed::stalls;
use crate::world::{CRM_EVENTS, Fact, list, until, uuid};

/// A contact that no erasure reaches.
const STRANGER: u64 = 999;

/// The same fact without personal data, about the stranger.
fn of_stranger(fact: impl Fn(u64) -> Fact) -> Fact {
    let fact = fact(STRANGER).with("name", "Somebody Else").with("phone", Value::Null).with("lost_reason", Value::Null);
    fact.with("email", "else@example.com")
}

/// Facts in the life of a contact and of its records, one event each.
fn life(number: u64) -> Vec<Fact> {
    vec![
        contact(number),
        contact(number).with("name", format!("{MARK} the second {number}")),
        opportunity(number).with("stage", "new"),
        opportunity(number).with("stage", "new").with("value_cents", 6),
        opportunity(number).with("value_cents", 6),
        event(number),
        event(number).with("ends_at", "2027-03-01T09:45:00Z"),
        event(number).with("ends_at", "2027-03-01T09:45:00Z").with("status", "cancelled"),
    ]
}

/// Asserts that of the events that leave from now on none is personal, and some are about the stranger.
async fn assert_nothing_leaves(scene: &ContactErasureScene) {
    let later = scene.assert_nothing_leaves().await;
    assert!(later.iter().any(|text| text.contains(&uuid(STRANGER))), "events of others are sent");
}

#[tokio::test]
async fn an_erasure_empties_every_event_of_the_clients_contacts_and_no_other() {
    let scene = ContactErasureScene::of(&MODES).await;
    let world = &scene.world;
    // Another coach has contacts with the same ids.
    let eve = world.coach("eve").await;
    let of_eve = reader_of(&eve, &CRM_EVENTS, "contact_details").await;
    endpoint(&eve, &scene.receiver, &CRM_EVENTS, "identifiers").await;
    world.apply([1, 2, 3].map(|number| Fact::contact("eve", &uuid(number)))).await;
    let eves = whole_feed(&of_eve).await;
    assert_eq!(eves.len(), 3);

    for number in [1, 2, 3] {
        scene.apply_in_order(life(number)).await;
    }
    scene.apply_in_order([of_stranger(contact), of_stranger(opportunity)]).await;
    scene.apply_in_order([merged(2, 1)]).await;
    let client = scene.client_of(1).await;
    scene.apply_in_order([merged(1, 3)]).await;
    // Events about records of contacts that were merged away name the contact that stays.
    let deals = [1, 2, 3].map(|number| opportunity(number).with("value_cents", 7));
    scene.apply_in_order(deals.into_iter().chain([of_stranger(opportunity).with("value_cents", 7)])).await;

    let before = scene.feeds().await;
    let types: BTreeSet<&str> = before[1].iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, BTreeSet::from(CRM_EVENTS));
    assert!(scene.receiver.hooks().iter().any(|hook| is_personal(&text_of(hook))));
    let stranger = json!(uuid(STRANGER));
    let kept = |feed: &Vec<Value>| -> Vec<Value> {
        feed.iter().filter(|event| event["data"]["contact"]["id"] == stranger).cloned().collect()
    };

    world.apply([erased(&client)]).await;
    let kept: Vec<Vec<Value>> = before.iter().map(kept).collect();
    assert_eq!(scene.feeds().await, kept);
    assert_eq!(kept[0].len(), 3);
    let settings = world.settings_of("ada").await;
    for endpoint in &scene.endpoints {
        let path = format!("/settings/webhooks/{}/deliveries", endpoint.id);
        let log = settings.get(&format!("{path}?limit=200")).await.expect(200);
        assert!(!is_personal(&log.text), "{}", log.text);
        let log = list(log.body["data"].clone());
        assert_eq!(log.len(), before[0].len());
        for delivery in log {
            let path = format!("{path}/{}", delivery["id"].as_str().unwrap());
            let read = settings.get(&path).await.expect(200);
            assert!(!is_personal(&read.text), "{}", read.text);
            let is_kept = kept[0].iter().any(|event| event["id"] == delivery["webhook_id"]);
            let request = &read.body["request"];
            let has = [request["body"].is_string(), request["headers"]["webhook-signature"].is_string()];
            assert_eq!((has, &read.body["body_erased"]), ([is_kept; 2], &json!(!is_kept)), "{}", read.text);
            assert_eq!(read.body["status"], if is_kept { "pending" } else { "failed" }, "{}", read.text);
            if !is_kept {
                settings.post(&format!("{path}/retry"), json!({})).await.refused(409, "delivery_erased");
            }
        }
    }
    assert_nothing_leaves(&scene).await;
    assert_eq!((scene.feeds().await, whole_feed(&of_eve).await), (kept, eves));
    assert!(world.set_aside().await.is_empty());
}

/// All orders of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Contacts that are no clients are merged into a client's contact, one through the other. The facts of the merges and
/// of the erasure arrive in each order, while deliveries about all three contacts wait.
#[tokio::test]
async fn merges_into_an_erased_contact_in_any_order_leave_no_delivery() {
    let scene = ContactErasureScene::of(&MODES).await;
    let world = &scene.world;
    // The merges occurred before the erasure, or one of them after it.
    let cases = [[1, 2, 3], [2, 1, 3], [1, 3, 2]].into_iter().flat_map(|times| ORDERS.map(|order| (times, order)));
    world.apply([of_stranger(contact), of_stranger(opportunity)]).await;
    for ((times, order), own) in cases.zip((1..).step_by(3)) {
        let (first, second) = (own + 1, own + 2);
        let all = [own, first, second];
        world.apply(all.map(contact)).await;
        let client = scene.client_of(own).await;
        world.apply(all.into_iter().flat_map(|number| [opportunity(number), event(number)])).await;
        let facts = [merged(first, own), merged(second, first), erased(&client)];
        let mut dated = Vec::new();
        for (fact, seconds) in facts.into_iter().zip(times) {
            dated.push(fact.with("occurred_at", world.timestamp_in(seconds).await));
        }
        for (index, cents) in order.iter().zip(10..) {
            world.apply([dated[*index].clone()]).await;
            let later = world.timestamp_in(60 + cents).await;
            let changed = all.map(|number| opportunity(number).with("value_cents", cents));
            world.apply(changed.map(|fact| fact.with("occurred_at", later.as_str()))).await;
        }
    }
    assert!(scene.receiver.hooks().iter().any(|hook| is_personal(&text_of(hook))), "deliveries wait");
    world.advance_s(ENDED_S).await;
    assert_nothing_leaves(&scene).await;
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn an_erasure_goes_on_through_many_contacts_and_pages() {
    /// More than three pages of deliveries.
    const OPPORTUNITIES: u64 = 310;
    /// More contacts than one reading of the feed looks for, and than one message has steps for.
    const MERGED: u64 = 60;
    let scene = ContactErasureScene::of(&MODES).await;
    let world = &scene.world;
    world.apply((0..=MERGED).map(|number| contact(2_000 + number))).await;
    let client = scene.client_of(2_000).await;
    world.apply((1..=MERGED).map(|number| merged(2_000 + number, 2_000))).await;
    let deal = |number| opportunity(2_000).with("opportunity_id", uuid(5_000 + number));
    world.apply((0..OPPORTUNITIES).map(deal)).await;
    world.apply([of_stranger(contact), of_stranger(opportunity)]).await;
    let stored = usize::try_from(1 + 2 * MERGED + OPPORTUNITIES + 2).unwrap();
    assert!(scene.feeds().await.iter().all(|feed| feed.len() >= stored));
    world.apply([erased(&client)]).await;
    // A busy machine may reach the time limit of an invocation: then the queue gives out the fact once more, later.
    world.advance_s(ENDED_S).await;
    assert!(scene.feeds().await.iter().all(|feed| feed.len() == 2));
    assert_nothing_leaves(&scene).await;
    assert!(world.set_aside().await.is_empty());
}

/// How an erasure comes to a contact.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reach {
    /// The contact is the client.
    Client,
    /// The contact is merged into the client's contact, which is erased already.
    Merge,
}

/// A function stalls before each of its calls in turn on a change of a contact's record, while the contact is erased.
async fn erase_while_busy(function: &str, fewest_calls: usize, reach: Reach, change: fn(u64) -> Fact) {
    let scene = ContactErasureScene::of(&MODES).await;
    let world = &scene.world;
    world.apply([of_stranger(contact), of_stranger(opportunity)]).await;
    let mut rounds = 0;
    for (spared_calls, own) in (0..20).zip((1..).step_by(2)) {
        world.apply([contact(own), contact(own + 1)]).await;
        let client = scene.client_of(own).await;
        let (named, last) = match reach {
            Reach::Client => (own, erased(&client)),
            Reach::Merge => (own + 1, merged(own + 1, own)),
        };
        if reach == Reach::Merge {
            world.apply([erased(&client)]).await;
        }
        let changed = change(named).with("occurred_at", world.timestamp_in(1).await);
        let stalled = stalls(world, function, spared_calls, changed).await;
        world.publish([last]).await;
        until("the contact goes", async || stored(world, &uuid(named)).await["listed"].is_null()).await;
        world.clear_faults().await;
        world.advance_s(ENDED_S).await;
        if reach == Reach::Client {
            // The other contact was stored only for the sake of its merge.
            world.apply([merged(own + 1, own)]).await;
            world.advance_s(ENDED_S).await;
        }
        rounds += 1;
        if !stalled {
            break;
        }
    }
    assert!((fewest_calls..20).contains(&rounds), "{function} stalled {rounds} times");
    assert_nothing_leaves(&scene).await;
    assert!(world.set_aside().await.is_empty());
}

/// A change whose event names the contact.
fn renamed(number: u64) -> Fact {
    contact(number).with("name", format!("{MARK} the second {number}"))
}

#[tokio::test]
async fn events_that_are_published_or_sent_during_an_erasure_are_erased_too() {
    let busy =
        [("relay", Reach::Client), ("relay", Reach::Merge), ("deliver", Reach::Client), ("deliver", Reach::Merge)];
    let erase = busy.map(|(function, reach)| erase_while_busy(function, 3, reach, renamed));
    futures::future::join_all(erase).await;
}

#[tokio::test]
async fn events_that_are_emitted_during_an_erasure_are_erased_too() {
    let changes: [fn(u64) -> Fact; 3] = [renamed, opportunity, event];
    let erase = changes
        .into_iter()
        .flat_map(|change| [Reach::Client, Reach::Merge].map(|reach| erase_while_busy("ingest", 3, reach, change)));
    futures::future::join_all(erase).await;
}
