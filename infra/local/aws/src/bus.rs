//! EventBridge: buses, the template's rules with queues as targets, and a log of all events.
//!
//! An event and the messages to its targets are stored in one transaction, so neither exists without the other.

mod pattern;

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::account::{ACCOUNT, REGION};
use crate::answer::{Answer, ServiceError};
use crate::error::{SetupError, StoreError};
use crate::sqlite::Sqlite;
use crate::sqs::{NewMessage, Sqs, insert};
use crate::time::StackTime;

pub use pattern::Pattern;

pub(crate) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, source TEXT NOT NULL, \
    envelope TEXT NOT NULL); CREATE INDEX IF NOT EXISTS events_by_source ON events(source);";

/// The default bus of every account.
const DEFAULT_BUS: &str = "default";

const MAX_ENTRIES: usize = 10;

/// Maximum bytes of all entries of a request.
const MAX_REQUEST_BYTES: usize = 1_048_576;

/// EventBridge.
pub struct EventBus {
    sqlite: Sqlite,
    time: StackTime,
    sqs: Sqs,
    buses: RwLock<HashSet<String>>,
    rules: RwLock<Vec<Rule>>,
}

struct Rule {
    bus: String,
    pattern: Pattern,
    /// ARNs of the target queues.
    targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutEvents {
    #[serde(default)]
    entries: Vec<PutEventsEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutEventsEntry {
    event_bus_name: Option<String>,
    source: Option<String>,
    detail_type: Option<String>,
    detail: Option<String>,
    #[serde(default)]
    resources: Vec<String>,
    time: Option<f64>,
}

/// The error of an entry: code and message.
type EntryError = (&'static str, String);

impl EventBus {
    pub(crate) fn open(sqlite: Sqlite, time: StackTime, sqs: Sqs) -> Self {
        let buses = RwLock::new(HashSet::from([DEFAULT_BUS.to_owned()]));
        Self { sqlite, time, sqs, buses, rules: RwLock::default() }
    }

    /// Adds a bus.
    pub fn add_bus(&self, name: &str) {
        self.buses.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// Adds a rule from the resolved `Properties` of an `AWS::Events::Rule`. Targets must be queues and receive the
    /// whole event. A disabled rule is ignored.
    pub fn add_rule(&self, properties: &Value) -> Result<(), SetupError> {
        let bus = name_of(properties["EventBusName"].as_str().unwrap_or(DEFAULT_BUS)).to_owned();
        let pattern = Pattern::parse(&properties["EventPattern"])
            .map_err(|reason| SetupError::new(format!("a rule of bus {bus}: {reason}")))?;
        let mut targets = Vec::new();
        for target in properties["Targets"].as_array().into_iter().flatten() {
            let arn = target["Arn"].as_str().unwrap_or_default();
            let changed = ["Input", "InputPath", "InputTransformer"].iter().any(|field| target.get(field).is_some());
            if changed || !arn.starts_with("arn:aws:sqs:") {
                return Err(SetupError::new(format!(
                    "a rule of bus {bus}: the local stack sends whole events to queues, nothing else (target {arn})"
                )));
            }
            targets.push(arn.to_owned());
        }
        if properties["State"] != "DISABLED" {
            self.rules.write().unwrap_or_else(PoisonError::into_inner).push(Rule { bus, pattern, targets });
        }
        Ok(())
    }

    /// Returns the newest `limit` events of all buses as envelopes, the newest last.
    pub async fn events(&self, source: Option<&str>, limit: usize) -> Result<Vec<Value>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let envelopes: Vec<String> = self
            .sqlite
            .run(|connection| match source {
                Some(source) => connection
                    .prepare_cached("SELECT envelope FROM events WHERE source = ?1 ORDER BY id DESC LIMIT ?2")?
                    .query_map((source, limit), |row| row.get(0))?
                    .collect(),
                None => connection
                    .prepare_cached("SELECT envelope FROM events ORDER BY id DESC LIMIT ?1")?
                    .query_map([limit], |row| row.get(0))?
                    .collect(),
            })
            .await?;
        Ok(envelopes.iter().rev().map(|envelope| serde_json::from_str(envelope).unwrap_or_default()).collect())
    }

    /// Handles one request of the JSON protocol.
    pub(crate) async fn request(&self, operation: &str, body: &[u8]) -> Result<Answer, ServiceError> {
        let error = |shape: &str, message: String| ServiceError::json_1_1(400, shape, message);
        if operation != "PutEvents" {
            let message = format!("The local stack's EventBridge has PutEvents alone, not {operation}.");
            return Err(error("UnknownOperationException", message));
        }
        let request: PutEvents =
            serde_json::from_slice(body).map_err(|reason| error("SerializationException", reason.to_string()))?;
        if request.entries.is_empty() || request.entries.len() > MAX_ENTRIES {
            let message = format!(
                "{} entries: Member must have length less than or equal to {MAX_ENTRIES}, and at least 1.",
                request.entries.len()
            );
            return Err(error("ValidationException", message));
        }
        if body.len() > MAX_REQUEST_BYTES {
            let message = format!("Total size of the entries in the request is over the limit of {MAX_REQUEST_BYTES}.");
            return Err(error("ValidationException", message));
        }
        Ok(Answer::json_1_1(&self.put_events(request.entries).await?))
    }

    async fn put_events(&self, entries: Vec<PutEventsEntry>) -> Result<Value, StoreError> {
        let (mut results, mut envelopes, mut messages) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match self.envelope(entry) {
                Ok((bus, envelope)) => {
                    results.push(json!({ "EventId": envelope["id"] }));
                    messages.extend(self.messages(&bus, &envelope));
                    envelopes.push(envelope);
                }
                Err((code, message)) => results.push(json!({ "ErrorCode": code, "ErrorMessage": message })),
            }
        }
        let failed = results.len() - envelopes.len();
        self.sqlite
            .run_transaction(|transaction| {
                for envelope in &envelopes {
                    transaction
                        .prepare_cached("INSERT INTO events (source, envelope) VALUES (?1, ?2)")?
                        .execute((envelope["source"].as_str(), envelope.to_string()))?;
                }
                insert(transaction, &messages)
            })
            .await?;
        self.sqs.notify_stored();
        Ok(json!({ "FailedEntryCount": failed, "Entries": results }))
    }

    /// Validates an entry and returns its bus and the event's envelope.
    fn envelope(&self, entry: PutEventsEntry) -> Result<(String, Value), EntryError> {
        let required = |value: Option<String>, name: &str| {
            value.filter(|value| !value.is_empty()).ok_or_else(|| {
                let message = format!("Parameter {name} is not valid. Reason: {name} is a required argument.");
                ("InvalidArgument", message)
            })
        };
        let bus = name_of(entry.event_bus_name.as_deref().unwrap_or(DEFAULT_BUS)).to_owned();
        if !self.buses.read().unwrap_or_else(PoisonError::into_inner).contains(&bus) {
            return Err(("ResourceNotFoundException", format!("Event bus {bus} does not exist.")));
        }
        let source = required(entry.source, "Source")?;
        let detail_type = required(entry.detail_type, "DetailType")?;
        let detail = required(entry.detail, "Detail")?;
        let detail = serde_json::from_str::<Value>(&detail).ok().filter(Value::is_object);
        let detail = detail.ok_or_else(|| ("MalformedDetail", "Detail is malformed.".to_owned()))?;
        let now = self.time.now();
        let time = entry.time.and_then(|seconds| chrono::DateTime::from_timestamp(seconds as i64, 0)).unwrap_or(now);
        let envelope = json!({
            "version": "0",
            "id": Uuid::new_v4().to_string(),
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT,
            "time": time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            "region": REGION,
            "resources": entry.resources,
            "detail": detail,
        });
        Ok((bus, envelope))
    }

    /// Builds one message for each target of each matching rule.
    fn messages(&self, bus: &str, envelope: &Value) -> Vec<NewMessage> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let body = envelope.to_string();
        rules
            .iter()
            .filter(|rule| rule.bus == bus && rule.pattern.matches(envelope))
            .flat_map(|rule| &rule.targets)
            .filter_map(|target| match self.sqs.message_to(target, &body) {
                Ok(message) => Some(message),
                Err(error) => {
                    tracing::warn!(%error, "cannot send an event to a rule's target");
                    None
                }
            })
            .collect()
    }
}

/// Returns the name of a bus given by its name or ARN.
fn name_of(bus: &str) -> &str {
    bus.rsplit('/').next().unwrap_or(bus)
}
