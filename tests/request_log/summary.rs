//! `GET /settings/requests/summary`.

use domain::request_log::MAX_SUMMED_RECORDS;
use serde_json::{Value, json};

use super::{key, requests};
use crate::world::{Bill, World};

#[tokio::test]
async fn a_summary_counts_the_requests_and_refusals_of_each_key() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let ((partner, partner_id), (crm, crm_id)) = (key(&ada, "partner").await, key(&ada, "crm").await);
    let summary = async |hours: &str| {
        ada.settings().await.get(&format!("/settings/requests/summary{hours}")).await.expect(200).body
    };
    assert_eq!(summary("").await, json!({ "data": [], "complete": true }));
    crm.get("/v1/clients").await.refused(403, "wrong_scope");
    world.advance_s(25 * 3_600).await;
    let draft = json!({ "email": "grace@example.com", "full_name": "Grace", "send_welcome": false });
    partner.post("/v1/clients", draft.clone()).idempotent("k-1").await.expect(201);
    partner.post("/v1/clients", draft).idempotent("k-2").await.refused(409, "email_taken");
    for _ in 0..2 {
        partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    }
    let latest = requests(&ada.settings().await, "").await;
    let partners = json!({
        "key_id": partner_id, "requests": 4, "refused": 3, "last_at": latest[0]["at"],
        "codes": [{ "code": "not_found", "count": 2 }, { "code": "email_taken", "count": 1 }],
    });
    assert_eq!(summary("").await, json!({ "data": [partners], "complete": true }));
    let crms = json!({
        "key_id": crm_id, "requests": 1, "refused": 1, "codes": [{ "code": "wrong_scope", "count": 1 }],
        "last_at": latest[4]["at"],
    });
    assert_eq!(summary("?hours=336").await, json!({ "data": [partners, crms], "complete": true }));
    let eve = world.coach("eve").await.settings().await;
    assert_eq!(eve.get("/settings/requests/summary").await.expect(200).body, json!({ "data": [], "complete": true }));
}

#[tokio::test]
async fn a_summary_reads_a_limited_number_of_records() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, id) = key(&ada, "partner").await;
    partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    let template = world.table("requests").await.remove(0);
    let now = world.now().await.timestamp_millis();
    let another = |number: usize| -> Value {
        let mut item = template.clone();
        item["sk"] = json!({ "S": format!("{:013}#r{number:05}", now - 60_000 - number as i64) });
        item["id"] = json!({ "S": format!("r{number:05}") });
        item
    };
    let settings = ada.settings().await;
    let mut filled = 1;
    for (records, complete) in
        [(MAX_SUMMED_RECORDS, true), (MAX_SUMMED_RECORDS + 1, false), (MAX_SUMMED_RECORDS + 900, false)]
    {
        world.put_items("requests", &(filled..records).map(another).collect::<Vec<_>>()).await;
        filled = records;
        let summary = settings.get("/settings/requests/summary?hours=336").await.expect(200).body;
        let counted = json!([summary["data"][0]["key_id"], summary["data"][0]["requests"], summary["complete"]]);
        assert_eq!(counted, json!([id, MAX_SUMMED_RECORDS, complete]));
        let bill = Bill::of(&world.calls("settings").await[0]);
        assert!(bill.calls <= 5 && bill.read_units <= 1_000.0, "{bill:?}");
    }
}
