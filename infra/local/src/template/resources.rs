//! Types of the template's functions and API.

use std::collections::BTreeMap;
use std::time::Duration;

use local_aws::Pattern;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::TemplateError;
use super::resolve::{Names, text};

/// Lambda's default time-out.
const DEFAULT_TIMEOUT_S: u64 = 3;

/// One Lambda function.
#[derive(Debug, Clone)]
pub struct Function {
    /// The logical id in the template.
    pub logical_id: String,
    /// The name of the linked function: `Metadata.BuildProperties.Binary`.
    pub binary: String,
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// Time limit of one invocation.
    pub timeout: Duration,
    /// The resolved `Policies`.
    pub policies: Value,
    /// Triggers by the event's name in the template.
    pub triggers: Vec<(String, Trigger)>,
}

/// An event source that invokes a function.
#[derive(Debug, Clone)]
pub enum Trigger {
    /// A route of the HTTP API.
    Http(HttpRoute),
    /// Messages of a queue.
    Sqs(SqsSource),
    /// Records of a table's stream.
    Stream(StreamSource),
    /// Times of a schedule.
    Schedule(ScheduleSource),
}

/// An event of type `HttpApi`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct HttpRoute {
    /// The method, or `ANY`.
    pub method: String,
    /// The path, such as `/v1/clients/{clientId}`, or `$default`.
    pub path: String,
    #[serde(default, rename = "ApiId")]
    _api_id: Option<String>,
    #[serde(default)]
    auth: RouteAuth,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RouteAuth {
    authorizer: Option<String>,
}

/// An event of type `SQS`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct SqsSource {
    /// The queue's ARN.
    pub queue: String,
    /// Maximum number of messages in one invocation.
    #[serde(default = "ten")]
    pub batch_size: usize,
    #[serde(default)]
    function_response_types: Vec<String>,
    #[serde(default = "yes")]
    enabled: bool,
    /// Ignored: it trades latency for fewer invocations, which cost nothing locally.
    #[serde(default, rename = "MaximumBatchingWindowInSeconds")]
    _window_s: Option<u64>,
    #[serde(default)]
    scaling_config: Option<ScalingConfig>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ScalingConfig {
    maximum_concurrency: Option<usize>,
}

/// An event of type `DynamoDB`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct StreamSource {
    /// The stream's ARN.
    pub stream: String,
    /// Maximum number of records in one invocation.
    #[serde(default = "hundred")]
    pub batch_size: usize,
    /// Halves a failed batch, to isolate the failing record.
    #[serde(default)]
    pub bisect_batch_on_function_error: bool,
    /// Maximum number of retries of a failed record. `None` and -1 mean no limit.
    #[serde(default)]
    maximum_retry_attempts: Option<i64>,
    #[serde(default)]
    function_response_types: Vec<String>,
    #[serde(default)]
    filter_criteria: FilterCriteria,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default, rename = "StartingPosition")]
    _starting_position: Option<String>,
    #[serde(default, rename = "ParallelizationFactor")]
    _parallelization_factor: Option<u64>,
    #[serde(default, rename = "MaximumBatchingWindowInSeconds")]
    _window_s: Option<u64>,
    #[serde(default, rename = "MaximumRecordAgeInSeconds")]
    _record_age_s: Option<i64>,
    #[serde(default, rename = "DestinationConfig")]
    _destination: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FilterCriteria {
    #[serde(default)]
    filters: Vec<Filter>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Filter {
    pattern: String,
}

/// An event of type `Schedule`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ScheduleSource {
    /// The expression, such as `rate(15 minutes)`.
    pub schedule: String,
    #[serde(default)]
    state: RuleState,
    #[serde(default, rename = "Description")]
    _description: Option<String>,
    #[serde(default, rename = "Name")]
    _name: Option<String>,
    #[serde(default, rename = "RetryPolicy")]
    _retry_policy: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum RuleState {
    #[default]
    Enabled,
    Disabled,
}

/// The HTTP API.
#[derive(Debug, Clone)]
pub struct Api {
    /// JWT authorizers by name.
    pub authorizers: BTreeMap<String, Authorizer>,
    /// Cross-origin settings.
    pub cors: Option<Cors>,
}

/// A JWT authorizer. The token is in the `Authorization` header.
#[derive(Debug, Clone, Deserialize)]
pub struct Authorizer {
    /// The required `iss` of a token.
    pub issuer: String,
    /// The accepted `aud` values.
    pub audience: Vec<String>,
}

/// `CorsConfiguration`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default, deny_unknown_fields)]
pub struct Cors {
    /// Allowed origins.
    pub allow_origins: Vec<String>,
    /// Methods that pages may use.
    pub allow_methods: Vec<String>,
    /// Headers that pages may send.
    pub allow_headers: Vec<String>,
    /// Headers that pages may read.
    pub expose_headers: Vec<String>,
    /// Seconds for which a browser may cache the preflight response.
    pub max_age: Option<u64>,
}

impl HttpRoute {
    /// Returns the name of the route's authorizer.
    pub fn authorizer(&self) -> Option<&str> {
        self.auth.authorizer.as_deref()
    }
}

impl SqsSource {
    /// Returns true when the function reports failed messages.
    pub fn reports_failures(&self) -> bool {
        reports_failures(&self.function_response_types)
    }

    /// Returns the template's limit of concurrent invocations.
    pub fn maximum_concurrency(&self) -> Option<usize> {
        self.scaling_config.as_ref()?.maximum_concurrency
    }

    /// Returns the queue's name.
    pub fn queue_name(&self) -> &str {
        self.queue.rsplit(':').next().unwrap_or(&self.queue)
    }
}

impl StreamSource {
    /// Returns true when the function reports the record at which it failed.
    pub fn reports_failures(&self) -> bool {
        reports_failures(&self.function_response_types)
    }

    /// Returns the maximum number of retries of a failed record. `None` means no limit.
    pub fn retries(&self) -> Option<u64> {
        self.maximum_retry_attempts.and_then(|attempts| u64::try_from(attempts).ok())
    }

    /// Returns the table's name.
    pub fn table_name(&self) -> &str {
        self.stream.split('/').nth(1).unwrap_or(&self.stream)
    }

    /// Returns the filter patterns. A record must match one of them. An empty list accepts every record.
    pub fn patterns(&self) -> Result<Vec<Pattern>, TemplateError> {
        let parsed = self.filter_criteria.filters.iter().map(|filter| {
            let pattern = serde_json::from_str(&filter.pattern).map_err(|error| error.to_string())?;
            Pattern::parse(&pattern)
        });
        parsed.collect::<Result<_, String>>().map_err(TemplateError::new)
    }
}

impl Api {
    pub(super) fn parse(properties: &Value) -> Result<Self, TemplateError> {
        let mut authorizers = BTreeMap::new();
        for (name, authorizer) in properties["Auth"]["Authorizers"].as_object().into_iter().flatten() {
            let source = authorizer.get("IdentitySource").and_then(Value::as_str);
            if source.is_some_and(|source| !source.eq_ignore_ascii_case("$request.header.Authorization")) {
                return Err(TemplateError::new(format!("has an authorizer {name} with an unsupported IdentitySource")));
            }
            authorizers.insert(name.clone(), typed(&authorizer["JwtConfiguration"])?);
        }
        if !properties["Auth"]["DefaultAuthorizer"].is_null() {
            return Err(TemplateError::new("has a DefaultAuthorizer; the local stack reads those of routes"));
        }
        let cors = Some(&properties["CorsConfiguration"]).filter(|cors| !cors.is_null()).map(typed).transpose()?;
        Ok(Self { authorizers, cors })
    }
}

impl Function {
    pub(super) fn parse(
        id: &str,
        globals: &Value,
        own: &Value,
        metadata: &Value,
        names: &Names,
    ) -> Result<Self, TemplateError> {
        let binary = metadata["BuildProperties"]["Binary"].as_str();
        let binary = binary.ok_or_else(|| TemplateError::new("has no Metadata.BuildProperties.Binary"))?;
        let mut variables = BTreeMap::new();
        for source in [globals, own] {
            let resolved = names.resolve(&source["Environment"]["Variables"])?;
            for (name, value) in resolved.as_object().into_iter().flatten() {
                let value = text(value).ok_or_else(|| {
                    TemplateError::new(format!("has a variable {name} that is neither text nor number"))
                })?;
                variables.insert(name.clone(), value);
            }
        }
        if let Some(other) = ["Role", "PermissionsBoundary"].iter().find(|name| own.get(name).is_some()) {
            return Err(TemplateError::new(format!("the local stack does not support {other}; it reads Policies")));
        }
        let policies = names.resolve(&own["Policies"])?;
        let timeout_s = [own, globals].iter().find_map(|source| source["Timeout"].as_u64());
        let mut triggers = Vec::new();
        for (name, event) in own["Events"].as_object().into_iter().flatten() {
            let properties = names.resolve(&event["Properties"])?;
            if let Some(trigger) = trigger(event["Type"].as_str().unwrap_or_default(), &properties)
                .map_err(|error| TemplateError::new(format!("event {name}: {}", error.0)))?
            {
                triggers.push((name.clone(), trigger));
            }
        }
        Ok(Self {
            logical_id: id.to_owned(),
            binary: binary.to_owned(),
            variables,
            timeout: Duration::from_secs(timeout_s.unwrap_or(DEFAULT_TIMEOUT_S)),
            policies,
            triggers,
        })
    }
}

/// Parses an event. Returns `None` for a disabled event source.
fn trigger(kind: &str, properties: &Value) -> Result<Option<Trigger>, TemplateError> {
    Ok(match kind {
        "HttpApi" => Some(Trigger::Http(typed(properties)?)),
        "SQS" => Some(typed(properties)?).filter(|source: &SqsSource| source.enabled).map(Trigger::Sqs),
        "DynamoDB" => Some(typed(properties)?).filter(|source: &StreamSource| source.enabled).map(Trigger::Stream),
        "Schedule" => Some(typed(properties)?)
            .filter(|source: &ScheduleSource| source.state == RuleState::Enabled)
            .map(Trigger::Schedule),
        other => return Err(TemplateError::new(format!("the local stack does not support events of type {other}"))),
    })
}

fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, TemplateError> {
    serde_json::from_value(value.clone()).map_err(TemplateError::new)
}

fn reports_failures(types: &[String]) -> bool {
    types.iter().any(|kind| kind == "ReportBatchItemFailures")
}

fn ten() -> usize {
    10
}

fn hundred() -> usize {
    100
}

fn yes() -> bool {
    true
}
