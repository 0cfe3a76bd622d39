//! The connection to a stack: the names of its resources, by CloudFormation, and the AWS clients.
//!
//! The local stack is found in the same way, at its own address and with any credentials.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::{BehaviorVersion, ConfigLoader};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_sdk_cloudformation::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_cloudformation::operation::list_stack_resources::ListStackResourcesError;
use aws_smithy_http_client::Builder as HttpClientBuilder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::sdk_config::TimeoutConfig;
use domain::mode::Mode;
use domain::time::Timestamp;
use runtime::{Clock, Config, Environment};
use store::Db;
use store::vault::Vault;

use crate::aws_clock::{AwsClock, Dated};
use crate::failure::Failure;
use crate::options::Options;

/// The stack's name, and the region, of a local stack.
const LOCAL_STACK: &str = "partner-api";
const LOCAL_REGION: &str = "us-east-1";
/// Time-out of a call, retries included.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
/// The function that only a sandbox has.
const OF_SANDBOX: &str = "WipeFunction";

/// A stack, and who operates it.
pub(crate) struct Operator {
    /// The name of the stack.
    pub(crate) stack: String,
    pub(crate) env: Environment,
    pub(crate) db: Db,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) is_local: bool,
    /// Physical ids by logical ids, with the types.
    resources: BTreeMap<String, Resource>,
}

struct Resource {
    kind: String,
    id: String,
}

/// A queue of the stack.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) url: String,
    pub(crate) name: String,
}

impl Operator {
    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::new(self.env.clock().now())
    }

    /// The vault, for commands that read or write sealed values.
    pub(crate) async fn vault(&self) -> Result<Vault, Failure> {
        Vault::open(&self.env).await.map_err(|error| Failure::of_cause("secretsmanager:GetSecretValue", error.as_ref()))
    }

    /// All queues.
    pub(crate) fn queues(&self) -> impl Iterator<Item = Queue> {
        let queues = self.resources.values().filter(|resource| resource.kind == "AWS::SQS::Queue");
        queues.map(|resource| queue_at(&resource.id))
    }

    /// The queue with this logical id.
    pub(crate) fn queue(&self, logical_id: &str) -> Result<Queue, Failure> {
        let resource = self.resources.get(logical_id);
        let missing = || Failure::not_found(format!("the stack has no queue {logical_id}: another release made it"));
        resource.map(|resource| queue_at(&resource.id)).ok_or_else(missing)
    }
}

fn queue_at(url: &str) -> Queue {
    Queue { url: url.to_owned(), name: url.rsplit('/').next().unwrap_or(url).to_owned() }
}

/// Connects to the stack that the options name.
pub(crate) async fn open(options: &Options) -> Result<Operator, Failure> {
    let sdk = sdk(options).await?;
    let stack = options.stack.as_deref().unwrap_or(LOCAL_STACK);
    let dated = Dated::default();
    let resources = resources(&sdk, stack, &dated).await?;
    let ahead = dated.ahead();
    let mode = if resources.contains_key(OF_SANDBOX) { Mode::Test } else { Mode::Live };
    let of_resources = resources.iter().filter_map(|(id, resource)| Some((variable(id, &resource.kind)?, resource)));
    let variables: Vec<_> = of_resources
        .map(|(variable, resource)| (variable, resource.id.clone()))
        .chain([(Mode::SETTING.to_owned(), mode.as_str().to_owned())])
        .collect();
    let clock: Arc<dyn Clock> = Arc::new(AwsClock { ahead });
    let sqs = aws_sdk_sqs::Client::new(&sdk);
    let env = Environment::with_sdk(Config::from_vars(variables), clock, sdk);
    Ok(Operator { stack: stack.to_owned(), db: Db::new(&env), env, sqs, is_local: options.local, resources })
}

/// The variable by which the modules of the store know a resource, such as `LOGIN_LINKS_TABLE` of `LoginLinksTable`.
fn variable(logical_id: &str, kind: &str) -> Option<String> {
    let suffix = match kind {
        "AWS::DynamoDB::Table" => "",
        "AWS::SQS::Queue" => "_URL",
        "AWS::SecretsManager::Secret" => "_ARN",
        _ => return None,
    };
    let mut name = String::new();
    for c in logical_id.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    Some(name + suffix)
}

/// The AWS settings: the operator's own credentials and region, or any at the local stack.
async fn sdk(options: &Options) -> Result<SdkConfig, Failure> {
    let http = HttpClientBuilder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    let loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http).timeout_config(timeouts);
    if options.local {
        return Ok(local(loader, options.aws_port).await);
    }
    let sdk = loader.load().await;
    if sdk.region().is_none_or(|region| region.as_ref().is_empty()) {
        return Err(Failure::usage("no AWS region: set AWS_REGION, or AWS_PROFILE to a profile that has one"));
    }
    let provider = sdk.credentials_provider();
    let credentials = match &provider {
        Some(provider) => provider.provide_credentials().await.map(drop).map_err(|error| runtime::error_chain(&error)),
        None => Err("there is no provider".to_owned()),
    };
    credentials.map_err(|cause| {
        Failure::unreachable(format!(
            "no AWS credentials: sign in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID: {cause}"
        ))
    })?;
    Ok(sdk)
}

async fn local(loader: ConfigLoader, port: u16) -> SdkConfig {
    let environment = EnvironmentVariableCredentialsProvider::new();
    let any = Credentials::from_keys("local", "local", None);
    let credentials = CredentialsProviderChain::first_try("environment", environment).or_else("any", any);
    let loader = loader.credentials_provider(credentials).region(Region::from_static(LOCAL_REGION));
    loader.endpoint_url(format!("http://127.0.0.1:{port}")).load().await
}

/// All resources of a stack.
async fn resources(sdk: &SdkConfig, stack: &str, dated: &Dated) -> Result<BTreeMap<String, Resource>, Failure> {
    let config = aws_sdk_cloudformation::config::Builder::from(sdk).interceptor(dated.clone()).build();
    let client = aws_sdk_cloudformation::Client::from_conf(config);
    let mut pages = client.list_stack_resources().stack_name(stack).into_paginator().send();
    let mut resources = BTreeMap::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| no_resources(sdk, stack, error))?;
        for summary in page.stack_resource_summaries.unwrap_or_default() {
            let (Some(logical_id), Some(id)) = (summary.logical_resource_id, summary.physical_resource_id) else {
                continue;
            };
            resources.insert(logical_id, Resource { kind: summary.resource_type.unwrap_or_default(), id });
        }
    }
    Ok(resources)
}

fn no_resources(sdk: &SdkConfig, stack: &str, error: SdkError<ListStackResourcesError>) -> Failure {
    let region = sdk.region().map(Region::as_ref).unwrap_or_default();
    match error.as_service_error().and_then(ProvideErrorMetadata::code) {
        Some("ValidationError") => {
            Failure::not_found(format!("no stack {stack} in {region}: check the name, the region and the account"))
        }
        // The policy of a role names its stack, so AWS does not tell the two apart.
        Some("AccessDenied") => {
            let error = Failure::of_call("cloudformation:ListStackResources", error);
            Failure::refused(format!("the stack {stack} is not in {region}, or {error}"))
        }
        Some(_) | None => Failure::of_call("cloudformation:ListStackResources", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_the_variable_by_which_the_functions_know_it() {
        for (logical_id, kind, name) in [
            ("KeysTable", "AWS::DynamoDB::Table", Some("KEYS_TABLE")),
            ("LoginLinksTable", "AWS::DynamoDB::Table", Some("LOGIN_LINKS_TABLE")),
            ("DeliveriesQueue", "AWS::SQS::Queue", Some("DELIVERIES_QUEUE_URL")),
            ("EncryptionSecret", "AWS::SecretsManager::Secret", Some("ENCRYPTION_SECRET_ARN")),
            ("KeyPolicy", "AWS::IAM::ManagedPolicy", None),
        ] {
            assert_eq!(variable(logical_id, kind).as_deref(), name);
        }
    }
}
