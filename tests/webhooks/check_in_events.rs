//! Events about the content of a check-in: low scores and fallen grades. A check-in is evaluated once, on arrival, and
//! its content is not stored.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::webhooks::automations::{AutomationScene, automation, check_in, low, name, on};

#[tokio::test]
async fn a_low_score_is_emitted_once_per_check_in_and_automation() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    scene.automation("a1", low(3.0, Value::Null)).await;
    scene.automation("a2", low(4.0, Value::Null)).await;
    let low_one = check_in("k1", 1, json!({ "sleep": 1 }), json!({}));
    world.faults(json!({ "duplicate_messages": true })).await;
    world.apply([low_one.clone(), low_one.clone()]).await;
    world.faults(json!({ "duplicate_messages": false })).await;
    world.apply([low_one.with("occurred_at", world.timestamp_in(60).await)]).await;
    let high = check_in("k2", 2, json!({ "sleep": 5 }), json!({}));
    world.apply([high]).await;
    let lower = check_in("k2", 2, json!({ "sleep": 1 }), json!({}));
    world.apply([lower.with("occurred_at", world.timestamp_in(60).await)]).await;
    let expected = ["a1", "a2"].map(|id| ("k1".to_owned(), id.to_owned()));
    assert_eq!(scene.low_scores(), expected, "a resubmitted check-in emits nothing");
    let ids: BTreeSet<String> =
        scene.subscribed.hooks().iter().map(|hook| hook.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 4, "two check-ins and two low scores");
    assert_eq!(scene.sent_to_named("low_check_in_score").len(), 2);
}

#[tokio::test]
async fn a_check_in_and_its_events_are_one_transaction() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    scene.automation("a1", low(3.0, Value::Null)).await;
    world.faults(json!({ "function": "ingest", "crash_after_commit": 1 })).await;
    world.publish([check_in("k1", 1, json!({ "sleep": 1 }), json!({}))]).await;
    world.advance_s(15 * 60).await;
    assert_eq!((scene.low_scores().len(), scene.sent_to_named("low_check_in_score").len()), (1, 1));
}

#[tokio::test]
async fn evaluated_content_of_a_check_in_is_not_stored() {
    let scene = AutomationScene::new("contact_details").await;
    let world = &scene.world;
    let rule = low(5.316_497, "question-of-trust");
    scene.automation("a1", rule).await;
    let system = "system-of-trust";
    scene.automation("a2", json!({ "event": "system_grade_drop", "system": system })).await;
    let scores = json!({ "question-of-trust": 1.141_592_65, "question-of-sleep": 9.141_592_65 });
    world.apply([check_in("k1", 1, scores.clone(), json!({ system: 4.141_592_65 }))]).await;
    world.apply([check_in("k2", 2, scores, json!({ system: 2.141_592_65 }))]).await;
    assert_eq!(
        (scene.sent_to_named("low_check_in_score").len(), scene.sent_to_named("system_grade_drop").len()),
        (2, 1)
    );
    let of_rules = ["question-of-trust", "5.316497", system];
    let evaluated = ["14159265", "question-of-sleep"];
    let names = [name("a1"), name("a2")];
    for hook in scene.named.hooks().iter().chain(&scene.subscribed.hooks()) {
        let body = String::from_utf8_lossy(&hook.body).into_owned();
        for text in of_rules.iter().chain(&evaluated).copied().chain(names.iter().map(String::as_str)) {
            assert!(!body.contains(text), "{text} in {body}");
        }
    }
    let at_rest = world.at_rest().await;
    at_rest.assert_absent(evaluated);
    at_rest.assert_only_in(of_rules, &["table workspaces"]);
}

#[tokio::test]
async fn a_check_in_is_stored_despite_too_many_automations() {
    const CONSIDERED: usize = 100;
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    let triggers = [on("check_in_submitted"), low(3.0, Value::Null), on("system_grade_drop")];
    let rules = (0..CONSIDERED + 5).flat_map(|n| {
        let of = |(kind, trigger): (usize, &Value)| {
            automation(&format!("a{n:03}-{kind}"), trigger.clone(), &[&scene.named_endpoint])
        };
        triggers.iter().enumerate().map(of).collect::<Vec<_>>()
    });
    world.apply(rules).await;
    world.apply([check_in("k1", 1, json!({}), json!({ "gut": 4 })).with("backfill", true)]).await;
    world.apply([check_in("k2", 2, json!({ "sleep": 1 }), json!({ "gut": 3 }))]).await;
    // A single endpoint does not get all of them at once.
    world.advance_s(60).await;
    assert_eq!((scene.sent_to_subscribed("check_in_submitted").len(), scene.low_scores().len()), (1, CONSIDERED));
    for event in ["check_in_submitted", "low_check_in_score", "system_grade_drop"] {
        assert_eq!(scene.sent_to_named(event).len(), CONSIDERED, "{event}: the automations with the first ids");
    }
    assert!(world.set_aside().await.is_empty());
}
