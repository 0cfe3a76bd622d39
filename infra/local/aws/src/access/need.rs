//! What a request needs to be allowed, by the service authorization reference. DynamoDB's requests are read in `dynamodb::named`.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::secrets::Secrets;
use crate::{ACCOUNT, REGION};

/// The bus of entries that name none.
const DEFAULT_BUS: &str = "default";

/// The condition key that names the sender of a mail.
pub(super) const FROM_ADDRESS: &str = "ses:FromAddress";
/// The condition key that names the source of an event.
pub(super) const EVENT_SOURCE: &str = "events:source";

/// An action on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    /// `dynamodb:PutItem`.
    pub(crate) action: String,
    /// The ARN, or `*` for what is done to no resource in particular.
    pub(crate) resource: String,
    /// The condition key that the request has, and its value.
    pub(crate) condition: Option<(&'static str, String)>,
}

impl Need {
    pub(crate) fn new(service: &str, operation: &str, resource: impl Into<String>) -> Self {
        Self { action: format!("{service}:{operation}"), resource: resource.into(), condition: None }
    }

    /// The same need of a request with this condition key.
    pub(super) fn with(self, key: &'static str, value: impl Into<String>) -> Self {
        Self { condition: Some((key, value.into())), ..self }
    }
}

/// The ARN of something of this account. What is an ARN already stays what it is.
pub(crate) fn arn(service: &str, resource: &str) -> String {
    if resource.starts_with("arn:") {
        return resource.to_owned();
    }
    format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}")
}

/// What a request to a service other than DynamoDB needs. A request that cannot be read needs the action on everything.
pub(crate) fn of_request(service: &str, operation: &str, body: &[u8]) -> Vec<Need> {
    match service {
        "AmazonSQS" => {
            let OnQueue { queue_url, queue_name } = read(body);
            let name = queue_url.as_deref().map(|url| url.rsplit('/').next().unwrap_or(url)).or(queue_name.as_deref());
            let resource = name.map_or_else(|| "*".to_owned(), |name| arn("sqs", name));
            // There are no actions for batches.
            vec![Need::new("sqs", operation.strip_suffix("Batch").unwrap_or(operation), resource)]
        }
        "AWSEvents" => {
            // Each entry is authorized by itself.
            let need = |Entry { event_bus_name, source }: Entry| {
                let bus = event_bus_name.unwrap_or(DEFAULT_BUS.to_owned());
                let bus = if bus.contains(':') { bus } else { arn("events", &format!("event-bus/{bus}")) };
                Need::new("events", operation, bus).with(EVENT_SOURCE, source.unwrap_or_default())
            };
            once(read::<PutEvents>(body).entries.into_iter().map(need).collect(), || {
                Need::new("events", operation, "*")
            })
        }
        "ses" => {
            let from = read::<SendEmail>(body).from_email_address.unwrap_or_default();
            // `Ada <ada@example.com>` is from ada@example.com.
            let address = from.rsplit_once('<').map_or(from.as_str(), |(_, address)| address.trim_end_matches('>'));
            // Which identities SES asks for depends on what is verified: the address, its domain or one above that, and the
            // recipient's where the account may mail to verified identities alone. The address stands for them all.
            let identity = format!("identity/{address}");
            // An identity may have a configuration set of its own, which goes with every mail. This one has.
            let resources = [identity.as_str(), "configuration-set/default"];
            let need = |resource| Need::new("ses", operation, arn("ses", resource));
            resources.map(|resource| need(resource).with(FROM_ADDRESS, address)).into()
        }
        "secretsmanager" => {
            let resource = read::<OnSecret>(body).secret_id.map_or_else(|| "*".to_owned(), |id| Secrets::arn(&id));
            vec![Need::new("secretsmanager", operation, resource)]
        }
        other => vec![Need::new(other, operation, "*")],
    }
}

/// One need for each of the resources, each once; of none of them, on everything.
pub(crate) fn each(service: &str, operation: &str, resources: Vec<String>) -> Vec<Need> {
    let needs = resources.into_iter().map(|resource| Need::new(service, operation, resource));
    once(needs.collect(), || Need::new(service, operation, "*"))
}

/// Each need once, or the other where there is none.
fn once(mut needs: Vec<Need>, otherwise: impl FnOnce() -> Need) -> Vec<Need> {
    if needs.is_empty() {
        needs.push(otherwise());
    }
    needs.sort_unstable();
    needs.dedup();
    needs
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct OnQueue {
    queue_url: Option<String>,
    queue_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct PutEvents {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    event_bus_name: Option<String>,
    source: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct SendEmail {
    from_email_address: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct OnSecret {
    secret_id: Option<String>,
}

fn read<T: DeserializeOwned + Default>(body: &[u8]) -> T {
    serde_json::from_slice(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_says_what_its_requests_need() {
        let account = "us-east-1:000000000000";
        for (service, operation, body, expected) in [
            (
                "AmazonSQS",
                "SendMessage",
                r#"{"QueueUrl": "http://h/000000000000/q"}"#,
                vec![("sqs:SendMessage", "sqs", "q")],
            ),
            ("AmazonSQS", "SendMessageBatch", r#"{"QueueUrl": "http://h/0/q"}"#, vec![("sqs:SendMessage", "sqs", "q")]),
            ("AmazonSQS", "GetQueueUrl", r#"{"QueueName": "q"}"#, vec![("sqs:GetQueueUrl", "sqs", "q")]),
            ("AmazonSQS", "ListQueues", "{}", vec![("sqs:ListQueues", "", "*")]),
            ("AmazonSQS", "SendMessage", "no json", vec![("sqs:SendMessage", "", "*")]),
            (
                "AWSEvents",
                "PutEvents",
                r#"{"Entries": [{"EventBusName": "b"}, {}, {"EventBusName": "b", "Detail": "{}"}]}"#,
                vec![
                    ("events:PutEvents", "events", "event-bus/b"),
                    ("events:PutEvents", "events", "event-bus/default"),
                ],
            ),
            (
                "ses",
                "SendEmail",
                r#"{"FromEmailAddress": "Ada <ada@example.com>"}"#,
                vec![
                    ("ses:SendEmail", "ses", "identity/ada@example.com"),
                    ("ses:SendEmail", "ses", "configuration-set/default"),
                ],
            ),
            (
                "secretsmanager",
                "GetSecretValue",
                r#"{"SecretId": "s"}"#,
                vec![("secretsmanager:GetSecretValue", "secretsmanager", "secret:s-local1")],
            ),
        ] {
            let needs = of_request(service, operation, body.as_bytes());
            let needs: Vec<_> = needs.iter().map(|need| (need.action.as_str(), need.resource.as_str())).collect();
            let whole = |service: &str, name: &str| match service {
                "" => name.to_owned(),
                _ => format!("arn:aws:{service}:{account}:{name}"),
            };
            let expected: Vec<_> =
                expected.iter().map(|(action, service, name)| (*action, whole(service, name))).collect();
            let expected: Vec<_> = expected.iter().map(|(action, resource)| (*action, resource.as_str())).collect();
            assert_eq!(needs, expected, "{operation} {body}");
        }
    }

    #[test]
    fn each_entry_needs_its_bus_with_its_source() {
        let body = r#"{"Entries": [{"EventBusName": "b", "Source": "x"}, {"EventBusName": "b", "Source": "y"},
            {"EventBusName": "b", "Source": "x", "Detail": "{}"}, {"EventBusName": "b"}]}"#;
        let needs = of_request("AWSEvents", "PutEvents", body.as_bytes());
        let sources: Vec<_> = needs.into_iter().map(|need| need.condition.unwrap()).collect();
        assert_eq!(sources, ["", "x", "y"].map(|source| (EVENT_SOURCE, source.to_owned())));
    }
}
