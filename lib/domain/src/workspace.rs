//! A coach's workspace: the coach, the entitlements, and the host for client links.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::api_key::Scope;
use crate::country::Country;
use crate::endpoint::MAX_ENDPOINTS;
use crate::fact_values::{nullable_count, text};
use crate::id::{CoachId, MAX_ID_CHARS, PipelineId, TeamId};
use crate::key::MAX_LIVE_KEYS;
use crate::tz::ZoneName;

/// The features that the workspace may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Entitlements {
    /// True if the workspace may use the Partner API. A partner key needs it.
    pub partner_api: bool,
    /// True if the workspace may use the Pro CRM. A CRM key needs it. The events of the CRM need it, too.
    pub pro_crm: bool,
    /// True if the workspace has the gym capability. A CRM key needs it.
    pub gym: bool,
}

impl Entitlements {
    /// Returns true if a key of the scope may use the API.
    pub fn admit(self, scope: Scope) -> bool {
        match scope {
            Scope::Partner => self.partner_api,
            Scope::Crm => self.pro_crm && self.gym,
        }
    }
}

/// The pipeline and stage of opportunities that the API creates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrmConfiguration {
    pub pipeline_id: PipelineId,
    #[serde(deserialize_with = "text::<MAX_ID_CHARS, _>")]
    pub initial_stage: String,
}

/// The origin of the coach's own host, such as `https://coach.example.com`. Links for clients lead there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CanonicalHost(String);

impl CanonicalHost {
    /// Parses a bare https origin; http on a loopback host only.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const RULE: &str = "must be a bare https origin such as https://coach.example.com";
        let url = Url::parse(text).map_err(|_| RULE)?;
        let loopback = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        // URLs accept names that no host has, and the origin is used in headers.
        let named =
            url.host_str().is_some_and(|host| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b)));
        let scheme_fits = url.scheme() == "https" || (url.scheme() == "http" && loopback);
        let bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if scheme_fits && bare && named { Ok(Self(url.origin().ascii_serialization())) } else { Err(RULE) }
    }

    /// Returns the origin, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A workspace's record.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    pub coach_id: CoachId,
    pub email: String,
    pub name: String,
    pub team_id: Option<TeamId>,
    pub canonical_host: CanonicalHost,
    pub time_zone: ZoneName,
    pub country: Country,
    /// Most client records of the plan, deactivated clients included. `None`: no limit.
    pub client_cap: Option<u32>,
    pub entitlements: Entitlements,
    pub crm: Option<CrmConfiguration>,
}
crate::discreet! { Workspace }

/// A workspace as its settings show it: what it may use, and how much of it is in use.
#[derive(Serialize, utoipa::ToSchema)]
pub struct WorkspaceView {
    /// The coach who owns the workspace.
    pub coach_id: CoachId,
    /// The name of the workspace, which clients see in mails. It may be empty.
    pub name: String,
    pub entitlements: Entitlements,
    /// True if the coach has chosen the pipeline and the initial stage of opportunities that the API creates.
    pub crm_configured: bool,
    pub keys: KeyUsage,
    pub endpoints: EndpointUsage,
}
crate::discreet! { WorkspaceView }

impl WorkspaceView {
    /// The view of a workspace with this number of live keys and of endpoints.
    pub fn new(workspace: Workspace, live_keys: usize, endpoints: usize) -> Self {
        let Workspace { coach_id, name, entitlements, crm, .. } = workspace;
        Self {
            coach_id,
            name,
            entitlements,
            crm_configured: crm.is_some(),
            keys: KeyUsage { live: live_keys, max: MAX_LIVE_KEYS },
            endpoints: EndpointUsage { count: endpoints, max: MAX_ENDPOINTS },
        }
    }
}

/// The number of live keys. A replaced key is live until its overlap ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyUsage {
    /// Keys that are neither revoked nor expired.
    pub live: usize,
    /// The most live keys that a workspace may have.
    pub max: usize,
}

/// The number of webhook endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EndpointUsage {
    /// Endpoints that are registered, disabled and gone ones included.
    pub count: usize,
    /// The most endpoints that a workspace may have.
    pub max: usize,
}

/// A team's record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Team {
    pub team_id: TeamId,
    /// Most client records of all the team's workspaces together. `None`: no limit.
    #[serde(deserialize_with = "nullable_count")]
    pub client_cap: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("https://coach.example.com", Some("https://coach.example.com"))]
    #[case("https://Coach.Example.com:8443/", Some("https://coach.example.com:8443"))]
    #[case("http://127.0.0.1:8080", Some("http://127.0.0.1:8080"))]
    #[case("http://coach.example.com", None)]
    #[case("https://coach.example.com/app", None)]
    #[case("https://user@coach.example.com", None)]
    #[case("https://coach.example.com?x", None)]
    #[case("ftp://coach.example.com", None)]
    #[case("coach.example.com", None)]
    #[case("https://*", None)]
    #[case("https://*.example.com", None)]
    #[case("https://coach.example.com;a", None)]
    #[case("https://coach.example.com'", None)]
    #[case("https://coach_1.example.com", None)]
    #[case("https://[2001:db8::1]", Some("https://[2001:db8::1]"))]
    #[case("https://bücher.example", Some("https://xn--bcher-kva.example"))]
    fn a_canonical_host_is_a_bare_origin(#[case] text: &str, #[case] origin: Option<&str>) {
        assert_eq!(CanonicalHost::parse(text).ok().as_ref().map(CanonicalHost::as_str), origin);
    }
}
