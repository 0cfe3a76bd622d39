//! `GET /settings/event-types`: the catalog of events.

use serde_json::json;

use crate::delivery::endpoint_states::EndpointScene;
use crate::world::members;

#[tokio::test]
async fn a_test_event_is_the_example_of_the_catalog_for_its_payload_mode() {
    let scene = EndpointScene::new().await;
    let ada = scene.world.coach("ada").await;
    let catalog = ada.settings().await.get("/settings/event-types").await.expect(200).body;
    for mode in ["identifiers", "contact_details"] {
        for entry in catalog["data"].as_array().unwrap() {
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
            settings.delete(&path).await.expect(200);
        }
    }
}
