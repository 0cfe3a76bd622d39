//! `/v1/crm/workflows`: workflows and their state. `operations::raw_texts` shows that their content is not stored.

use serde_json::{Value, json};

use crate::world::{Fact, World, assert_cost, ids, uuid};

const WORKFLOWS: &str = "/v1/crm/workflows";

#[tokio::test]
async fn a_workflow_shows_its_trigger_and_its_state() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    let never_on = Fact::workflow("ada", &uuid(2)).with("active", false).with("activated_at", Value::Null);
    world.apply([Fact::workflow("ada", &uuid(1)), never_on, Fact::workflow("ada", &uuid(3))]).await;
    let page = key.get(WORKFLOWS).await.expect(200).body;
    assert_eq!(ids(&page), [1, 2, 3].map(uuid));
    let expected = json!({
        "id": uuid(1), "name": "Nurture", "trigger": "lead_created", "isActive": true,
        "activatedAt": "2026-01-02T03:04:05.678Z", "updatedAt": "2026-02-03T04:05:06.789Z",
    });
    assert_eq!(page["data"][0], expected);
    assert_eq!((&page["data"][1]["isActive"], &page["data"][1]["activatedAt"]), (&json!(false), &Value::Null));
    let list = async || drop(key.get(WORKFLOWS).await.expect(200));
    assert_cost(&world, "crm-workflows", list, |bill| bill.calls == 2, 2).await;
}
