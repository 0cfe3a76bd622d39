//! The events with which Lambda invokes the relay.

use serde::Deserialize;

/// An invocation of the relay.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Invocation {
    /// The outbox table's stream.
    Stream(aws_lambda_events::event::dynamodb::Event),
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
    fn a_stream_batch_and_a_schedule_are_distinguished() {
        let stream = json!({"Records": [{
            "eventID": "1", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1",
            "eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/outbox/stream/2026-01-01T00:00:00.000",
            "dynamodb": {
                "ApproximateCreationDateTime": 1_790_000_000, "Keys": {"pk": {"S": "evt_1"}},
                "NewImage": {"pk": {"S": "evt_1"}, "send_after": {"N": "1"}, "sealed": {"B": "aGVsbG8="}},
                "SequenceNumber": "111", "SizeBytes": 26, "StreamViewType": "NEW_IMAGE"
            }
        }]});
        let Invocation::Stream(stream) = serde_json::from_value(stream).unwrap() else { panic!("a stream") };
        let change = &stream.records[0].change;
        assert_eq!(change.sequence_number.as_deref(), Some("111"));
        assert_eq!(change.new_image["sealed"], serde_dynamo::AttributeValue::B(b"hello".to_vec()));
        let schedule = json!({
            "version": "0", "id": "1", "detail-type": "Scheduled Event", "source": "aws.events", "account": "123456789012",
            "time": "2026-01-01T00:00:00Z", "region": "eu-west-1", "resources": ["arn:aws:events:eu-west-1:123456789012:rule/r"], "detail": {}
        });
        assert!(matches!(serde_json::from_value(schedule).unwrap(), Invocation::Scheduled { .. }));
        assert!(serde_json::from_value::<Invocation>(json!({"hello": 1})).is_err());
    }
}
