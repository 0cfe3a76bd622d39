//! The events with which Lambda invokes the sweep.

use aws_lambda_events::event::sqs::SqsEvent;
use serde::Deserialize;

/// An invocation of the sweep.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Invocation {
    /// Shards with a due client.
    Shards(SqsEvent),
    /// The schedule's call. Its content does not matter.
    Scheduled {
        #[serde(rename = "detail-type")]
        detail_type: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_queue_s_batch_and_a_schedule_are_distinguished() {
        let batch = json!({"Records": [{
            "messageId": "1", "receiptHandle": "r", "body": "{\"shard\":3}", "attributes": {}, "messageAttributes": {},
            "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:sweep-shards", "awsRegion": "eu-west-1"
        }]});
        let Invocation::Shards(batch) = serde_json::from_value(batch).unwrap() else { panic!("a batch") };
        assert_eq!(batch.records[0].body.as_deref(), Some("{\"shard\":3}"));
        let schedule = json!({
            "version": "0", "id": "1", "detail-type": "Scheduled Event", "source": "aws.events", "account": "123456789012",
            "time": "2026-01-01T00:00:00Z", "region": "eu-west-1", "resources": ["arn:aws:events:eu-west-1:123456789012:rule/r"], "detail": {}
        });
        assert!(matches!(serde_json::from_value(schedule).unwrap(), Invocation::Scheduled { .. }));
        assert!(serde_json::from_value::<Invocation>(json!({"hello": 1})).is_err());
    }
}
