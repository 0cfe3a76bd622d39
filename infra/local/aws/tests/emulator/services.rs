//! EventBridge, SES and Secrets Manager.

use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message};
use local_aws::FaultPlan;
use serde_json::{Value, json};

use crate::world::{World, secret_properties};

fn event(bus: &str, source: &str, detail: &str) -> PutEventsRequestEntry {
    let entry = PutEventsRequestEntry::builder().event_bus_name(bus).source(source);
    entry.detail_type("client.created").detail(detail).build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_goes_to_the_queues_of_matching_rules_and_is_kept() {
    let world = World::new().await;
    world.queue("feed", json!({}));
    world.aws.bus().add_bus("partner");
    let targets = json!([{ "Id": "feed", "Arn": world.aws.sqs().arn("feed") }]);
    let rule = json!({ "EventBusName": "partner", "EventPattern": { "source": ["application"] }, "Targets": targets });
    world.aws.bus().add_rule(&rule).unwrap();
    let mut disabled = rule.clone();
    disabled["State"] = "DISABLED".into();
    world.aws.bus().add_rule(&disabled).unwrap();

    let client = aws_sdk_eventbridge::Client::new(&world.sdk());
    let put = client
        .put_events()
        .entries(event("partner", "application", r#"{"n": 1}"#))
        .entries(event("partner", "service", r#"{"n": 2}"#))
        .entries(event("absent", "application", "{}"))
        .entries(event("partner", "application", "no json"))
        .send()
        .await
        .unwrap();
    let errors: Vec<_> = put.entries().iter().map(|entry| entry.error_code().unwrap_or_default()).collect();
    assert_eq!(errors, ["", "", "ResourceNotFoundException", "MalformedDetail"]);
    assert_eq!(put.failed_entry_count(), 2);

    let records = world.aws.sqs().receive_for_mapping("feed", 10).await.unwrap();
    assert_eq!(records.len(), 1);
    let envelope: Value = serde_json::from_str(records[0]["body"].as_str().unwrap()).unwrap();
    assert_eq!((&envelope["detail"]["n"], &envelope["time"]), (&json!(1), &json!("2030-01-01T00:00:00Z")));
    let world = world.crash().await;
    assert_eq!(world.aws.bus().events(None, 10).await.unwrap().len(), 2);
    let own = world.aws.bus().events(Some("service"), 10).await.unwrap();
    assert_eq!((own.len(), &own[0]["detail"]["n"]), (1, &json!(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_is_stored_unless_a_fault_refuses_it() {
    let world = World::new().await;
    let client = aws_sdk_sesv2::Client::new(&world.environment("login-links-1"));
    let text = |data: &str| Content::builder().data(data).build().unwrap();
    let send = || {
        let body = Body::builder().text(text("Hello")).build();
        let message = Message::builder().subject(text("Hi")).body(body).build();
        client
            .send_email()
            .from_email_address("service@example.com")
            .destination(Destination::builder().to_addresses("ada@example.com").to_addresses("bob@example.com").build())
            .content(EmailContent::builder().simple(message).build())
            .send()
    };
    world.aws.faults().set(FaultPlan { mail_failures: Some(1), ..FaultPlan::default() });
    assert!(send().await.unwrap_err().into_service_error().is_message_rejected());
    assert!(send().await.unwrap().message_id().is_some());
    let world = world.reopen().await;
    let mails = serde_json::to_value(world.aws.mail().mails().await.unwrap()).unwrap();
    let expected = json!([{
        "to": "ada@example.com, bob@example.com", "subject": "Hi", "text": "Hello", "html": null, "sent_at": "2030-01-01T00:00:00Z",
    }]);
    assert_eq!(mails, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_secret_is_kept_until_it_is_replaced() {
    let world = World::new().await;
    let properties = secret_properties();
    let arn = world.aws.secrets().ensure("EncryptionSecret", &properties).await.unwrap();
    let value = async |world: &World| {
        let client = aws_sdk_secretsmanager::Client::new(&world.sdk());
        client.get_secret_value().secret_id(&arn).send().await.unwrap().secret_string.unwrap()
    };
    let first = value(&world).await;
    let world = world.reopen().await;
    assert_eq!(world.aws.secrets().ensure("EncryptionSecret", &properties).await.unwrap(), arn);
    assert_eq!(value(&world).await, first);
    let client = aws_sdk_secretsmanager::Client::new(&world.sdk());
    client.put_secret_value().secret_id(&arn).secret_string("other").send().await.unwrap();
    let world = world.reopen().await;
    world.aws.secrets().ensure("EncryptionSecret", &properties).await.unwrap();
    assert_eq!(value(&world).await, "other");
    let client = aws_sdk_secretsmanager::Client::new(&world.sdk());
    let unknown = client.put_secret_value().secret_id("absent").secret_string("x").send().await.unwrap_err();
    assert!(unknown.into_service_error().is_resource_not_found_exception());
    let absent = client.get_secret_value().secret_id("absent").send().await.unwrap_err();
    assert!(absent.into_service_error().is_resource_not_found_exception());
}

/// Addresses that SES sends to and from.
const MAILBOXES: [&str; 5] = [
    "ada@example.com",
    "o'neil!#$%&*/=?^`{|}~@example.com",
    "ada@xn--bcher-kva.example",
    "\"Lovelace, Ada\" <ada@example.com>",
    "=?utf-8?q?Ad=C3=A0?= <ada@example.com>",
];

/// Texts that are no address, or that SES refuses.
const NO_MAILBOXES: [&str; 9] = [
    "",
    "ada",
    "ada@",
    "@example.com",
    "ada@localhost",
    "jörg@example.com",
    "ada@bücher.example",
    "Jörg <jorg@example.com>",
    "ada@example.com\r\nBcc: bob@y.example",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_ses_refuses_is_refused_as_recipient_and_as_sender() {
    let world = World::new().await;
    let client = aws_sdk_sesv2::Client::new(&world.environment("login-links-1"));
    let text = |data: &str| Content::builder().data(data).build().unwrap();
    let send = async |from: &str, to: &[&str]| {
        let body = Body::builder().text(text("Hello")).build();
        let message = Message::builder().subject(text("Hi")).body(body).build();
        let to = Destination::builder().set_to_addresses(Some(to.iter().map(|&to| to.to_owned()).collect()));
        let mail = client.send_email().from_email_address(from).destination(to.build());
        let sent = mail.content(EmailContent::builder().simple(message).build()).send().await;
        sent.map(drop).map_err(|error| error.into_service_error())
    };
    const ADA: &str = "ada@example.com";
    for mailbox in MAILBOXES {
        send(ADA, &[mailbox]).await.unwrap_or_else(|error| panic!("{mailbox}: {error:?}"));
        send(mailbox, &[ADA]).await.unwrap_or_else(|error| panic!("from {mailbox}: {error:?}"));
    }
    for refused in NO_MAILBOXES {
        for sent in [send(ADA, &[refused]).await, send(ADA, &[ADA, refused]).await, send(refused, &[ADA]).await] {
            assert!(sent.is_err_and(|error| error.is_bad_request_exception()), "{refused:?}");
        }
    }
    assert!(send(ADA, &[]).await.is_err());
    assert_eq!(world.aws.mail().mails().await.unwrap().len(), 2 * MAILBOXES.len());
}
