//! Tests that the project's template resolves, and that unsupported templates are refused with one clear line.

use super::*;

fn supplied() -> BTreeMap<String, String> {
    ["SettingsIssuer", "SettingsAudience", "SettingsPageOrigin", "AssertionIssuer", "MailFrom"]
        .map(|name| (name.to_owned(), format!("local {name}")))
        .into()
}

fn project() -> Template {
    let text = include_str!("../../../../template.yaml");
    let mut template = Template::load(text, &supplied(), "http://127.0.0.1:4566").unwrap();
    for (id, _) in template.secrets().unwrap() {
        template.set_secret_arn(&id, format!("arn:secret:{id}"));
    }
    template
}

fn small(resources: &str) -> Result<Template, TemplateError> {
    Template::load(&format!("Resources:\n{resources}"), &BTreeMap::new(), "http://127.0.0.1:4566")
}

#[test]
fn the_projects_template_resolves_throughout() {
    let template = project();
    assert!(template.tables().unwrap().iter().any(|table| table["TableName"] == "partner-api-clients"));
    assert_eq!(template.buses(), ["partner-api"]);
    let rules = template.rules().unwrap();
    assert_eq!(rules[0]["Targets"][0]["Arn"], "arn:aws:sqs:us-east-1:000000000000:application-feed");
    assert_eq!(rules[0]["EventBusName"], "partner-api");
    let queues = template.queues().unwrap();
    let feed = queues.iter().find(|queue| queue["QueueName"] == "application-feed").unwrap();
    let dead = "arn:aws:sqs:us-east-1:000000000000:application-feed-dlq";
    assert_eq!(feed["RedrivePolicy"]["deadLetterTargetArn"], dead);
}

#[test]
fn a_function_has_globals_its_own_variables_and_its_triggers() {
    let functions = project().functions().unwrap();
    let relay = functions.iter().find(|function| function.binary == "relay").unwrap();
    assert_eq!(relay.timeout, std::time::Duration::from_secs(60));
    assert_eq!(relay.variables["LOG_LEVEL"], "info");
    assert_eq!(relay.variables["DELIVERIES_QUEUE_URL"], "http://127.0.0.1:4566/000000000000/deliveries");
    assert_eq!(relay.variables["ENCRYPTION_SECRET_ARN"], "arn:secret:EncryptionSecret");
    let stream = relay.triggers.iter().find_map(|(_, trigger)| match trigger {
        Trigger::Stream(source) => Some(source),
        _ => None,
    });
    let stream = stream.unwrap();
    assert_eq!(stream.table_name(), "partner-api-outbox");
    assert_eq!(stream.retries(), Some(8));
    let [pattern] = stream.patterns().unwrap().try_into().unwrap();
    let selected = ["INSERT", "MODIFY", "REMOVE"].map(|name| pattern.matches(&json!({ "eventName": name })));
    assert_eq!(selected, [true, true, false]);
    let ping = functions.iter().find(|function| function.binary == "ping").unwrap();
    assert_eq!(ping.timeout, std::time::Duration::from_secs(25));
}

#[test]
fn settings_routes_are_guarded_and_partner_routes_are_not() {
    let template = project();
    let api = template.api().unwrap().unwrap();
    assert_eq!(api.authorizers["Coach"].issuer, "local SettingsIssuer");
    assert_eq!(api.cors.as_ref().unwrap().allow_origins, ["local SettingsPageOrigin"]);
    for function in template.functions().unwrap() {
        for (name, trigger) in &function.triggers {
            if let Trigger::Http(route) = trigger {
                let guard = route.path.starts_with("/settings/").then_some("Coach");
                assert_eq!(route.authorizer(), guard, "{name}");
            }
        }
    }
}

#[test]
fn a_parameter_without_a_value_is_named() {
    let text = "Parameters:\n  Foo: { Type: String }\nResources: {}\n";
    let message = Template::load(text, &BTreeMap::new(), "").unwrap_err().to_string();
    assert!(message.contains("parameter Foo without a default"), "{message}");
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
