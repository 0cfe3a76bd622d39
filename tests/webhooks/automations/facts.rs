//! Facts about automations: order, hand-over and malformed ones.

use serde_json::{Value, json};

use crate::webhooks::automations::{AT, AutomationScene, advance, automation, check_in, low, message, on};
use crate::world::{Endpoint, Fact, Receiver, World, fact};

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
async fn the_latest_fact_about_an_automation_counts() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    let saved = async |seconds, endpoints: &[&Endpoint]| {
        let occurred_at = world.timestamp_in(seconds).await;
        world.apply([automation("a1", on("message_received"), endpoints).with("occurred_at", occurred_at)]).await;
    };
    let deleted = async |seconds| {
        let occurred_at = world.timestamp_in(seconds).await;
        let detail = json!({ "automation_id": "a1", "coach_id": "ada", "occurred_at": occurred_at });
        world.apply([fact("automation.deleted", detail)]).await;
    };
    let mut sent = 0;
    let mut sends = async |expected: bool, why: &str| {
        let id = format!("m{}", world.number());
        world.apply([message(&id)]).await;
        let came = scene.named.hooks().len() - sent;
        sent += came;
        assert_eq!(came == 1, expected, "{why}");
    };
    let step = [&scene.named_endpoint];
    deleted(10_000).await;
    saved(5_000, &step).await;
    sends(false, "it was deleted before it came").await;
    saved(20_000, &step).await;
    sends(true, "what is newer brings it back").await;
    saved(15_000, &[]).await;
    sends(true, "what is older changes nothing").await;
    deleted(15_000).await;
    sends(true, "nor does an older deletion").await;
    saved(30_000, &[]).await;
    sends(false, "what is newer does").await;
    saved(40_000, &step).await;
    deleted(50_000).await;
    sends(false, "it is deleted").await;
    let items = world.items("workspaces", "COACH#ada").await;
    let is_it = |item: &&Value| item["sk"]["S"].as_str().is_some_and(|sk| sk.ends_with("#a1"));
    let stored: Vec<&Value> = items.iter().filter(is_it).collect();
    assert_eq!(stored.len(), 1);
    assert!(!stored[0].to_string().contains("telling") && stored[0].get("trigger").is_none(), "no trace stays");
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
async fn after_a_hand_over_the_new_coachs_automations_count() {
    let scene = AutomationScene::new("identifiers").await;
    scene.automation("a1", on("message_received")).await;
    scene.world.coach("bob").await;
    scene.world.apply([Fact::client("bob", "c1")]).await;
    scene.world.apply([message("m1")]).await;
    assert!(scene.named.hooks().is_empty());
}

#[tokio::test]
async fn a_malformed_automation_is_set_aside_with_its_field() {
    let world = World::start().await;
    world.coach("ada").await;
    let of = |trigger: Value| automation("a1", trigger, &[]);
    let malformed = [
        ("automation_id", of(on("new_client")).without("automation_id")),
        ("name", of(on("new_client")).with("name", 5)),
        ("active", of(on("new_client")).without("active")),
        ("trigger ", of(json!("new_client"))),
        ("trigger.event", of(on("new_moon"))),
        ("trigger.event", of(json!({}))),
        ("trigger.threshold", of(on("low_check_in_score"))),
        ("trigger.threshold", of(json!({ "event": "compliance_drop", "threshold": "60" }))),
        ("trigger.window_days", of(json!({ "event": "compliance_drop", "threshold": 60, "window_days": "week" }))),
        ("trigger.question_id", of(low(3.0, 7))),
        ("trigger.system", of(json!({ "event": "system_grade_drop", "system": 1 }))),
        ("trigger.days", of(on("check_in_inactivity"))),
        ("trigger.days", of(json!({ "event": "daily_log_inactivity", "days": -1 }))),
        ("steps ", of(on("new_client")).with("steps", json!({}))),
        ("steps.kind", of(on("new_client")).with("steps", json!([{}]))),
        ("steps.endpoint_id", of(on("new_client")).with("steps", json!([{ "kind": "webhook" }]))),
        ("coach_id", fact("automation.deleted", json!({ "automation_id": "a1" }))),
    ];
    let computed = json!({ "event": "compliance_drop", "threshold": 60, "note": "planted-note" });
    let mut good = automation("computed", computed, &[]);
    good.detail["steps"][0]["text"] = json!("planted-text");
    world.apply(malformed.iter().map(|(_, fact)| fact.clone()).chain([good])).await;
    let set_aside = world.set_aside().await;
    assert_eq!(set_aside.len(), malformed.len(), "{set_aside:?}");
    for (field, fact) in malformed {
        let is_it = |aside: &&Value| {
            aside["reason"].as_str().unwrap().starts_with(field) && aside["detail-type"] == fact.detail_type
        };
        assert!(set_aside.iter().any(|aside| is_it(&aside)), "{field} in {set_aside:#?}");
    }
    let stored = world.items("workspaces", "COACH#ada").await;
    let stored: Vec<&Value> =
        stored.iter().filter(|item| item["sk"]["S"].as_str().unwrap().starts_with("AUTOMATION#")).collect();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0]["trigger"]["M"]["window_days"]["N"], "7", "the trigger of a computed event is stored as well");
    assert!(!stored[0].to_string().contains("planted"));
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
