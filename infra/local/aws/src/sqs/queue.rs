//! Settings of a queue. The template has numbers, strings or objects; the API has strings only.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error;
use crate::answer::ServiceError;

/// Maximum bytes of a message with its attributes, and of a whole batch.
pub(super) const MAX_MESSAGE_BYTES: usize = 1_048_576;

/// Settings of a standard queue. Durations are in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) visibility_timeout: i64,
    pub(super) delay: i64,
    pub(super) retention: i64,
    pub(super) wait_time: i64,
    pub(super) max_message_bytes: i64,
    pub(super) redrive: Option<Redrive>,
}

/// The redrive policy: the dead-letter queue and the maximum number of receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Redrive {
    pub(super) target_arn: String,
    pub(super) max_receives: i64,
}

/// Settings with a local effect. `FifoQueue` is one, so that a FIFO queue is refused.
const WITH_EFFECT: [&str; 7] = [
    "DelaySeconds",
    "FifoQueue",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "VisibilityTimeout",
];

/// Settings that callers may use and that have no local effect.
const WITHOUT_EFFECT: [&str; 5] =
    ["KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "Policy", "RedriveAllowPolicy", "SqsManagedSseEnabled"];

impl Default for Settings {
    fn default() -> Self {
        Self {
            visibility_timeout: 30,
            delay: 0,
            retention: 4 * 86_400,
            wait_time: 0,
            max_message_bytes: MAX_MESSAGE_BYTES as i64,
            redrive: None,
        }
    }
}

impl Settings {
    /// Returns true for a setting with a local effect.
    pub(super) fn has_effect(name: &str) -> bool {
        WITH_EFFECT.contains(&name)
    }

    /// Returns the defaults, overridden by `attributes`.
    pub(super) fn from_attributes(attributes: &Map<String, Value>) -> Result<Self, ServiceError> {
        let mut settings = Self::default();
        settings.update(attributes)?;
        Ok(settings)
    }

    /// Overrides the settings that `attributes` contains.
    pub(super) fn update(&mut self, attributes: &Map<String, Value>) -> Result<(), ServiceError> {
        for (name, value) in attributes {
            let number = |min: i64, max: i64| {
                let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                number.filter(|number| (min..=max).contains(number)).ok_or_else(|| error::invalid_attribute_value(name))
            };
            match name.as_str() {
                "VisibilityTimeout" => self.visibility_timeout = number(0, 43_200)?,
                "DelaySeconds" => self.delay = number(0, 900)?,
                "MessageRetentionPeriod" => self.retention = number(60, 1_209_600)?,
                "ReceiveMessageWaitTimeSeconds" => self.wait_time = number(0, 20)?,
                "MaximumMessageSize" => self.max_message_bytes = number(1_024, MAX_MESSAGE_BYTES as i64)?,
                "RedrivePolicy" => self.redrive = Redrive::parse(value)?,
                name if WITHOUT_EFFECT.contains(&name) => {}
                name => return Err(error::invalid_attribute_name(name)),
            }
        }
        Ok(())
    }

    /// Renders the settings for `GetQueueAttributes`.
    pub(super) fn to_attributes(&self) -> Map<String, Value> {
        let mut attributes = Map::new();
        for (name, number) in [
            ("VisibilityTimeout", self.visibility_timeout),
            ("DelaySeconds", self.delay),
            ("MessageRetentionPeriod", self.retention),
            ("ReceiveMessageWaitTimeSeconds", self.wait_time),
            ("MaximumMessageSize", self.max_message_bytes),
        ] {
            attributes.insert(name.to_owned(), number.to_string().into());
        }
        attributes.insert("SqsManagedSseEnabled".to_owned(), "true".into());
        if let Some(Redrive { target_arn, max_receives }) = &self.redrive {
            let policy = json!({ "deadLetterTargetArn": target_arn, "maxReceiveCount": max_receives });
            attributes.insert("RedrivePolicy".to_owned(), policy.to_string().into());
        }
        attributes
    }
}

impl Redrive {
    /// Parses an object, or a string with one. An empty string removes the policy.
    fn parse(value: &Value) -> Result<Option<Self>, ServiceError> {
        let invalid = || error::invalid_attribute_value("RedrivePolicy");
        let policy = match value {
            Value::String(text) if text.is_empty() => return Ok(None),
            Value::String(text) => serde_json::from_str(text).map_err(|_| invalid())?,
            other => other.clone(),
        };
        let count = &policy["maxReceiveCount"];
        let max_receives = count.as_i64().or_else(|| count.as_str()?.parse().ok());
        Ok(Some(Self {
            target_arn: policy["deadLetterTargetArn"].as_str().ok_or_else(invalid)?.to_owned(),
            max_receives: max_receives.filter(|count| (1..=1_000).contains(count)).ok_or_else(invalid)?,
        }))
    }

    /// Returns the name of the dead-letter queue.
    pub(super) fn target(&self) -> &str {
        self.target_arn.rsplit(':').next().unwrap_or(&self.target_arn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_properties_and_api_attributes_give_the_same_settings() {
        let template = json!({ "VisibilityTimeout": 180, "RedrivePolicy": { "deadLetterTargetArn": "arn:aws:sqs:r:a:dlq", "maxReceiveCount": 10 } });
        let api = json!({ "VisibilityTimeout": "180", "RedrivePolicy": r#"{"deadLetterTargetArn": "arn:aws:sqs:r:a:dlq", "maxReceiveCount": "10"}"# });
        let parse = |value: &Value| Settings::from_attributes(value.as_object().unwrap()).unwrap();
        assert_eq!(parse(&template), parse(&api));
        assert_eq!(parse(&api).redrive.unwrap().target(), "dlq");
        assert_eq!(Settings::from_attributes(&parse(&api).to_attributes()).unwrap(), parse(&api));
    }

    #[test]
    fn a_setting_out_of_its_range_or_unknown_is_refused() {
        for attributes in
            [json!({ "DelaySeconds": 901 }), json!({ "MessageRetentionPeriod": "59" }), json!({ "FifoQueue": "true" })]
        {
            assert!(Settings::from_attributes(attributes.as_object().unwrap()).is_err(), "{attributes}");
        }
    }
}
