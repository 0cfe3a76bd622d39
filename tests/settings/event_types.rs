//! `GET /settings/event-types`: the catalog of events.

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::world::{World, emitted_events, list, members};

const COMPUTED: [&str; 5] =
    ["compliance_drop", "compliance_milestone", "phase_eligible", "check_in_inactivity", "daily_log_inactivity"];

async fn catalog(world: &World) -> Vec<Value> {
    let answer = world.settings_of("ada").await.get("/settings/event-types").await.expect(200);
    assert_eq!(answer.members(), ["data"]);
    list(answer.body["data"].clone())
}

#[tokio::test]
async fn the_catalog_lists_emitted_and_computed_events() {
    let world = World::start().await;
    world.coach("ada").await;
    let entries = catalog(&world).await;
    let kinds = |kind: &str| {
        let of_kind = entries.iter().filter(|entry| entry["kind"] == kind);
        of_kind.map(|entry| entry["type"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((kinds("emitted"), kinds("computed")), (emitted_events(), COMPUTED.to_vec()));
    for entry in &entries {
        assert_eq!(members(entry), ["description", "examples", "group", "kind", "schema", "title", "type"]);
        assert_eq!(members(&entry["examples"]), ["contact_details", "identifiers"]);
        for text in ["title", "description"] {
            assert!(entry[text].as_str().is_some_and(|text| text.len() > 5), "{entry}");
        }
    }
}

/// Asserts that an object has the members that its schema requires and no others.
fn assert_fits(schema: &Value, value: &Value) {
    for name in list(schema["required"].clone()) {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{name} in {value}");
    }
    for (name, member) in value.as_object().unwrap() {
        let described = &schema["properties"][name];
        assert!(described.is_object(), "{name} in {schema}");
        if member.is_object() {
            assert_fits(described, member);
        }
    }
}

#[tokio::test]
async fn a_test_event_is_the_example_of_the_catalog_for_its_payload_mode() {
    let scene = EndpointScene::new().await;
    let ada = scene.world.coach("ada").await;
    let entries = catalog(&scene.world).await;
    for mode in ["identifiers", "contact_details"] {
        for entry in &entries {
            // An endpoint takes ten test events a minute.
            let endpoint = ada.endpoint(&scene.receiver.url(), mode).await;
            let settings = ada.settings().await;
            let path = format!("/settings/webhooks/{}", endpoint.id);
            settings.post(&format!("{path}/test"), json!({ "type": entry["type"] })).await.expect(202);
            scene.world.settle().await;
            let mut sent = scene.receiver.hooks().pop().unwrap().json();
            assert_eq!(sent["data"].as_object_mut().unwrap().remove("test"), Some(json!(true)));
            let example = &entry["examples"][mode];
            assert_eq!(sent["type"], example["type"]);
            assert_eq!(members(&sent), members(example));
            assert_eq!(members(&sent["data"]), members(&example["data"]));
            for person in ["client", "contact"] {
                assert_eq!(sent["data"].get(person), example["data"].get(person));
            }
            assert_fits(&entry["schema"], &sent["data"]);
            assert_fits(&entry["schema"], &example["data"]);
            settings.delete(&path).await.expect(200);
        }
    }
}
