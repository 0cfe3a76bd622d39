//! Facts with junk: JSON that a strict parser refuses. Junk in a dropped field changes nothing. Junk in a known field
//! sets the fact aside with its other known fields.

use serde_json::{Value, json};

use crate::world::{Fact, World, fact};

/// Values that a strict parser refuses, or that parsers read differently.
fn junk() -> Vec<String> {
    let mut junk: Vec<String> = [r#""x\ud83d""#, "1e999"].map(str::to_owned).into();
    junk.push("9".repeat(400));
    junk.push(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    junk
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
    let id = |number: usize| format!("client-{number:04}");
    let mut bodies = vec![message("client.saved", &detail(&world, &Fact::client("ada", &id(0)), ""), "")];
    for junk in junk() {
        // In an unknown field, nested in one, under an unreadable name, twice, and around the fact.
        let places = [
            format!(r#","bio":{junk}"#),
            format!(r#","answers":{{"q1":[{junk}]}}"#),
            format!(r#","bio\ud83d":{junk}"#),
            format!(r#","bio":{junk},"bio":{junk}"#),
        ];
        for members in places.iter().map(String::as_str).chain([""]) {
            let detail = detail(&world, &Fact::client("ada", &id(bodies.len())), members);
            let around = if members.is_empty() { format!(r#","resources":[{junk}]"#) } else { String::new() };
            bodies.push(message("client.saved", &detail, &around));
        }
    }
    bodies.push(format!(
        "\u{feff}{}",
        message("client.saved", &detail(&world, &Fact::client("ada", &id(bodies.len())), ""), "")
    ));
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
    let (mut bodies, mut expected) = (Vec::new(), Vec::new());
    let client = Fact::client("ada", "c1");
    let automation = fact(
        "automation.saved",
        json!({ "automation_id": "a1", "coach_id": "ada", "name": "Low", "active": true, "trigger": { "event": "new_client" }, "steps": [] }),
    );
    let check_in = fact(
        "check_in.submitted",
        json!({ "client_id": "c1", "check_in_id": "k", "submitted_at": "2026-01-02T00:00:00Z", "scores": { "q": 1 }, "grades": {} }),
    );
    // The replaced text, its replacement, and the field that the reason names.
    let cases: [(&Fact, &str, &str, &str); 4] = [
        (&client, r#""goals":null"#, r#""goals":JUNK"#, "goals"),
        (&client, r#""email":"c1@clients.example""#, r#""email":"c1@clients.example","email":JUNK"#, "email"),
        (&automation, r#"{"event":"new_client""#, r#"{"event":"new_client","threshold":JUNK"#, "trigger"),
        (&check_in, r#""scores":{"q":1}"#, r#""scores":{"q":JUNK}"#, "scores"),
    ];
    for junk in junk() {
        for (fact, from, to, field) in cases {
            let plain = detail(&world, fact, "");
            assert!(plain.contains(from), "{plain}");
            let id = serde_json::from_str::<Value>(&plain).unwrap()["id"].clone();
            bodies.push(message(&fact.detail_type, &plain.replace(from, &to.replace("JUNK", &junk)), ""));
            expected.push((id, fact.clone(), field));
        }
    }
    send(&world, bodies).await;
    let set_aside = world.set_aside().await;
    assert_eq!(set_aside.len(), expected.len());
    for (id, fact, field) in expected {
        let aside = set_aside.iter().find(|aside| aside["detail"]["id"] == id).unwrap();
        assert_eq!(aside["detail-type"], fact.detail_type);
        let reason = aside["reason"].as_str().unwrap();
        assert!(reason.starts_with(field), "{reason}");
        for (name, value) in fact.detail.as_object().unwrap() {
            let is_evaluated = ["scores", "grades"].contains(&name.as_str());
            if is_evaluated || name != field {
                assert_eq!(aside["detail"].get(name), Some(value).filter(|_| !is_evaluated), "{name}: {reason}");
            }
        }
    }
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 0);
}

#[tokio::test]
async fn a_message_with_junk_as_its_fact_is_set_aside_with_its_known_parts() {
    let world = World::start().await;
    world.coach("ada").await;
    let whole = detail(&world, &Fact::client("ada", "c1"), "");
    for (body, id, reason) in [
        (message("client\\ud83d.saved", r#"{"id":"f1","full_name":"SECRET"}"#, ""), json!("f1"), "DetailType"),
        (r#"{"detail-type":NaN,"detail":{"id":"f1"}}"#.to_owned(), Value::Null, "not an EventBridge event"),
        (message("client.saved", r#"{"id":"f1","bio":"5" tall"}"#, ""), Value::Null, "not an EventBridge event"),
        (format!("{} {{}}", message("client.saved", r#"{"id":"f1"}"#, "")), Value::Null, "not an EventBridge event"),
        (message("client.saved", r#"{"id":"f\ud83d","client_id":"c1"}"#, ""), Value::Null, "id must be"),
        (message("client.saved", "1e999", ""), Value::Null, "Detail"),
        (message("client.saved", r#""x\ud83d""#, ""), Value::Null, "Detail"),
        (
            format!(r#"{{"detail":{whole}}}"#),
            serde_json::from_str::<Value>(&whole).unwrap()["id"].clone(),
            "DetailType",
        ),
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
