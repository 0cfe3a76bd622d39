//! Names of resources in template.yaml: two stacks, or one stack in two regions, never meet in a name.

use serde_json::Value;

use crate::tidy::template::template;

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

/// The names that the template gives to resources of these types, with their logical ids.
fn names<'t>(template: &'t Value, types: &'static [(&str, &str)]) -> Vec<(&'t str, String)> {
    let resources = template["Resources"].as_object().unwrap();
    let named = resources.iter().flat_map(|(id, resource)| {
        let own = types.iter().filter(|(kind, _)| resource["Type"] == *kind);
        own.map(|(_, property)| (id.as_str(), &resource["Properties"][*property]))
    });
    named.filter(|(_, name)| !name.is_null()).map(|(id, name)| (id, name.to_string())).collect()
}

#[test]
fn a_global_name_holds_the_stacks_name_and_the_region() {
    let template = template();
    let names = names(&template, &GLOBAL);
    for (id, name) in &names {
        assert!(name.contains("${AWS::StackName}") && name.contains("${AWS::Region}"), "{id}: {name}");
    }
    assert!(!names.is_empty());
}

#[test]
fn a_name_holds_the_stacks_name_or_the_prefix_that_a_second_stack_gets() {
    let template = template();
    let names = names(&template, &REGIONAL);
    for (id, name) in &names {
        let is_own =
            ["${AWS::StackName}", r#"{"Ref":"AWS::StackName"}"#, "${NamePrefix}"].iter().any(|own| name.contains(own));
        assert!(is_own, "{id}: {name}");
    }
    assert!(names.len() > 20, "{names:?}");
}

#[test]
fn the_link_to_the_dashboard_has_its_name() {
    let template = template();
    let name = template["Resources"]["Dashboard"]["Properties"]["DashboardName"]["Fn::Sub"].as_str().unwrap();
    let link = template["Outputs"]["DashboardUrl"]["Value"]["Fn::Sub"].as_str().unwrap();
    assert!(link.ends_with(&format!("name={name}")), "{link}");
}
