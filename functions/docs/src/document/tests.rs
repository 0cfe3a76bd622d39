//! The document as a whole.

use std::collections::BTreeSet;

use domain::api_key::Permission;
use domain::automation::{Automation, Step, Trigger};
use domain::event::{EventName, PayloadMode};
use domain::test_event;
use domain::time::Timestamp;
use domain::time::parse_date;
use edge::Code;
use serde_json::{Map, Value, json};

use super::events::Described;
use super::examples::{at, automation_id, client};
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
    assert_eq!(document["info"]["version"], VERSION);
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
    let tags: Vec<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
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
            // Of the service's own: the gateway may say it of anything.
            let unavailable = &operation["responses"]["503"];
            let unavailable = unavailable.get("$ref").map_or(unavailable, |shared| target(&document, shared));
            assert_eq!(unavailable.get(problems::CODES).is_some(), !reads, "{method} {path}");
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
            // A query may name the contact of a cancellation in the place of its body.
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
fn every_code_is_listed_and_some_operation_can_end_in_it() {
    let document = document();
    let listed = &document["components"]["schemas"]["Error"]["properties"]["code"]["enum"];
    assert_eq!(*listed, json!(Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()));
    let mut met: BTreeSet<&str> = BTreeSet::new();
    each(&document, &mut |object| {
        let codes = object.get(problems::CODES).and_then(Value::as_array);
        met.extend(codes.into_iter().flatten().filter_map(Value::as_str));
    });
    // No operation is at an unknown path, or has another method than its own.
    met.extend([Code::UnknownPath.as_str(), Code::MethodNotAllowed.as_str()]);
    let unmet: Vec<&Code> = Code::ALL.iter().filter(|code| !met.contains(code.as_str())).collect();
    assert!(unmet.is_empty(), "no operation ends in {unmet:?}");
}

/// Whether a value is what a schema says, in the words that the schemas of events use.
fn fits(document: &Value, schema: &Value, value: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(keyword, says)| {
        let any = |holds: &dyn Fn(&Value) -> bool| says.as_array().unwrap().iter().any(holds);
        match keyword.as_str() {
            "$ref" => fits(document, target(document, says), value),
            "allOf" => !any(&|part| !fits(document, part, value)),
            "anyOf" => any(&|part| fits(document, part, value)),
            "type" if says.is_array() => any(&|kind| is_a(kind, value)),
            "type" => is_a(says, value),
            "format" => value.as_str().is_none_or(|text| is_formed(says, text)),
            "const" => says == value,
            "enum" => any(&|one| one == value),
            "minimum" => value.as_f64() >= says.as_f64(),
            "maximum" => value.as_f64() <= says.as_f64(),
            "required" => !any(&|name| value.get(name.as_str().unwrap()).is_none()),
            "properties" => {
                let mut members = says.as_object().unwrap().iter();
                members.all(|(name, schema)| value.get(name).is_none_or(|value| fits(document, schema, value)))
            }
            "description" => true,
            other => panic!("{other} has no meaning here"),
        }
    })
}

fn target<'d>(document: &'d Value, reference: &Value) -> &'d Value {
    document.pointer(reference.as_str().unwrap().strip_prefix('#').unwrap()).unwrap()
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} has no meaning here"),
    }
}

fn is_formed(format: &Value, text: &str) -> bool {
    match format.as_str().unwrap() {
        "date-time" => Timestamp::parse(text).is_some(),
        "date" => parse_date(text).is_some(),
        // Of numbers, and of what the service itself holds to be an address.
        _ => true,
    }
}

/// The members that a schema names, its parts' included.
fn named(document: &Value, schema: &Value) -> BTreeSet<String> {
    let own = schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned();
    let whole = schema.get("$ref").map(|reference| target(document, reference));
    let parts = schema["allOf"].as_array().into_iter().flatten().chain(whole);
    own.chain(parts.flat_map(|part| named(document, part))).collect()
}

/// Checks a body that is sent against the schema of its event, and that it has nothing which the schema does not name.
fn is_described(document: &Value, body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap();
    let name = body["type"].as_str().unwrap();
    let schema = &document["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert!(fits(document, schema, &body), "{body}");
    let named = named(document, &schema["properties"]["data"]);
    for member in body["data"].as_object().unwrap().keys() {
        assert!(named.contains(member), "{name}: {member}");
    }
}

const MODES: [(PayloadMode, &str); 2] =
    [(PayloadMode::Identifiers, "identifiers"), (PayloadMode::ContactDetails, "contact_details")];

#[test]
fn whatever_is_sent_of_an_event_is_as_its_schema_says() {
    let document = document();
    let rule = Automation {
        id: automation_id(),
        coach_id: client().coach_id,
        name: "A rule".to_owned(),
        active: true,
        trigger: Trigger::NewClient,
        steps: vec![Step::Webhook { endpoint_id: examples::endpoint().id }],
    };
    let mut sent_by_rule = 0;
    let described = events::all(&mut Schemas::default());
    assert!(described.iter().map(|event| event.example.event_type).eq(EventName::all()));
    for Described { example, .. } in &described {
        let content =
            &document["webhooks"][example.event_type.as_str()]["post"]["requestBody"]["content"]["application/json"];
        for (mode, name) in MODES {
            let body = example.render(mode);
            assert_eq!(content["examples"][name]["value"], serde_json::from_slice::<Value>(&body).unwrap());
            is_described(&document, &body);
            is_described(&document, &test_event::body(example.event_type, mode, at("09:30:00.000")));
            if let Some(sent) = example.sent_by(&rule) {
                is_described(&document, &sent.render(mode));
                sent_by_rule += 1;
            }
        }
    }
    assert_eq!((document["webhooks"].as_object().unwrap().len(), sent_by_rule), (11, 2 * 6));
}

#[test]
fn a_figure_that_there_is_none_of_is_null_and_nothing_else_is() {
    let document = document();
    let mut nullable = BTreeSet::new();
    for Described { example, .. } in &events::all(&mut Schemas::default()) {
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
            // An automation is there where one sends an emitted event, and always in a computed one.
            let is_added = member == "automation" && matches!(example.event_type, EventName::Emitted(_));
            assert!(is_added || !fits(&document, schema, &changed), "{name} without {member}");
        }
    }
    assert_eq!(nullable, ["from_phase", "last_check_in_at", "last_logged_on"].map(str::to_owned).into());
}
