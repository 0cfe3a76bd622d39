//! Settings of a queue, from its properties in the template. Durations are in seconds.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Properties that change what a queue does, but that the local stack does not have.
const UNSUPPORTED: [&str; 4] =
    ["ContentBasedDeduplication", "DelaySeconds", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds"];

/// Settings of a queue.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Settings {
    #[serde(default = "default_visibility_timeout")]
    pub(super) visibility_timeout: i64,
    #[serde(rename = "MessageRetentionPeriod", default = "default_retention")]
    pub(super) retention: i64,
    #[serde(rename = "RedrivePolicy")]
    pub(super) redrive: Option<Redrive>,
    #[serde(default)]
    fifo_queue: bool,
    deduplication_scope: Option<DeduplicationScope>,
    fifo_throughput_limit: Option<FifoThroughputLimit>,
}

/// The messages among which a deduplication id is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum DeduplicationScope {
    MessageGroup,
    Queue,
}

/// The limit of a FIFO queue's throughput. It has no local effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum FifoThroughputLimit {
    PerMessageGroupId,
    PerQueue,
}

/// The redrive policy: the dead-letter queue and the maximum number of receives.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Redrive {
    dead_letter_target_arn: String,
    pub(super) max_receive_count: i64,
}

fn default_visibility_timeout() -> i64 {
    30
}

fn default_retention() -> i64 {
    4 * 86_400
}

impl Settings {
    /// Reads the resolved `Properties` of an `AWS::SQS::Queue`. Properties without a local effect are ignored.
    pub(super) fn parse(name: &str, properties: &Value) -> Result<Self, String> {
        if let Some(name) = UNSUPPORTED.iter().find(|name| properties.get(**name).is_some()) {
            return Err(format!("the local stack has no {name}"));
        }
        let settings = Self::deserialize(properties).map_err(|error| error.to_string())?;
        let fifo = settings.fifo_queue;
        if fifo != is_fifo(name) {
            return Err("the name of a FIFO queue ends in .fifo, and no other name does".to_owned());
        } else if settings.redrive.as_ref().is_some_and(|redrive| is_fifo(redrive.target()) != fifo) {
            return Err("RedrivePolicy: a FIFO queue needs a FIFO dead-letter queue, another a standard one".to_owned());
        } else if !fifo && (settings.deduplication_scope.is_some() || settings.fifo_throughput_limit.is_some()) {
            return Err("DeduplicationScope and FifoThroughputLimit are for FIFO queues".to_owned());
        } else if settings.fifo_throughput_limit == Some(FifoThroughputLimit::PerMessageGroupId)
            && !settings.deduplicates_by_group()
        {
            return Err("FifoThroughputLimit: perMessageGroupId needs the DeduplicationScope messageGroup".to_owned());
        }
        Ok(settings)
    }

    /// Returns true if a deduplication id counts within its message group, false if it counts for the whole queue.
    pub(super) fn deduplicates_by_group(&self) -> bool {
        self.deduplication_scope == Some(DeduplicationScope::MessageGroup)
    }

    /// Renders the settings for `GetQueueAttributes`.
    pub(super) fn to_attributes(&self) -> Map<String, Value> {
        let mut attributes: Map<String, Value> =
            [("VisibilityTimeout", self.visibility_timeout), ("MessageRetentionPeriod", self.retention)]
                .into_iter()
                .map(|(name, number)| (name.to_owned(), number.to_string().into()))
                .collect();
        if let Some(Redrive { dead_letter_target_arn, max_receive_count }) = &self.redrive {
            let policy = json!({ "deadLetterTargetArn": dead_letter_target_arn, "maxReceiveCount": max_receive_count });
            attributes.insert("RedrivePolicy".to_owned(), policy.to_string().into());
        }
        if self.fifo_queue {
            let scope = self.deduplication_scope.unwrap_or(DeduplicationScope::Queue);
            let limit = self.fifo_throughput_limit.unwrap_or(FifoThroughputLimit::PerQueue);
            for (name, value) in [
                ("FifoQueue", json!("true")),
                ("ContentBasedDeduplication", json!("false")),
                ("DeduplicationScope", json!(scope)),
                ("FifoThroughputLimit", json!(limit)),
            ] {
                attributes.insert(name.to_owned(), value);
            }
        }
        attributes
    }
}

/// Returns true for the name of a FIFO queue.
pub(super) fn is_fifo(queue: &str) -> bool {
    queue.ends_with(".fifo")
}

impl Redrive {
    /// Returns the name of the dead-letter queue.
    pub(super) fn target(&self) -> &str {
        self.dead_letter_target_arn.rsplit(':').next().unwrap_or(&self.dead_letter_target_arn)
    }
}
