//! Compares the permissions that functions used with those that template.yaml grants.
//!
//! The behaviour tests record each permission that the local stack saw in use. Cargo runs the tests of packages in the
//! order of their names, so the comparison is a package of its own, after theirs.

use std::collections::{BTreeMap, BTreeSet};

use local_aws::Policy;

/// Policies by function, one for each mode in which the function is deployed.
pub type Policies = BTreeMap<String, Vec<Policy>>;

/// A permission that a function used or has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The name of the function's binary.
    pub function: String,
    /// `dynamodb:PutItem`.
    pub action: String,
    /// An ARN, with wildcards if a policy grants the permission.
    pub resource: String,
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.function, self.action, self.resource)
    }
}

/// The recording of a run of the behaviour tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Recording {
    /// Digest of the run's template, from the first line.
    pub template: String,
    /// Used permissions, each once.
    pub used: BTreeSet<Permission>,
}

impl Recording {
    /// Parses the recording. Returns `None` if a line has another form than the tests and the stack write.
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

/// Used permissions that no policy grants, conditions aside.
pub fn missing<'a>(used: &'a BTreeSet<Permission>, policies: &Policies) -> Vec<&'a Permission> {
    let allowed = |used: &Permission| {
        let policies = policies.get(&used.function).into_iter().flatten();
        policies.flat_map(Policy::grants).any(|grant| grant.covers(&used.action, &used.resource))
    };
    used.iter().filter(|used| !allowed(used)).collect()
}

/// Granted permissions that nothing used.
pub fn idle(used: &BTreeSet<Permission>, policies: &Policies) -> Vec<Permission> {
    let of = |function: &str| used.iter().filter(move |used| used.function == function).collect::<Vec<_>>();
    let grants = policies.iter().flat_map(|(function, policies)| {
        let used = of(function);
        let grants = policies.iter().flat_map(Policy::grants);
        let unused = grants.filter(move |grant| !used.iter().any(|used| grant.covers(&used.action, &used.resource)));
        unused.map(|grant| granted(function, grant))
    });
    let once: BTreeSet<Permission> = grants.collect();
    once.into_iter().collect()
}

/// Permissions granted with a wildcard, which allow more than any single use.
pub fn broad(policies: &Policies) -> Vec<Permission> {
    let of = |(function, policies): (&String, &Vec<Policy>)| {
        let grants = policies.iter().flat_map(Policy::grants);
        grants.map(|grant| granted(function, grant)).collect::<Vec<_>>()
    };
    let grants = policies.iter().flat_map(of);
    grants.filter(|grant| [&grant.action, &grant.resource].iter().any(|text| text.contains(['*', '?']))).collect()
}

fn granted(function: &str, grant: local_aws::Grant<'_>) -> Permission {
    Permission { function: function.to_owned(), action: grant.action.to_owned(), resource: grant.resource.to_owned() }
}
