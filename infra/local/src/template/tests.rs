//! Tests that unsupported templates are refused with one clear line, and what a condition leaves out.

use super::*;

fn small(resources: &str) -> Result<Template, TemplateError> {
    Template::load(&format!("Resources:\n{resources}"), &BTreeMap::new(), "http://127.0.0.1:4566")
}

#[test]
fn a_parameter_without_a_value_is_named() {
    let text = "Parameters:\n  Foo: { Type: String }\nResources: {}\n";
    let message = Template::load(text, &BTreeMap::new(), "").unwrap_err().to_string();
    assert!(message.contains("parameter Foo without a default"), "{message}");
}

#[test]
fn a_value_of_an_unknown_parameter_is_refused() {
    let supplied = [("Fo".to_owned(), "x".to_owned())].into();
    let text = "Parameters:\n  Foo: { Type: String, Default: a }\nResources: {}\n";
    let message = Template::load(text, &supplied, "").unwrap_err().to_string();
    assert!(message.contains("has no parameter Fo"), "{message}");
}

#[test]
fn inert_resources_are_left_out_and_unsupported_ones_are_refused() {
    small("  A: { Type: AWS::CloudWatch::Alarm, Properties: { X: !If [a, b, c] } }\n").unwrap();
    let message = small("  T: { Type: AWS::Kinesis::Stream }\n").unwrap_err().to_string();
    assert!(
        message.contains("T: the local stack does not support resources of type AWS::Kinesis::Stream"),
        "{message}"
    );
}

#[rstest::rstest]
#[case("{ Type: Kafka, Properties: {} }", "does not support events of type Kafka")]
#[case("{ Type: SQS, Properties: { Queue: a, Batchsize: 3 } }", "unknown field `Batchsize`")]
#[case("{ Type: SQS, Properties: { Queue: !GetAtt Nobody.Arn } }", "refers to Nobody.Arn")]
fn an_unsupported_trigger_is_refused(#[case] event: &str, #[case] wanted: &str) {
    let function = format!(
        "  F:\n    Type: AWS::Serverless::Function\n    Metadata: {{ BuildProperties: {{ Binary: f }} }}\n    \
         Properties:\n      Events:\n        E: {event}\n"
    );
    let message = small(&function).unwrap().functions().unwrap_err().to_string();
    assert!(message.contains(wanted) && message.contains("F: "), "{message}");
}

#[test]
fn a_resource_whose_condition_does_not_hold_is_left_out() {
    let text = |given: &str| {
        format!(
            "Parameters:\n  Domain: {{ Type: String, Default: \"{given}\" }}\nConditions:\n  HasDomain: !Not [!Equals [!Ref Domain, \"\"]]\n\
             Resources:\n  D: {{ Type: AWS::ApiGatewayV2::DomainName, Condition: HasDomain }}\n"
        )
    };
    Template::load(&text(""), &BTreeMap::new(), "").unwrap();
    let message = Template::load(&text("api.example.com"), &BTreeMap::new(), "").unwrap_err().to_string();
    assert!(message.contains("does not support resources of type AWS::ApiGatewayV2::DomainName"), "{message}");
    let message = small("  Q: { Type: AWS::SQS::Queue, Condition: Nobody }\n").unwrap_err().to_string();
    assert!(message.contains("Q: there is no condition Nobody"), "{message}");
}

#[test]
fn a_managed_policy_is_read_as_if_the_function_had_it_itself() {
    let statement = |action: &str| format!("{{ Effect: Allow, Action: {action}, Resource: '*' }}");
    let template = format!(
        "  P: {{ Type: AWS::IAM::ManagedPolicy, Properties: {{ PolicyDocument: {{ Statement: [{}] }} }} }}\n  F:\n    \
         Type: AWS::Serverless::Function\n    Metadata: {{ BuildProperties: {{ Binary: f }} }}\n    Properties:\n      \
         Policies: [!Ref P, {{ Statement: [{}] }}]\n",
        statement("sqs:SendMessage"),
        statement("dynamodb:GetItem"),
    );
    let functions = small(&template).unwrap().functions().unwrap();
    let actions: Vec<&Value> =
        functions[0].policies.as_array().unwrap().iter().map(|it| &it["Statement"][0]["Action"]).collect();
    assert_eq!(actions, ["sqs:SendMessage", "dynamodb:GetItem"]);
}

#[test]
fn a_managed_policy_is_resolved_with_its_conditions_and_may_be_of_no_function() {
    let text = "\
Conditions:
  IsSandbox: !Equals [a, b]
Resources:
  Wipes: { Type: AWS::SQS::Queue, Condition: IsSandbox }
  Feed: { Type: AWS::SQS::Queue, Properties: { QueueName: feed } }
  Attached: { Type: AWS::IAM::ManagedPolicy, Properties: { PolicyDocument: { Statement: [] } } }
  Operators:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      PolicyDocument:
        Statement:
          - { Action: a, Resource: !Ref AWS::StackId }
          - { Action: b, Resource: [!GetAtt Feed.Arn, !If [IsSandbox, !GetAtt Wipes.Arn, !Ref AWS::NoValue]] }
  F:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: f } }
    Properties: { Policies: [!Ref Attached] }
";
    let template = Template::load(text, &BTreeMap::new(), "").unwrap();
    let policies = template.managed_policies().unwrap();
    let found: Vec<_> = policies.iter().map(|it| (it.logical_id.as_str(), it.is_of_function)).collect();
    assert_eq!(found, [("Attached", true), ("Operators", false)]);
    let statements = &policies[1].document["Statement"];
    assert_eq!(statements[0]["Resource"], "arn:aws:cloudformation:us-east-1:000000000000:stack/partner-api/local");
    assert_eq!(statements[1]["Resource"], json!(["arn:aws:sqs:us-east-1:000000000000:feed"]));
}

#[test]
fn resources_are_listed_with_their_physical_ids_and_the_types_of_the_deployed_stack() {
    let template = "  Q: { Type: AWS::SQS::Queue, Properties: { QueueName: feed } }\n  F:\n    \
         Type: AWS::Serverless::Function\n    Metadata: { BuildProperties: { Binary: f } }\n  \
         S: { Type: AWS::SecretsManager::Secret }\n  L: { Type: AWS::Logs::LogGroup }\n";
    let mut template = small(template).unwrap();
    template.set_secret_arn("S", "arn:s".to_owned());
    let listed = template.stack_resources().into_iter().map(|it| (it.logical_id, it.physical_id, it.kind));
    let expected = [
        ("F", "partner-api-F", "AWS::Lambda::Function"),
        ("Q", "http://127.0.0.1:4566/000000000000/feed", "AWS::SQS::Queue"),
        ("S", "arn:s", "AWS::SecretsManager::Secret"),
    ];
    let expected = expected.map(|(id, physical, kind)| (id.to_owned(), physical.to_owned(), kind.to_owned()));
    assert_eq!(listed.collect::<Vec<_>>(), expected);
}

#[rstest::rstest]
#[case("Role: arn:aws:iam::000000000000:role/x", "does not support Role")]
#[case("PermissionsBoundary: arn:aws:iam::000000000000:policy/x", "does not support PermissionsBoundary")]
#[case("Policies: [{ Statement: [{ Resource: !GetAtt Nobody.Arn }] }]", "refers to Nobody.Arn")]
#[case("Policies: [!Ref Nobody]", "refers to Nobody")]
fn permissions_that_cannot_be_read_are_refused(#[case] property: &str, #[case] wanted: &str) {
    let function = format!(
        "  F:\n    Type: AWS::Serverless::Function\n    Metadata: {{ BuildProperties: {{ Binary: f }} }}\n    \
         Properties:\n      {property}\n"
    );
    let message = small(&function).unwrap().functions().unwrap_err().to_string();
    assert!(message.contains(wanted) && message.contains("F: "), "{message}");
}
