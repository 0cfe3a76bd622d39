//! Records: each with the answer that the request had.

use serde_json::{Value, json};

use super::{MEMBERS, id_of, key, requests, shown};
use crate::assistants::{Assistant, LEGACY, MODERN, error_of};
use crate::world::{Fact, Reply, World, encoded, members, time, uuid};

#[tokio::test]
async fn a_days_requests_are_shown_with_what_each_was_answered() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let ((partner, partner_id), (crm, crm_id)) = (key(&ada, "partner").await, key(&ada, "crm").await);
    world.apply([Fact::pipeline("ada"), Fact::contact("ada", &uuid(1))]).await;
    let mut expected: Vec<(String, Value)> = Vec::new();
    let nothing = json!({
        "target": null, "code": null, "replayed": false, "idempotency_key_sha256": null, "tool": null, "client": null,
        "user_agent": null, "parameters": [],
    });
    let mut note = |reply: &Reply, key: &str, route: &str, differs: Value| {
        let (method, route) = route.split_once(' ').unwrap();
        let mut record = nothing.clone();
        let fixed = json!({
            "id": id_of(reply), "key_id": key, "method": method, "route": route, "status": reply.status,
        });
        for (name, value) in fixed.as_object().unwrap().iter().chain(differs.as_object().unwrap()) {
            record[name] = value.clone();
        }
        expected.push((id_of(reply).to_owned(), record));
    };

    let draft = json!({ "email": "grace@example.com", "full_name": "Grace", "send_welcome": false });
    let create = partner.post("/v1/clients", draft.clone()).idempotent("k-1").header("user-agent", "Acme/1.0 (Linux)");
    let hash = "7c35c5a1785d";
    let made = create.clone().await.expect(201);
    let agent = json!({ "user_agent": "Acme/1.0 (Linux)", "idempotency_key_sha256": hash });
    note(&made, &partner_id, "POST /v1/clients", agent.clone());
    let replay = create.await.expect(201);
    assert!(replay.is_replay());
    let mut replayed = agent.clone();
    replayed["replayed"] = json!(true);
    note(&replay, &partner_id, "POST /v1/clients", replayed);

    let client = made.str("client_id").to_owned();
    let taken = partner.post("/v1/clients", draft).idempotent("k-2").await.refused(409, "email_taken");
    note(
        &taken,
        &partner_id,
        "POST /v1/clients",
        json!({ "code": "email_taken", "idempotency_key_sha256": "ab8460920d12" }),
    );
    let off = partner.patch(&format!("/v1/clients/{client}"), json!({ "is_active": false })).await.expect(200);
    note(&off, &partner_id, "PATCH /v1/clients/{clientId}", json!({ "target": client }));
    let bad = partner.call("POST", "/v1/clients").body("{").header("content-type", "application/json").await;
    note(&bad.refused(400, "invalid_json"), &partner_id, "POST /v1/clients", json!({ "code": "invalid_json" }));
    let missing = partner.get("/v1/clients/nobody%7C1/check-ins?limit=3&colour=red").await.refused(404, "not_found");
    let details = json!({ "code": "not_found", "target": "nobody|1", "parameters": ["limit"] });
    note(&missing, &partner_id, "GET /v1/clients/{clientId}/check-ins", details);
    let odd = partner.get("/v1/clients/grace%40example.com").await.refused(404, "not_found");
    note(&odd, &partner_id, "GET /v1/clients/{clientId}", json!({ "code": "not_found" }));
    let scope = crm.get("/v1/clients?email=grace@example.com&limit=1").await.refused(403, "wrong_scope");
    note(&scope, &crm_id, "GET /v1/clients", json!({ "code": "wrong_scope", "parameters": ["limit", "email"] }));
    let id = uuid(1).to_uppercase();
    let renamed = crm.patch(&format!("/v1/crm/contacts/{id}"), json!({ "name": "Lee" })).idempotent("k-3");
    let renamed = renamed.header("accept", "application/problem+json").await.expect(200);
    let details = json!({ "target": uuid(1), "idempotency_key_sha256": "dcd555df8443" });
    note(&renamed, &crm_id, "PATCH /v1/crm/contacts/{id}", details);
    let list = crm.get("/v1/crm/contacts?oder=asc").header("accept", "application/problem+json").await;
    note(&list.refused(400, "invalid_request"), &crm_id, "GET /v1/crm/contacts", json!({ "code": "invalid_request" }));
    let events = crm.get("/v1/events?types=new_client").await.refused(403, "permission_missing");
    let details = json!({ "code": "permission_missing", "parameters": ["types"] });
    note(&events, &crm_id, "GET /v1/events", details);
    let large = partner.post("/v1/clients", json!({ "full_name": "x".repeat(300_000) })).await;
    note(&large.refused(413, "body_too_large"), &partner_id, "POST /v1/clients", json!({ "code": "body_too_large" }));

    let found = requests(&settings, "").await;
    assert_eq!(found.len(), expected.len());
    for (record, (_, wanted)) in found.iter().rev().zip(&expected) {
        assert_eq!(members(record), MEMBERS);
        let mut shown = record.clone();
        let at = shown.as_object_mut().unwrap().remove("at").unwrap();
        assert!((world.now().await - time(&at)).num_minutes() < 10);
        assert!(shown.as_object_mut().unwrap().remove("duration_ms").unwrap().as_u64().unwrap() < 60_000);
        assert_eq!(&shown, wanted);
    }
    // Each key sees its own, and finds a request by the id of its answer.
    for (caller, own) in [(&partner, &partner_id), (&crm, &crm_id)] {
        let seen = shown(caller, "/v1/requests?limit=200").await;
        let own: Vec<&Value> = found.iter().filter(|record| record["key_id"] == **own).collect();
        assert!(!own.is_empty() && seen.iter().eq(own));
    }
    for (id, wanted) in &expected {
        let caller = if wanted["key_id"] == json!(partner_id) { &partner } else { &crm };
        let [record] = &shown(caller, &format!("/v1/requests?request_id={}", encoded(id))).await[..] else {
            panic!("the request {id} is not found")
        };
        assert_eq!(record["id"], json!(id));
    }
}

#[tokio::test]
async fn a_record_names_the_program_and_a_tool_only_if_there_is_one() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, _) = key(&ada, "partner").await;
    for (headers, tool, client, agent) in [
        (
            &[("x-mcp-tool", "get_client"), ("x-mcp-client", "Claude 1.0")][..],
            json!("get_client"),
            json!("Claude 1.0"),
            Value::Null,
        ),
        (&[("x-mcp-tool", "Grace Hopper"), ("x-mcp-client", "Claude 1.0")], Value::Null, Value::Null, Value::Null),
        (&[("x-mcp-client", "Claude 1.0")], Value::Null, Value::Null, Value::Null),
        (&[("user-agent", " n8n\t1.2 ")], Value::Null, Value::Null, json!("n8n1.2")),
        (&[("user-agent", "")], Value::Null, Value::Null, Value::Null),
    ] {
        let call = partner.get("/v1/clients/nobody");
        let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
        call.await.refused(404, "not_found");
        let record = &requests(&ada.settings().await, "").await[0];
        assert_eq!(
            (&record["tool"], &record["client"], &record["user_agent"]),
            (&tool, &client, &agent),
            "{headers:?}"
        );
    }
    partner.get("/v1/clients/nobody").header("user-agent", &"a".repeat(500)).await.refused(404, "not_found");
    let record = &requests(&ada.settings().await, "").await[0];
    assert_eq!(record["user_agent"], json!("a".repeat(120)));
}

/// The call of a tool is a request of the tool's operation. Older revisions name the program in their handshake alone,
/// so its `User-Agent` is carried along.
#[tokio::test]
async fn a_call_of_an_assistant_is_shown_as_the_request_of_its_operation() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, partner_id) = key(&ada, "partner").await;
    for version in [MODERN, LEGACY] {
        let call = Assistant::new(&partner, version).call("get_client", json!({ "client_id": "nobody" }));
        error_of(&call.header("user-agent", "Claude-User/1.0").await);
        let [record] = &shown(&partner, "/v1/requests?limit=1").await[..] else { panic!("it is kept") };
        let expected = json!({
            "key_id": partner_id, "method": "GET", "route": "/v1/clients/{clientId}", "target": "nobody", "status": 404,
            "code": "not_found", "tool": "get_client", "user_agent": "Claude-User/1.0",
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&record[name], value, "{name} in {version}");
        }
    }
}
