//! Tests of the whole document.

use std::collections::BTreeSet;

use compare::assert_same;
use domain::api_key::Permission;
use domain::automation::{Automation, Step, Trigger};
use domain::event::{self, EventName, PayloadMode};
use domain::id::{AutomationId, CoachId, EndpointId};
use domain::test_event;
use edge::Code;
use serde_json::{Map, Value, json};

use super::examples::{ENDPOINT_ID, at};
use super::*;

fn operations(document: &Value) -> Vec<&Value> {
    let paths = document["paths"].as_object().unwrap().values();
    paths.flat_map(|path| path.as_object().unwrap().values()).collect()
}

/// Visits every object in the document, outer objects first.
fn visit_objects<'d>(value: &'d Value, visit: &mut impl FnMut(&'d Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit_objects(item, visit)),
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| visit_objects(member, visit));
        }
        _ => {}
    }
}

#[test]
fn the_document_is_openapi_3_1_and_has_the_version() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let version = document["info"]["version"].as_str().unwrap();
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    assert!(version.split('.').count() == 3 && version.split('.').all(is_number), "{version}");
}

#[test]
fn every_reference_and_link_has_a_target() {
    let document = document();
    let ids: BTreeSet<&str> = operations(&document).iter().filter_map(|one| one["operationId"].as_str()).collect();
    let mut references = 0;
    visit_objects(&document, &mut |object| {
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
fn every_schema_and_response_is_used() {
    let document = document();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    visit_objects(&document, &mut |object| used.extend(object.get("$ref").and_then(Value::as_str)));
    for kind in ["schemas", "responses"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let is_used = used.contains(format!("#/components/{kind}/{name}").as_str());
            assert!(is_used, "no operation refers to {name} of the {kind}: remove it from functions/docs/src/document");
        }
    }
}

#[test]
fn every_operation_has_the_parameters_of_its_path_and_an_id_of_its_own() {
    let document = document();
    let all = operations(&document);
    let ids: BTreeSet<&str> = all.iter().map(|one| one["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), all.len(), "no operationId is used twice");
    for (path, methods) in document["paths"].as_object().unwrap() {
        let wanted: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for operation in methods.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named = parameters.filter(|one| one["in"] == "path").map(|one| one["name"].as_str().unwrap());
            let place = format!("the parameters of {path} in functions/docs/src/document/operations");
            assert_same(&place, named, &wanted);
        }
    }
}

#[test]
fn every_description_of_the_reference_is_in_the_document() {
    let document = document().to_string();
    let pages = TAGS.iter().chain([&*INDEX, &*EVENTS]);
    let sections = pages.flat_map(|page| page.operations.values().chain([&page.top]));
    for (name, about) in sections.flat_map(|section| &section.parts) {
        let escaped = json!(about).to_string();
        assert!(
            document.contains(escaped.trim_matches('"')),
            "functions/docs/reference: nothing has `{name}`: {about}"
        );
    }
    for id in TAGS.iter().flat_map(|page| page.operations.keys()) {
        assert!(
            document.contains(&format!("\"operationId\":\"{id}\"")),
            "functions/docs/reference: no operation is {id}"
        );
    }
}

#[test]
fn every_crm_operation_names_its_permission_and_every_permission_is_used() {
    let document = document();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(noun) = path.strip_prefix("/v1/crm/").map(|rest| rest.split('/').next().unwrap()) else { continue };
        let noun = if noun == "calendars" { "bookings" } else { noun };
        for (method, operation) in methods.as_object().unwrap() {
            let reads = method == "get" || path.ends_with("/availability");
            let permission = format!("{noun}.{}", if reads { "read" } else { "write" });
            let place = "the permission in ROUTES of lib/edge/src/routes.rs";
            assert_eq!(operation["x-permission"], permission, "{method} {path}: change {place}");
            assert_eq!(operation["security"], json!([{ "crmKey": [permission] }, { "crmKeyHeader": [permission] }]));
            assert!(operation["description"].as_str().unwrap().contains(&format!("`{permission}`")), "{method} {path}");
            let header = operation["parameters"].as_array().into_iter().flatten().find(|one| one["in"] == "header");
            assert_eq!(header.is_some_and(|header| header["required"] == true), !reads, "{method} {path}");
            // Only the service's own 503 has codes. The gateway may answer 503 to any request.
            let unavailable = &operation["responses"]["503"];
            let unavailable = unavailable.get("$ref").map_or(unavailable, |shared| target(&document, shared));
            assert_eq!(unavailable.get(problems::CODES).is_some(), !reads, "{method} {path}");
            seen.insert(permission);
        }
    }
    let place = "the routes in ROUTES of lib/edge/src/routes.rs, by permission";
    assert_same(place, seen, Permission::ALL.map(Permission::as_str));
}

#[test]
fn crm_bodies_refuse_unknown_members_and_null() {
    let document = document();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values().filter(|_| path.starts_with("/v1/crm/")) {
            let Some(body) = operation.get("requestBody") else { continue };
            let name = body["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
            let schema = document.pointer(name.strip_prefix('#').unwrap()).unwrap();
            // The query of a cancellation may name the contact instead of the body.
            let required = json!(operation["operationId"] != "cancelBooking");
            assert_eq!((&body["required"], &schema["additionalProperties"]), (&required, &json!(false)), "{name}");
            for (member, field) in schema["properties"].as_object().unwrap() {
                assert!(field["type"].is_string(), "{name} {member}");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 8);
}

#[test]
fn every_code_is_listed_and_some_operation_answers_with_it() {
    let document = document();
    let listed = &document["components"]["schemas"]["Error"]["properties"]["code"]["enum"];
    assert_eq!(*listed, json!(Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()));
    let mut used: BTreeSet<&str> = BTreeSet::new();
    visit_objects(&document, &mut |object| {
        let codes = object.get(problems::CODES).and_then(Value::as_array);
        used.extend(codes.into_iter().flatten().filter_map(Value::as_str));
    });
    // The router answers with these two codes, for requests that match no operation.
    used.extend([Code::UnknownPath.as_str(), Code::MethodNotAllowed.as_str()]);
    let unused: Vec<&Code> = Code::ALL.iter().filter(|code| !used.contains(code.as_str())).collect();
    assert!(unused.is_empty(), "no operation answers with {unused:?}");
}

fn target<'d>(document: &'d Value, reference: &Value) -> &'d Value {
    document.pointer(reference.as_str().unwrap().strip_prefix('#').unwrap()).unwrap()
}

/// Returns true if a value matches a schema. Formats and bounds are left to `tests/contract`, which checks the examples.
fn fits(document: &Value, schema: &Value, value: &Value) -> bool {
    let fits = |schema: &Value| fits(document, schema, value);
    let all = |keyword: &str| schema[keyword].as_array().cloned().unwrap_or_default();
    let has_type = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    let is_of_type = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(has_type),
        kind => has_type(kind),
    };
    is_of_type
        && schema.get("$ref").is_none_or(|reference| fits(target(document, reference)))
        && schema.get("const").is_none_or(|only| only == value)
        && schema.get("enum").is_none_or(|_| all("enum").contains(value))
        && schema.get("anyOf").is_none_or(|_| all("anyOf").iter().any(fits))
        && all("allOf").iter().all(fits)
        && all("required").iter().all(|name| value.get(name.as_str().unwrap()).is_some())
        && schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .all(|(name, schema)| value.get(name).is_none_or(|member| self::fits(document, schema, member)))
}

/// Names of the members of a schema, those of its parts included.
fn member_names(document: &Value, schema: &Value) -> BTreeSet<String> {
    let own = schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned();
    let referenced = schema.get("$ref").map(|reference| target(document, reference));
    let parts = schema["allOf"].as_array().into_iter().flatten().chain(referenced);
    own.chain(parts.flat_map(|part| member_names(document, part))).collect()
}

/// Asserts that a body matches the schema of its event and has no members beyond the schema.
fn assert_described(document: &Value, body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap();
    let name = body["type"].as_str().unwrap();
    let schema = &document["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert!(fits(document, schema, &body), "{body}");
    let names = member_names(document, &schema["properties"]["data"]);
    for member in body["data"].as_object().unwrap().keys() {
        assert!(names.contains(member), "{name}: {member}");
    }
}

const MODES: [(PayloadMode, &str); 2] =
    [(PayloadMode::Identifiers, "identifiers"), (PayloadMode::ContactDetails, "contact_details")];

#[test]
fn every_body_that_an_event_can_have_matches_its_schema() {
    let document = document();
    let rule = Automation {
        id: AutomationId::parse("auto_12").unwrap(),
        coach_id: CoachId::parse("coach_7f3a").unwrap(),
        name: "A rule".to_owned(),
        active: true,
        trigger: Trigger::NewClient,
        steps: vec![Step::Webhook { endpoint_id: EndpointId::parse(ENDPOINT_ID).unwrap() }],
    };
    let mut sent_by_rule = 0;
    for example in EventName::all().map(|event| event::example(event, at("09:30:00.000"))) {
        let content =
            &document["webhooks"][example.event_type.as_str()]["post"]["requestBody"]["content"]["application/json"];
        for (mode, name) in MODES {
            let body = example.render(mode);
            assert_eq!(content["examples"][name]["value"], serde_json::from_slice::<Value>(&body).unwrap());
            assert_described(&document, &body);
            assert_described(&document, &test_event::body(example.event_type, mode, at("09:30:00.000")));
            if let Some(sent) = example.sent_by(&rule) {
                assert_described(&document, &sent.render(mode));
                sent_by_rule += 1;
            }
        }
    }
    assert_eq!((document["webhooks"].as_object().unwrap().len(), sent_by_rule), (11, 2 * 6));
}

#[test]
fn members_without_a_value_are_null_and_no_others() {
    let document = document();
    let mut nullable = BTreeSet::new();
    for example in EventName::all().map(|event| event::example(event, at("09:30:00.000"))) {
        let body: Value = serde_json::from_slice(&example.render(PayloadMode::Identifiers)).unwrap();
        let name = example.event_type.as_str();
        let schema = &document["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["schema"];
        for member in body["data"].as_object().unwrap().keys() {
            let mut changed = body.clone();
            changed["data"][member] = Value::Null;
            if fits(&document, schema, &changed) {
                nullable.insert(member.clone());
            }
            changed["data"].as_object_mut().unwrap().remove(member);
            // An emitted event has `automation` only if an automation's step sends it. A computed event always has it.
            let is_optional = member == "automation" && matches!(example.event_type, EventName::Emitted(_));
            assert!(is_optional || !fits(&document, schema, &changed), "{name} without {member}");
        }
    }
    let place = "the types of lib/domain/src/event/data.rs (`Option`), or the list of members that may be null here";
    assert_same(place, nullable, ["from_phase", "last_check_in_at", "last_logged_on"]);
}
