//! Facts about automations: order, hand-over and malformed ones.

use serde_json::{Value, json};

use crate::webhooks::automations::{AT, AutomationScene, advance, automation, check_in, low, message, on};
use crate::world::{Fact, Receiver, World, fact};

#[tokio::test]
async fn a_backfill_and_an_inactive_automation_emit_nothing() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    let off = |id: &str, trigger: Value| automation(id, trigger, &[&scene.named_endpoint]).with("active", false);
    world.apply([off("a1", low(3.0, Value::Null)), off("a2", on("message_received"))]).await;
    world.apply([check_in("k1", 1, json!({ "sleep": 1 }), json!({})), message("m1")]).await;
    assert!(scene.named.hooks().is_empty() && scene.low_scores().is_empty());
    scene.automation("a1", low(3.0, Value::Null)).await;
    scene.automation("a2", on("message_received")).await;
    let received = scene.subscribed.hooks().len();
    let backfilled = [check_in("k2", 2, json!({ "sleep": 1 }), json!({})), message("m2"), advance("Build")];
    world.apply(backfilled.map(|fact| fact.with("backfill", true))).await;
    assert!(scene.named.hooks().is_empty() && scene.subscribed.hooks().len() == received);
    world.apply([message("m3")]).await;
    assert_eq!(scene.named.hooks().len(), 1);
}

#[tokio::test]
async fn an_automation_waits_for_its_workspace() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let deleted = fact("automation.deleted", json!({ "automation_id": "a2", "coach_id": "ada" }));
    world.apply([automation("a1", on("new_client"), &[]), deleted]).await;
    assert!(world.set_aside().await.is_empty());
    world.coach("ada").await.endpoint(&receiver.url(), "identifiers").await;
    world.advance_s(60).await;
    let stored = world.items("workspaces", "COACH#ada").await;
    let ids = ["AUTOMATION#a1", "AUTOMATION_OFF#a2"];
    assert!(ids.iter().all(|id| stored.iter().any(|item| item["sk"]["S"] == *id)));
    world.apply([automation("a3", on("new_client"), &[]).with("coach_id", "nobody")]).await;
    world.advance_s(17 * 60).await;
    assert_eq!(world.set_aside().await[0]["reason"], "coach_id nobody has not been seen");
}

#[tokio::test]
async fn after_a_hand_over_neither_automations_nor_subscriptions_of_the_former_coach_count() {
    let scene = AutomationScene::new("identifiers").await;
    scene.automation("a1", on("message_received")).await;
    scene.world.coach("bob").await;
    scene.world.apply([message("m1")]).await;
    assert_eq!((scene.named.hooks().len(), scene.subscribed.hooks().len()), (1, 1));
    scene.world.apply([Fact::client("bob", "c1")]).await;
    scene.world.apply([message("m2"), check_in("k1", 1, json!({}), json!({})), advance("Build")]).await;
    assert_eq!((scene.named.hooks().len(), scene.subscribed.hooks().len()), (1, 1));
}

#[tokio::test]
async fn many_automations_with_long_names_each_emit_their_event() {
    const MANY: usize = 100;
    let scene = AutomationScene::new("contact_details").await;
    let long = "\u{9762}".repeat(1_000);
    let of = |number| automation(&format!("au{number}"), on("phase_advanced"), &[&scene.named_endpoint]);
    scene.world.apply((0..MANY).map(|number| of(number).with("name", long.as_str()))).await;
    scene.world.apply([Fact::client("ada", "c1").with("full_name", long.as_str())]).await;
    let advanced = json!({ "client_id": "c1", "from_phase": long, "to_phase": long, "advanced_at": AT });
    scene.world.apply([fact("phase.advanced", advanced)]).await;
    assert!(scene.world.set_aside().await.is_empty());
    assert_eq!(scene.sent_to_named("phase_advanced").len(), MANY);
}
