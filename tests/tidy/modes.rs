//! The mode of a deployment: few places ask for it, and the parts of a sandbox are in a sandbox's template alone.

use std::collections::BTreeSet;

use compare::assert_same;
use domain::mode::Mode;
use edge::routes::served;
use serde_json::{Value, json};

use crate::tidy::template::{arrives_unrouted, functions, of_type, route_keys, template};
use crate::tidy::tree::{code, rust_files};

/// Files in which the mode decides: keys, mails, workspaces of new coaches, login links, and the routes.
const DECIDE: [&str; 5] = [
    "functions/login-links/src/app.rs",
    "lib/edge/src/lambda.rs",
    "lib/edge/src/session.rs",
    "lib/outbound/src/mail.rs",
    "lib/store/src/key.rs",
];
/// Files that show the mode, or hand it on.
const SHOW: [&str; 6] = [
    "functions/deliver/src/lib.rs",
    "functions/docs/src/lib.rs",
    "functions/ping/src/lib.rs",
    "functions/portal/src/lib.rs",
    "functions/settings/src/app.rs",
    "infra/operate/src/connection.rs",
];
/// The setting, its one name in the code, and the file of both.
const SETTING: &str = "SERVICE_MODE";
const NAME: &str = "Mode::SETTING";
const FILE: &str = "lib/domain/src/mode.rs";
/// The condition of what a sandbox alone has, and its resources.
const CONDITION: &str = "IsSandbox";
/// The condition of what a sandbox has that is deployed gradually. It includes [`CONDITION`].
const GRADUAL_CONDITION: &str = "DeploysSandboxGradually";
const RESOURCES: [&str; 5] = ["SandboxFunction", "SandboxLog", "WipeFunction", "WipeLog", "WipesQueue"];

/// The files of the service whose code above its tests has this text.
fn files_with(text: &str) -> BTreeSet<String> {
    let files = rust_files(&["lib", "functions", "infra"]).into_iter();
    files.filter(|(_, content)| code(content).any(|line| line.contains(text))).map(|(name, _)| name).collect()
}

#[test]
fn five_places_decide_by_the_mode_and_the_others_that_ask_for_it_show_it() {
    assert_same(
        "DECIDE or SHOW here, after a review: a record knows no mode, and each further branch may mix the worlds",
        files_with(NAME),
        DECIDE.into_iter().chain(SHOW),
    );
}

#[test]
fn the_setting_of_the_mode_has_one_name() {
    assert_same("the file that names the setting: ask by Mode::SETTING", files_with(SETTING), [FILE]);
    let lines = include_str!("../../template.yaml").lines().filter(|line| line.contains(SETTING));
    assert_eq!(lines.collect::<Vec<_>>(), [format!("        {SETTING}: !Ref Mode")]);
}

/// The value in a live stack, where the condition of a sandbox does not hold.
fn without_sandbox(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_sandbox).collect(),
        Value::Object(members) => match members.get("Fn::If").and_then(Value::as_array).map(Vec::as_slice) {
            Some([condition, _, no]) if condition == CONDITION => without_sandbox(no),
            _ => members.iter().map(|(name, member)| (name.clone(), without_sandbox(member))).collect(),
        },
        plain => plain.clone(),
    }
}

#[test]
fn a_live_stack_has_no_resource_of_a_sandbox() {
    let template = template();
    let resources = template["Resources"].as_object().unwrap();
    let conditional = resources.iter().filter(|(_, resource)| resource["Condition"] == CONDITION).map(|(id, _)| id);
    assert_same("the resources of a sandbox in template.yaml, or RESOURCES here", conditional, RESOURCES);
    // Every reference to them is conditional, too.
    for (id, resource) in resources {
        let text = without_sandbox(resource).to_string();
        let of_sandbox = RESOURCES.iter().find(|name| text.contains(&format!("\"{name}\"")));
        let is_of_sandbox = [CONDITION, GRADUAL_CONDITION].iter().any(|condition| resource["Condition"] == *condition);
        let refers = of_sandbox.filter(|_| !is_of_sandbox);
        assert_eq!(
            refers, None,
            "{id} refers to a resource that a live stack lacks: give it or the reference the condition {CONDITION}"
        );
    }
    let gradual = json!({ "Fn::And": [{ "Condition": "DeploysGradually" }, { "Condition": CONDITION }] });
    assert_eq!(template["Conditions"][GRADUAL_CONDITION], gradual);
    // The functions have exactly the routes of a sandbox.
    let live: BTreeSet<String> = functions(&template)
        .values()
        .filter(|function| function["Condition"] != CONDITION)
        .flat_map(route_keys)
        .filter(|key| key != "$default" && !key.starts_with("HEAD "))
        .collect();
    let routed = served(Mode::Live).filter(|route| !arrives_unrouted(route));
    assert_same("the function of a route in template.yaml, or its access", live, routed);
    for (id, log) in of_type(&template, "AWS::Logs::LogGroup") {
        let is_of_sandbox = RESOURCES.contains(&id.as_str());
        assert_eq!(log["Condition"] == CONDITION, is_of_sandbox, "{id}");
    }
}

#[test]
fn a_sandbox_may_not_send_mail() {
    let template = template();
    for (id, resource) in template["Resources"].as_object().unwrap() {
        let text = resource.to_string();
        let grants = text.matches("ses:Send").count();
        if grants > 0 {
            let statement = &resource["Properties"]["PolicyDocument"]["Statement"]["Fn::If"];
            assert_eq!(statement[0], CONDITION, "{id}");
            assert!(!statement[1].to_string().contains("ses:") && statement[2].to_string().contains("ses:"), "{id}");
            assert_eq!(statement[2].to_string().matches("ses:Send").count(), grants, "{id}");
        }
    }
}
