//! FIFO queues: order and locks of message groups, deduplication, dead letters.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName,
    QueueAttributeName, SendMessageBatchRequestEntry,
};
use local_aws::FaultPlan;
use rstest::rstest;
use serde_json::{Value, json};

use crate::world::World;

/// The URL and a client of a FIFO queue.
struct Queue {
    sqs: Client,
    url: String,
}

impl Queue {
    /// Adds a queue with a visibility time-out of 10 s.
    fn new(world: &World, name: &str, mut properties: Value) -> Self {
        properties["FifoQueue"] = true.into();
        properties["VisibilityTimeout"] = 10.into();
        Self { url: world.queue(name, properties), sqs: Client::new(&world.sdk()) }
    }

    /// Sends `a1` to the group `a` under the deduplication id `a1`. Returns the message id and the sequence number.
    async fn send(&self, text: &str) -> (String, String) {
        self.send_as(&text[..1], text).await
    }

    async fn send_as(&self, group: &str, id: &str) -> (String, String) {
        let send = self.sqs.send_message().queue_url(&self.url).message_body(id);
        let sent = send.message_group_id(group).message_deduplication_id(id).send().await.unwrap();
        (sent.message_id.unwrap(), sent.sequence_number.unwrap())
    }

    async fn send_all(&self, texts: &[&str]) {
        for text in texts {
            self.send(text).await;
        }
    }

    async fn receive(&self, max: i32) -> Vec<Message> {
        let receive = self.sqs.receive_message().queue_url(&self.url).max_number_of_messages(max);
        let all = MessageSystemAttributeName::All;
        receive.message_system_attribute_names(all).send().await.unwrap().messages.unwrap_or_default()
    }

    async fn bodies(&self, max: i32) -> Vec<String> {
        bodies(&self.receive(max).await)
    }

    async fn delete(&self, message: &Message) -> Result<(), String> {
        let delete = self.sqs.delete_message().queue_url(&self.url);
        let deleted = delete.set_receipt_handle(message.receipt_handle.clone()).send().await;
        deleted.map(drop).map_err(|error| error.message().unwrap().to_owned())
    }

    async fn change_visibility(&self, message: &Message, timeout_s: i32) {
        let change = self.sqs.change_message_visibility().queue_url(&self.url).visibility_timeout(timeout_s);
        change.set_receipt_handle(message.receipt_handle.clone()).send().await.unwrap();
    }

    async fn attribute(&self, name: QueueAttributeName) -> String {
        let request = self.sqs.get_queue_attributes().queue_url(&self.url).attribute_names(name.clone());
        request.send().await.unwrap().attributes.unwrap().remove(&name).unwrap()
    }
}

fn bodies(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.body().unwrap().to_owned()).collect()
}

fn attribute(message: &Message, name: MessageSystemAttributeName) -> String {
    message.attributes.as_ref().unwrap()[&name].clone()
}

/// Returns the bodies and the receipt handles of a mapping's records.
fn opened(records: &[Value]) -> (Vec<String>, Vec<String>) {
    let texts = |name: &str| records.iter().map(|record| record[name].as_str().unwrap().to_owned()).collect();
    (texts("body"), texts("receiptHandle"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_aws_would_refuse_is_refused() {
    let world = World::new().await;
    let dead_letters = |arn: &str| json!({ "deadLetterTargetArn": arn, "maxReceiveCount": 1 });
    for (name, mut properties, reason) in [
        ("q", json!({ "FifoQueue": true }), "the name of a FIFO queue ends in .fifo"),
        ("q.fifo", json!({}), "the name of a FIFO queue ends in .fifo"),
        (
            "q",
            json!({ "DeduplicationScope": "queue" }),
            "DeduplicationScope and FifoThroughputLimit are for FIFO queues",
        ),
        (
            "q.fifo",
            json!({ "FifoQueue": true, "FifoThroughputLimit": "perMessageGroupId" }),
            "needs the DeduplicationScope",
        ),
        ("q.fifo", json!({ "FifoQueue": true, "DeduplicationScope": "group" }), "unknown variant `group`"),
        (
            "q.fifo",
            json!({ "FifoQueue": true, "RedrivePolicy": dead_letters("a:b:dlq") }),
            "a FIFO queue needs a FIFO dead-letter queue",
        ),
        ("q", json!({ "RedrivePolicy": dead_letters("a:b:dlq.fifo") }), "another a standard one"),
    ] {
        properties["QueueName"] = name.into();
        let message = world.aws.sqs().add_queue(&properties).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fifo_queue_is_described() {
    let world = World::new().await;
    let throughput = json!({ "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId" });
    let queue = Queue::new(&world, "jobs.fifo", throughput);
    let found = queue.sqs.get_queue_url().queue_name("jobs.fifo").send().await.unwrap();
    assert_eq!(found.queue_url(), Some(queue.url.as_str()));
    for (name, value) in [
        (QueueAttributeName::FifoQueue, "true"),
        (QueueAttributeName::ContentBasedDeduplication, "false"),
        (QueueAttributeName::DeduplicationScope, "messageGroup"),
        (QueueAttributeName::FifoThroughputLimit, "perMessageGroupId"),
        (QueueAttributeName::QueueArn, "arn:aws:sqs:us-east-1:000000000000:jobs.fifo"),
    ] {
        assert_eq!(queue.attribute(name).await, value);
    }
    let plain = Queue::new(&world, "plain.fifo", json!({}));
    assert_eq!(plain.attribute(QueueAttributeName::DeduplicationScope).await, "queue");
    assert_eq!(plain.attribute(QueueAttributeName::FifoThroughputLimit).await, "perQueue");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_does_not_suit_its_queue_is_refused() {
    const INVALID: &str = "InvalidParameterValueException";
    let world = World::new().await;
    let queue = |name: &str| world.queue(name, json!({ "FifoQueue": name.ends_with(".fifo") }));
    let (fifo, plain) = (queue("jobs.fifo"), queue("jobs"));
    let sqs = Client::new(&world.sdk());
    for (url, group, id, delay_s, code, reason) in [
        (&fifo, None, Some("d"), None, "MissingParameter", "MessageGroupId"),
        (&fifo, Some("g"), None, None, INVALID, "MessageDeduplicationId is required"),
        (&fifo, Some("g"), Some("d"), Some(0), INVALID, "DelaySeconds"),
        (&fifo, Some(""), Some("d"), None, INVALID, "MessageGroupId can only be 1 to 128"),
        (&fifo, Some("g"), Some("ü"), None, INVALID, "MessageDeduplicationId can only be"),
        (&plain, Some("g"), Some("d"), None, INVALID, "parameter MessageDeduplicationId is invalid"),
    ] {
        let (group, id) = (group.map(str::to_owned), id.map(str::to_owned));
        let send = sqs.send_message().queue_url(url).message_body("x").set_delay_seconds(delay_s);
        let sent = send.set_message_group_id(group.clone()).set_message_deduplication_id(id.clone()).send().await;
        let refused = sent.unwrap_err();
        assert_eq!(refused.code(), Some(code), "{refused:?}");
        assert!(refused.message().unwrap().contains(reason), "{refused:?}");
        let entry = SendMessageBatchRequestEntry::builder().id("1").message_body("x").set_delay_seconds(delay_s);
        let entry = entry.set_message_group_id(group).set_message_deduplication_id(id).build().unwrap();
        let sent = sqs.send_message_batch().queue_url(url).entries(entry).send().await.unwrap();
        assert_eq!((sent.failed()[0].code(), sent.failed()[0].message()), (code, refused.message()));
    }
}

#[rstest]
#[case("messageGroup", false)]
#[case("queue", true)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_is_accepted_and_not_stored(#[case] scope: &str, #[case] across_groups: bool) {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({ "DeduplicationScope": scope }));
    let first = queue.send_as("a", "1").await;
    assert_eq!(queue.send_as("a", "1").await, first);
    assert_eq!(queue.send_as("b", "1").await == first, across_groups);
    let received = queue.receive(10).await;
    assert_eq!(received.len(), if across_groups { 1 } else { 2 });
    assert_eq!(received[0].message_id, Some(first.0.clone()));
    assert_eq!(attribute(&received[0], MessageSystemAttributeName::SequenceNumber), first.1);
    world.advance_s(9);
    queue.delete(&received[0]).await.unwrap();
    world.advance_s(290);
    assert_eq!(queue.send_as("a", "1").await, first, "also after its deletion");
    world.advance_s(1);
    let later = queue.send_as("a", "1").await;
    assert!(later.0 != first.0 && later.1 > first.1, "five minutes long");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_within_a_batch_has_the_result_of_the_first() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    let entry = |id: &str| {
        let entry = SendMessageBatchRequestEntry::builder().id(id).message_body(id).message_group_id("g");
        entry.message_deduplication_id("d").build().unwrap()
    };
    let batch = queue.sqs.send_message_batch().queue_url(&queue.url);
    let sent = batch.entries(entry("x")).entries(entry("y")).send().await.unwrap();
    let [first, second] = sent.successful() else { panic!("{sent:?}") };
    assert_eq!((first.message_id(), first.sequence_number()), (second.message_id(), second.sequence_number()));
    assert_eq!(queue.bodies(10).await, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_received_in_order_and_lock_their_group() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    queue.send_all(&["a1", "b1", "a2", "b2", "a3", "c1"]).await;
    let first = queue.receive(2).await;
    assert_eq!(bodies(&first), ["a1", "a2"], "as many of one group as possible");
    assert_eq!(attribute(&first[0], MessageSystemAttributeName::MessageGroupId), "a");
    assert_eq!(attribute(&first[0], MessageSystemAttributeName::MessageDeduplicationId), "a1");
    assert_eq!(queue.attribute(QueueAttributeName::ApproximateNumberOfMessages).await, "4");
    assert_eq!(queue.bodies(10).await, ["b1", "b2", "c1"], "then of the next group");
    queue.delete(&first[0]).await.unwrap();
    assert!(queue.receive(10).await.is_empty(), "a2 is still in flight");
    queue.delete(&first[1]).await.unwrap();
    assert_eq!(queue.bodies(10).await, ["a3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_group_that_has_waited_longest_comes_first() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    queue.send_all(&["a1", "a2"]).await;
    world.advance_s(1);
    queue.send("b1").await;
    let first = queue.receive(1).await;
    world.advance_s(1);
    queue.delete(&first[0]).await.unwrap();
    queue.send("c1").await;
    assert_eq!(queue.bodies(3).await, ["b1", "a2", "c1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_becomes_visible_again_comes_before_later_ones() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    queue.send_all(&["a1", "a2"]).await;
    let timed_out = queue.receive(1).await;
    world.advance_s(10);
    let expired = queue.delete(&timed_out[0]).await.unwrap_err();
    assert!(expired.contains("The receipt handle has expired"), "{expired}");
    let again = queue.receive(1).await;
    assert_eq!(bodies(&again), ["a1"]);
    assert!(queue.delete(&timed_out[0]).await.is_err());
    queue.change_visibility(&again[0], 0).await;
    let freed = queue.receive(1).await;
    assert_eq!(bodies(&freed), ["a1"], "a changed visibility frees the group");
    queue.change_visibility(&freed[0], 60).await;
    world.advance_s(59);
    assert!(queue.receive(10).await.is_empty());
    queue.delete(&freed[0]).await.unwrap();
    queue.delete(&freed[0]).await.unwrap();
    assert_eq!(queue.bodies(10).await, ["a2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_delete_messages_and_change_their_visibility() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    queue.send_all(&["a1", "a2", "b1"]).await;
    let received = queue.receive(10).await;
    let handle = |index: usize| received[index].receipt_handle.clone().unwrap();
    let deletion = |id: &str, handle: String| {
        DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle(handle).build().unwrap()
    };
    let delete = queue.sqs.delete_message_batch().queue_url(&queue.url);
    let deleted = delete.entries(deletion("x", handle(0))).entries(deletion("y", "?".into())).send().await.unwrap();
    assert_eq!(deleted.successful()[0].id(), "x");
    assert_eq!((deleted.failed()[0].id(), deleted.failed()[0].code()), ("y", "ReceiptHandleIsInvalid"));
    let change = |id: &str, handle: String| {
        let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(id).receipt_handle(handle);
        entry.visibility_timeout(0).build().unwrap()
    };
    let changes = queue.sqs.change_message_visibility_batch().queue_url(&queue.url);
    let changed = changes.entries(change("x", handle(1))).entries(change("y", handle(0))).send().await.unwrap();
    assert_eq!(changed.successful()[0].id(), "x");
    assert_eq!((changed.failed()[0].id(), changed.failed()[0].code()), ("y", "MessageNotInflight"));
    assert_eq!(queue.bodies(10).await, ["a2"]);
    let empty = queue.sqs.delete_message_batch().queue_url(&queue.url).set_entries(Some(Vec::new())).send().await;
    assert!(matches!(&empty, Err(SdkError::ServiceError(_))), "{empty:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_keeps_its_group_and_frees_it() {
    let world = World::new().await;
    let dead_letters = Queue::new(&world, "jobs-dlq.fifo", json!({ "MessageRetentionPeriod": 60 }));
    let policy = json!({ "deadLetterTargetArn": world.aws.sqs().arn("jobs-dlq.fifo"), "maxReceiveCount": 1 });
    let queue = Queue::new(&world, "jobs.fifo", json!({ "RedrivePolicy": policy }));
    queue.send_all(&["a1", "a2", "a3"]).await;
    assert_eq!(queue.bodies(2).await, ["a1", "a2"]);
    world.advance_s(59);
    assert_eq!(queue.bodies(10).await, ["a3"]);
    world.advance_s(59);
    let received = dead_letters.receive(1).await;
    assert_eq!(bodies(&received), ["a1"]);
    assert_eq!(attribute(&received[0], MessageSystemAttributeName::MessageGroupId), "a");
    assert_eq!(attribute(&received[0], MessageSystemAttributeName::MessageDeduplicationId), "a1");
    let source = attribute(&received[0], MessageSystemAttributeName::DeadLetterQueueSourceArn);
    assert_eq!(source, world.aws.sqs().arn("jobs.fifo"));
    assert!(dead_letters.receive(10).await.is_empty(), "the dead letters of a group are locked too");
    world.advance_s(1);
    assert_eq!(dead_letters.attribute(QueueAttributeName::ApproximateNumberOfMessages).await, "0", "a new retention");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_behind_a_failed_one_are_due_with_it() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    let sqs = world.aws.sqs();
    queue.send_all(&["a1", "a2", "a3"]).await;
    let (bodies, handles) = opened(&sqs.receive_for_mapping("jobs.fifo", 2).await.unwrap());
    assert_eq!(bodies, ["a1", "a2"]);
    assert!(sqs.is_busy().await.unwrap());
    sqs.finish("jobs.fifo", &[], &handles).await.unwrap();
    assert!(!sqs.is_busy().await.unwrap());
    world.clock.advance_to(sqs.next_due().await.unwrap().unwrap());
    assert!(sqs.is_busy().await.unwrap());
    let (bodies, handles) = opened(&sqs.receive_for_mapping("jobs.fifo", 10).await.unwrap());
    assert_eq!(bodies, ["a1", "a2", "a3"]);
    sqs.finish("jobs.fifo", &handles, &[]).await.unwrap();
    assert_eq!((sqs.is_busy().await.unwrap(), sqs.next_due().await.unwrap()), (false, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_deletion_leaves_nothing_for_the_mapping_to_delete() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    let sqs = world.aws.sqs();
    queue.send_all(&["a1", "a2"]).await;
    let (_, handles) = opened(&sqs.receive_for_mapping("jobs.fifo", 1).await.unwrap());
    let delete = queue.sqs.delete_message().queue_url(&queue.url).receipt_handle(&handles[0]);
    delete.send().await.unwrap();
    let (bodies, _) = opened(&sqs.receive_for_mapping("jobs.fifo", 10).await.unwrap());
    assert_eq!(bodies, ["a2"]);
    sqs.finish("jobs.fifo", &handles, &[]).await.unwrap();
    assert!(queue.receive(10).await.is_empty(), "a2 stays in flight");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicated_message_arrives_again_once_it_was_handled() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    world.aws.faults().set(FaultPlan { duplicate_messages: Some(true), ..FaultPlan::default() });
    let sqs = world.aws.sqs();
    queue.send_all(&["a1", "a2", "a3"]).await;
    let receive = async |max| opened(&sqs.receive_for_mapping("jobs.fifo", max).await.unwrap());
    let (first, handles) = receive(2).await;
    assert!(receive(10).await.0.is_empty());
    sqs.finish("jobs.fifo", &handles, &[]).await.unwrap();
    sqs.finish("jobs.fifo", &handles, &[]).await.unwrap();
    let (second, handles) = receive(2).await;
    assert_eq!((&first, &second), (&vec!["a1".to_owned(), "a2".to_owned()], &first), "before later ones");
    sqs.finish("jobs.fifo", &handles, &[]).await.unwrap();
    assert_eq!(receive(10).await.0, ["a3"], "twice, not for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_in_flight_is_free_after_a_killed_process() {
    let world = World::new().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    queue.send_all(&["a1", "a2"]).await;
    assert_eq!(world.aws.sqs().receive_for_mapping("jobs.fifo", 1).await.unwrap().len(), 1);
    let world = world.crash().await;
    let queue = Queue::new(&world, "jobs.fifo", json!({}));
    assert!(world.aws.sqs().is_busy().await.unwrap());
    assert_eq!(queue.bodies(10).await, ["a1", "a2"]);
    let purge = queue.sqs.purge_queue().queue_url(&queue.url);
    purge.send().await.unwrap();
    queue.send("a3").await;
    assert_eq!(queue.bodies(10).await, ["a3"], "a purge frees the group too");
}
