//! The list of tools: what the key may do, in a fixed order and small.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Assistant, ERAS, LEGACY, error_of};
use crate::world::{CRM_PERMISSIONS, Caller, Coach, PARTNER_PERMISSIONS, World};

/// Most bytes of the list.
const MAX_LIST_BYTES: usize = 12 * 1024;

/// The tools of a key with everything, by scope, in their order.
const PARTNER_TOOLS: [&str; 9] = [
    "whoami",
    "find_clients",
    "get_client",
    "create_client",
    "update_client",
    "get_client_compliance",
    "list_client_check_ins",
    "list_client_daily_logs",
    "list_events",
];
const CRM_TOOLS: [&str; 18] = [
    "whoami",
    "find_contacts",
    "get_contact",
    "create_contact",
    "update_contact",
    "find_opportunities",
    "get_opportunity",
    "create_opportunity",
    "update_opportunity",
    "list_calendars",
    "find_free_times",
    "find_bookings",
    "get_booking",
    "create_booking",
    "reschedule_booking",
    "cancel_booking",
    "list_workflows",
    "list_events",
];

/// The tools that a permission opens.
fn opened_by(permission: &str) -> &'static [&'static str] {
    match permission {
        "clients.read" => &["find_clients", "get_client"],
        "clients.write" => &["create_client", "update_client"],
        "records.read" => &["get_client_compliance", "list_client_check_ins", "list_client_daily_logs"],
        "contacts.read" => &["find_contacts", "get_contact"],
        "contacts.write" => &["create_contact", "update_contact"],
        "opportunities.read" => &["find_opportunities", "get_opportunity"],
        "opportunities.write" => &["create_opportunity", "update_opportunity"],
        "bookings.read" => &["list_calendars", "find_free_times", "find_bookings", "get_booking"],
        "bookings.write" => &["create_booking", "reschedule_booking", "cancel_booking"],
        "workflows.read" => &["list_workflows"],
        "login_links.create" => &[],
        other => panic!("no tools are known for {other}"),
    }
}

/// A key that may read events, besides all permissions of its scope.
async fn whole_key(coach: &Coach<'_>, scope: &str) -> Caller {
    let permissions: &[&str] = if scope == "crm" { &CRM_PERMISSIONS } else { &PARTNER_PERMISSIONS };
    let events = json!({ "types": ["booking_created"], "payload_mode": "identifiers" });
    let body = json!({ "name": "Assistant", "scope": scope, "permissions": permissions, "events": events });
    coach.world.anonymous().with_bearer(coach.new_key(body).await.str("key"))
}

#[tokio::test]
async fn a_key_with_everything_has_all_tools_of_its_scope_in_order_within_the_limit() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for (scope, expected) in [("partner", &PARTNER_TOOLS[..]), ("crm", &CRM_TOOLS)] {
        let key = whole_key(&ada, scope).await;
        for version in ERAS {
            let assistant = Assistant::new(&key, version);
            assert_eq!(assistant.tools().await, expected, "{scope}");
            let [first, again] = [(); 2].map(|()| assistant.request("tools/list", json!({})));
            let (first, again) = (first.await, again.await);
            assert_eq!(first.text, again.text);
            assert!(first.bytes <= MAX_LIST_BYTES, "{} bytes for {scope} in {version}", first.bytes);
        }
    }
}

/// All tools as they are listed, one a line. Models and people know them as they are here, so a change is deliberate.
const LISTED: &str = include_str!("tools.jsonl");

#[tokio::test]
async fn the_list_is_the_same_to_the_byte() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let lines: BTreeMap<String, &str> = LISTED.lines().map(|line| (name_of(line), line)).collect();
    for (key, names) in [
        (whole_key(&ada, "partner").await, PARTNER_TOOLS.to_vec()),
        (whole_key(&ada, "crm").await, CRM_TOOLS.to_vec()),
        (ada.partner_key_with(&["clients.read"]).await, vec!["whoami", "find_clients", "get_client"]),
        (ada.crm_key_with(&["contacts.write"]).await, vec!["whoami", "create_contact", "update_contact"]),
    ] {
        let tools: Vec<&str> = names.iter().filter_map(|name| lines.get(*name).copied()).collect();
        let expected = format!(r#"{{"id":7,"jsonrpc":"2.0","result":{{"tools":[{}]}}}}"#, tools.join(","));
        let listed = Assistant::new(&key, LEGACY).request("tools/list", json!({})).await.expect(200);
        assert_eq!(listed.text, expected, "if the change is meant, write it to tests/assistants/tools.jsonl");
    }
}

fn name_of(line: &str) -> String {
    serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_permission_opens_its_own_tools_and_no_other() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for (scope, permissions) in [("partner", &PARTNER_PERMISSIONS[..]), ("crm", &CRM_PERMISSIONS)] {
        for permission in permissions {
            let key = match scope {
                "crm" => ada.crm_key_with(&[permission]).await,
                _ => ada.partner_key_with(&[permission]).await,
            };
            let assistant = Assistant::new(&key, LEGACY);
            let expected: BTreeSet<&str> = ["whoami"].iter().chain(opened_by(permission)).copied().collect();
            let listed = assistant.tools().await;
            assert_eq!(listed.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected, "{permission}");
        }
    }
}

#[tokio::test]
async fn a_tool_of_another_permission_is_refused_with_the_permission_and_one_of_another_scope_is_unknown() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (reader, client) = (ada.crm_key_with(&["bookings.read"]).await, ada.partner_key().await);
    for version in ERAS {
        let assistant = Assistant::new(&reader, version);
        let arguments = json!({ "name": "Lee", "email": "lee@example.com" });
        let text = assistant.refused("create_contact", arguments).await;
        assert!(text.contains("contacts.write") && text.contains("[permission_missing]"), "{text}");
        let text = assistant.refused("list_events", json!({})).await;
        assert!(text.contains("[permission_missing]"), "{text}");
        for (key, tool) in [(&reader, "find_clients"), (&client, "create_booking"), (&client, "get_login_link")] {
            let reply = Assistant::new(key, version).call(tool, json!({})).await.expect(200);
            assert_eq!(reply.body["error"]["code"], -32602, "{}", reply.text);
            assert!(reply.body["error"]["message"].as_str().unwrap().contains(tool), "{}", reply.text);
        }
    }
    assert!(world.items("crm", "CONTACT#").await.is_empty());
}

#[tokio::test]
async fn a_workspace_without_the_plan_keeps_the_list_and_a_call_says_why() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = whole_key(&ada, "partner").await;
    world.coach("ada").not_entitled().await;
    for version in ERAS {
        let assistant = Assistant::new(&key, version);
        assert_eq!(assistant.tools().await, PARTNER_TOOLS);
        assert_eq!(assistant.done("whoami", json!({})).await["entitled"], false);
        let text = assistant.refused("find_clients", json!({})).await;
        assert!(text.contains("[partner_api_not_entitled]"), "{text}");
    }
}

#[tokio::test]
async fn every_tool_says_what_it_does_to_the_records() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let mut described = BTreeSet::new();
    for scope in ["partner", "crm"] {
        let listed = Assistant::new(&whole_key(&ada, scope).await, LEGACY).result("tools/list", json!({})).await;
        for tool in listed["tools"].as_array().unwrap() {
            let (name, hints) = (tool["name"].as_str().unwrap(), &tool["annotations"]);
            assert_eq!(hints["openWorldHint"], false, "{name}");
            let is_read = name == "whoami" || ["find_", "get_", "list_"].iter().any(|begin| name.starts_with(begin));
            assert_eq!(hints["readOnlyHint"] == true, is_read, "{name}");
            if !is_read {
                assert_eq!(hints["idempotentHint"], true, "{name}");
                assert_eq!(hints["destructiveHint"], json!(!name.starts_with("create_")), "{name}");
            }
            for text in ["title", "description"] {
                assert!(tool[text].as_str().is_some_and(|text| text.len() > 5), "{name} {text}");
            }
            described.insert(name.to_owned());
        }
    }
    assert_eq!(described.len(), 25);
}

#[tokio::test]
async fn whoami_is_the_answer_about_the_key() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for scope in ["partner", "crm"] {
        let key = whole_key(&ada, scope).await;
        let answered = key.get("/v1/key").await.expect(200).body;
        assert_eq!(Assistant::new(&key, LEGACY).done("whoami", json!({})).await, answered);
        assert_eq!(
            (&answered["scope"], &answered["mode"], &answered["entitled"]),
            (&json!(scope), &json!("live"), &json!(true))
        );
        assert_eq!(answered["workspace"], json!({ "name": "Coach ada", "time_zone": "America/New_York" }));
        assert_eq!(answered["events"], json!({ "types": ["booking_created"], "payload_mode": "identifiers" }));
        assert_eq!(answered["expires_at"], Value::Null);
    }
    let unknown = Assistant::new(&ada.partner_key().await, LEGACY);
    assert!(error_of(&unknown.call("whoami", json!({ "key": 1 })).await).contains("key is not a field"));
}
