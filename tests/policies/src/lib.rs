//! Compares the permissions that functions and operators' roles used with those that template.yaml grants.
//!
//! The behaviour tests record each permission that the local stack saw in use. Cargo runs the tests of packages in the
//! order of their names, so the comparison is a package of its own, after theirs.

use std::collections::{BTreeMap, BTreeSet};

use local_aws::Policy;

/// Policies by function or managed policy, one for each mode in which it is deployed.
pub type Policies = BTreeMap<String, Vec<Policy>>;

/// A permission that a function or a managed policy's role used or has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The name of the function's binary, or the logical id of the managed policy.
    pub holder: String,
    /// `dynamodb:PutItem`.
    pub action: String,
    /// An ARN, with wildcards if a policy grants the permission.
    pub resource: String,
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.holder, self.action, self.resource)
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
    Some(Permission { holder: parts.next()?, action: parts.next()?, resource: parts.next()? })
}

/// Used permissions that no policy grants, conditions aside.
pub fn missing<'a>(used: &'a BTreeSet<Permission>, policies: &Policies) -> Vec<&'a Permission> {
    let allowed = |used: &Permission| {
        let policies = policies.get(&used.holder).into_iter().flatten();
        policies.flat_map(Policy::grants).any(|grant| grant.covers(&used.action, &used.resource))
    };
    used.iter().filter(|used| !allowed(used)).collect()
}

/// Granted permissions that nothing used.
pub fn idle(used: &BTreeSet<Permission>, policies: &Policies) -> Vec<Permission> {
    let of = |holder: &str| used.iter().filter(move |used| used.holder == holder).collect::<Vec<_>>();
    let grants = policies.iter().flat_map(|(holder, policies)| {
        let used = of(holder);
        let grants = policies.iter().flat_map(Policy::grants);
        let unused = grants.filter(move |grant| !used.iter().any(|used| grant.covers(&used.action, &used.resource)));
        unused.map(|grant| granted(holder, grant))
    });
    let once: BTreeSet<Permission> = grants.collect();
    once.into_iter().collect()
}

/// Permissions granted with a wildcard, which allow more than any single use.
pub fn broad(policies: &Policies) -> Vec<Permission> {
    let of = |(holder, policies): (&String, &Vec<Policy>)| {
        let grants = policies.iter().flat_map(Policy::grants);
        grants.map(|grant| granted(holder, grant)).collect::<Vec<_>>()
    };
    let grants = policies.iter().flat_map(of);
    grants.filter(|grant| [&grant.action, &grant.resource].iter().any(|text| text.contains(['*', '?']))).collect()
}

fn granted(holder: &str, grant: local_aws::Grant<'_>) -> Permission {
    Permission { holder: holder.to_owned(), action: grant.action.to_owned(), resource: grant.resource.to_owned() }
}
