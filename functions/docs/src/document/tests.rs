//! Tests of the whole document.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use compare::assert_same;
use domain::api_key::{Permission, Scope};
use domain::automation::{Automation, Step, Trigger};
use domain::event::{self, EventName, PayloadMode};
use domain::id::{AutomationId, CoachId, EndpointId};
use domain::mode::Mode;
use domain::test_event;
use edge::Code;
use edge::routes::ROUTES;
use serde_json::{Map, Value, json};

use super::examples::{ENDPOINT_ID, at};
use super::prose::TAGS;
use super::*;

const ROUTE_TABLE: &str = "ROUTES of lib/edge/src/routes.rs";

/// The document of a sandbox, which has everything. `None` if it cannot be built: the reason is in the output of the
/// first test that asked.
static BUILT: LazyLock<Option<Value>> = LazyLock::new(|| std::panic::catch_unwind(|| document(Mode::Test)).ok());

/// The document of a live deployment.
static LIVE: LazyLock<Value> = LazyLock::new(|| document(Mode::Live));

fn whole() -> &'static Value {
    BUILT.as_ref().expect("the document cannot be built: another test of this run says why")
}

/// All operations, each with its path and method.
fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = whole()["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

/// Visits every object in the document, outer objects first.
fn visit_objects(value: &'static Value, visit: &mut impl FnMut(&'static Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit_objects(item, visit)),
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| visit_objects(member, visit));
        }
        _ => {}
    }
}

/// The target of a reference. Anything else is its own target.
fn target(value: &Value) -> &Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    reference.map_or(value, |to| whole().pointer(&to[1..]).unwrap_or_else(|| panic!("{to} has no target")))
}

#[test]
fn an_operation_takes_the_query_parameters_of_its_route() {
    for (path, method, operation) in operations() {
        let route =
            ROUTES.iter().find(|route| route.path == path && route.method.eq_ignore_ascii_case(method)).unwrap();
        let parameters = operation["parameters"].as_array().into_iter().flatten().map(target);
        let taken = parameters.filter(|parameter| parameter["in"] == "query");
        let taken: BTreeSet<&str> = taken.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        assert_same(ROUTE_TABLE, taken, route.query.iter().copied());
    }
}

#[test]
fn the_document_is_openapi_3_1_and_has_the_version() {
    assert_eq!(whole()["openapi"], "3.1.0");
    let version = whole()["info"]["version"].as_str().unwrap();
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    assert!(version.split('.').count() == 3 && version.split('.').all(is_number), "{version}");
}

#[test]
fn every_reference_and_link_has_a_target_and_every_schema_is_used() {
    let ids: BTreeSet<&str> = operations().filter_map(|(_, _, one)| one["operationId"].as_str()).collect();
    assert_eq!(ids.len(), operations().count(), "no operationId is used twice");
    let mut used: BTreeSet<&str> = BTreeSet::new();
    visit_objects(whole(), &mut |object| {
        if let Some(reference) = object.get("$ref") {
            target(&json!({ "$ref": reference }));
            used.extend(reference.as_str().unwrap().strip_prefix("#/components/schemas/"));
        }
        for link in object.get("links").and_then(Value::as_object).into_iter().flat_map(Map::values) {
            assert!(ids.contains(link["operationId"].as_str().unwrap()), "{link}");
        }
    });
    let place = "the schemas to which something in functions/docs/src/document refers";
    assert_same(place, used, whole()["components"]["schemas"].as_object().unwrap().keys());
}

#[test]
fn every_operation_has_the_parameters_of_its_path() {
    for (path, _, operation) in operations() {
        let wanted: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let named = parameters.filter(|one| one["in"] == "path").map(|one| one["name"].as_str().unwrap());
        assert_same(&format!("the parameters of {path} in functions/docs/src/document/operations"), named, &wanted);
    }
}

#[test]
fn every_description_of_the_reference_is_in_the_document() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/reference")).unwrap();
    assert_eq!(files.count(), TAGS.len() + 2, "name each file of functions/docs/reference in document/prose.rs");
    let text = whole().to_string();
    let pages = TAGS.iter().chain([&*INDEX, &*EVENTS]);
    let sections = pages.flat_map(|page| page.operations.values().chain([&page.top]));
    let parts = sections.flat_map(|section| &section.parts).map(|(name, about)| (name, json!(about).to_string()));
    let ids = TAGS.iter().flat_map(|page| page.operations.keys()).map(|id| (id, format!("\"operationId\":\"{id}\"")));
    for (name, said) in parts.chain(ids) {
        assert!(text.contains(said.trim_matches('"')), "functions/docs/reference: nothing has `{name}`: {said}");
    }
}

#[test]
fn every_member_and_every_parameter_has_a_meaning() {
    let mut found = BTreeSet::new();
    visit_objects(whole(), &mut |object| {
        // Conditions repeat members, and have no type.
        let members = object.get("properties").filter(|_| object.contains_key("type"));
        for (name, member) in members.and_then(Value::as_object).into_iter().flatten() {
            let about = member.get("description").or(target(member).get("description"));
            found.extend(about.is_none().then(|| format!("{name} of {}", json!(object.get("properties")))));
        }
    });
    for (path, method, operation) in operations() {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let unknown = parameters.filter(|parameter| parameter.get("description").is_none());
        found.extend(unknown.map(|parameter| format!("{method} {path}: {}", parameter["name"])));
    }
    assert!(found.is_empty(), "describe them where their types or operations are: {found:#?}");
}

#[test]
fn every_operation_with_a_key_names_its_permission_and_every_permission_is_used() {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (path, method, operation) in operations() {
        let route = ROUTES.iter().find(|route| (&*route.method.to_lowercase(), route.path) == (method, path)).unwrap();
        let Some(permission) = route.permission() else { continue };
        let name = permission.as_str();
        let key = if permission.scope() == Scope::Crm { "crmKey" } else { "apiKey" };
        let header = format!("{key}Header");
        assert_eq!(operation["x-permission"], name, "{route}");
        assert_eq!(operation["security"], json!([{ key: [name] }, { header: [name] }]));
        assert!(operation["description"].as_str().unwrap().contains(&format!("`{name}`")), "{route}");
        assert!(method != "get" || !permission.is_write(), "{route} reads: change its permission in {ROUTE_TABLE}");
        if permission.scope() == Scope::Crm {
            let header = operation["parameters"].as_array().into_iter().flatten().find(|one| one["in"] == "header");
            let needs_key = header.is_some_and(|header| header["required"] == true);
            assert_eq!(needs_key, permission.is_write(), "{route}: change its permission in {ROUTE_TABLE}");
            // Only the service's own 503 has codes. The gateway may answer 503 to any request.
            let unavailable = target(&operation["responses"]["503"]);
            assert_eq!(unavailable.get(response::CODES).is_some(), permission.is_write(), "{route}");
        }
        seen.insert(name);
    }
    let place = format!("the routes in {ROUTE_TABLE}, by permission");
    assert_same(&place, seen, Permission::ALL.map(Permission::as_str));
}

#[test]
fn every_code_is_listed_and_some_operation_answers_with_it() {
    let listed = &whole()["components"]["schemas"]["Error"]["properties"]["code"]["enum"];
    assert_eq!(*listed, json!(Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()));
    // The router answers with these two codes, for requests that match no operation.
    let mut used = BTreeSet::from([Code::UnknownPath.as_str(), Code::MethodNotAllowed.as_str()]);
    visit_objects(whole(), &mut |object| {
        let codes = object.get(response::CODES).and_then(Value::as_array);
        used.extend(codes.into_iter().flatten().filter_map(Value::as_str));
    });
    assert_same("the codes that some operation answers with", used, Code::ALL.iter().map(|code| code.as_str()));
}

#[test]
fn the_document_of_a_live_deployment_has_all_but_the_sandbox() {
    let live = LazyLock::force(&LIVE);
    let texts = [live, whole()].map(Value::to_string);
    for word in ["/v1/test/", "Sandbox", "X-Mode", "x-service-mode", "test_quota", "test_data_wiping", "sandbox.md"] {
        assert_eq!(texts.each_ref().map(|text| text.contains(word)), [false, true], "{word}");
    }
    let members = |document: &'static Value, place: &str| document.pointer(place).unwrap().as_object().unwrap().keys();
    let wanted = members(whole(), "/paths").filter(|path| !path.starts_with("/v1/test/"));
    assert_same("the paths of the document of a live deployment", members(live, "/paths"), wanted);
    for schema in members(live, "/components/schemas") {
        assert!(texts[0].contains(&format!("/schemas/{schema}\"")), "nothing refers to {schema}");
    }
}

/// Returns true if a value matches a schema. `tests/contract` checks the formats and bounds of the examples.
fn fits(schema: &Value, value: &Value) -> bool {
    let schema = target(schema);
    let all = |keyword: &str| schema[keyword].as_array().cloned().unwrap_or_default();
    let has_type = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
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
        && schema.get("const").is_none_or(|only| only == value)
        && schema.get("enum").is_none_or(|_| all("enum").contains(value))
        && schema.get("anyOf").is_none_or(|_| all("anyOf").iter().any(|part| fits(part, value)))
        && all("allOf").iter().all(|part| fits(part, value))
        && value.as_array().into_iter().flatten().all(|item| fits(&schema["items"], item))
        && all("required").iter().all(|name| value.get(name.as_str().unwrap()).is_some())
        && schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .all(|(name, schema)| value.get(name).is_none_or(|member| fits(schema, member)))
}

/// Names of the members of a schema, those of its parts included.
fn member_names(schema: &Value) -> BTreeSet<String> {
    let schema = target(schema);
    let own = schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned();
    own.chain(schema["allOf"].as_array().into_iter().flatten().flat_map(member_names)).collect()
}

/// The JSON of the requests that receivers get for an event.
fn content(event: EventName) -> &'static Value {
    &whole()["webhooks"][event.as_str()]["post"]["requestBody"]["content"]["application/json"]
}

/// Asserts that a body matches the schema of its event and has no members beyond the schema.
fn assert_described(event: EventName, body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap();
    let schema = &content(event)["schema"];
    assert!(fits(schema, &body), "{body}");
    let names = member_names(&schema["properties"]["data"]);
    let unknown = body["data"].as_object().unwrap().keys().find(|member| !names.contains(*member));
    assert_eq!(unknown, None, "{}", event.as_str());
}

#[test]
fn every_body_that_an_event_can_have_matches_its_schema() {
    let rule = Automation {
        id: AutomationId::parse("auto_12").unwrap(),
        coach_id: CoachId::parse("coach_7f3a").unwrap(),
        name: "A rule".to_owned(),
        active: true,
        trigger: Trigger::NewClient,
        steps: vec![Step::Webhook { endpoint_id: EndpointId::parse(ENDPOINT_ID).unwrap() }],
    };
    let modes = [(PayloadMode::Identifiers, "identifiers"), (PayloadMode::ContactDetails, "contact_details")];
    let mut sent_by_rule = 0;
    for event in EventName::all() {
        let example = event::example(event, at("09:30:00.000"));
        for (mode, name) in modes {
            let body = example.render(mode);
            assert_eq!(content(event)["examples"][name]["value"], serde_json::from_slice::<Value>(&body).unwrap());
            assert_described(event, &body);
            assert_described(event, &test_event::body(event, mode, at("09:30:00.000")));
            if let Some(sent) = example.sent_by(&rule) {
                assert_described(event, &sent.render(mode));
                sent_by_rule += 1;
            }
        }
    }
    assert_eq!((whole()["webhooks"].as_object().unwrap().len(), sent_by_rule), (20, 2 * 6));
}

#[test]
fn members_without_a_value_are_null_and_no_others() {
    let mut nullable = BTreeSet::new();
    for event in EventName::all() {
        let body = event::example(event, at("09:30:00.000")).render(PayloadMode::Identifiers);
        let body: Value = serde_json::from_slice(&body).unwrap();
        let schema = &content(event)["schema"];
        for member in body["data"].as_object().unwrap().keys() {
            let mut changed = body.clone();
            changed["data"][member] = Value::Null;
            if fits(schema, &changed) {
                nullable.insert(member.clone());
            }
            changed["data"].as_object_mut().unwrap().remove(member);
            // An emitted event has `automation` only if an automation's step sends it. A computed event always has it.
            let is_optional = member == "automation" && matches!(event, EventName::Emitted(_));
            assert!(is_optional || !fits(schema, &changed), "{} without {member}", event.as_str());
        }
    }
    let place = "the types of lib/domain/src/event/data.rs (`Option`), or the list of members that may be null here";
    assert_same(place, nullable, ["contact", "from_phase", "last_check_in_at", "last_logged_on"]);
}
