//! Roles: callers whose access key ids name managed policies.

use aws_sdk_dynamodb::Client;
use serde_json::json;

use crate::permissions::{OTHER_TABLE, TABLE, allowing, denial, key, refusal};
use crate::world::{World, secret_properties};

/// Adds the policy `Read`, which allows `GetItem` on the outbox, and `Act`, which allows `PutItem`, too.
fn add_policies(world: &World) {
    world.managed_policy("Read", json!([allowing(json!("dynamodb:GetItem"), json!(TABLE))]));
    world.managed_policy("Act", json!([allowing(json!(["dynamodb:GetItem", "dynamodb:PutItem"]), json!(TABLE))]));
}

/// Returns whether the caller reads and writes an item of the outbox.
async fn reads_and_writes(world: &World, access_key_id: &str) -> (bool, bool) {
    let client = Client::new(&world.sdk_of(access_key_id));
    let read = client.get_item().table_name("outbox").key("pk", key("a")).send().await;
    let written = client.put_item().table_name("outbox").item("pk", key("a")).send().await;
    (read.is_ok(), written.is_ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_has_the_permissions_of_the_managed_policies_that_its_access_key_id_names() {
    let world = World::new().await;
    world.outbox().await;
    add_policies(&world);
    let bounded = json!({ "Effect": "Deny", "Action": "dynamodb:GetItem", "NotResource": OTHER_TABLE });
    world.managed_policy("Bounded", json!([bounded]));
    for (access_key_id, expected) in [
        ("Read", (true, false)),
        ("Act", (true, true)),
        ("Read+Act", (true, true)),
        ("Bounded", (false, false)),
        ("Act+Bounded", (false, true)),
        // A caller that names anything else is the developer.
        ("Read+Other", (true, true)),
        ("read", (true, true)),
        ("+", (true, true)),
    ] {
        assert_eq!(reads_and_writes(&world, access_key_id).await, expected, "{access_key_id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_service_refuses_a_role_with_its_own_error() {
    const SESSION: &str = "arn:aws:sts::000000000000:assumed-role/Read/local";
    const STACK: &str = "arn:aws:cloudformation:us-east-1:000000000000:stack/partner-api/*";
    let world = World::new().await;
    world.outbox().await;
    add_policies(&world);
    let url = world.queue("jobs", json!({}));
    let secret = world.aws.secrets().ensure("Secret", &secret_properties()).await.unwrap();
    let sdk = world.sdk_of("Read");

    let write = Client::new(&sdk).put_item().table_name("outbox").item("pk", key("a")).send().await;
    let expected = denial(SESSION, "dynamodb:PutItem", TABLE);
    assert_eq!(refusal(write), (400, "AccessDeniedException".to_owned(), expected));
    let sent = aws_sdk_sqs::Client::new(&sdk).send_message().queue_url(&url).message_body("x").send().await;
    let expected = denial(SESSION, "sqs:sendmessage", &world.aws.sqs().arn("jobs"));
    assert_eq!(refusal(sent), (403, "AccessDeniedException".to_owned(), expected));
    let read = aws_sdk_secretsmanager::Client::new(&sdk).get_secret_value().secret_id(&secret).send().await;
    let expected = denial(SESSION, "secretsmanager:GetSecretValue", &secret);
    assert_eq!(refusal(read), (400, "AccessDeniedException".to_owned(), expected));
    let stacks = aws_sdk_cloudformation::Client::new(&sdk);
    let listed = stacks.list_stack_resources().stack_name("partner-api").send().await;
    let expected = denial(SESSION, "cloudformation:ListStackResources", STACK);
    assert_eq!(refusal(listed), (403, "AccessDenied".to_owned(), expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_is_recorded_under_the_first_policy_that_allows_it() {
    let world = World::new().await;
    world.outbox().await;
    add_policies(&world);
    let file = world.dir().join("permissions");
    world.aws.access().record_to(&file).unwrap();
    assert_eq!(reads_and_writes(&world, "Read+Act").await, (true, true));
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert_eq!(recorded, format!("Read dynamodb:GetItem {TABLE}\nAct dynamodb:PutItem {TABLE}\n"));
    assert_eq!(reads_and_writes(&world, "any").await, (true, true));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), recorded, "the developer's permissions are not recorded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_may_ask_who_they_are() {
    let world = World::new().await;
    add_policies(&world);
    for (sdk, arn, user_id) in [
        (world.sdk(), "arn:aws:iam::000000000000:user/developer", "AIDALOCAL"),
        (world.sdk_of("Read+Act"), "arn:aws:sts::000000000000:assumed-role/Read+Act/local", "AROALOCAL:local"),
        (world.environment_allowed("f-1", json!([])), "arn:aws:sts::000000000000:assumed-role/f-role/f", "AROALOCAL:f"),
    ] {
        let identity = aws_sdk_sts::Client::new(&sdk).get_caller_identity().send().await.unwrap();
        assert_eq!((identity.arn(), identity.user_id()), (Some(arn), Some(user_id)));
        assert_eq!(identity.account(), Some("000000000000"));
    }
}
