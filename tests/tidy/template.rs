//! Consistency of template.yaml: time-outs, visibility, concurrency and mappings agree, and all stored or queued data
//! is protected.

use std::collections::BTreeMap;

use edge::routes::{Access, ROUTES, Route, WEBHOOK_ADDRESSES};
use local_stack::template::document;
use serde_json::{Value, json};

/// Time-out of API Gateway for a function: 30 seconds.
const GATEWAY_TIMEOUT_S: u64 = 30;
/// Default concurrency of an account. A hundred of it cannot be reserved.
const ACCOUNT_CONCURRENCY: u64 = 1_000;
const UNRESERVED: u64 = 100;
/// Source of the service's events on the bus.
const OWN_SOURCE: &str = "partner-api";
/// Lambda's minimum for a queue mapping. An account with a concurrency of ten keeps some for requests.
const FEWEST_AT_ONCE: u64 = 2;

pub(crate) type Resources = BTreeMap<String, Value>;

pub(crate) fn template() -> Value {
    document(include_str!("../../template.yaml")).unwrap()
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

/// The resource that a `Fn::GetAtt` or a `Ref` names.
pub(crate) fn target(value: &Value) -> &str {
    value["Ref"].as_str().or_else(|| value["Fn::GetAtt"][0].as_str()).unwrap_or_else(|| panic!("{value}"))
}

/// The items of a list, or a single item as a list of one.
pub(crate) fn each(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// Returns true if the function's policies let it send to the queue, or its environment names the queue's URL.
fn may_send_to(function: &Value, queue: &str) -> bool {
    let properties = &function["Properties"];
    let variables = properties["Environment"]["Variables"].as_object();
    let has_url = variables.into_iter().flatten().any(|(_, value)| value["Ref"] == queue);
    let statements = each(&properties["Policies"]).iter().flat_map(|policy| each(&policy["Statement"]));
    let mut sending = statements.filter(|it| each(&it["Action"]).iter().any(|action| action == "sqs:SendMessage"));
    has_url || sending.any(|it| each(&it["Resource"]).iter().any(|resource| resource["Fn::GetAtt"][0] == queue))
}

/// Six times covers batches that Lambda receives and cannot hand over at once. A function with a FIFO queue reserves
/// what its mappings take, and one time is enough: a message that returns late would hold up its group.
#[test]
fn visibility_time_outs_are_six_times_the_functions_time_out_or_one_time_with_a_fifo_queue() {
    let template = template();
    let mut mappings = 0;
    for (id, function) in functions(&template) {
        let is_fifo = |event: &Value| template["Resources"][target(&event["Queue"])]["Properties"]["FifoQueue"] == true;
        let times = if events(&function, "SQS").into_iter().any(is_fifo) { 1 } else { 6 };
        for event in events(&function, "SQS") {
            let queue = &template["Resources"][target(&event["Queue"])]["Properties"];
            let visibility_s = queue["VisibilityTimeout"].as_u64().unwrap();
            assert!(visibility_s >= times * timeout_s(&template, &function), "{id}: {visibility_s}");
            mappings += 1;
        }
    }
    assert_eq!(mappings, 5);
}

/// Concurrency that a function reserves, if the parameter turns reservations on.
pub(crate) fn reservation(id: &str, function: &Value) -> u64 {
    let reservation = &function["Properties"]["ReservedConcurrentExecutions"];
    let choice = reservation["Fn::If"].as_array().unwrap_or_else(|| panic!("{id} reserves nothing"));
    assert_eq!((&choice[0], &choice[2]), (&json!("ReservesConcurrency"), &json!({"Ref": "AWS::NoValue"})), "{id}");
    choice[1].as_u64().unwrap()
}

/// The key of a route, as API Gateway names it.
fn route_key(event: &Value) -> String {
    let (method, path) = (event["Method"].as_str().unwrap(), event["Path"].as_str().unwrap());
    if path == "$default" { path.to_owned() } else { format!("{method} {path}") }
}

/// Returns true for a route whose requests arrive by `$default`, as those for unknown paths do.
pub(crate) fn arrives_unrouted(route: &Route) -> bool {
    route.path == WEBHOOK_ADDRESSES
}

/// Returns true for a route that takes neither a key nor a session.
pub(crate) fn is_anonymous(key: &str) -> bool {
    let mut public = ROUTES.iter().filter(|route| route.access == Access::Public);
    key == "$default" || is_head_of_page(key) || public.any(|route| key == route.to_string())
}

/// Returns true for a route whose function calls the API itself, so that its invocations wait for others.
pub(crate) fn is_for_assistants(key: &str) -> bool {
    ROUTES.iter().any(|route| route.access == Access::Assistant && key == route.to_string())
}

/// Returns true for HEAD of a public page, which has no entry in `ROUTES` of its own.
pub(crate) fn is_head_of_page(key: &str) -> bool {
    let of_page = |path: &str| ROUTES.iter().any(|route| route.path == path && route.answers_head());
    key.strip_prefix("HEAD ").is_some_and(of_page)
}

/// The keys of the function's routes.
pub(crate) fn route_keys(function: &Value) -> Vec<String> {
    events(function, "HttpApi").into_iter().map(route_key).collect()
}

/// Time of a batch of facts: a look-up of 10 s at most, half a second for each slow fact, and 15 s for the last one
/// (functions/ingest/src/batch.rs).
#[test]
fn the_facts_of_a_batch_have_their_deadlines_within_the_functions_time_out() {
    let template = template();
    let ingest = &functions(&template)["IngestFunction"];
    let batch_size = events(ingest, "SQS")[0]["BatchSize"].as_u64().unwrap();
    assert!(2 * timeout_s(&template, ingest) > 2 * (10 + 15) + (batch_size - 1));
}

#[test]
fn functions_reserve_concurrency_for_mappings_anonymous_callers_and_assistants_within_the_account() {
    let template = template();
    let mut reserved = 0;
    for (id, function) in functions(&template) {
        let routes = route_keys(&function);
        if routes.iter().any(|key| is_anonymous(key) || is_for_assistants(key)) {
            reserved += reservation(&id, &function);
            continue;
        }
        if !routes.is_empty() {
            let own = &function["Properties"]["ReservedConcurrentExecutions"];
            assert!(own.is_null(), "{id} answers callers with a key: they share what is not reserved");
            continue;
        }
        // A sandbox has few callers, and nobody waits for a removal of test data.
        if function["Condition"] == "IsSandbox" {
            continue;
        }
        let has = reservation(&id, &function);
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
    let description = template["Parameters"]["ReserveConcurrency"]["Description"].as_str().unwrap();
    assert!(description.contains(&format!("{reserved} together")), "{description}");
    assert!(description.contains(&format!("below {};", reserved + UNRESERVED)), "{description}");
    for guide in ["infra/guides/deploying.md", "infra/guides/aws-limits.md"] {
        let text = std::fs::read_to_string(format!("{}/../{guide}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let ways = [format!("reserve {reserved} "), format!("reserving {reserved} "), format!("{reserved} reserved")];
        assert!(ways.iter().any(|way| text.contains(way)), "{guide} names another sum than {reserved}");
        // The smallest account that can reserve that.
        let smallest = text.split("fewer than ").skip(1).filter_map(|rest| rest.split([' ', ',']).next()?.parse().ok());
        assert!(smallest.into_iter().all(|least: u64| least == reserved + UNRESERVED), "{guide}");
    }
}

#[test]
fn the_function_for_assistants_has_no_permission_and_can_be_left_out() {
    let function = functions(&template())["McpFunction"].clone();
    assert!(route_keys(&function).iter().all(|key| is_for_assistants(key)));
    assert!(function["Properties"]["Policies"].is_null());
    assert_eq!(template()["Resources"]["McpFunction"]["Condition"], "ServesMcp");
    let throttle = &template()["Resources"]["Api"]["Properties"]["RouteSettings"]["POST /mcp"]["Fn::If"];
    assert_eq!((&throttle[0], &throttle[2]), (&json!("ServesMcp"), &json!({"Ref": "AWS::NoValue"})));
}

#[test]
fn only_functions_that_feed_their_own_queue_are_exempt_from_loop_detection() {
    let template = template();
    assert!(template["Globals"]["Function"]["RecursiveLoop"].is_null());
    let mut spared = 0;
    for (id, function) in functions(&template) {
        let goes_round = events(&function, "SQS").iter().any(|event| may_send_to(&function, target(&event["Queue"])));
        let wanted = if goes_round { json!("Allow") } else { Value::Null };
        assert_eq!(function["Properties"]["RecursiveLoop"], wanted, "{id}");
        spared += usize::from(goes_round);
    }
    assert_eq!(spared, 4);
}

#[test]
fn outgoing_work_can_be_held_and_incoming_work_is_always_accepted() {
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
fn a_function_receives_from_its_own_queues_and_streams_only() {
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
    assert_eq!(bounded, 6);
}

#[test]
fn functions_behind_the_gateway_time_out_before_it() {
    let template = template();
    for (id, function) in functions(&template) {
        if !events(&function, "HttpApi").is_empty() {
            assert!(timeout_s(&template, &function) < GATEWAY_TIMEOUT_S, "{id}");
        }
    }
}

#[test]
fn every_table_is_backed_up_protected_encrypted_and_retained() {
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
                (&json!("RetainExceptOnCreate"), &json!("Retain")),
                "{id}"
            );
        }
    }
}

#[test]
fn every_queue_is_encrypted_and_keeps_its_dead_letters_longer_than_its_messages() {
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
fn undeliverable_events_of_a_rule_go_to_its_dead_letter_queue() {
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
fn the_service_publishes_events_of_its_own_source_only() {
    let template = template();
    let own = json!({
        "ForAllValues:StringEquals": { "events:source": OWN_SOURCE },
        "Null": { "events:source": "false" },
    });
    let mut grants = 0;
    for (id, function) in functions(&template) {
        let statements = each(&function["Properties"]["Policies"]).iter().flat_map(|policy| each(&policy["Statement"]));
        for statement in statements.filter(|it| each(&it["Action"]).iter().any(|action| action == "events:PutEvents")) {
            assert_eq!(statement["Condition"], own, "{id}");
            grants += 1;
        }
    }
    assert_eq!(grants, 1);
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
