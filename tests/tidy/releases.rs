//! Gradual deployment in template.yaml: versions, the alias that callers reach, and the alarms that stop a release.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::tidy::template::{events, functions, of_type, template};

/// Parameters that a function's variables refer to.
fn parameters_of_variables(template: &Value, function: &Value) -> BTreeSet<String> {
    let variables = [&template["Globals"]["Function"], &function["Properties"]]
        .into_iter()
        .flat_map(|owner| owner["Environment"]["Variables"].as_object().unwrap().values());
    let named = variables.filter_map(|value| value["Ref"].as_str());
    named.filter(|name| template["Parameters"].get(*name).is_some()).map(str::to_owned).collect()
}

#[test]
fn functions_that_answer_requests_alone_are_deployed_gradually_and_watched_by_their_new_version() {
    let template = template();
    assert_eq!(template["Parameters"]["GradualDeployment"]["Default"], "AllAtOnce");
    let gradual = template["Mappings"]["Gradual"].as_object().unwrap();
    assert_eq!(json!(gradual.keys().collect::<Vec<_>>()), template["Parameters"]["GradualDeployment"]["AllowedValues"]);
    for (way, of_way) in gradual {
        assert_eq!(of_way["Enabled"], (way != "AllAtOnce").to_string(), "{way}");
    }
    let alarms = of_type(&template, "AWS::CloudWatch::Alarm");
    let mut watched = 0;
    for (id, function) in functions(&template) {
        let own = &function["Properties"];
        if events(&function, "HttpApi").is_empty() {
            for property in ["AutoPublishAlias", "VersionDescription", "VersionDeletionPolicy", "DeploymentPreference"]
            {
                assert!(own[property].is_null(), "{id}: a queue, a stream or a schedule invokes no alias");
            }
            continue;
        }
        let alarm_id = id.replace("Function", "Errors");
        let condition = match function["Condition"].as_str() {
            Some("ServesMcp") => "DeploysMcpGradually",
            Some("IsSandbox") => "DeploysSandboxGradually",
            _ => "DeploysGradually",
        };
        let mut preference = json!({
            "Enabled": { "Fn::FindInMap": ["Gradual", { "Ref": "GradualDeployment" }, "Enabled"] },
            "Type": { "Ref": "GradualDeployment" },
            "Alarms": { "Fn::If": [condition, [{ "Ref": alarm_id }], [{ "Ref": "AWS::NoValue" }]] },
        });
        if !function["Condition"].is_null() {
            preference["PassthroughCondition"] = json!(true);
        }
        assert_eq!(own["DeploymentPreference"], preference, "{id}");
        let alias = own["AutoPublishAlias"].as_str().unwrap_or_else(|| panic!("{id} has no alias"));
        // A version that a failed deploy leaves would refuse the next deploy of the same code.
        assert_eq!((alias, &own["VersionDeletionPolicy"]), ("released", &json!("Delete")), "{id}");
        let alarm = &alarms[&alarm_id];
        let dimensions = json!([
            { "Name": "FunctionName", "Value": { "Ref": id } },
            { "Name": "Resource", "Value": { "Fn::Sub": format!("${{{id}}}:{alias}") } },
            { "Name": "ExecutedVersion", "Value": { "Fn::GetAtt": [id, "Version.Version"] } },
        ]);
        assert_eq!((&alarm["Condition"], &alarm["Properties"]["Dimensions"]), (&json!(condition), &dimensions), "{id}");
        assert_eq!(alarm["Properties"]["TreatMissingData"], "notBreaching", "{id}");
        watched += 1;
    }
    assert_eq!(watched, alarms.len(), "an alarm of the template belongs to a function that answers requests");
}

/// SAM publishes a version when the text of a variable changes. It does not see another value of a parameter, and the
/// alias would stay at the version with the old value.
#[test]
fn another_value_of_a_parameter_reaches_the_function_as_a_version() {
    let template = template();
    for (id, function) in functions(&template) {
        let Some(description) = function["Properties"]["VersionDescription"]["Fn::Sub"].as_str() else { continue };
        let named = description.split("${").skip(1).map(|rest| rest.split('}').next().unwrap().to_owned());
        // A stack keeps its mode.
        let mut wanted = parameters_of_variables(&template, &function);
        wanted.remove("Mode");
        assert_eq!(named.collect::<BTreeSet<_>>(), wanted, "{id}: VersionDescription names all parameters");
    }
}
