//! Client caps of plans and teams: exact, and counted over stored records.

use std::future::IntoFuture;

use serde_json::json;

use crate::world::{Caller, Fact, Reply, World};

async fn create(key: &Caller, email: &str) -> Reply {
    key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).await
}

/// Asserts that exactly one of these concurrent creations succeeds and that the others are refused with this code.
async fn assert_exactly_one_succeeds(keys: &[&Caller], refusal: &str) {
    let calls = (0..20).map(|number| {
        let body = json!({ "email": format!("race{number}@example.com"), "send_welcome": false });
        keys[number % keys.len()].post("/v1/clients", body).into_future()
    });
    let replies = futures::future::join_all(calls).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    for reply in replies.into_iter().filter(|reply| reply.status != 201) {
        reply.refused(409, refusal);
    }
}

#[tokio::test]
async fn of_twenty_creations_at_plan_cap_minus_one_exactly_one_succeeds() {
    let world = World::start().await;
    let key = world.coach("ada").client_cap(3).await.partner_key().await;
    create(&key, "a@example.com").await.expect(201);
    create(&key, "b@example.com").await.expect(201);
    assert_exactly_one_succeeds(&[&key], "plan_limit_reached").await;
    assert_eq!(world.items("clients", "CLIENT#").await.len(), 3);
    assert_eq!(world.items("clients", "EMAIL#").await.len(), 3, "a refused creation keeps no address");
    assert_eq!(key.get("/v1/ping").await.body["active_clients"], 3);
}

#[tokio::test]
async fn of_twenty_creations_at_team_cap_minus_one_exactly_one_succeeds_across_coaches() {
    let world = World::start().await;
    world.team("team-1", 3).await;
    let ada = world.coach("ada").team("team-1").await.partner_key().await;
    let bob = world.coach("bob").team("team-1").await.partner_key().await;
    let eve = world.coach("eve").await.partner_key().await;
    create(&ada, "a@example.com").await.expect(201);
    create(&bob, "b@example.com").await.expect(201);
    assert_exactly_one_succeeds(&[&ada, &bob], "team_limit_reached").await;
    create(&eve, "e@example.com").await.expect(201);
    world.team("team-1", 4).await;
    create(&ada, "later@example.com").await.expect(201);
    create(&bob, "too-late@example.com").await.refused(409, "team_limit_reached");
}

#[tokio::test]
async fn a_cap_of_zero_admits_nobody_and_no_cap_admits_everybody() {
    let world = World::start().await;
    let ada = world.coach("ada").client_cap(0).await.partner_key().await;
    create(&ada, "a@example.com").await.refused(409, "plan_limit_reached");
    world.coach("ada").await;
    create(&ada, "b@example.com").await.expect(201);
    world.team("team-0", 0).await;
    world.coach("ada").team("team-0").await;
    create(&ada, "c@example.com").await.refused(409, "team_limit_reached");
    world.team("team-0", json!(null)).await;
    create(&ada, "d@example.com").await.expect(201);
}

#[tokio::test]
async fn a_deactivated_client_still_holds_its_seat_and_reactivation_takes_none() {
    let world = World::start().await;
    let key = world.coach("ada").client_cap(1).await.partner_key().await;
    let made = create(&key, "a@example.com").await.expect(201);
    let path = format!("/v1/clients/{}", made.str("client_id"));
    key.patch(&path, json!({ "is_active": false })).await.expect(200);
    create(&key, "b@example.com").await.refused(409, "plan_limit_reached");
    world.coach("ada").client_cap(0).await;
    key.patch(&path, json!({ "is_active": true })).await.expect(200);
}

#[tokio::test]
async fn clients_of_the_application_take_seats_and_a_hand_over_moves_them() {
    let world = World::start().await;
    let ada = world.coach("ada").client_cap(1).await.partner_key().await;
    world.coach("bob").await;
    // The application's clients are stored, whatever the cap.
    world.apply([Fact::client("ada", "c1"), Fact::client("ada", "c2")]).await;
    create(&ada, "a@example.com").await.refused(409, "plan_limit_reached");
    world.apply([Fact::client("bob", "c1"), Fact::client("bob", "c2")]).await;
    world.advance_s(61).await;
    create(&ada, "a@example.com").await.expect(201);
    create(&ada, "b@example.com").await.refused(409, "plan_limit_reached");
}

#[tokio::test]
async fn a_workspace_that_changes_teams_takes_its_seats_along() {
    let world = World::start().await;
    world.team("red", 1).await;
    world.team("blue", 1).await;
    let ada = world.coach("ada").team("red").await.partner_key().await;
    let bob = world.coach("bob").team("red").await.partner_key().await;
    create(&ada, "a@example.com").await.expect(201);
    create(&bob, "b@example.com").await.refused(409, "team_limit_reached");
    world.coach("ada").team("blue").await;
    create(&bob, "c@example.com").await.expect(201);
    create(&ada, "d@example.com").await.refused(409, "team_limit_reached");
}
