//! Queues: time, batches, dead letters, and what is not emulated.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use local_aws::FaultPlan;
use serde_json::{Value, json};

use crate::world::World;

fn handles(records: &[Value]) -> Vec<String> {
    records.iter().map(|record| record["receiptHandle"].as_str().unwrap().to_owned()).collect()
}

async fn bodies(sqs: &Client, url: &str) -> Vec<String> {
    let received = sqs.receive_message().queue_url(url).max_number_of_messages(10).send().await.unwrap();
    received.messages().iter().map(|message| message.body().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_has_a_result_for_each_entry() {
    let world = World::new().await;
    let url = world.queue("jobs", json!({}));
    let sqs = Client::new(&world.sdk());
    let entry = |id: &str, delay: i32| {
        SendMessageBatchRequestEntry::builder().id(id).message_body(id).delay_seconds(delay).build().unwrap()
    };
    let send = |entries: Vec<_>| sqs.send_message_batch().queue_url(&url).set_entries(Some(entries)).send();
    let sent = send(vec![entry("a", 0), entry("b", 901)]).await.unwrap();
    assert_eq!(sent.successful()[0].id(), "a");
    assert_eq!((sent.failed()[0].id(), sent.failed()[0].code()), ("b", "InvalidParameterValueException"));
    for (entries, code) in [
        (vec![entry("a", 0), entry("a", 0)], "BatchEntryIdsNotDistinct"),
        ((0..11).map(|n| entry(&n.to_string(), 0)).collect(), "TooManyEntriesInBatchRequest"),
    ] {
        let refused = send(entries).await.unwrap_err();
        assert_eq!(refused.code(), Some(code), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_messages_of_a_batch_become_visible_together_on_a_slow_machine_too() {
    let world = World::new().await;
    let url = world.queue("jobs", json!({}));
    let sqs = Client::new(&world.sdk());
    let entry =
        |id: &str| SendMessageBatchRequestEntry::builder().id(id).message_body(id).delay_seconds(5).build().unwrap();
    world.clock.step_ms(1);
    sqs.send_message_batch().queue_url(&url).entries(entry("a")).entries(entry("b")).send().await.unwrap();
    world.clock.step_ms(0);
    world.clock.advance_to(world.aws.sqs().next_due().await.unwrap().unwrap());
    assert_eq!(bodies(&sqs, &url).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_poll_ends_with_a_message_or_with_stack_time() {
    let world = World::new().await;
    let url = world.queue("jobs", json!({}));
    let sqs = Client::new(&world.sdk());
    let poll = || {
        let receive = sqs.receive_message().queue_url(&url).wait_time_seconds(20);
        tokio::spawn(async move { receive.send().await.unwrap().messages.unwrap_or_default().len() })
    };
    let waiting = poll();
    sqs.send_message().queue_url(&url).message_body("x").send().await.unwrap();
    assert_eq!(waiting.await.unwrap(), 1);
    let waiting = poll();
    // Repeated, since a jump before the poll waits does not end it.
    while !waiting.is_finished() {
        world.advance_s(20);
        tokio::task::yield_now().await;
    }
    assert!(waiting.await.unwrap() <= 1, "the first message may have become visible again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_gone_after_its_retention() {
    let world = World::new().await;
    let url = world.queue("jobs", json!({ "MessageRetentionPeriod": 60 }));
    let sqs = Client::new(&world.sdk());
    sqs.send_message().queue_url(&url).message_body("x").send().await.unwrap();
    world.advance_s(60);
    assert!(bodies(&sqs, &url).await.is_empty());
    assert!(!world.aws.sqs().is_busy().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_are_listed_described_and_purged() {
    let world = World::new().await;
    let arn = world.aws.sqs().arn("jobs-dlq");
    let dead_letters = world.queue("jobs-dlq", json!({}));
    let policy = json!({ "deadLetterTargetArn": arn, "maxReceiveCount": 2 });
    let url = world.queue("jobs", json!({ "VisibilityTimeout": 180, "RedrivePolicy": policy }));
    let sqs = Client::new(&world.sdk());
    assert_eq!(sqs.list_queues().send().await.unwrap().queue_urls(), [url.as_str(), &dead_letters]);
    let prefixed = sqs.list_queues().queue_name_prefix("jobs-").send().await.unwrap();
    assert_eq!(prefixed.queue_urls(), [dead_letters]);
    let found = sqs.get_queue_url().queue_name("jobs").send().await.unwrap();
    assert_eq!(found.queue_url(), Some(url.as_str()));
    let unknown = sqs.get_queue_url().queue_name("absent").send().await.unwrap_err();
    assert_eq!(unknown.code(), Some("QueueDoesNotExist"));

    for delay_s in [0, 0, 5] {
        sqs.send_message().queue_url(&url).message_body("x").delay_seconds(delay_s).send().await.unwrap();
    }
    assert_eq!(bodies(&sqs, &url).await.len(), 2);
    sqs.send_message().queue_url(&url).message_body("y").send().await.unwrap();
    let described = async |names: &[QueueAttributeName]| {
        let request = sqs.get_queue_attributes().queue_url(&url).set_attribute_names(Some(names.to_vec()));
        request.send().await.unwrap().attributes.unwrap()
    };
    let attributes = described(&[QueueAttributeName::All]).await;
    for (name, value) in [
        (QueueAttributeName::ApproximateNumberOfMessages, "1"),
        (QueueAttributeName::ApproximateNumberOfMessagesDelayed, "1"),
        (QueueAttributeName::ApproximateNumberOfMessagesNotVisible, "2"),
        (QueueAttributeName::VisibilityTimeout, "180"),
        (QueueAttributeName::MessageRetentionPeriod, "345600"),
        (QueueAttributeName::QueueArn, "arn:aws:sqs:us-east-1:000000000000:jobs"),
    ] {
        assert_eq!(attributes[&name], value);
    }
    assert!(attributes[&QueueAttributeName::RedrivePolicy].contains(&arn));
    assert_eq!(described(&[QueueAttributeName::QueueArn]).await.len(), 1);
    sqs.purge_queue().queue_url(&url).send().await.unwrap();
    assert_eq!(described(&[QueueAttributeName::All]).await[&QueueAttributeName::ApproximateNumberOfMessages], "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_are_not_emulated_are_refused_by_name() {
    let world = World::new().await;
    let url = world.queue("jobs", json!({}));
    let sqs = Client::new(&world.sdk());
    let attribute = MessageAttributeValue::builder().data_type("String").string_value("x").build().unwrap();
    let sent = sqs.send_message().queue_url(&url).message_body("x").message_attributes("kind", attribute).send().await;
    let refused = sent.unwrap_err();
    assert!(refused.message().is_some_and(|message| message.contains("MessageAttributes")), "{refused:?}");
    let made = sqs.create_queue().queue_name("mine").send().await.unwrap_err();
    assert!(made.message().is_some_and(|message| message.contains("no operation CreateQueue")), "{made:?}");
    for property in ["ContentBasedDeduplication", "DelaySeconds", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds"]
    {
        let refused = world.aws.sqs().add_queue(&json!({ "QueueName": "q", property: 1 })).unwrap_err();
        assert_eq!(refused.to_string(), format!("queue q: the local stack has no {property}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicated_message_arrives_in_two_receives_and_makes_one_dead_letter() {
    let world = World::new().await;
    world.queue("jobs-dlq", json!({}));
    let policy = json!({ "deadLetterTargetArn": world.aws.sqs().arn("jobs-dlq"), "maxReceiveCount": 1 });
    world.queue("jobs", json!({ "VisibilityTimeout": 10, "RedrivePolicy": policy }));
    world.aws.faults().set(FaultPlan { duplicate_messages: Some(true), ..FaultPlan::default() });
    let sqs = world.aws.sqs();
    sqs.send(&sqs.arn("jobs"), "twice").await.unwrap();
    let first = sqs.receive_for_mapping("jobs", 10).await.unwrap();
    let second = sqs.receive_for_mapping("jobs", 10).await.unwrap();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first[0]["messageId"], second[0]["messageId"]);
    assert_ne!(first[0]["receiptHandle"], second[0]["receiptHandle"]);
    assert!(sqs.receive_for_mapping("jobs", 10).await.unwrap().is_empty(), "twice, not for ever");
    sqs.finish("jobs", &[], &[handles(&first), handles(&second)].concat()).await.unwrap();
    world.advance_s(10);
    assert!(sqs.receive_for_mapping("jobs", 10).await.unwrap().is_empty());
    assert_eq!(bodies(&Client::new(&world.sdk()), &sqs.url("jobs-dlq")).await, ["twice"]);
}
