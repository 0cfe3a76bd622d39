//! An erasure and the merges of the contacts that the client was, in whatever order they come.

use serde_json::Value;

use crate::crm::contacts::erasure::{Place, contact, merged, opportunity};
use crate::crm::contacts::{listed, shown};
use crate::feed::erasure::{ENDED_S, erased};
use crate::world::{Fact, uuid};

/// Somebody who is no client.
fn stranger(number: u64) -> Fact {
    let fact = Fact::contact("ada", &uuid(number)).with("name", format!("Somebody Else {number}"));
    fact.with("email", format!("else.{number}@example.com"))
}

/// An opportunity of such a one.
fn strangers_opportunity(number: u64) -> Fact {
    opportunity(number).with("name", "Else").with("lost_reason", "Else")
}

#[tokio::test]
async fn in_whatever_order_an_erasure_and_two_merges_come_nothing_is_left_of_the_three() {
    let place = Place::new().await;
    let world = &place.world;
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    // The one between the two merges is there before, comes last, or never.
    let places = [Some(true), Some(false), None];
    let cases = places.into_iter().flat_map(|between| orders.map(|order| (between, order)));
    for ((is_seen, order), own) in cases.zip((1..).step_by(3)) {
        let (between, end) = (own + 1, own + 2);
        world.facts([contact(own), contact(end)]).await;
        if is_seen == Some(true) {
            world.facts([contact(between)]).await;
        }
        let client = place.client_of(own).await;
        let mut times = Vec::new();
        for seconds in 1..=3 {
            times.push(world.timestamp_in(seconds).await);
        }
        let sayings = [merged(own, between), merged(between, end), erased(&client)];
        for index in order {
            world.facts([sayings[index].clone().with("occurred_at", times[index].as_str())]).await;
        }
        if is_seen == Some(false) {
            world.facts([contact(between)]).await;
        }
        world.advance_s(ENDED_S).await;
        println!("{is_seen:?} {order:?}");
        place.forgot(&[own, between, end]).await;
    }
    assert!(listed(&place.key).await.is_empty() && world.set_aside().await.is_empty());
}

/// Every order of the first numbers.
fn orders(of: usize) -> Vec<Vec<usize>> {
    let Some(last) = of.checked_sub(1) else { return vec![Vec::new()] };
    let shorter = orders(last);
    let with = |place: usize| shorter.iter().map(move |order| [&order[..place], &[last], &order[place..]].concat());
    (0..of).flat_map(with).collect()
}

#[tokio::test]
async fn merges_that_seem_to_close_a_circle_as_they_come_keep_nobody_from_being_erased() {
    let place = Place::new().await;
    let world = &place.world;
    for (order, own) in orders(4).into_iter().zip((1..).step_by(3)) {
        let (other, end) = (own + 1, own + 2);
        world.facts([own, other, end].map(contact)).await;
        let client = place.client_of(own).await;
        let mut times = Vec::new();
        for seconds in 1..=4 {
            times.push(world.timestamp_in(seconds).await);
        }
        let sayings = [merged(other, own), merged(other, end), merged(own, other), erased(&client)];
        for index in &order {
            world.facts([sayings[*index].clone().with("occurred_at", times[*index].as_str())]).await;
        }
        world.advance_s(ENDED_S).await;
        println!("{order:?}");
        place.forgot(&[own, other, end]).await;
        assert_eq!(world.set_aside().await, [] as [Value; 0], "{order:?}");
    }
}

#[tokio::test]
async fn whom_an_erased_contact_was_merged_into_may_go_on_as_another_who_stays() {
    let place = Place::new().await;
    let world = &place.world;
    for (order, own) in orders(3).into_iter().zip((1..).step_by(3)) {
        let (between, end) = (own + 1, own + 2);
        world.facts([contact(own), contact(between), stranger(end), strangers_opportunity(end)]).await;
        let client = place.client_of(own).await;
        let mut times = Vec::new();
        for seconds in 1..=3 {
            times.push(world.timestamp_in(seconds).await);
        }
        let sayings = [merged(own, between), erased(&client), merged(between, end)];
        for index in &order {
            world.facts([sayings[*index].clone().with("occurred_at", times[*index].as_str())]).await;
        }
        world.advance_s(ENDED_S).await;
        println!("{order:?}");
        place.forgot(&[own, between]).await;
        assert_eq!(shown(&place.key, &uuid(end)).await["clientId"], Value::Null);
        assert!(place.keys("OPPORTUNITY#").await.contains(&format!("OPPORTUNITY#{}", uuid(100 + end))));
    }
}

#[tokio::test]
async fn a_link_to_an_erased_client_goes_to_nobody() {
    let place = Place::new().await;
    let world = &place.world;
    world.facts([contact(1), contact(2), stranger(3), stranger(4)]).await;
    let (client, other) = (place.client_of(1).await, place.client_of(2).await);
    let mut times = Vec::new();
    for seconds in 1..=4 {
        times.push(world.timestamp_in(seconds).await);
    }
    let sayings = [merged(1, 3), merged(3, 2), erased(&client)];
    for (saying, time) in sayings.into_iter().zip(&times) {
        world.facts([saying.with("occurred_at", time.as_str())]).await;
    }
    world.advance_s(ENDED_S).await;
    world.facts([merged(3, 4).with("occurred_at", times[3].as_str())]).await;
    assert_eq!(shown(&place.key, &uuid(4)).await["clientId"], Value::Null);
    assert_eq!(shown(&place.key, &uuid(2)).await["clientId"], serde_json::json!(other));
}

#[tokio::test]
async fn a_merge_that_was_said_after_the_erasure_takes_nobody_with_it_in_whatever_order_they_come() {
    let place = Place::new().await;
    let world = &place.world;
    for (order, own) in [[0, 1], [1, 0]].into_iter().zip([1, 3]) {
        let other = own + 1;
        world.facts([contact(own), stranger(other), strangers_opportunity(other)]).await;
        let client = place.client_of(own).await;
        let times = [world.timestamp_in(1).await, world.timestamp_in(2).await];
        let sayings = [erased(&client), merged(own, other)];
        for index in order {
            world.facts([sayings[index].clone().with("occurred_at", times[index].as_str())]).await;
        }
        world.advance_s(ENDED_S).await;
        place.forgot(&[own]).await;
        assert_eq!(shown(&place.key, &uuid(other)).await["clientId"], Value::Null, "{order:?}");
        assert!(place.keys("OPPORTUNITY#").await.contains(&format!("OPPORTUNITY#{}", uuid(100 + other))), "{order:?}");
    }
}

#[tokio::test]
async fn a_merge_that_a_later_one_takes_back_destroys_nobody_who_lives() {
    let place = Place::new().await;
    let world = &place.world;
    // Into the erased one, and out of it. The erasure is said last and comes first.
    for (own, is_into) in [(1, true), (4, false)] {
        let (wrong, right) = (own + 1, own + 2);
        world.facts([contact(own), stranger(wrong), stranger(right), strangers_opportunity(wrong)]).await;
        let client = place.client_of(own).await;
        let mut times = Vec::new();
        for seconds in 1..=3 {
            times.push(world.timestamp_in(seconds).await);
        }
        let merges = if is_into {
            [merged(wrong, own), merged(wrong, right)]
        } else {
            [merged(own, wrong), merged(own, own + 30)]
        };
        world.facts([erased(&client).with("occurred_at", times[2].as_str())]).await;
        for (merge, time) in merges.into_iter().zip(&times) {
            world.facts([merge.with("occurred_at", time.as_str())]).await;
        }
        world.advance_s(ENDED_S).await;
        place.forgot(&[own]).await;
        let shown = listed(&place.key).await;
        assert_eq!((shown.contains(&uuid(wrong)), shown.contains(&uuid(right))), (!is_into, true));
        assert!(place.keys("OPPORTUNITY#").await.contains(&format!("OPPORTUNITY#{}", uuid(100 + wrong))), "{is_into}");
    }
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn in_whatever_order_an_erasure_and_a_merge_come_nothing_is_left_of_either_contact() {
    let place = Place::new().await;
    let world = &place.world;
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (order, first) in orders.into_iter().zip((1..).step_by(2)) {
        let (own, other) = (first, first + 1);
        world.facts([contact(own)]).await;
        let client = place.client_of(own).await;
        let times = [world.timestamp_in(1).await, world.timestamp_in(2).await, world.timestamp_in(3).await];
        let sayings = [contact(other), merged(own, other), erased(&client)];
        for index in order {
            world.facts([sayings[index].clone().with("occurred_at", times[index].as_str())]).await;
        }
        world.advance_s(ENDED_S).await;
        place.forgot(&[own, other]).await;
    }
    assert!(listed(&place.key).await.is_empty() && world.set_aside().await.is_empty());
}
