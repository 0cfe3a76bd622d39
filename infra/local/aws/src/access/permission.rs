//! The permissions that a request requires, by the service authorization reference. `dynamodb::request_names` has those
//! of DynamoDB.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::account::arn;
use crate::query::parameter;
use crate::secrets::Secrets;

/// The bus of entries without a bus.
const DEFAULT_BUS: &str = "default";

/// The condition key with the sender of a mail, a single value.
pub(super) const FROM_ADDRESS: &str = "ses:FromAddress";
/// The condition key with the sources of a request's events, a list.
pub(super) const EVENT_SOURCE: &str = "events:source";

/// An action on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permission {
    /// The action, such as `dynamodb:PutItem`.
    pub(crate) action: String,
    /// The ARN, or `*` for an action without a resource.
    pub(crate) resource: String,
    /// The request's condition key and its values.
    pub(crate) condition: Option<(&'static str, Vec<String>)>,
}

impl Permission {
    pub(crate) fn new(service: &str, operation: &str, resource: impl Into<String>) -> Self {
        Self { action: format!("{service}:{operation}"), resource: resource.into(), condition: None }
    }

    /// Adds a condition key and its values.
    pub(super) fn with(self, key: &'static str, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { condition: Some((key, values.into_iter().map(Into::into).collect())), ..self }
    }

    /// Returns the values of a condition key, or none if the request lacks the key.
    pub(super) fn values(&self, key: &str) -> &[String] {
        self.condition.as_ref().filter(|(own, _)| *own == key).map_or(&[], |(_, values)| values)
    }
}

/// Returns the permissions that a request to a service other than DynamoDB requires. A malformed request requires the
/// action on `*`.
pub(crate) fn required_permissions(service: &str, operation: &str, body: &[u8]) -> Vec<Permission> {
    match service {
        "AmazonSQS" => {
            let QueueTarget { queue_url, queue_name } = read(body);
            let name = queue_url.as_deref().map(|url| url.rsplit('/').next().unwrap_or(url)).or(queue_name.as_deref());
            let resource = name.map_or_else(|| "*".to_owned(), |name| arn("sqs", name));
            // IAM has no actions for batches.
            vec![Permission::new("sqs", operation.strip_suffix("Batch").unwrap_or(operation), resource)]
        }
        "AWSEvents" => {
            // One decision for each bus, on the sources of all its entries.
            let mut sources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for EntryTarget { event_bus_name, source } in read::<PutEventsTargets>(body).entries {
                let bus = event_bus_name.unwrap_or(DEFAULT_BUS.to_owned());
                let bus = if bus.contains(':') { bus } else { arn("events", &format!("event-bus/{bus}")) };
                sources.entry(bus).or_default().extend(source);
            }
            let permissions =
                sources.into_iter().map(|(bus, all)| Permission::new("events", operation, bus).with(EVENT_SOURCE, all));
            distinct_or(permissions.collect(), || Permission::new("events", operation, "*"))
        }
        "ses" => {
            let from = read::<MailSender>(body).from_email_address.unwrap_or_default();
            // The address in `Ada <ada@example.com>` is ada@example.com.
            let address = from.rsplit_once('<').map_or(from.as_str(), |(_, address)| address.trim_end_matches('>'));
            // The identities that SES checks depend on what is verified: the address, its domain or a parent domain,
            // and in the sandbox the recipient. The address represents all of them here.
            let identity = format!("identity/{address}");
            // An identity may have a default configuration set, which SES checks too. This one has.
            let resources = [identity.as_str(), "configuration-set/default"];
            let permission = |resource| Permission::new("ses", operation, arn("ses", resource));
            resources.map(|resource| permission(resource).with(FROM_ADDRESS, [address])).into()
        }
        "secretsmanager" => {
            let resource = read::<SecretTarget>(body).secret_id.map_or_else(|| "*".to_owned(), |id| Secrets::arn(&id));
            vec![Permission::new("secretsmanager", operation, resource)]
        }
        "cloudformation" => {
            // CloudFormation checks a stack that is named as `stack/NAME/*`, without its id.
            let resource = match parameter(body, "StackName") {
                Some(id) if id.starts_with("arn:") => id,
                Some(name) => arn("cloudformation", &format!("stack/{name}/*")),
                None => "*".to_owned(),
            };
            vec![Permission::new("cloudformation", operation, resource)]
        }
        // Everybody may ask who they are.
        "sts" => Vec::new(),
        other => vec![Permission::new(other, operation, "*")],
    }
}

/// Returns one permission for each resource, or one on `*` when there are none.
pub(crate) fn on_each(service: &str, operation: &str, resources: Vec<String>) -> Vec<Permission> {
    let permissions = resources.into_iter().map(|resource| Permission::new(service, operation, resource));
    distinct_or(permissions.collect(), || Permission::new(service, operation, "*"))
}

/// Removes duplicates, or returns the fallback for an empty list.
fn distinct_or(mut permissions: Vec<Permission>, otherwise: impl FnOnce() -> Permission) -> Vec<Permission> {
    if permissions.is_empty() {
        permissions.push(otherwise());
    }
    permissions.sort_unstable();
    permissions.dedup();
    permissions
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct QueueTarget {
    queue_url: Option<String>,
    queue_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct PutEventsTargets {
    entries: Vec<EntryTarget>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EntryTarget {
    event_bus_name: Option<String>,
    source: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct MailSender {
    from_email_address: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct SecretTarget {
    secret_id: Option<String>,
}

fn read<T: DeserializeOwned + Default>(body: &[u8]) -> T {
    serde_json::from_slice(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_its_required_permissions() {
        let queue = r#"{"QueueUrl": "http://h/000000000000/q.fifo"}"#;
        let buses = r#"{"Entries": [{"EventBusName": "b"}, {}, {"EventBusName": "b", "Detail": "{}"}]}"#;
        for (service, operation, body, expected) in [
            ("AmazonSQS", "SendMessage", queue, "sqs:SendMessage sqs q.fifo"),
            ("AmazonSQS", "SendMessageBatch", queue, "sqs:SendMessage sqs q.fifo"),
            ("AmazonSQS", "DeleteMessageBatch", queue, "sqs:DeleteMessage sqs q.fifo"),
            ("AmazonSQS", "ChangeMessageVisibilityBatch", queue, "sqs:ChangeMessageVisibility sqs q.fifo"),
            ("AmazonSQS", "GetQueueUrl", r#"{"QueueName": "q"}"#, "sqs:GetQueueUrl sqs q"),
            ("AmazonSQS", "ListQueues", "{}", "sqs:ListQueues *"),
            ("AmazonSQS", "SendMessage", "no json", "sqs:SendMessage *"),
            (
                "AWSEvents",
                "PutEvents",
                buses,
                "events:PutEvents events event-bus/b, events:PutEvents events event-bus/default",
            ),
            (
                "ses",
                "SendEmail",
                r#"{"FromEmailAddress": "Ada <ada@example.com>"}"#,
                "ses:SendEmail ses identity/ada@example.com, ses:SendEmail ses configuration-set/default",
            ),
            (
                "secretsmanager",
                "GetSecretValue",
                r#"{"SecretId": "s"}"#,
                "secretsmanager:GetSecretValue secretsmanager secret:s-local1",
            ),
            (
                "cloudformation",
                "ListStackResources",
                "Action=ListStackResources&StackName=s",
                "cloudformation:ListStackResources cloudformation stack/s/*",
            ),
            ("cloudformation", "ListStackResources", "", "cloudformation:ListStackResources *"),
            ("sts", "GetCallerIdentity", "Action=GetCallerIdentity", ""),
        ] {
            let needs = required_permissions(service, operation, body.as_bytes());
            let shown = needs.iter().map(|need| format!("{} {}", need.action, need.resource));
            let shown = shown.collect::<Vec<_>>().join(", ").replace(":us-east-1:000000000000:", " ");
            assert_eq!(shown.replace("arn:aws:", ""), expected, "{operation} {body}");
        }
    }

    #[test]
    fn events_require_their_bus_with_all_their_sources() {
        let body = r#"{"Entries": [{"EventBusName": "b", "Source": "x"}, {"EventBusName": "b", "Source": "y"},
            {"EventBusName": "b", "Source": "x", "Detail": "{}"}, {"EventBusName": "c"}]}"#;
        let permissions = required_permissions("AWSEvents", "PutEvents", body.as_bytes());
        let sources: Vec<_> = permissions.iter().map(|need| need.values(EVENT_SOURCE)).collect();
        assert_eq!(sources, [&["x".to_owned(), "y".to_owned()][..], &[]]);
    }
}
