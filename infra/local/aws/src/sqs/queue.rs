//! Settings of a queue, from its properties in the template. Durations are in seconds.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Properties that change what a queue does, but that the local stack does not have.
const UNSUPPORTED: [&str; 4] = ["DelaySeconds", "FifoQueue", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds"];

/// Settings of a standard queue.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Settings {
    #[serde(default = "default_visibility_timeout")]
    pub(super) visibility_timeout: i64,
    #[serde(rename = "MessageRetentionPeriod", default = "default_retention")]
    pub(super) retention: i64,
    #[serde(rename = "RedrivePolicy")]
    pub(super) redrive: Option<Redrive>,
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
    pub(super) fn parse(properties: &Value) -> Result<Self, String> {
        match UNSUPPORTED.iter().find(|name| properties.get(**name).is_some()) {
            Some(name) => Err(format!("the local stack has no {name}")),
            None => Self::deserialize(properties).map_err(|error| error.to_string()),
        }
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
        attributes
    }
}

impl Redrive {
    /// Returns the name of the dead-letter queue.
    pub(super) fn target(&self) -> &str {
        self.dead_letter_target_arn.rsplit(':').next().unwrap_or(&self.dead_letter_target_arn)
    }
}
