//! The events with which Lambda invokes the wipe.

use aws_lambda_events::event::sqs::SqsEvent;
use serde::Deserialize;

/// An invocation of the wipe.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Invocation {
    /// Orders for parts of removals.
    Orders(SqsEvent),
    /// The schedule's call. Its content does not matter.
    Scheduled {
        #[serde(rename = "detail-type")]
        detail_type: String,
    },
}
