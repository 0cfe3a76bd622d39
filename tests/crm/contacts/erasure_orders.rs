//! An erasure and the merges of the client's contacts, in every order of arrival.

use serde_json::Value;

use crate::crm::contacts::erasure_scene::{ContactErasureScene, contact, opportunity};
use crate::crm::contacts::merges::merged;
use crate::crm::contacts::{listed, shown};
use crate::feed::erasure::{ENDED_S, erased};
use crate::world::{Fact, World, uuid};

/// A contact that is no client.
fn stranger(number: u64) -> Fact {
    let fact = Fact::contact("ada", &uuid(number)).with("name", format!("Somebody Else {number}"));
    fact.with("email", format!("else.{number}@example.com"))
}

/// An opportunity of such a contact.
fn strangers_opportunity(number: u64) -> Fact {
    opportunity(number).with("name", "Else").with("lost_reason", "Else")
}

/// Applies facts that occurred a second apart, in this order of arrival. After each an opportunity of the contact
/// changes, so that events name whatever contact remains.
async fn arrive(world: &World, own: u64, facts: &[Fact], order: &[usize]) {
    let mut dated = Vec::new();
    for (fact, seconds) in facts.iter().zip(1..) {
        dated.push(fact.clone().with("occurred_at", world.timestamp_in(seconds).await));
    }
    for (index, cents) in order.iter().zip(1..) {
        world.apply([dated[*index].clone()]).await;
        let changed = opportunity(own).with("value_cents", cents).with("occurred_at", world.timestamp_in(60).await);
        world.apply([changed]).await;
        world.advance_s(1).await;
    }
}

#[tokio::test]
async fn an_erasure_and_two_merges_in_any_order_erase_all_three_contacts() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    // The middle contact is stored first, comes last, or never comes.
    let places = [Some(true), Some(false), None];
    let cases = places.into_iter().flat_map(|between| orders.map(|order| (between, order)));
    for ((is_seen, order), own) in cases.zip((1..).step_by(3)) {
        let (between, end) = (own + 1, own + 2);
        world.apply([contact(own), contact(end)]).await;
        if is_seen == Some(true) {
            world.apply([contact(between)]).await;
        }
        let client = scene.client_of(own).await;
        arrive(world, own, &[merged(own, between), merged(between, end), erased(&client)], &order).await;
        if is_seen == Some(false) {
            world.apply([contact(between)]).await;
        }
        world.advance_s(ENDED_S).await;
        println!("{is_seen:?} {order:?}");
        scene.assert_forgotten(&[own, between, end]).await;
    }
    assert!(listed(&scene.key).await.is_empty() && world.set_aside().await.is_empty());
    scene.assert_nothing_leaves().await;
}

/// All permutations of the first `of` numbers.
fn orders(of: usize) -> Vec<Vec<usize>> {
    let Some(last) = of.checked_sub(1) else { return vec![Vec::new()] };
    let shorter = orders(last);
    let with = |scene: usize| shorter.iter().map(move |order| [&order[..scene], &[last], &order[scene..]].concat());
    (0..of).flat_map(with).collect()
}

#[tokio::test]
async fn merges_that_appear_circular_in_their_order_of_arrival_do_not_prevent_erasure() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    for (order, own) in orders(4).into_iter().zip((1..).step_by(3)) {
        let (other, end) = (own + 1, own + 2);
        world.apply([own, other, end].map(contact)).await;
        let client = scene.client_of(own).await;
        let facts = [merged(other, own), merged(other, end), merged(own, other), erased(&client)];
        arrive(world, own, &facts, &order).await;
        world.advance_s(ENDED_S).await;
        println!("{order:?}");
        scene.assert_forgotten(&[own, other, end]).await;
        assert_eq!(world.set_aside().await, [] as [Value; 0], "{order:?}");
    }
    scene.assert_nothing_leaves().await;
}

#[tokio::test]
async fn the_target_of_a_merge_after_the_erasure_survives_in_any_order_of_arrival() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    // Of the erased contact itself, and of a contact that it was merged into before.
    let cases = orders(2).into_iter().chain(orders(3));
    for (order, own) in cases.zip((1..).step_by(3)) {
        let (between, end) = (own + 1, own + 2);
        world.apply([contact(own), stranger(end), strangers_opportunity(end)]).await;
        let client = scene.client_of(own).await;
        let (facts, gone) = if order.len() == 2 {
            (vec![erased(&client), merged(own, end)], vec![own])
        } else {
            world.apply([contact(between)]).await;
            (vec![merged(own, between), erased(&client), merged(between, end)], vec![own, between])
        };
        arrive(world, own, &facts, &order).await;
        world.advance_s(ENDED_S).await;
        println!("{order:?}");
        scene.assert_forgotten(&gone).await;
        assert_eq!(shown(&scene.key, &uuid(end)).await["clientId"], Value::Null);
        assert!(scene.keys("OPPORTUNITY#").await.contains(&format!("OPPORTUNITY#{}", uuid(100 + end))));
    }
    scene.assert_nothing_leaves().await;
}

#[tokio::test]
async fn a_link_to_an_erased_client_is_not_moved() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    world.apply([contact(1), contact(2), stranger(3), stranger(4)]).await;
    let (client, other) = (scene.client_of(1).await, scene.client_of(2).await);
    let later = world.timestamp_in(4).await;
    arrive(world, 1, &[merged(1, 3), merged(3, 2), erased(&client)], &[0, 1, 2]).await;
    world.advance_s(ENDED_S).await;
    world.apply([merged(3, 4).with("occurred_at", later.as_str())]).await;
    assert_eq!(shown(&scene.key, &uuid(4)).await["clientId"], Value::Null);
    assert_eq!(shown(&scene.key, &uuid(2)).await["clientId"], serde_json::json!(other));
}

#[tokio::test]
async fn a_merge_undone_by_a_later_one_erases_no_other_contact() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    // Into the erased contact, and out of it. The erasure occurred last and arrives first.
    for (own, is_into) in [(1, true), (4, false)] {
        let (wrong, right) = (own + 1, own + 2);
        world.apply([contact(own), stranger(wrong), stranger(right), strangers_opportunity(wrong)]).await;
        let client = scene.client_of(own).await;
        let [first, second] = if is_into {
            [merged(wrong, own), merged(wrong, right)]
        } else {
            [merged(own, wrong), merged(own, own + 30)]
        };
        arrive(world, own, &[first, second, erased(&client)], &[2, 0, 1]).await;
        world.advance_s(ENDED_S).await;
        scene.assert_forgotten(&[own]).await;
        let shown = listed(&scene.key).await;
        assert_eq!((shown.contains(&uuid(wrong)), shown.contains(&uuid(right))), (!is_into, true));
        assert!(scene.keys("OPPORTUNITY#").await.contains(&format!("OPPORTUNITY#{}", uuid(100 + wrong))), "{is_into}");
    }
    assert!(world.set_aside().await.is_empty());
    scene.assert_nothing_leaves().await;
}
