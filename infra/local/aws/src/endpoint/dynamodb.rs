//! Requests to DynamoDB from outside: authorization, faults and the call log around dynoxide.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::request_names::RequestNames;
use super::units;
use crate::access::Caller;
use crate::account::{ACCOUNT, REGION};
use crate::answer::{JSON_1_0, ServiceError, respond};
use crate::calls::Units;
use crate::dynamodb::EngineAnswer;
use crate::services::Aws;

const NAMESPACE: &str = "com.amazonaws.dynamodb.v20120810";

/// DynamoDB's message for a write that conflicts with another transaction.
const CONFLICT: &str = "Transaction is ongoing for the item";

/// dynoxide's fixed region in ARNs.
const ENGINE_REGION: &str = "dynoxide";

impl Aws {
    /// Handles one request. `target` is the whole `X-Amz-Target`.
    pub(crate) async fn dynamodb_request(&self, target: &str, body: Bytes, caller: Caller<'_>) -> Response {
        let operation = target.rsplit('.').next().unwrap_or(target);
        let names = RequestNames::read(&body);
        let Some(environment) = caller.environment() else {
            return match self.access().authorize(caller, &names.permissions(operation)) {
                Ok(()) => self.forward(operation, body).await.into_response(),
                Err(denied) => denied.into_response(),
            };
        };
        let started = self.calls().start(environment, operation, || names.tables());
        let faulty = self.apply_call_faults(environment).await;
        if let Some(latency) = self.faults().store_latency(environment) {
            tokio::time::sleep(latency).await;
        }
        let outcome = match self.access().authorize(caller, &names.permissions(operation)) {
            Err(denied) => Outcome::Refused(denied),
            Ok(()) if faulty => self.faulty_answer(operation, body).await,
            Ok(()) => self.forward(operation, body).await,
        };
        let crashes = matches!(&outcome, Outcome::Answer(answer) if answer.status.is_success())
            && operation == "TransactWriteItems"
            && started.is_some()
            && faulty
            && self.faults().take_crash_after_commit();
        if let Some(started) = started {
            let (status, used) = match &outcome {
                Outcome::Answer(answer) => (answer.status.as_u16(), units::consumed(operation, &answer.body)),
                Outcome::Refused(error) => (error.status(), Units::default()),
            };
            self.calls().end(started, status, used);
        }
        if crashes && self.calls().crash(environment) {
            // A crashed function reads no response.
            self.closed().await;
        }
        outcome.into_response()
    }

    async fn faulty_answer(&self, operation: &str, body: Bytes) -> Outcome {
        if self.faults().take_store_failure() {
            return Outcome::Refused(internal_server_error());
        }
        let token = transaction_token(operation, &body);
        let can_conflict = matches!(operation, "TransactWriteItems" | "PutItem" | "UpdateItem" | "DeleteItem");
        if can_conflict && self.faults().take_store_conflict(token.as_deref()) {
            return Outcome::Refused(conflict(operation, &body));
        }
        let outcome = self.forward(operation, body).await;
        if self.faults().take_store_lost_answer() {
            if matches!(&outcome, Outcome::Answer(answer) if answer.status.is_success()) {
                token.iter().for_each(|token| self.faults().remember_lost(token));
            }
            return Outcome::Refused(internal_server_error());
        }
        outcome
    }

    async fn forward(&self, operation: &str, body: Bytes) -> Outcome {
        let dynamodb = self.dynamodb();
        let names_arns = names_arns(operation);
        let body = if names_arns { with_region(&body, REGION, ENGINE_REGION) } else { body };
        match dynamodb.operate(operation, &body).await {
            Ok(mut answer) => {
                if names_arns {
                    answer.body = with_region(&answer.body, ENGINE_REGION, REGION);
                }
                if answer.status.is_success() && writes(operation) {
                    dynamodb.notify_write();
                }
                Outcome::Answer(answer)
            }
            Err(error) => Outcome::Refused(error.into()),
        }
    }
}

enum Outcome {
    Answer(EngineAnswer),
    Refused(ServiceError),
}

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        let answer = match self {
            Self::Answer(answer) => answer,
            Self::Refused(error) => return error.into_response(),
        };
        respond(answer.status, JSON_1_0, answer.body)
    }
}

fn internal_server_error() -> ServiceError {
    ServiceError::json_1_0(
        StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
        format!("{NAMESPACE}#InternalServerError"),
        "The request processing has failed because of an unknown error, exception or failure.",
    )
}

/// The token under which a transaction is committed once.
fn transaction_token(operation: &str, body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Transaction {
        client_request_token: Option<String>,
    }
    let is_transaction = operation == "TransactWriteItems";
    is_transaction.then(|| serde_json::from_slice::<Transaction>(body).ok()?.client_request_token).flatten()
}

/// Builds the error of a write that conflicts with another transaction.
fn conflict(operation: &str, body: &[u8]) -> ServiceError {
    if operation != "TransactWriteItems" {
        return ServiceError::json_1_0(400, format!("{NAMESPACE}#TransactionConflictException"), CONFLICT);
    }
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let items = request["TransactItems"].as_array().map_or(1, Vec::len);
    let codes: Vec<&str> = (0..items).map(|at| if at == 0 { "TransactionConflict" } else { "None" }).collect();
    let reasons: Vec<Value> = codes
        .iter()
        .map(
            |code| if *code == "None" { json!({ "Code": code }) } else { json!({ "Code": code, "Message": CONFLICT }) },
        )
        .collect();
    let message =
        format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{}]", codes.join(", "));
    ServiceError::json_1_0(400, format!("{NAMESPACE}#TransactionCanceledException"), message)
        .with("CancellationReasons", Value::Array(reasons))
}

fn writes(operation: &str) -> bool {
    matches!(
        operation,
        "PutItem"
            | "UpdateItem"
            | "DeleteItem"
            | "BatchWriteItem"
            | "TransactWriteItems"
            | "UpdateTimeToLive"
            | "DeleteTable"
    )
}

/// Returns true for operations with ARNs or a region in the request or response. None of them is called often.
fn names_arns(operation: &str) -> bool {
    operation.ends_with("Table")
        || operation.ends_with("Resource")
        || operation.ends_with("Stream")
        || matches!(operation, "ListStreams" | "GetShardIterator" | "GetRecords")
}

fn with_region(body: &Bytes, from: &str, to: &str) -> Bytes {
    let Ok(text) = std::str::from_utf8(body) else { return body.clone() };
    let arn = |region: &str| format!("arn:aws:dynamodb:{region}:{}:", ACCOUNT);
    let field = |region: &str| format!(r#""awsRegion":"{region}""#);
    Bytes::from(text.replace(&arn(from), &arn(to)).replace(&field(from), &field(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_rewritten_both_ways() {
        let ours = Bytes::from_static(br#"{"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/a"}"#);
        let inner = with_region(&ours, "us-east-1", "dynoxide");
        assert!(std::str::from_utf8(&inner).unwrap().contains(":dynoxide:"));
        assert_eq!(with_region(&inner, "dynoxide", "us-east-1"), ours);
    }
}
