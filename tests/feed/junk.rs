//! Facts with junk: JSON that a strict parser refuses. Junk in a dropped field changes nothing. Junk in a known field
//! sets the fact aside with its other known fields. `domain::fact` has what is read of any junk, field by field.

use serde_json::{Value, json};

use crate::world::{Fact, World, fact};

/// Half of a character, and a list that no parser on the stack gets through.
fn junk() -> [String; 2] {
    [r#""x\ud83d""#.to_owned(), format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))]
}

/// A fact's detail as JSON text, with more members at its end.
fn detail(world: &World, fact: &Fact, members: &str) -> String {
    let mut detail = fact.detail.clone();
    detail["id"] = json!(format!("fact-{}", world.number()));
    detail["occurred_at"] = json!("2026-01-02T03:04:05Z");
    let text = detail.to_string();
    format!("{}{members}}}", text.strip_suffix('}').unwrap())
}

/// A message with these members beside its type and detail.
fn message(detail_type: &str, detail: &str, members: &str) -> String {
    format!(
        r#"{{"version":"0"{members},"detail-type":"{detail_type}","source":"coaching.application","detail":{detail}}}"#
    )
}

async fn send(world: &World, bodies: impl IntoIterator<Item = String>) {
    for body in bodies {
        world.send("application-feed", &body).await;
    }
    world.settle().await;
}

#[tokio::test]
async fn junk_in_dropped_fields_changes_nothing() {
    let world = World::start().await;
    world.coach("ada").await;
    let client =
        |number: usize, members: &str| detail(&world, &Fact::client("ada", &format!("client-{number:04}")), members);
    let mut bodies = vec![message("client.saved", &client(0, ""), "")];
    for junk in junk() {
        // In an unknown field, under an unreadable name, and around the fact.
        bodies.push(message("client.saved", &client(bodies.len(), &format!(r#","answers":{{"q1":[{junk}]}}"#)), ""));
        bodies.push(message("client.saved", &client(bodies.len(), &format!(r#","bio\ud83d":{junk}"#)), ""));
        bodies.push(message("client.saved", &client(bodies.len(), ""), &format!(r#","resources":[{junk}]"#)));
    }
    bodies.push(format!("\u{feff}{}", message("client.saved", &client(bodies.len(), ""), "")));
    let count = bodies.len();
    send(&world, bodies).await;
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
    let stored = world.items("clients", "CLIENT#").await;
    assert_eq!(stored.len(), count);
    // Apart from the id, and the time at which each was stored.
    let plain = |item: &Value| {
        let id = item["pk"]["S"].as_str().unwrap().trim_start_matches("CLIENT#");
        let stored_at = item["updated_at"]["S"].as_str().unwrap();
        item.to_string().replace(id, "client").replace(stored_at, "now")
    };
    for item in &stored {
        assert_eq!(plain(item), plain(&stored[0]));
    }
}

#[tokio::test]
async fn a_fact_with_junk_in_a_known_field_is_set_aside_with_its_other_known_fields() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let client = Fact::client("ada", "c1");
    let fields = json!({
        "client_id": "c1", "check_in_id": "k", "submitted_at": "2026-01-02T00:00:00Z", "scores": { "q": 1 }, "grades": {},
    });
    let check_in = fact("check_in.submitted", fields);
    // The replaced text, its replacement, the field that the reason names, and the fields that are not kept.
    let cases: [(&Fact, &str, &str, &str, &[&str]); 2] = [
        (&client, r#""goals":null"#, r#""goals":JUNK"#, "goals", &["goals"]),
        (&check_in, r#""scores":{"q":1}"#, r#""scores":{"q":JUNK}"#, "scores", &["scores", "grades"]),
    ];
    for junk in junk() {
        for (fact, from, to, field, dropped) in cases {
            let plain = detail(&world, fact, "");
            assert!(plain.contains(from), "{plain}");
            send(&world, [message(&fact.detail_type, &plain.replace(from, &to.replace("JUNK", &junk)), "")]).await;
            let set_aside = world.set_aside().await;
            assert_eq!((set_aside.len(), &set_aside[0]["detail-type"]), (1, &json!(fact.detail_type)));
            let reason = set_aside[0]["reason"].as_str().unwrap();
            assert!(reason.starts_with(field), "{reason}");
            let mut kept: Value = serde_json::from_str(&plain).unwrap();
            dropped.iter().for_each(|name| drop(kept.as_object_mut().unwrap().remove(*name)));
            assert_eq!(set_aside[0]["detail"], kept, "{reason}");
        }
    }
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 0);
}

#[tokio::test]
async fn a_message_with_junk_as_its_fact_is_set_aside_with_its_known_parts() {
    let world = World::start().await;
    world.coach("ada").await;
    for (body, id, reason) in [
        (message("client\\ud83d.saved", r#"{"id":"f1","full_name":"SECRET"}"#, ""), json!("f1"), "DetailType"),
        (r#"{"detail":{"id":"f1"}}"#.to_owned(), json!("f1"), "DetailType"),
        (message("client.saved", r#"{"id":"f\ud83d","client_id":"c1"}"#, ""), Value::Null, "id must be"),
        (message("client.saved", "1e999", ""), Value::Null, "Detail"),
        (r#"{"detail-type":"client.saved"}"#.to_owned(), Value::Null, "not an EventBridge event"),
        ("[".repeat(100_000), Value::Null, "not an EventBridge event"),
        ("x\\ud83d".to_owned(), Value::Null, "not an EventBridge event"),
    ] {
        send(&world, [body.clone()]).await;
        let set_aside = world.set_aside().await;
        assert_eq!(set_aside.len(), 1, "{body:.200}");
        assert_eq!(set_aside[0]["detail"].get("id").unwrap_or(&Value::Null), &id, "{body:.200}");
        let text = set_aside[0]["reason"].as_str().unwrap();
        assert!(text.contains(reason), "{text}");
        assert!(!set_aside[0].to_string().contains("SECRET"));
    }
    assert!(world.items("clients", "CLIENT#").await.is_empty());
}
