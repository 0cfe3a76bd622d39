//! What template.yaml says fits together: time-outs and visibility, concurrency and mappings; and nothing that is stored or queued lacks
//! its protection.

use std::collections::{BTreeMap, BTreeSet};

use local_stack::template::document;
use serde_json::{Value, json};

/// API Gateway gives up on a function after 30 seconds.
const GATEWAY_TIMEOUT_S: u64 = 30;
/// An account's functions run this many times at once, unless it has asked for more. A hundred cannot be reserved.
const ACCOUNT_CONCURRENCY: u64 = 1_000;
const UNRESERVED: u64 = 100;
/// Lambda takes no lower limit of a queue's mapping. In an account of ten places it leaves some for requests.
const FEWEST_AT_ONCE: u64 = 2;
/// What the access log may hold of a request: nothing that a caller sent.
const LOGGED: [&str; 8] = [
    "error.responseType",
    "integrationLatency",
    "integrationStatus",
    "requestId",
    "responseLatency",
    "responseLength",
    "routeKey",
    "status",
];

pub(crate) type Resources = BTreeMap<String, Value>;

pub(crate) fn template() -> Value {
    document(include_str!("../template.yaml")).unwrap()
}

/// The resources of a type, by their logical ids.
pub(crate) fn of_type(template: &Value, kind: &str) -> Resources {
    let all = template["Resources"].as_object().unwrap();
    let found: Resources =
        all.iter().filter(|(_, resource)| resource["Type"] == kind).map(|(id, it)| (id.clone(), it.clone())).collect();
    assert!(!found.is_empty(), "{kind}");
    found
}

pub(crate) fn functions(template: &Value) -> Resources {
    of_type(template, "AWS::Serverless::Function")
}

/// The events of a type that invoke the function.
pub(crate) fn events<'f>(function: &'f Value, kind: &str) -> Vec<&'f Value> {
    let all = function["Properties"]["Events"].as_object().unwrap().values();
    all.filter(|event| event["Type"] == kind).map(|event| &event["Properties"]).collect()
}

fn timeout_s(template: &Value, function: &Value) -> u64 {
    let own = function["Properties"]["Timeout"].as_u64();
    own.unwrap_or_else(|| template["Globals"]["Function"]["Timeout"].as_u64().unwrap())
}

/// What a `Fn::GetAtt` or a `Ref` names.
pub(crate) fn target(value: &Value) -> &str {
    value["Ref"].as_str().or_else(|| value["Fn::GetAtt"][0].as_str()).unwrap_or_else(|| panic!("{value}"))
}

/// The items of a list, or the one item that stands for a list of one.
fn each(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// Whether the function's policies let it send to the queue, or its environment names the queue's URL.
fn may_send_to(function: &Value, queue: &str) -> bool {
    let properties = &function["Properties"];
    let variables = properties["Environment"]["Variables"].as_object();
    let is_told = variables.into_iter().flatten().any(|(_, value)| value["Ref"] == queue);
    let statements = each(&properties["Policies"]).iter().flat_map(|policy| each(&policy["Statement"]));
    let mut sending = statements.filter(|it| each(&it["Action"]).iter().any(|action| action == "sqs:SendMessage"));
    is_told || sending.any(|it| each(&it["Resource"]).iter().any(|resource| resource["Fn::GetAtt"][0] == queue))
}

#[test]
fn a_message_is_hidden_for_six_times_as_long_as_its_function_may_take() {
    let template = template();
    let mut mappings = 0;
    for (id, function) in functions(&template) {
        for event in events(&function, "SQS") {
            let queue = &template["Resources"][target(&event["Queue"])]["Properties"];
            let visibility_s = queue["VisibilityTimeout"].as_u64().unwrap();
            assert!(visibility_s >= 6 * timeout_s(&template, &function), "{id}: {visibility_s}");
            mappings += 1;
        }
    }
    assert_eq!(mappings, 4);
}

/// The look-up of a batch of facts takes 10 s at most, each slow fact holds up the next for half a second, and the last
/// one takes 15 s (functions/ingest/src/batch.rs).
#[test]
fn the_facts_of_a_batch_have_their_deadlines_within_the_functions_time_out() {
    let template = template();
    let ingest = &functions(&template)["IngestFunction"];
    let batch_size = events(ingest, "SQS")[0]["BatchSize"].as_u64().unwrap();
    assert!(2 * timeout_s(&template, ingest) > 2 * (10 + 15) + (batch_size - 1));
}

#[test]
fn background_functions_reserve_what_their_mappings_may_take_and_leave_enough() {
    let template = template();
    let mut reserved = 0;
    for (id, function) in functions(&template) {
        let reservation = &function["Properties"]["ReservedConcurrentExecutions"];
        if !events(&function, "HttpApi").is_empty() {
            assert!(reservation.is_null(), "{id} answers requests: they share what is not reserved");
            continue;
        }
        let choice = reservation["Fn::If"].as_array().unwrap_or_else(|| panic!("{id} reserves nothing"));
        assert_eq!((&choice[0], &choice[2]), (&json!("ReservesConcurrency"), &json!({"Ref": "AWS::NoValue"})), "{id}");
        let has = choice[1].as_u64().unwrap();
        let queues = events(&function, "SQS").into_iter().map(|event| {
            let most = event["ScalingConfig"]["MaximumConcurrency"]["Fn::If"].as_array();
            let most = most.unwrap_or_else(|| panic!("{id} has no limit"));
            assert_eq!((&most[0], &most[2]), (&json!("ReservesConcurrency"), &json!(FEWEST_AT_ONCE)), "{id}");
            most[1].as_u64().unwrap()
        });
        let streams =
            events(&function, "DynamoDB").into_iter().map(|event| event["ParallelizationFactor"].as_u64().unwrap());
        let schedules = events(&function, "Schedule").len() as u64;
        let wanted = queues.chain(streams).sum::<u64>() + schedules;
        assert!(has >= wanted, "{id} reserves {has}, and may take {wanted}");
        reserved += has;
    }
    assert!(reserved > 0 && reserved + UNRESERVED <= ACCOUNT_CONCURRENCY, "{reserved}");
}

#[test]
fn who_may_send_to_a_queue_that_it_consumes_is_not_ended_as_a_runaway_and_nobody_else_is_spared() {
    let template = template();
    assert!(template["Globals"]["Function"]["RecursiveLoop"].is_null());
    let mut spared = 0;
    for (id, function) in functions(&template) {
        let goes_round = events(&function, "SQS").iter().any(|event| may_send_to(&function, target(&event["Queue"])));
        let wanted = if goes_round { json!("Allow") } else { Value::Null };
        assert_eq!(function["Properties"]["RecursiveLoop"], wanted, "{id}");
        spared += usize::from(goes_round);
    }
    assert_eq!(spared, 3);
}

#[test]
fn what_goes_out_by_itself_can_be_held_and_what_comes_in_is_taken() {
    let template = template();
    assert_eq!(template["Parameters"]["HoldOutgoing"]["Default"], "false");
    for (id, function) in functions(&template) {
        let comes_in = id == "IngestFunction";
        for event in ["SQS", "DynamoDB"].into_iter().flat_map(|kind| events(&function, kind)) {
            let held = json!({ "Fn::If": ["HoldsOutgoing", false, true] });
            assert_eq!(event["Enabled"], if comes_in { Value::Null } else { held }, "{id}");
        }
        for event in events(&function, "Schedule") {
            assert_eq!(event["State"], json!({ "Fn::If": ["HoldsOutgoing", "DISABLED", "ENABLED"] }), "{id}");
        }
    }
}

#[test]
fn a_function_receives_from_its_own_queues_and_streams_alone() {
    let template = template();
    let mut bounded = 0;
    for (id, function) in functions(&template) {
        let policies = each(&function["Properties"]["Policies"]).iter();
        let statements: Vec<&Value> = policies.flat_map(|policy| each(&policy["Statement"])).collect();
        for (kind, source, taking) in [
            ("SQS", "Queue", &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]),
            ("DynamoDB", "Stream", &["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]),
        ] {
            let own: Vec<&Value> = events(&function, kind).iter().map(|event| &event[source]).collect();
            let denies = |it: &&&Value| it["Effect"] == "Deny" && each(&it["Action"]).iter().eq(taking);
            let other_than = statements.iter().filter(denies).map(|it| each(&it["NotResource"])).collect::<Vec<_>>();
            assert_eq!(other_than.concat().iter().collect::<Vec<_>>(), own, "{id}");
            assert_eq!(other_than.len(), usize::from(!own.is_empty()), "{id}");
            bounded += own.len();
        }
    }
    assert_eq!(bounded, 5);
}

#[test]
fn functions_that_answer_requests_end_before_the_gateway_gives_up() {
    let template = template();
    for (id, function) in functions(&template) {
        if !events(&function, "HttpApi").is_empty() {
            assert!(timeout_s(&template, &function) < GATEWAY_TIMEOUT_S, "{id}");
        }
    }
}

#[test]
fn every_table_is_backed_up_protected_encrypted_and_outlives_the_stack() {
    let template = template();
    for (id, table) in of_type(&template, "AWS::DynamoDB::Table") {
        let properties = &table["Properties"];
        assert_eq!(properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true, "{id}");
        assert_eq!(properties["DeletionProtectionEnabled"], json!({"Ref": "DeletionProtection"}), "{id}");
        assert_eq!(properties["SSESpecification"]["SSEEnabled"], true, "{id}");
    }
    assert_eq!(template["Parameters"]["DeletionProtection"]["Default"], "true");
    for kind in ["AWS::DynamoDB::Table", "AWS::SecretsManager::Secret"] {
        for (id, kept) in of_type(&template, kind) {
            assert_eq!(
                (&kept["DeletionPolicy"], &kept["UpdateReplacePolicy"]),
                (&json!("Retain"), &json!("Retain")),
                "{id}"
            );
        }
    }
}

#[test]
fn every_queue_is_encrypted_and_its_dead_letters_outlive_its_messages() {
    let template = template();
    let queues = of_type(&template, "AWS::SQS::Queue");
    let retention_s = |id: &str| queues[id]["Properties"]["MessageRetentionPeriod"].as_u64().unwrap();
    for (id, queue) in &queues {
        let properties = &queue["Properties"];
        assert_eq!(properties["SqsManagedSseEnabled"], true, "{id}");
        assert!(retention_s(id) > properties["VisibilityTimeout"].as_u64().unwrap_or_default(), "{id}");
        if let Some(redrive) = properties.get("RedrivePolicy") {
            assert!(retention_s(target(&redrive["deadLetterTargetArn"])) >= retention_s(id), "{id}");
        }
    }
}

#[test]
fn what_a_rule_cannot_bring_to_its_queue_lies_with_dead_letters() {
    let template = template();
    let policies = of_type(&template, "AWS::SQS::QueuePolicy");
    for (id, rule) in of_type(&template, "AWS::Events::Rule") {
        for aimed in rule["Properties"]["Targets"].as_array().unwrap() {
            for arn in [&aimed["Arn"], &aimed["DeadLetterConfig"]["Arn"]] {
                let queue = json!({"Ref": target(arn)});
                let of_queue = policies.values().filter(|policy| policy["Properties"]["Queues"] == json!([queue]));
                let mut statements = of_queue.flat_map(|it| each(&it["Properties"]["PolicyDocument"]["Statement"]));
                let lets = |statement: &Value| {
                    statement["Principal"]["Service"] == "events.amazonaws.com"
                        && statement["Action"] == "sqs:SendMessage"
                        && statement["Resource"] == *arn
                        && target(&statement["Condition"]["ArnEquals"]["aws:SourceArn"]) == id
                };
                assert!(statements.any(lets), "{id} may not send to {queue}");
            }
        }
    }
}

#[test]
fn the_api_is_throttled_and_logs_nothing_that_a_caller_sent() {
    let template = template();
    let api = &template["Resources"]["Api"]["Properties"];
    let limits =
        json!({"ThrottlingRateLimit": {"Ref": "ApiRateLimit"}, "ThrottlingBurstLimit": {"Ref": "ApiBurstLimit"}});
    assert_eq!(api["DefaultRouteSettings"], limits);
    let format = api["AccessLogSettings"]["Format"].as_str().unwrap();
    let variable = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '.').collect::<String>();
    let logged: BTreeSet<String> = format.split("$context.").skip(1).map(variable).collect();
    assert_eq!(logged, LOGGED.map(str::to_owned).into());
    let line = logged.iter().fold(format.to_owned(), |line, name| line.replace(&format!("$context.{name}"), "0"));
    assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
}

#[test]
fn every_function_is_built_for_the_architecture_that_a_parameter_names() {
    let template = template();
    assert_eq!(template["Globals"]["Function"]["Architectures"], json!([{"Ref": "Architecture"}]));
    let parameter = &template["Parameters"]["Architecture"];
    assert_eq!((&parameter["Default"], &parameter["AllowedValues"]), (&json!("arm64"), &json!(["arm64", "x86_64"])));
    for (id, function) in functions(&template) {
        assert!(function["Properties"]["Architectures"].is_null(), "{id}");
    }
}

#[test]
fn a_domain_of_its_own_is_made_only_where_one_is_given() {
    let template = template();
    for name in ["DomainName", "CertificateArn", "HostedZoneId", "AlarmTopicArn"] {
        assert_eq!(template["Parameters"][name]["Default"], "", "{name}");
    }
    let wanted = [
        ("AWS::ApiGatewayV2::DomainName", "HasDomain"),
        ("AWS::ApiGatewayV2::ApiMapping", "HasDomain"),
        ("AWS::Route53::RecordSet", "HasDomainRecord"),
    ];
    for (kind, condition) in wanted {
        for (id, resource) in of_type(&template, kind) {
            assert_eq!(resource["Condition"], condition, "{id}");
        }
    }
}
