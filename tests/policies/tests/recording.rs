//! template.yaml grants exactly the permissions that the behaviour tests used.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use domain::mode::Mode;
use local_aws::Policy;
use policies::{Permission, Policies, Recording, broad, idle, missing};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// File that the behaviour tests write. All integration tests of a workspace share its directory.
const FILE: &str = "permissions-used";

const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Justified wildcards: action, the resource's end, reason.
const WILDCARDS: [(&str, &str, &str); 3] = [
    (
        "ses:SendEmail",
        ":identity/*",
        "which identities SES asks for depends on what is verified: the sender's address, its domain or one above, and recipients; the \
         sender is a condition of the statement",
    ),
    (
        "ses:SendEmail",
        ":configuration-set/*",
        "SES selects the configuration set by the sending identity; the statement has the sender as a condition",
    ),
    (
        "cloudformation:ListStackResources",
        ":stack/partner-api/*",
        "CloudFormation checks a stack that is named as stack/NAME/*, which the stack's id does not match",
    ),
];

fn recording() -> Recording {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(FILE);
    let Ok(text) = std::fs::read_to_string(&path) else {
        panic!("there is no recording of a whole run of the behaviour tests: run `cargo test --workspace` first")
    };
    let recording = Recording::parse(&text).unwrap_or_else(|| panic!("{} is no recording", path.display()));
    let template = hex::encode(Sha256::digest(TEMPLATE));
    assert_eq!(
        recording.template, template,
        "the recording is of another template: run `cargo test --workspace` first"
    );
    recording
}

fn policies_of_both_modes() -> Policies {
    let mut policies = Policies::new();
    for mode in Mode::ALL {
        for (holder, policy) in local_stack::permissions::policies(mode).unwrap() {
            policies.entry(holder).or_default().push(policy);
        }
    }
    policies
}

fn lines<T: std::fmt::Display>(permissions: impl IntoIterator<Item = T>) -> String {
    permissions.into_iter().map(|permission| format!("\n  {permission}")).collect()
}

#[test]
fn functions_and_roles_used_nothing_that_the_template_does_not_allow() {
    let (recording, policies) = (recording(), policies_of_both_modes());
    let missing = missing(&recording.used, &policies);
    assert!(
        missing.is_empty(),
        "add to the Policies of the function, or to the managed policy, in template.yaml, used and not allowed:{}",
        lines(missing)
    );
}

#[test]
fn the_template_allows_nothing_that_no_function_or_role_used() {
    let (recording, policies) = (recording(), policies_of_both_modes());
    let idle = idle(&recording.used, &policies);
    assert!(
        idle.is_empty(),
        "remove from the Policies of the function, or from the managed policy, in template.yaml, or add a behaviour test \
         that needs it, allowed and never used:{}",
        lines(idle)
    );
}

#[test]
fn the_template_uses_wildcards_only_for_a_reason() {
    let broad = broad(&policies_of_both_modes());
    let excused = |permission: &Permission| {
        WILDCARDS.iter().any(|(action, end, _)| permission.action == *action && permission.resource.ends_with(end))
    };
    let unexcused: Vec<_> = broad.iter().filter(|permission| !excused(permission)).collect();
    assert!(
        unexcused.is_empty(),
        "name the resource in template.yaml, or add a row with the reason to WILDCARDS here, wildcards without a reason:{}",
        lines(unexcused)
    );
    for (action, end, _) in WILDCARDS {
        let needed = broad.iter().any(|permission| permission.action == action && permission.resource.ends_with(end));
        assert!(needed, "nothing has the wildcard {action} {end} any more");
    }
}

fn policies_of(function: &str, statements: Value) -> Policies {
    let policy = Policy::parse(&json!({ "Version": "2012-10-17", "Statement": statements })).unwrap();
    [(function.to_owned(), vec![policy])].into()
}

fn used(lines: &str) -> BTreeSet<Permission> {
    Recording::parse(&format!("template x\n{lines}")).unwrap().used
}

#[test]
fn both_sides_of_a_difference_are_found() {
    let table = "arn:aws:dynamodb:us-east-1:000000000000:table/a";
    let actions = ["dynamodb:GetItem", "dynamodb:PutItem"];
    let policies = policies_of("f", json!([{ "Effect": "Allow", "Action": actions, "Resource": table }]));
    let both = used(&format!("f dynamodb:GetItem {table}\nf dynamodb:PutItem {table}\n"));
    assert_eq!((missing(&both, &policies).len(), idle(&both, &policies)), (0, vec![]));
    let one = used(&format!("f dynamodb:GetItem {table}\n"));
    let idle_one: Vec<_> = idle(&one, &policies).iter().map(Permission::to_string).collect();
    assert_eq!(idle_one, [format!("f dynamodb:PutItem {table}")]);
    let others = used(&format!("g dynamodb:GetItem {table}\nf dynamodb:GetItem {table}/index/i\n"));
    assert_eq!(missing(&others, &policies).len(), 2, "another function's, and an index's");
    assert_eq!(idle(&others, &policies).len(), 2);
}

#[test]
fn a_wildcard_is_broad_even_where_it_is_used() {
    let table = "arn:aws:dynamodb:us-east-1:000000000000:table/a";
    let index = format!("{table}/index/*");
    let policies =
        policies_of("f", json!([{ "Effect": "Allow", "Action": "dynamodb:Query", "Resource": [table, index] }]));
    let through_index = used(&format!("f dynamodb:Query {table}/index/i\nf dynamodb:Query {table}\n"));
    assert_eq!((missing(&through_index, &policies).len(), idle(&through_index, &policies)), (0, vec![]));
    let broad: Vec<_> = broad(&policies).iter().map(Permission::to_string).collect();
    assert_eq!(broad, [format!("f dynamodb:Query {table}/index/*")]);
}

/// A managed policy that no function has is for operators' roles. The others are compared as permissions of functions.
#[test]
fn the_compared_managed_policies_are_those_of_operators() {
    for mode in Mode::ALL {
        let policies = local_stack::permissions::policies(mode).unwrap();
        let managed = policies.keys().filter(|name| name.ends_with("Policy")).collect::<Vec<_>>();
        assert_eq!(managed, ["OperatorActPolicy", "OperatorReadPolicy"]);
    }
}

#[test]
fn a_truncated_recording_is_rejected() {
    assert_eq!(Recording::parse(""), None);
    assert_eq!(Recording::parse("f dynamodb:GetItem a\n"), None);
    assert_eq!(Recording::parse("template x\nf dynamodb:GetItem\n"), None);
}
