//! What functions may do against what they were seen to do.
//!
//! The behaviour tests write down each permission that the local stack found used, and this compares them with the policies of
//! template.yaml both ways. It is a package of its own because its test has to run after theirs: cargo runs the tests of packages in
//! the order of their names.

use std::collections::{BTreeMap, BTreeSet};

use local_aws::Policy;

/// Policies by function.
pub type Policies = BTreeMap<String, Policy>;

/// A permission that a function used, or may use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The name of the function's binary.
    pub function: String,
    /// `dynamodb:PutItem`.
    pub action: String,
    /// An ARN; of a permission that a policy gives, with its wildcards.
    pub resource: String,
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.function, self.action, self.resource)
    }
}

/// What a run of the behaviour tests used.
#[derive(Debug, PartialEq, Eq)]
pub struct Recording {
    /// What the first line says: the digest of the template that the run was on.
    pub template: String,
    /// Each permission once.
    pub used: BTreeSet<Permission>,
}

impl Recording {
    /// Reads the file's text. `None` where a line is not as the tests or the stack write it.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once('\n')?;
        let used = rest.lines().map(permission).collect::<Option<_>>()?;
        Some(Self { template: first.strip_prefix("template ")?.to_owned(), used })
    }
}

fn permission(line: &str) -> Option<Permission> {
    let mut parts = line.splitn(3, ' ').map(str::to_owned);
    Some(Permission { function: parts.next()?, action: parts.next()?, resource: parts.next()? })
}

/// What was used though no policy allows it, conditions apart.
pub fn missing<'a>(used: &'a BTreeSet<Permission>, policies: &Policies) -> Vec<&'a Permission> {
    let allowed = |used: &Permission| {
        let policy = policies.get(&used.function);
        policy.is_some_and(|policy| policy.grants().any(|grant| grant.covers(&used.action, &used.resource)))
    };
    used.iter().filter(|used| !allowed(used)).collect()
}

/// What policies allow though nothing used it.
pub fn idle(used: &BTreeSet<Permission>, policies: &Policies) -> Vec<Permission> {
    let of = |function: &str| used.iter().filter(move |used| used.function == function).collect::<Vec<_>>();
    let grants = policies.iter().flat_map(|(function, policy)| {
        let used = of(function);
        let unused =
            policy.grants().filter(move |grant| !used.iter().any(|used| grant.covers(&used.action, &used.resource)));
        unused.map(|grant| granted(function, grant))
    });
    grants.collect()
}

/// What policies allow with a wildcard: more than what was used, whatever was used.
pub fn broad(policies: &Policies) -> Vec<Permission> {
    let grants =
        policies.iter().flat_map(|(function, policy)| policy.grants().map(move |grant| granted(function, grant)));
    grants.filter(|grant| [&grant.action, &grant.resource].iter().any(|text| text.contains(['*', '?']))).collect()
}

fn granted(function: &str, grant: local_aws::Grant<'_>) -> Permission {
    Permission { function: function.to_owned(), action: grant.action.to_owned(), resource: grant.resource.to_owned() }
}
