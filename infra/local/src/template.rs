//! Reader of template.yaml. The local stack has exactly what the template declares.
//!
//! - Parameters take their defaults or the values that the stack supplies. Intrinsic functions are resolved.
//! - An unsupported resource or event type is an error, unless it has no local effect (alarms, log groups, policies of
//!   resources, nested stacks).
//! - Resources that a condition switches off are left out.

mod condition;
mod error;
mod resolve;
mod resources;
mod yaml;

use std::collections::BTreeMap;

use local_aws::{StackResource, stack_id};
use serde_json::{Value, json};

pub use error::TemplateError;
pub use resources::{Api, Authorizer, Cors, Function, HttpRoute, ScheduleSource, SqsSource, StreamSource, Trigger};

use resolve::{Identity, Names};

/// The region of all resources.
pub const REGION: &str = "us-east-1";
/// The account of all resources.
pub const ACCOUNT: &str = "000000000000";
/// The name of the stack, and the prefix of default resource names.
pub const STACK_NAME: &str = "partner-api";

/// The type of policies that several functions have, or that operators attach to their roles.
const MANAGED_POLICY: &str = "AWS::IAM::ManagedPolicy";

/// Resource types without a local effect, by prefix.
const INERT: [&str; 9] = [
    "AWS::CloudFormation::Stack",
    "AWS::SQS::QueuePolicy",
    "AWS::Events::EventBusPolicy",
    "AWS::CloudWatch::",
    "AWS::Logs::",
    "AWS::Lambda::Permission",
    "AWS::IAM::",
    "AWS::SNS::",
    "AWS::ApplicationInsights::",
];

/// Parses the template's text to JSON without resolving anything: `!Ref x` is `{"Ref": "x"}`.
pub fn document(text: &str) -> Result<Value, TemplateError> {
    yaml::parse(text)
}

/// A parsed template with the names of its resources.
#[derive(Debug)]
pub struct Template {
    names: Names,
    globals: Value,
    resources: BTreeMap<String, Resource>,
    /// The documents of managed policies, by their logical ids.
    managed_policies: BTreeMap<String, Value>,
}

/// A managed policy.
#[derive(Debug, Clone)]
pub struct ManagedPolicy {
    /// The logical id in the template.
    pub logical_id: String,
    /// The resolved `PolicyDocument`.
    pub document: Value,
    /// True if a function has the policy.
    pub is_of_function: bool,
}

#[derive(Debug)]
struct Resource {
    kind: String,
    properties: Value,
    metadata: Value,
}

impl Template {
    /// Parses the text. `parameters` overrides the defaults. `aws_url` is the base of queue URLs.
    pub fn load(text: &str, parameters: &BTreeMap<String, String>, aws_url: &str) -> Result<Self, TemplateError> {
        let document = yaml::parse(text)?;
        let mut template = Self {
            names: Names { parameters: parameter_values(&document["Parameters"], parameters)?, ..Names::default() },
            globals: document["Globals"]["Function"].clone(),
            resources: BTreeMap::new(),
            managed_policies: BTreeMap::new(),
        };
        template.names.conditions = condition::evaluate(&document["Conditions"], &template.names)?;
        let declared = document["Resources"].as_object().ok_or_else(|| TemplateError::new("has no Resources"))?;
        for (logical_id, resource) in declared {
            let kind = resource["Type"].as_str().unwrap_or_default().to_owned();
            if kind != MANAGED_POLICY && INERT.iter().any(|inert| kind.starts_with(inert)) {
                continue;
            }
            if let Some(condition) = resource["Condition"].as_str() {
                let holds = template.names.conditions.get(condition);
                let unknown = || TemplateError::new(format!("{logical_id}: there is no condition {condition}"));
                if !*holds.ok_or_else(unknown)? {
                    continue;
                }
            }
            let properties = match &resource["Properties"] {
                Value::Null => json!({}),
                properties => properties.clone(),
            };
            if kind == MANAGED_POLICY {
                template.managed_policies.insert(logical_id.clone(), properties["PolicyDocument"].clone());
                continue;
            }
            let metadata = resource["Metadata"].clone();
            template.resources.insert(logical_id.clone(), Resource { kind, properties, metadata });
        }
        template.identify(aws_url)?;
        Ok(template)
    }

    /// Returns the resolved properties of the tables.
    pub fn tables(&self) -> Result<Vec<Value>, TemplateError> {
        self.resolved("AWS::DynamoDB::Table")
    }

    /// Returns the resolved properties of the queues.
    pub fn queues(&self) -> Result<Vec<Value>, TemplateError> {
        self.resolved("AWS::SQS::Queue")
    }

    /// Returns the names of the event buses.
    pub fn buses(&self) -> Vec<String> {
        self.of_kind("AWS::Events::EventBus").map(|(id, _)| self.names.resources[id].reference.clone()).collect()
    }

    /// Returns the resolved properties of the event rules.
    pub fn rules(&self) -> Result<Vec<Value>, TemplateError> {
        self.resolved("AWS::Events::Rule")
    }

    /// Returns the logical ids and resolved properties of the secrets.
    pub fn secrets(&self) -> Result<Vec<(String, Value)>, TemplateError> {
        self.of_kind("AWS::SecretsManager::Secret")
            .map(|(id, resource)| {
                Ok((id.clone(), self.names.resolve(&resource.properties).map_err(TemplateError::of(id))?))
            })
            .collect()
    }

    /// Sets a secret's ARN, which exists only once the secret does.
    pub fn set_secret_arn(&mut self, logical_id: &str, arn: String) {
        let identity = Identity { reference: arn.clone(), attributes: [("Id", arn)].into() };
        self.names.resources.insert(logical_id.to_owned(), identity);
    }

    /// Returns the HTTP API, or `None` when the template has none.
    pub fn api(&self) -> Result<Option<Api>, TemplateError> {
        let mut apis = self.of_kind("AWS::Serverless::HttpApi");
        let Some((id, resource)) = apis.next() else { return Ok(None) };
        if apis.next().is_some() {
            return Err(TemplateError::new("has several HTTP APIs; the local stack serves one"));
        }
        // Other properties, such as the access log, refer to resources that do not exist locally.
        let properties = json!({
            "Auth": resource.properties["Auth"], "CorsConfiguration": resource.properties["CorsConfiguration"],
        });
        Api::parse(&self.names.resolve(&properties)?).map(Some).map_err(TemplateError::of(id))
    }

    /// Returns the functions with their triggers. Call `set_secret_arn` for all secrets before.
    pub fn functions(&self) -> Result<Vec<Function>, TemplateError> {
        self.of_kind("AWS::Serverless::Function")
            .map(|(id, resource)| {
                let mut properties = resource.properties.clone();
                self.insert_managed_policies(&mut properties["Policies"]);
                Function::parse(id, &self.globals, &properties, &resource.metadata, &self.names)
                    .map_err(TemplateError::of(id))
            })
            .collect()
    }

    /// Returns the managed policies. Call `set_secret_arn` for all secrets before.
    pub fn managed_policies(&self) -> Result<Vec<ManagedPolicy>, TemplateError> {
        let resolved = |(id, document): (&String, &Value)| {
            let document = self.names.resolve(document).map_err(TemplateError::of(id))?;
            let mut functions = self.of_kind("AWS::Serverless::Function");
            let is_of_function = functions.any(|(_, function)| {
                function.properties["Policies"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|policy| policy["Ref"] == id.as_str())
            });
            Ok(ManagedPolicy { logical_id: id.clone(), document, is_of_function })
        };
        self.managed_policies.iter().map(resolved).collect()
    }

    /// Returns the resources as CloudFormation lists them, by their logical ids. Call `set_secret_arn` for all secrets
    /// before.
    pub fn stack_resources(&self) -> Vec<StackResource> {
        let listed = |(id, identity): (&String, &Identity)| {
            // Functions and APIs have the types to which SAM transforms them.
            let kind = match self.resources[id].kind.as_str() {
                "AWS::Serverless::Function" => "AWS::Lambda::Function",
                "AWS::Serverless::HttpApi" => "AWS::ApiGatewayV2::Api",
                kind => kind,
            };
            StackResource { logical_id: id.clone(), physical_id: identity.reference.clone(), kind: kind.to_owned() }
        };
        self.names.resources.iter().map(listed).collect()
    }

    /// Replaces references to managed policies by their documents.
    fn insert_managed_policies(&self, policies: &mut Value) {
        for policy in policies.as_array_mut().into_iter().flatten() {
            if let Some(document) = policy["Ref"].as_str().and_then(|id| self.managed_policies.get(id)) {
                *policy = document.clone();
            }
        }
    }

    fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = (&String, &Resource)> {
        self.resources.iter().filter(move |(_, resource)| resource.kind == kind)
    }

    fn resolved(&self, kind: &'static str) -> Result<Vec<Value>, TemplateError> {
        self.of_kind(kind)
            .map(|(id, resource)| self.names.resolve(&resource.properties).map_err(TemplateError::of(id)))
            .collect()
    }

    /// Sets the values of `Ref` and `GetAtt` for each resource. Names may refer to parameters, but not to other
    /// resources.
    fn identify(&mut self, aws_url: &str) -> Result<(), TemplateError> {
        for (id, resource) in &mut self.resources {
            let mut name = |property: &str| -> Result<String, TemplateError> {
                let named = match resource.properties.get(property) {
                    Some(value) => resolve::text(&self.names.resolve(value).map_err(TemplateError::of(id))?),
                    None => None,
                };
                let named = named.unwrap_or_else(|| format!("{STACK_NAME}-{id}"));
                resource.properties[property] = json!(named);
                Ok(named)
            };
            let identity = match resource.kind.as_str() {
                "AWS::DynamoDB::Table" => {
                    let table = name("TableName")?;
                    let arn = format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}");
                    let stream = format!("{arn}/stream/local");
                    Identity { reference: table, attributes: [("Arn", arn), ("StreamArn", stream)].into() }
                }
                "AWS::SQS::Queue" => {
                    let queue = name("QueueName")?;
                    let arn = format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}");
                    let url = format!("{aws_url}/{ACCOUNT}/{queue}");
                    let attributes = [("Arn", arn), ("QueueName", queue), ("QueueUrl", url.clone())].into();
                    Identity { reference: url, attributes }
                }
                "AWS::Events::EventBus" => {
                    let bus = name("Name")?;
                    let arn = format!("arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{bus}");
                    Identity { reference: bus.clone(), attributes: [("Arn", arn), ("Name", bus)].into() }
                }
                "AWS::Events::Rule" => {
                    let rule = name("Name")?;
                    let arn = format!("arn:aws:events:{REGION}:{ACCOUNT}:rule/{rule}");
                    Identity { reference: rule, attributes: [("Arn", arn)].into() }
                }
                "AWS::Serverless::Function" => {
                    let function = name("FunctionName")?;
                    let arn = format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}");
                    Identity { reference: function, attributes: [("Arn", arn)].into() }
                }
                "AWS::Serverless::HttpApi" => Identity { reference: "local".to_owned(), ..Identity::default() },
                // Set by `set_secret_arn` once the secret exists.
                "AWS::SecretsManager::Secret" => continue,
                other => {
                    return Err(TemplateError::new(format!(
                        "{id}: the local stack does not support resources of type {other}"
                    )));
                }
            };
            self.names.resources.insert(id.clone(), identity);
        }
        Ok(())
    }
}

fn parameter_values(
    declared: &Value,
    supplied: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, TemplateError> {
    let mut values: BTreeMap<String, Value> = [
        ("AWS::StackName", STACK_NAME),
        ("AWS::StackId", stack_id(STACK_NAME).as_str()),
        ("AWS::Region", REGION),
        ("AWS::AccountId", ACCOUNT),
        ("AWS::Partition", "aws"),
        ("AWS::URLSuffix", "amazonaws.com"),
    ]
    .map(|(name, value)| (name.to_owned(), json!(value)))
    .into();
    if let Some(unknown) = supplied.keys().find(|name| declared.get(name.as_str()).is_none()) {
        return Err(TemplateError::new(format!("has no parameter {unknown}")));
    }
    for (name, parameter) in declared.as_object().into_iter().flatten() {
        let value = match (supplied.get(name), parameter.get("Default")) {
            (Some(value), _) => json!(value),
            (None, Some(default)) => default.clone(),
            (None, None) => {
                return Err(TemplateError::new(format!(
                    "has a parameter {name} without a default, and the local stack knows no value for it"
                )));
            }
        };
        values.insert(name.clone(), value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
