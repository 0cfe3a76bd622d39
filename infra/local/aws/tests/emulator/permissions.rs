//! Permissions of a function environment, and each service's error without permission.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message};
use serde_json::{Value, json};

use crate::world::{World, secret_properties};

const USER: &str = "arn:aws:sts::000000000000:assumed-role/f-role/f";
pub(crate) const TABLE: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/outbox";
pub(crate) const OTHER_TABLE: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/other";

pub(crate) fn allowing(actions: Value, resources: Value) -> Value {
    json!({ "Effect": "Allow", "Action": actions, "Resource": resources })
}

/// Returns status, code and message of an error response.
pub(crate) fn refusal<T: std::fmt::Debug, E: ProvideErrorMetadata + std::fmt::Debug>(
    answer: Result<T, SdkError<E>>,
) -> (u16, String, String) {
    let error = answer.unwrap_err();
    let status = error.raw_response().unwrap().status().as_u16();
    (status, error.code().unwrap_or_default().to_owned(), error.message().unwrap_or_default().to_owned())
}

fn denied(status: u16, action: &str, resource: &str) -> (u16, String, String) {
    (status, "AccessDeniedException".to_owned(), denial(USER, action, resource))
}

/// Returns the message of a refusal.
pub(crate) fn denial(user: &str, action: &str, resource: &str) -> String {
    format!(
        "User: {user} is not authorized to perform: {action} on resource: {resource} because no identity-based policy allows the \
         {action} action"
    )
}

pub(crate) fn key(pk: &str) -> AttributeValue {
    AttributeValue::S(pk.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_sent_only_to_a_queue_that_is_allowed() {
    let world = World::new().await;
    let (open, closed) = (world.queue("open", json!({})), world.queue("closed", json!({})));
    let arn = |name: &str| world.aws.sqs().arn(name);
    let statements = json!([allowing(json!("sqs:SendMessage"), json!(arn("open")))]);
    let client = aws_sdk_sqs::Client::new(&world.environment_allowed("f-1", statements));
    client.send_message().queue_url(&open).message_body("x").send().await.unwrap();
    let entry = aws_sdk_sqs::types::SendMessageBatchRequestEntry::builder().id("1").message_body("x").build().unwrap();
    client.send_message_batch().queue_url(&open).entries(entry.clone()).send().await.unwrap();
    let sent = client.send_message().queue_url(&closed).message_body("x").send().await;
    assert_eq!(
        refusal(sent),
        (403, "AccessDeniedException".to_owned(), denied(403, "sqs:sendmessage", &arn("closed")).2)
    );
    let batch = client.send_message_batch().queue_url(&closed).entries(entry).send().await;
    assert_eq!(refusal(batch).2, denied(403, "sqs:sendmessage", &arn("closed")).2);
    let received = client.receive_message().queue_url(&open).send().await;
    assert_eq!(refusal(received).2, denied(403, "sqs:receivemessage", &arn("open")).2);
    assert!(world.aws.sqs().receive_for_mapping("closed", 10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_mails_and_secrets_are_refused_with_their_services_errors() {
    let world = World::new().await;
    world.aws.bus().add_bus("partner");
    let secret = world.aws.secrets().ensure("Secret", &secret_properties()).await.unwrap();
    let sdk = world.environment_allowed(
        "f-1",
        json!([
            allowing(json!("events:PutEvents"), json!("arn:aws:events:us-east-1:000000000000:event-bus/other")),
            { "Effect": "Allow", "Action": "events:PutEvents",
              "Resource": "arn:aws:events:us-east-1:000000000000:event-bus/partner",
              "Condition": { "ForAllValues:StringEquals": { "events:source": "ours" }, "Null": { "events:source": "false" } } },
            allowing(json!("secretsmanager:GetSecretValue"), json!("arn:aws:secretsmanager:us-east-1:000000000000:secret:Other-local1")),
            { "Effect": "Allow", "Action": "ses:SendEmail",
              "Resource": ["arn:aws:ses:us-east-1:000000000000:identity/*", "arn:aws:ses:us-east-1:000000000000:configuration-set/*"],
              "Condition": { "StringEquals": { "ses:FromAddress": "coach@example.com" } } },
        ]),
    );
    let entry = |source: &str| {
        let entry = PutEventsRequestEntry::builder().event_bus_name("partner").source(source);
        entry.detail_type("d").detail("{}").build()
    };
    let events = aws_sdk_eventbridge::Client::new(&sdk);
    let bus = "arn:aws:events:us-east-1:000000000000:event-bus/partner";
    for sources in [&["theirs"][..], &["ours", "theirs"]] {
        let entries = sources.iter().map(|source| entry(source)).collect();
        let put = events.put_events().set_entries(Some(entries)).send().await;
        assert_eq!(refusal(put), denied(400, "events:PutEvents", bus));
    }
    assert!(world.aws.bus().events(None, 10).await.unwrap().is_empty());
    events.put_events().entries(entry("ours")).send().await.unwrap();
    assert_eq!(world.aws.bus().events(None, 10).await.unwrap().len(), 1);

    let read = aws_sdk_secretsmanager::Client::new(&sdk).get_secret_value().secret_id(&secret).send().await;
    assert_eq!(refusal(read), denied(400, "secretsmanager:GetSecretValue", &secret));

    let mailer = aws_sdk_sesv2::Client::new(&sdk);
    let send = |from: &str| {
        let text = Content::builder().data("Hello").build().unwrap();
        let message = Message::builder().subject(text.clone()).body(Body::builder().text(text).build()).build();
        let request = mailer.send_email().from_email_address(from);
        request
            .destination(Destination::builder().to_addresses("ada@example.com").build())
            .content(EmailContent::builder().simple(message).build())
            .send()
    };
    let identity = "arn:aws:ses:us-east-1:000000000000:identity/boss@example.com";
    let message = format!("User `{USER}' is not authorized to perform `ses:SendEmail' on resource `{identity}'");
    assert_eq!(refusal(send("boss@example.com").await), (403, "AccessDeniedException".to_owned(), message));
    send("coach@example.com").await.unwrap();
    assert_eq!(world.aws.mail().mails().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_permission_that_is_used_is_recorded_once() {
    let world = World::new().await;
    world.outbox().await;
    let file = world.dir().join("permissions");
    std::fs::write(&file, "the mark\n").unwrap();
    world.aws.access().record_to(&file).unwrap();
    let statements = json!([allowing(json!("dynamodb:PutItem"), json!([TABLE, OTHER_TABLE]))]);
    let client = aws_sdk_dynamodb::Client::new(&world.environment_allowed("f-1", statements));
    for pk in ["a", "b"] {
        client.put_item().table_name("outbox").item("pk", key(pk)).send().await.unwrap();
    }
    client.delete_item().table_name("outbox").key("pk", key("a")).send().await.unwrap_err();
    let developer = aws_sdk_dynamodb::Client::new(&world.sdk());
    developer.delete_item().table_name("outbox").key("pk", key("a")).send().await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("the mark\nf dynamodb:PutItem {TABLE}\n"));
}
