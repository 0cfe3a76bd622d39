//! Webhooks: a sandbox names its mode in a header, and nothing else differs.

use domain::mode::Mode;
use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::sandbox::start;
use crate::settings::deliveries::requests::{assert_sent, newest};
use crate::world::{Answer, Receiver};

#[tokio::test]
async fn each_request_of_a_sandbox_names_the_mode_in_a_header_and_has_the_body_of_a_live_one() {
    let mut bodies = Vec::new();
    for mode in Mode::ALL {
        let scene = EndpointScene { world: start(mode).await, receiver: Receiver::start().await };
        let (_, endpoint, settings) = scene.coach().await;
        // An attempt, the retry, and a test event.
        scene.receiver.script([Answer::status(500)]);
        scene.event("c1").await;
        assert_sent(&newest(&settings, &endpoint).await, &scene.receiver.hooks()[0]);
        scene.world.advance_s(10).await;
        settings.post(&format!("/settings/webhooks/{}/test", endpoint.id), json!({})).await.expect(202);
        scene.world.settle().await;
        let hooks = scene.receiver.hooks();
        assert_eq!(hooks.len(), 3);
        let expected = (mode == Mode::Test).then_some("test");
        for hook in &hooks {
            assert_eq!(hook.headers.get("x-service-mode").map(|value| value.to_str().unwrap()), expected);
            assert!(hook.is_signed_with(&endpoint.secret));
        }
        let shown = newest(&settings, &endpoint).await;
        assert_sent(&shown, &hooks[2]);
        assert_eq!(shown["request"]["headers"].get("x-service-mode").and_then(Value::as_str), expected);
        let mut body = hooks[0].json();
        body["timestamp"] = Value::Null;
        body["data"]["created_at"] = Value::Null;
        bodies.push(body);
    }
    assert_eq!(bodies[0], bodies[1]);
}
