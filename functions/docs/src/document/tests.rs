//! The document as a whole.

use std::collections::BTreeSet;

use domain::api_key::Permission;
use domain::event::{Event, EventType, PayloadMode};
use domain::id::MessageId;
use edge::Code;
use serde_json::{Value, json};

use super::examples::{at, automation_id, check_in_id, client};
use super::*;

fn operations(document: &Value) -> Vec<&Value> {
    let paths = document["paths"].as_object().unwrap().values();
    paths.flat_map(|path| path.as_object().unwrap().values()).collect()
}

/// Every object in the document, from the outside in.
fn each<'d>(value: &'d Value, visit: &mut impl FnMut(&'d Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each(item, visit)),
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| each(member, visit));
        }
        _ => {}
    }
}

#[test]
fn it_is_openapi_3_1_and_carries_the_version_of_the_description() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "1.2.0");
}

#[test]
fn every_reference_and_every_link_leads_somewhere() {
    let document = document();
    let ids: BTreeSet<&str> = operations(&document).iter().filter_map(|one| one["operationId"].as_str()).collect();
    let mut references = 0;
    each(&document, &mut |object| {
        if let Some(to) = object.get("$ref").and_then(Value::as_str) {
            references += 1;
            assert!(document.pointer(to.strip_prefix('#').unwrap()).is_some(), "{to}");
        }
        for link in object.get("links").and_then(Value::as_object).into_iter().flat_map(Map::values) {
            assert!(ids.contains(link["operationId"].as_str().unwrap()), "{link}");
        }
    });
    assert!(references > 100, "{references}");
}

#[test]
fn every_schema_and_response_has_a_use() {
    let document = document();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    each(&document, &mut |object| used.extend(object.get("$ref").and_then(Value::as_str)));
    for kind in ["schemas", "responses"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            assert!(used.contains(format!("#/components/{kind}/{name}").as_str()), "{kind} {name}");
        }
    }
}

#[test]
fn every_operation_says_what_it_is_and_names_the_parameters_of_its_path() {
    let document = document();
    let tags: Vec<&str> = operations::TAGS.iter().map(|(name, _)| *name).collect();
    let all = operations(&document);
    let ids: BTreeSet<&str> = all.iter().map(|one| one["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), all.len(), "no id stands twice");
    for (path, methods) in document["paths"].as_object().unwrap() {
        let wanted: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for operation in methods.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named = parameters.filter(|one| one["in"] == "path").map(|one| one["name"].as_str().unwrap());
            assert_eq!(named.collect::<BTreeSet<_>>(), wanted, "{path}");
            assert!(tags.contains(&operation["tags"][0].as_str().unwrap()), "{path}");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{path}");
        }
    }
}

#[test]
fn every_operation_of_the_crm_names_its_permission_and_each_permission_opens_something() {
    let document = document();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(noun) = path.strip_prefix("/v1/crm/").map(|rest| rest.split('/').next().unwrap()) else { continue };
        let noun = if noun == "calendars" { "bookings" } else { noun };
        for (method, operation) in methods.as_object().unwrap() {
            let reads = method == "get" || path.ends_with("/availability");
            let permission = format!("{noun}.{}", if reads { "read" } else { "write" });
            assert_eq!(operation["x-permission"], permission, "{method} {path}");
            assert_eq!(operation["security"], json!([{ "crmKey": [permission] }, { "crmKeyHeader": [permission] }]));
            assert!(operation["description"].as_str().unwrap().contains(&format!("`{permission}`")), "{method} {path}");
            let header = operation["parameters"].as_array().into_iter().flatten().find(|one| one["in"] == "header");
            assert_eq!(header.is_some_and(|header| header["required"] == true), !reads, "{method} {path}");
            assert_eq!(operation["responses"].get("503").is_some(), !reads, "{method} {path}");
            seen.insert(permission);
        }
    }
    assert_eq!(seen, Permission::ALL.map(|permission| permission.as_str().to_owned()).into());
}

#[test]
fn bodies_of_the_crm_take_no_other_members_and_no_null() {
    let document = document();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values().filter(|_| path.starts_with("/v1/crm/")) {
            let Some(body) = operation.get("requestBody") else { continue };
            let name = body["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
            let schema = document.pointer(name.strip_prefix('#').unwrap()).unwrap();
            assert_eq!((&body["required"], &schema["additionalProperties"]), (&json!(true), &json!(false)), "{name}");
            for (member, field) in schema["properties"].as_object().unwrap() {
                assert!(field["type"].is_string(), "{name} {member}");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 8);
}

#[test]
fn every_code_is_listed_and_some_operation_can_end_in_it() {
    let document = document();
    let listed = &document["components"]["schemas"]["Error"]["properties"]["code"]["enum"];
    assert_eq!(*listed, json!(Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()));
    let mut met: BTreeSet<&str> = BTreeSet::new();
    each(&document, &mut |object| {
        let content = object.get("content").map(|content| &content["application/problem+json"]["schema"]["allOf"][1]);
        let codes = content.and_then(|narrowed| narrowed["properties"]["code"]["enum"].as_array());
        met.extend(codes.into_iter().flatten().filter_map(Value::as_str));
    });
    // No operation is at an unknown path, or has another method than its own.
    met.extend([Code::UnknownPath.as_str(), Code::MethodNotAllowed.as_str()]);
    let unmet: Vec<&Code> = Code::ALL.iter().filter(|code| !met.contains(code.as_str())).collect();
    assert!(unmet.is_empty(), "no operation ends in {unmet:?}");
}

/// The event of the examples, made as the service makes it.
fn event(event_type: EventType) -> Event {
    let client = client();
    let submitted_at = at("16:05:12.480");
    match event_type {
        EventType::NewClient => Event::new_client(&client, client.created_at),
        EventType::CheckInSubmitted | EventType::SystemGradeDrop => {
            Event::of_check_in(&client, event_type, &check_in_id(), submitted_at)
        }
        EventType::PhaseAdvanced => {
            let advance = domain::fact::PhaseAdvance {
                from_phase: Some("Foundation".to_owned()),
                to_phase: "Rebuild".to_owned(),
                advanced_at: at("10:00:00.000"),
            };
            Event::phase_advanced(&client, &advance)
        }
        EventType::MessageReceived => {
            Event::message_received(&client, &MessageId::parse("message_88").unwrap(), at("11:42:07.003"))
        }
        EventType::LowCheckInScore => {
            Event::low_check_in_score(&client, &check_in_id(), submitted_at, &automation_id())
        }
    }
}

#[test]
fn examples_of_events_are_what_is_sent() {
    let document = document();
    for event_type in EventType::ALL {
        let event = event(event_type);
        let body = &document["webhooks"][event_type.as_str()]["post"]["requestBody"]["content"]["application/json"];
        for (mode, name) in
            [(PayloadMode::Identifiers, "identifiers"), (PayloadMode::ContactDetails, "contact_details")]
        {
            let sent: Value = serde_json::from_slice(&event.render(mode)).unwrap();
            assert_eq!(body["examples"][name]["value"], sent);
        }
    }
    assert_eq!(document["webhooks"].as_object().unwrap().len(), 11);
}
