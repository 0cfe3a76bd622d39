//! Compiled policies of a function, or a managed policy. The stack refuses to start with anything in them that it
//! cannot decide as IAM does, so that local decisions are those of AWS.

use serde_json::{Map, Value, json};

use super::pattern::{action_matches, resource_matches};
use super::permission::{EVENT_SOURCE, FROM_ADDRESS, Permission};
use crate::error::SetupError;

/// The supported conditions: operator and key.
///
/// IAM compares a key that holds a list through a set operator only. `ForAllValues` also accepts a request without the
/// key, which `Null` excludes.
const CONDITIONS: [(&str, &str); 3] =
    [("StringEquals", FROM_ADDRESS), ("ForAllValues:StringEquals", EVENT_SOURCE), ("Null", EVENT_SOURCE)];

/// The key that the credentials of a function's own code have: the function's ARN.
const FUNCTION: &str = "lambda:SourceFunctionArn";

/// The permissions of a function, or of a managed policy.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    statements: Vec<Statement>,
    denials: Vec<Denial>,
}

/// A `Deny` of actions on all resources except those of `NotResource`, or on all resources to the function's own code,
/// which makes every local call.
#[derive(Debug, Clone)]
struct Denial {
    actions: Vec<String>,
    except: Vec<String>,
}

#[derive(Debug, Clone)]
struct Statement {
    actions: Vec<String>,
    resources: Vec<String>,
    conditions: Vec<Condition>,
}

/// A statement's condition on a key of the request.
#[derive(Debug, Clone)]
struct Condition {
    key: &'static str,
    test: Test,
}

/// The test of a condition key's values.
#[derive(Debug, Clone)]
enum Test {
    /// The single value is one of these.
    Is(Vec<String>),
    /// Each value is one of these.
    AllAre(Vec<String>),
    /// The request has the key, or lacks it.
    IsPresent(bool),
}

/// One action on one resource that a policy allows. Both may contain wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant<'a> {
    /// The action, such as `dynamodb:PutItem`.
    pub action: &'a str,
    /// The resource's ARN.
    pub resource: &'a str,
}

impl Grant<'_> {
    /// Returns true if the grant allows the action on the resource, ignoring conditions.
    pub fn covers(&self, action: &str, resource: &str) -> bool {
        action_matches(self.action, action) && resource_matches(self.resource, resource)
    }
}

impl Policy {
    /// Compiles the resolved `Policies` of a function, or a managed policy's `PolicyDocument`: a policy document, a
    /// list of them, or null for no permissions.
    ///
    /// # Errors
    /// Refuses managed policies, policy templates, `NotAction`, policy variables, `Deny` without `NotResource` except
    /// to the function's own code, and conditions other than a mail's sender or the sources of events.
    pub fn parse(policies: &Value) -> Result<Self, SetupError> {
        let mut policy = Self::default();
        for document in one_or_many(policies) {
            let document = document
                .as_object()
                .filter(|document| document.contains_key("Statement"))
                .ok_or_else(|| unsupported(&format!("{document}: name the actions in a policy document instead")))?;
            known(document, &["Version", "Statement"])?;
            for statement in one_or_many(&document["Statement"]) {
                if statement["Effect"] == "Deny" {
                    policy.denials.push(Denial::parse(statement)?);
                } else {
                    policy.statements.push(Statement::parse(statement)?);
                }
            }
        }
        Ok(policy)
    }

    /// Returns everything that the policy allows.
    pub fn grants(&self) -> impl Iterator<Item = Grant<'_>> {
        self.statements.iter().flat_map(|statement| {
            let resources = move |action| statement.resources.iter().map(move |resource| Grant { action, resource });
            statement.actions.iter().flat_map(move |action| resources(action.as_str()))
        })
    }

    /// Returns true if a statement denies the permission, which no other policy can then allow.
    pub(super) fn denies(&self, permission: &Permission) -> bool {
        self.denials.iter().any(|denial| denial.denies(permission))
    }

    pub(super) fn allows(&self, permission: &Permission) -> bool {
        !self.denies(permission) && self.statements.iter().any(|statement| statement.allows(permission))
    }
}

impl Denial {
    fn parse(statement: &Value) -> Result<Self, SetupError> {
        let members = members(statement)?;
        if is_of_own_code(members) {
            known(members, &["Sid", "Effect", "Action", "Resource", "Condition"])?;
            return Ok(Self { actions: texts(members, "Action")?, except: Vec::new() });
        }
        known(members, &["Sid", "Effect", "Action", "NotResource"])?;
        Ok(Self { actions: texts(members, "Action")?, except: resources(members, "NotResource")? })
    }

    fn denies(&self, permission: &Permission) -> bool {
        self.actions.iter().any(|action| action_matches(action, &permission.action))
            && !self.except.iter().any(|resource| resource_matches(resource, &permission.resource))
    }
}

impl Statement {
    fn parse(statement: &Value) -> Result<Self, SetupError> {
        let members = members(statement)?;
        known(members, &["Sid", "Effect", "Action", "Resource", "Condition"])?;
        if members.get("Effect").and_then(Value::as_str) != Some("Allow") {
            return Err(unsupported(&format!("Effect {}; it has Allow and Deny", statement["Effect"])));
        }
        let conditions = members.get("Condition").map(Condition::parse).transpose()?.unwrap_or_default();
        Ok(Self { actions: texts(members, "Action")?, resources: resources(members, "Resource")?, conditions })
    }

    fn allows(&self, permission: &Permission) -> bool {
        self.conditions.iter().all(|condition| condition.holds(permission))
            && self.actions.iter().any(|action| action_matches(action, &permission.action))
            && self.resources.iter().any(|resource| resource_matches(resource, &permission.resource))
    }
}

impl Condition {
    /// Parses a statement's `Condition`, all of whose members must hold.
    fn parse(conditions: &Value) -> Result<Vec<Self>, SetupError> {
        let supported = CONDITIONS.map(|(operator, key)| format!("{operator} of {key}")).join(", ");
        let refused = || unsupported(&format!("the condition {conditions}; it has {supported}"));
        let mut parsed = Vec::new();
        for (operator, keys) in conditions.as_object().ok_or_else(refused)? {
            let keys = keys.as_object().ok_or_else(refused)?;
            for name in keys.keys() {
                let known = CONDITIONS.into_iter().find(|known| *known == (operator, name));
                let (operator, key) = known.ok_or_else(refused)?;
                let test = match operator {
                    "Null" => Test::IsPresent(match &keys[key] {
                        Value::String(text) if text == "false" => true,
                        Value::String(text) if text == "true" => false,
                        _ => return Err(refused()),
                    }),
                    "StringEquals" => Test::Is(texts(keys, key)?),
                    _ => Test::AllAre(texts(keys, key)?),
                };
                parsed.push(Self { key, test });
            }
        }
        Ok(parsed)
    }

    fn holds(&self, permission: &Permission) -> bool {
        let values = permission.values(self.key);
        match &self.test {
            Test::Is(wanted) => matches!(values, [value] if wanted.contains(value)),
            Test::AllAre(wanted) => values.iter().all(|value| wanted.contains(value)),
            Test::IsPresent(wanted) => *wanted != values.is_empty(),
        }
    }
}

/// Returns true for a statement about all resources, on the condition that the function's own code calls.
fn is_of_own_code(members: &Map<String, Value>) -> bool {
    let condition = members.get("Condition").map(|condition| (condition, &condition["ArnEquals"][FUNCTION]));
    let is_of_function = condition.is_some_and(|(condition, function)| {
        function.is_string() && *condition == json!({ "ArnEquals": { FUNCTION: function } })
    });
    is_of_function && members.get("Resource").is_some_and(|resource| resource == "*")
}

fn members(statement: &Value) -> Result<&Map<String, Value>, SetupError> {
    statement.as_object().ok_or_else(|| unsupported(&format!("the statement {statement}")))
}

fn resources(members: &Map<String, Value>, name: &str) -> Result<Vec<String>, SetupError> {
    let resources = texts(members, name)?;
    match resources.iter().find(|resource| resource.contains("${")) {
        Some(variable) => Err(unsupported(&format!("policy variables, as in {variable}"))),
        None => Ok(resources),
    }
}

fn one_or_many(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// Reads a member that is a string or a non-empty list of strings.
fn texts(members: &Map<String, Value>, name: &str) -> Result<Vec<String>, SetupError> {
    let values = one_or_many(members.get(name).unwrap_or(&Value::Null));
    let texts: Option<Vec<String>> = values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
    texts
        .filter(|texts| !texts.is_empty())
        .ok_or_else(|| unsupported(&format!("a statement without a readable {name}")))
}

fn known(members: &Map<String, Value>, names: &[&str]) -> Result<(), SetupError> {
    match members.keys().find(|name| !names.contains(&name.as_str())) {
        Some(other) => Err(unsupported(other)),
        None => Ok(()),
    }
}

fn unsupported(what: &str) -> SetupError {
    SetupError::new(format!("Policies: the local stack does not support {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/crm";

    fn policy(statement: Value) -> Result<Policy, SetupError> {
        Policy::parse(&json!([{ "Version": "2012-10-17", "Statement": [statement] }]))
    }

    #[test]
    fn a_policy_allows_its_actions_on_its_resources_and_nothing_else() {
        let actions = ["dynamodb:PutItem", "dynamodb:GetItem"];
        let policy = policy(json!({ "Effect": "Allow", "Action": actions, "Resource": TABLE })).unwrap();
        assert!(policy.allows(&Permission::new("dynamodb", "PutItem", TABLE)));
        assert!(!policy.allows(&Permission::new("dynamodb", "DeleteItem", TABLE)));
        assert!(!policy.allows(&Permission::new("dynamodb", "PutItem", format!("{TABLE}s"))));
        assert!(!Policy::parse(&Value::Null).unwrap().allows(&Permission::new("dynamodb", "PutItem", TABLE)));
        let grants: Vec<_> = policy.grants().map(|grant| (grant.action, grant.resource)).collect();
        assert_eq!(grants, actions.map(|action| (action, TABLE)));
    }

    #[test]
    fn a_denial_except_for_resources_allows_only_those() {
        let allowed = json!({ "Effect": "Allow", "Action": "dynamodb:*", "Resource": "*" });
        let denied = json!({ "Effect": "Deny", "Action": "dynamodb:PutItem", "NotResource": [TABLE] });
        let policy = Policy::parse(&json!({ "Statement": [denied, allowed] })).unwrap();
        for (action, resource, is_allowed) in
            [("PutItem", TABLE, true), ("PutItem", "arn:aws:dynamodb:::table/x", false), ("GetItem", "x", true)]
        {
            assert_eq!(
                policy.allows(&Permission::new("dynamodb", action, resource)),
                is_allowed,
                "{action} {resource}"
            );
        }
        assert_eq!(policy.grants().count(), 1, "a denial is no grant");
    }

    #[test]
    fn a_denial_to_the_functions_own_code_denies_every_resource() {
        let allowed = json!({ "Effect": "Allow", "Action": "*", "Resource": "*" });
        let own = json!({ "ArnEquals": { "lambda:SourceFunctionArn": "arn:aws:lambda:::function:deliver" } });
        let denied = json!({ "Effect": "Deny", "Action": "ec2:*", "Resource": "*", "Condition": own });
        let policy = Policy::parse(&json!({ "Statement": [allowed, denied] })).unwrap();
        assert!(!policy.allows(&Permission::new("ec2", "CreateNetworkInterface", "*")));
        assert!(policy.allows(&Permission::new("dynamodb", "PutItem", TABLE)));
    }

    #[rstest::rstest]
    #[case::one(&["partner-api"], true, true)]
    #[case::both(&["partner-api", "other"], true, true)]
    #[case::another(&["coaching.application"], false, false)]
    #[case::one_of_another_among_ours(&["partner-api", "coaching.application"], false, false)]
    #[case::empty(&[""], false, false)]
    #[case::none(&[], true, false)]
    fn events_may_be_allowed_of_some_sources_alone(
        #[case] sources: &[&str],
        #[case] all_are_allowed: bool,
        #[case] some_are_required: bool,
    ) {
        let wanted = json!({ "events:source": ["partner-api", "other"] });
        let put = Permission::new("events", "PutEvents", "arn:aws:events:us-east-1:000000000000:event-bus/b");
        let put = put.with(EVENT_SOURCE, sources.iter().copied());
        for (condition, is_allowed) in [
            (json!({ "ForAllValues:StringEquals": wanted }), all_are_allowed),
            (json!({ "ForAllValues:StringEquals": wanted, "Null": { "events:source": "false" } }), some_are_required),
            (json!({ "Null": { "events:source": "true" } }), sources.is_empty()),
        ] {
            let statement =
                json!({ "Effect": "Allow", "Action": "events:PutEvents", "Resource": "*", "Condition": condition });
            assert_eq!(policy(statement).unwrap().allows(&put), is_allowed, "{condition}");
        }
    }

    #[test]
    fn an_unsupported_policy_is_refused() {
        let with = |name: &str, value: Value| {
            let mut statement = json!({ "Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": TABLE });
            statement[name] = value;
            policy(statement)
        };
        let condition = json!({ "StringEquals": { "dynamodb:LeadingKeys": "a" } });
        let own_code = json!({ "ArnEquals": { "lambda:SourceFunctionArn": "arn" } });
        let denied = json!({ "Effect": "Deny", "Action": "ec2:*", "Resource": TABLE, "Condition": own_code });
        let two_keys = json!({ "ArnEquals": { "lambda:SourceFunctionArn": "arn", "aws:SourceArn": "arn" } });
        for refused in [
            policy(denied),
            policy(json!({ "Effect": "Deny", "Action": "ec2:*", "Resource": "*", "Condition": two_keys })),
            policy(json!({ "Effect": "Deny", "Action": "ec2:*", "Resource": "*" })),
            with("Effect", json!("Deny")),
            with("Condition", condition),
            with("Condition", json!({ "StringLike": { "ses:FromAddress": "*" } })),
            with("Condition", json!({ "StringEquals": { "events:source": "a" } })),
            with("Condition", json!({ "StringEquals": { "ses:FromAddress": "a", "events:source": "b" } })),
            with("Condition", json!({ "ForAllValues:StringEquals": { "events:source": [] } })),
            with("Condition", json!({ "ForAnyValue:StringEquals": { "events:source": "a" } })),
            with("Condition", json!({ "Null": { "events:source": "no" } })),
            with("NotResource", json!(TABLE)),
            with("Resource", json!("arn:aws:dynamodb:::table/${aws:username}")),
            with("Action", json!([])),
            Policy::parse(&json!(["AmazonDynamoDBFullAccess"])),
            Policy::parse(&json!([{ "DynamoDBCrudPolicy": { "TableName": "crm" } }])),
        ] {
            let message = refused.unwrap_err().to_string();
            assert!(message.starts_with("Policies: the local stack does not support "), "{message}");
        }
    }
}
