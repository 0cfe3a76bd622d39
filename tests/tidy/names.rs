//! Names of resources in the templates: two stacks, or one stack in two regions, never meet in a name, and policies
//! have room for the longest names.

use domain::mode::Mode;
use local_stack::template_file;
use serde_json::{Value, json};

use crate::tidy::observability::observability;
use crate::tidy::template::template;

/// The stack's name within a name.
const STACK: &str = "STACK";
/// Maximum characters of a function's name.
const MAX_FUNCTION_NAME_CHARS: usize = 64;
/// Maximum characters of the parameter `NamePrefix`.
const MAX_PREFIX_CHARS: usize = 20;
/// Maximum characters of a managed policy, white space aside.
const MAX_POLICY_CHARS: usize = 6_144;
/// Types whose names are unique in an account over all its regions, with the property that names them.
const GLOBAL: [(&str, &str); 9] = [
    ("AWS::CloudWatch::Dashboard", "DashboardName"),
    ("AWS::IAM::Group", "GroupName"),
    ("AWS::IAM::InstanceProfile", "InstanceProfileName"),
    ("AWS::IAM::ManagedPolicy", "ManagedPolicyName"),
    ("AWS::IAM::Role", "RoleName"),
    ("AWS::IAM::User", "UserName"),
    ("AWS::S3::Bucket", "BucketName"),
    ("AWS::Serverless::Function", "RoleName"),
    ("AWS::CloudFront::CachePolicy", "Name"),
];
/// Types whose names are unique in a region of an account, with the property that names them.
const REGIONAL: [(&str, &str); 12] = [
    ("AWS::CloudWatch::Alarm", "AlarmName"),
    ("AWS::DynamoDB::Table", "TableName"),
    ("AWS::Events::EventBus", "Name"),
    ("AWS::Events::Rule", "Name"),
    ("AWS::Logs::LogGroup", "LogGroupName"),
    ("AWS::Logs::QueryDefinition", "Name"),
    ("AWS::SQS::Queue", "QueueName"),
    ("AWS::SNS::Topic", "TopicName"),
    ("AWS::SecretsManager::Secret", "Name"),
    ("AWS::Serverless::Function", "FunctionName"),
    ("AWS::Serverless::HttpApi", "Name"),
    ("AWS::SSM::Parameter", "Name"),
];

/// The names that the templates give to resources of these types, with their logical ids.
fn names(types: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut names = Vec::new();
    // The stack of alarms gets the stack's name as a parameter.
    for (template, stack) in [(template(), "AWS::StackName"), (observability(), "Service")] {
        for (id, resource) in template["Resources"].as_object().unwrap() {
            for (_, property) in types.iter().filter(|(kind, _)| resource["Type"] == *kind) {
                let name = &resource["Properties"][*property];
                let text = match (&name["Fn::Sub"], &name["Ref"]) {
                    (Value::String(text), _) => text.replace(&format!("${{{stack}}}"), STACK),
                    (_, reference) if reference == stack => STACK.to_owned(),
                    _ => name.to_string(),
                };
                names.extend((!name.is_null()).then(|| (id.clone(), text)));
            }
        }
    }
    names
}

#[test]
fn a_global_name_holds_the_stacks_name_and_the_region() {
    let names = names(&GLOBAL);
    for (id, name) in &names {
        assert!(name.contains(STACK) && name.contains("${AWS::Region}"), "{id}: {name}");
    }
    assert!(!names.is_empty());
}

#[test]
fn a_name_holds_the_stacks_name_or_the_prefix_that_a_second_stack_gets() {
    let names = names(&REGIONAL);
    for (id, name) in &names {
        let is_own = [STACK, "${NamePrefix}"].iter().any(|own| name.contains(own));
        assert!(is_own, "{id}: {name}");
    }
    assert!(names.len() > 40, "{names:?}");
}

#[test]
fn a_managed_policy_has_room_for_the_longest_names() {
    let functions = names(&[("AWS::Serverless::Function", "FunctionName")]).into_iter();
    let longest_chars = functions.map(|(_, name)| name.len() - STACK.len()).max().unwrap();
    let stack = "s".repeat(MAX_FUNCTION_NAME_CHARS - longest_chars);
    let queue = format!(":000000000000:{}", "p".repeat(MAX_PREFIX_CHARS));
    for mode in Mode::ALL {
        for policy in template_file::of_mode(mode).unwrap().managed_policies().unwrap() {
            let longest = policy.document.to_string().replace("partner-api", &stack).replace(":000000000000:", &queue);
            let longest = longest.replace("arn:aws:", "arn:aws-us-gov:").replace("us-east-1", "ap-southeast-1");
            assert!(longest.len() <= MAX_POLICY_CHARS, "{}: {} characters", policy.logical_id, longest.len());
        }
    }
}

#[test]
fn the_link_to_the_dashboard_has_its_name_and_the_console_of_its_partition() {
    let template = template();
    let dashboard = &observability()["Resources"]["Dashboard"]["Properties"];
    let name = dashboard["DashboardName"]["Fn::Sub"].as_str().unwrap().replace("${Service}", "${AWS::StackName}");
    let [link, values] = template["Outputs"]["DashboardUrl"]["Value"]["Fn::Sub"].as_array().unwrap().as_slice() else {
        panic!("the link has no values")
    };
    let link = link.as_str().unwrap();
    assert!(link.starts_with("https://${AWS::Region}.${Host}/") && link.ends_with(&format!("name={name}")), "{link}");
    assert_eq!(values["Host"], json!({ "Fn::FindInMap": ["Console", { "Ref": "AWS::Partition" }, "Host"] }));
}

#[test]
fn no_template_assumes_a_partition_of_aws() {
    let [service, alarms] = [include_str!("../../template.yaml"), include_str!("../../infra/observability.yaml")];
    for line in service.lines().chain(alarms.lines()) {
        // The mapping of consoles, and principals, which have the same name in all partitions.
        let is_known = line.starts_with("    aws") || line.contains("Principal: { Service: ");
        let assumes = ["arn:aws:", "amazonaws.com", "console.aws"].iter().any(|text| line.contains(text));
        assert!(is_known || !assumes, "{line}");
    }
}
