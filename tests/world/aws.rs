//! The AWS side of a world: facts on the bus, and the raw content of tables and queues.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use serde_json::{Value, json};

use super::{World, list, rendered};

const BUS: &str = "partner-api";
const TABLE_PREFIX: &str = "partner-api-";
/// Most entries of a PutEvents request.
const PUT_ENTRIES: usize = 10;
/// Most items of a BatchWriteItem request.
const BATCH_ITEMS: usize = 25;

/// A fact of the application.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    pub(crate) detail_type: String,
    pub(crate) detail: Value,
}

/// A fact. [`World::publish`] fills in a missing `id` and `occurred_at`.
pub(crate) fn fact(detail_type: &str, detail: Value) -> Fact {
    Fact { detail_type: detail_type.to_owned(), detail }
}

impl Fact {
    /// The fact with another value of a field.
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.detail[field] = value.into();
        self
    }

    /// The fact without a field.
    pub(crate) fn without(mut self, field: &str) -> Self {
        self.detail.as_object_mut().unwrap().remove(field);
        self
    }

    /// A client of a coach, as the application has it.
    pub(crate) fn client(coach_id: &str, client_id: &str) -> Self {
        let detail = json!({
            "client_id": client_id, "coach_id": coach_id, "email": format!("{client_id}@clients.example"),
            "full_name": format!("Client {client_id}"), "phone": null, "goals": null, "health_notes": null, "height_in": null,
            "weight_lbs": null, "is_active": true, "current_phase": null, "phase_started_on": null, "programme_id": null,
            "created_at": "2026-01-02T03:04:05.678Z", "origin": "application",
        });
        fact("client.saved", detail)
    }

    /// A contact of a coach's CRM.
    pub(crate) fn contact(coach_id: &str, contact_id: &str) -> Self {
        let detail = json!({
            "contact_id": contact_id, "coach_id": coach_id, "name": "Lee Lead", "email": null, "phone": null,
            "do_not_contact": true, "marketing": { "email": true, "sms": false },
        });
        fact("contact.saved", detail)
    }
}

impl World {
    /// Puts facts on the bus and waits until each is applied, set aside or waiting.
    pub(crate) async fn apply(&self, facts: impl IntoIterator<Item = Fact>) {
        self.publish(facts).await;
        self.settle().await;
    }

    /// Puts facts on the bus.
    pub(crate) async fn publish(&self, facts: impl IntoIterator<Item = Fact>) {
        let now = rendered(self.now().await);
        let entries: Vec<Value> = facts
            .into_iter()
            .map(|Fact { detail_type, mut detail }| {
                if let Some(members) = detail.as_object_mut() {
                    members.entry("id").or_insert_with(|| json!(format!("fact-{}", self.number())));
                    members.entry("occurred_at").or_insert_with(|| json!(now));
                }
                json!({
                    "EventBusName": BUS, "Source": "coaching.application", "DetailType": detail_type, "Detail": detail.to_string(),
                })
            })
            .collect();
        for entries in entries.chunks(PUT_ENTRIES) {
            let answer = self.local.aws("AWSEvents.PutEvents", &json!({ "Entries": entries })).await;
            assert_eq!(answer["FailedEntryCount"], 0, "{answer}");
        }
    }

    /// All items of a table, in DynamoDB's own JSON.
    pub(crate) async fn table(&self, name: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut start = Value::Null;
        loop {
            let mut scan = json!({ "TableName": format!("{TABLE_PREFIX}{name}"), "ConsistentRead": true });
            if !start.is_null() {
                scan["ExclusiveStartKey"] = start;
            }
            let page = self.local.aws("DynamoDB_20120810.Scan", &scan).await;
            items.extend(list(page["Items"].clone()));
            start = page["LastEvaluatedKey"].clone();
            if start.is_null() {
                return items;
            }
        }
    }

    /// All items of all tables, each with its table's name.
    pub(crate) async fn tables(&self) -> Vec<(String, Value)> {
        let listed = self.local.aws("DynamoDB_20120810.ListTables", &json!({})).await;
        let mut all = Vec::new();
        for name in list(listed["TableNames"].clone()) {
            let table = name.as_str().unwrap().strip_prefix(TABLE_PREFIX).unwrap().to_owned();
            all.extend(self.table(&table).await.into_iter().map(|item| (table.clone(), item)));
        }
        all
    }

    /// Items whose partition key begins with `pk_prefix`.
    pub(crate) async fn items(&self, table: &str, pk_prefix: &str) -> Vec<Value> {
        let mut items = self.table(table).await;
        items.retain(|item| item["pk"]["S"].as_str().unwrap().starts_with(pk_prefix));
        items
    }

    /// The items of all deliveries.
    pub(crate) async fn delivery_items(&self) -> Vec<Value> {
        let mut items = self.table("deliveries").await;
        items.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("DELIVERY#"));
        items
    }

    /// Removes and returns the only item under a partition key, apart from audit records and counters.
    pub(crate) async fn take_item(&self, table: &str, pk: &str) -> Value {
        let mut items = self.items(table, pk).await;
        items.retain(|item| {
            let sk = item["sk"]["S"].as_str().unwrap_or_default();
            !sk.starts_with("AUDIT#") && !sk.starts_with("ERASURE#") && sk != "SETTINGS"
        });
        assert_eq!(items.len(), 1, "{items:?}");
        let item = items.remove(0);
        let mut key = json!({ "pk": item["pk"] });
        if item["sk"].is_object() {
            key["sk"] = item["sk"].clone();
        }
        self.delete_item(table, &key).await;
        item
    }

    /// Deletes an item from a table.
    pub(crate) async fn delete_item(&self, table: &str, key: &Value) {
        let delete = json!({ "TableName": format!("{TABLE_PREFIX}{table}"), "Key": key });
        self.local.aws("DynamoDB_20120810.DeleteItem", &delete).await;
    }

    /// Puts an item into a table.
    pub(crate) async fn put_item(&self, table: &str, item: &Value) {
        let put = json!({ "TableName": format!("{TABLE_PREFIX}{table}"), "Item": item });
        self.local.aws("DynamoDB_20120810.PutItem", &put).await;
    }

    /// Puts many items into a table.
    pub(crate) async fn put_items(&self, table: &str, items: &[Value]) {
        let put = |items: &[Value]| {
            let requests: Vec<Value> = items.iter().map(|item| json!({ "PutRequest": { "Item": item } })).collect();
            let batch = json!({ "RequestItems": { format!("{TABLE_PREFIX}{table}"): requests } });
            async move {
                let answer = self.local.aws("DynamoDB_20120810.BatchWriteItem", &batch).await;
                assert_eq!(answer["UnprocessedItems"], json!({}), "{answer}");
            }
        };
        futures::stream::iter(items.chunks(BATCH_ITEMS).map(put)).buffer_unordered(8).collect::<Vec<()>>().await;
    }

    /// Sends up to ten messages that become visible at the same instant after the delay.
    pub(crate) async fn send_together(&self, queue: &str, bodies: &[String], delay_s: u32) {
        let entry =
            |(number, body)| json!({ "Id": format!("m{number}"), "MessageBody": body, "DelaySeconds": delay_s });
        let entries: Vec<Value> = bodies.iter().enumerate().map(entry).collect();
        let send = json!({ "QueueUrl": self.queue_url(queue).await, "Entries": entries });
        let answer = self.local.aws("AmazonSQS.SendMessageBatch", &send).await;
        assert_eq!(list(answer["Successful"].clone()).len(), bodies.len(), "{answer}");
    }

    /// Puts a message into a queue.
    pub(crate) async fn send(&self, queue: &str, body: &str) {
        let send = json!({ "QueueUrl": self.queue_url(queue).await, "MessageBody": body });
        self.local.aws("AmazonSQS.SendMessage", &send).await;
    }

    /// Sends a copy of a received message, with its message group.
    pub(crate) async fn send_like(&self, queue: &str, message: &Value) {
        let mut send = json!({ "QueueUrl": self.queue_url(queue).await, "MessageBody": message["Body"] });
        for name in ["MessageGroupId", "MessageDeduplicationId"] {
            if let Some(value) = message["Attributes"].get(name) {
                send[name] = value.clone();
            }
        }
        self.local.aws("AmazonSQS.SendMessage", &send).await;
    }

    /// Deletes all messages of a queue.
    pub(crate) async fn purge(&self, queue: &str) {
        let purge = json!({ "QueueUrl": self.queue_url(queue).await });
        self.local.aws("AmazonSQS.PurgeQueue", &purge).await;
    }

    async fn queue_url(&self, queue: &str) -> Value {
        self.local.aws("AmazonSQS.GetQueueUrl", &json!({ "QueueName": queue })).await["QueueUrl"].clone()
    }

    /// Takes all visible messages out of a queue and returns their bodies.
    pub(crate) async fn take_messages(&self, queue: &str) -> Vec<String> {
        let messages = self.receive_all(queue).await;
        messages.iter().map(|message| message["Body"].as_str().unwrap().to_owned()).collect()
    }

    /// Receives and deletes all visible messages of a queue.
    pub(crate) async fn receive_all(&self, queue: &str) -> Vec<Value> {
        let url = self.queue_url(queue).await;
        let mut all = Vec::new();
        loop {
            let receive = json!({
                "QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 0, "MessageSystemAttributeNames": ["All"],
            });
            let answer = self.local.aws("AmazonSQS.ReceiveMessage", &receive).await;
            let messages = answer["Messages"].as_array().cloned().unwrap_or_default();
            if messages.is_empty() {
                return all;
            }
            for message in messages {
                let delete = json!({ "QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"] });
                self.local.aws("AmazonSQS.DeleteMessage", &delete).await;
                all.push(message);
            }
        }
    }

    /// Takes the facts that were set aside since the last call.
    pub(crate) async fn set_aside(&self) -> Vec<Value> {
        let bodies = self.take_messages("application-feed-dlq").await;
        bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }
}

/// All texts and decoded binaries of an item, concatenated.
pub(crate) fn bytes_of(item: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    collect(item, &mut bytes);
    bytes
}

fn collect(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                into.extend(name.as_bytes());
                match (name.as_str(), value) {
                    ("B", Value::String(text)) => into.extend(STANDARD.decode(text).unwrap()),
                    (_, value) => collect(value, into),
                }
                into.push(b'\n');
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        Value::String(text) => into.extend(text.as_bytes()),
        other => into.extend(other.to_string().as_bytes()),
    }
}
