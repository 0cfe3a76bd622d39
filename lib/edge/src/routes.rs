//! All routes of the service, each with the credential that a caller has to present.
//!
//! The permission checks, the OpenAPI document and the tests read this table. The function that receives an
//! unknown path or method answers 404 or 405 from it.

use std::fmt;

use domain::api_key::Permission;
use http::Method;

/// A route of the service. Displays as `GET /v1/ping`.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    /// The template of the path.
    pub path: &'static str,
    pub access: Access,
}

/// Credential that a caller has to present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No credential.
    Public,
    /// A partner key, with this permission if there is one.
    Partner(Option<Permission>),
    /// A CRM key with this permission.
    Crm(Permission),
    /// A key of either scope that may read events.
    Events,
    /// The session of a coach, which the gateway has verified.
    Session,
}

/// The idempotency key of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idempotency {
    /// The header is required.
    Required,
    /// Without the header there is no claim.
    Optional,
    /// Without the header the key derives from the body's `email`.
    HeaderOrEmail,
    /// The route ignores the header.
    None,
}

/// All routes.
pub const ROUTES: &[Route] = &[
    route("GET", "/v1/ping", Access::Partner(None)),
    route("GET", "/v1/clients", Access::Partner(Some(Permission::ClientsRead))),
    route("POST", "/v1/clients", Access::Partner(Some(Permission::ClientsWrite))),
    route("GET", "/v1/clients/{clientId}", Access::Partner(Some(Permission::ClientsRead))),
    route("PATCH", "/v1/clients/{clientId}", Access::Partner(Some(Permission::ClientsWrite))),
    route("POST", "/v1/clients/{clientId}/login-link", Access::Partner(Some(Permission::LoginLinksCreate))),
    route("GET", "/login/{token}", Access::Public),
    route("POST", "/login/{token}", Access::Public),
    route("GET", "/.well-known/jwks.json", Access::Public),
    route("GET", "/v1/clients/{clientId}/compliance", Access::Partner(Some(Permission::RecordsRead))),
    route("GET", "/v1/clients/{clientId}/check-ins", Access::Partner(Some(Permission::RecordsRead))),
    route("GET", "/v1/clients/{clientId}/daily-logs", Access::Partner(Some(Permission::RecordsRead))),
    route("GET", "/v1/crm/contacts", Access::Crm(Permission::ContactsRead)),
    route("POST", "/v1/crm/contacts", Access::Crm(Permission::ContactsWrite)),
    route("GET", "/v1/crm/contacts/{id}", Access::Crm(Permission::ContactsRead)),
    route("PATCH", "/v1/crm/contacts/{id}", Access::Crm(Permission::ContactsWrite)),
    route("GET", "/v1/crm/opportunities", Access::Crm(Permission::OpportunitiesRead)),
    route("POST", "/v1/crm/opportunities", Access::Crm(Permission::OpportunitiesWrite)),
    route("GET", "/v1/crm/opportunities/{id}", Access::Crm(Permission::OpportunitiesRead)),
    route("PATCH", "/v1/crm/opportunities/{id}", Access::Crm(Permission::OpportunitiesWrite)),
    route("GET", "/v1/crm/calendars", Access::Crm(Permission::BookingsRead)),
    route("GET", "/v1/crm/bookings", Access::Crm(Permission::BookingsRead)),
    route("POST", "/v1/crm/bookings", Access::Crm(Permission::BookingsWrite)),
    route("POST", "/v1/crm/bookings/availability", Access::Crm(Permission::BookingsRead)),
    route("GET", "/v1/crm/bookings/{id}", Access::Crm(Permission::BookingsRead)),
    route("PATCH", "/v1/crm/bookings/{id}", Access::Crm(Permission::BookingsWrite)),
    route("DELETE", "/v1/crm/bookings/{id}", Access::Crm(Permission::BookingsWrite)),
    route("GET", "/v1/crm/workflows", Access::Crm(Permission::WorkflowsRead)),
    route("GET", "/v1/events", Access::Events),
    route("GET", "/v1/events/samples", Access::Events),
    route("GET", "/settings/workspace", Access::Session),
    route("GET", "/settings/audit", Access::Session),
    route("GET", "/settings/event-types", Access::Session),
    route("GET", "/settings/keys", Access::Session),
    route("POST", "/settings/keys", Access::Session),
    route("POST", "/settings/keys/{id}/rotate", Access::Session),
    route("PATCH", "/settings/keys/{id}", Access::Session),
    route("DELETE", "/settings/keys/{id}", Access::Session),
    route("GET", "/settings/webhooks", Access::Session),
    route("POST", "/settings/webhooks", Access::Session),
    route("GET", "/settings/webhooks/{id}", Access::Session),
    route("PATCH", "/settings/webhooks/{id}", Access::Session),
    route("DELETE", "/settings/webhooks/{id}", Access::Session),
    route("POST", "/settings/webhooks/{id}/rotate-secret", Access::Session),
    route("POST", "/settings/webhooks/{id}/test", Access::Session),
    route("POST", "/settings/webhooks/{id}/recover", Access::Session),
    route("GET", "/settings/webhooks/{id}/deliveries", Access::Session),
    route("GET", "/settings/webhooks/{id}/deliveries/{delivery_id}", Access::Session),
    route("POST", "/settings/webhooks/{id}/deliveries/{delivery_id}/retry", Access::Session),
    route("GET", "/settings/webhooks/{id}/activity", Access::Session),
    route("GET", "/settings/deliveries", Access::Session),
    route("GET", "/settings/deliveries/activity", Access::Session),
    route("GET", "/openapi.json", Access::Public),
    route("GET", "/openapi-3.0.json", Access::Public),
    route("GET", "/docs", Access::Public),
    route("GET", "/docs/{file}", Access::Public),
    route("GET", "/docs/guides/{page}", Access::Public),
    route("GET", "/docs/reference/{page}", Access::Public),
    route("GET", "/llms.txt", Access::Public),
    route("GET", "/portal", Access::Public),
    route("GET", "/portal/assets/{file}", Access::Public),
];

const fn route(method: &'static str, path: &'static str, access: Access) -> Route {
    Route { method, path, access }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Route {
    /// The route's idempotency key.
    pub fn idempotency(&self) -> Idempotency {
        match self.access {
            Access::Crm(_) if self.writes_to_crm() => Idempotency::Required,
            Access::Session if self.method == "POST" => Idempotency::Optional,
            Access::Partner(_) if (self.method, self.path) == ("POST", "/v1/clients") => Idempotency::HeaderOrEmail,
            Access::Public | Access::Partner(_) | Access::Crm(_) | Access::Events | Access::Session => {
                Idempotency::None
            }
        }
    }

    /// The permission that the caller's key needs.
    pub fn permission(&self) -> Option<Permission> {
        match self.access {
            Access::Partner(permission) => permission,
            Access::Crm(permission) => Some(permission),
            Access::Public | Access::Events | Access::Session => None,
        }
    }

    /// Returns true for a public page, which also answers HEAD, as GET without a body: uptime probes and link checkers
    /// send it. The portal is for signed-in coaches.
    pub fn answers_head(&self) -> bool {
        self.method == "GET" && self.access == Access::Public && !self.path.starts_with("/portal")
    }

    /// Returns true if the route writes to the CRM, so that a caller without an answer has to repeat the request.
    pub(crate) fn writes_to_crm(&self) -> bool {
        matches!(self.access, Access::Crm(permission) if permission.is_write())
    }
}

/// The result of looking a request up.
#[derive(Debug, PartialEq, Eq)]
pub enum Routed {
    Known(&'static Route),
    /// The methods that the path has.
    OtherMethods(Vec<&'static str>),
    UnknownPath,
}

/// Looks a request up. HEAD of a public page leads to its GET.
pub fn find(method: &Method, path: &str) -> Routed {
    // A literal path takes precedence over a template, even if their methods differ.
    let is_literal = ROUTES.iter().any(|route| route.path == path);
    let fits = |template: &str| if is_literal { template == path } else { matches(template, path) };
    let mut methods = Vec::new();
    for route in ROUTES.iter().filter(|route| fits(route.path)) {
        if route.method == method.as_str() || (method == Method::HEAD && route.answers_head()) {
            return Routed::Known(route);
        }
        methods.push(route.method);
        methods.extend(route.answers_head().then_some("HEAD"));
    }
    if methods.is_empty() { Routed::UnknownPath } else { Routed::OtherMethods(methods) }
}

fn matches(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => {}
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_or_told_what_there_is() {
        let Routed::Known(known) = find(&Method::GET, "/v1/clients/c1") else { panic!("a known route") };
        assert_eq!(known.path, "/v1/clients/{clientId}");
        assert_eq!(find(&Method::HEAD, "/v1/clients/c1"), Routed::OtherMethods(vec!["GET", "PATCH"]));
        let Routed::Known(page) = find(&Method::HEAD, "/docs/guides/events") else { panic!("a page") };
        assert_eq!(page.to_string(), "GET /docs/guides/{page}");
        assert_eq!(find(&Method::POST, "/docs"), Routed::OtherMethods(vec!["GET", "HEAD"]));
        assert_eq!(find(&Method::PUT, "/login/x"), Routed::OtherMethods(vec!["GET", "HEAD", "POST"]));
        assert_eq!(find(&Method::PATCH, "/v1/crm/bookings/availability"), Routed::OtherMethods(vec!["POST"]));
        assert_eq!(find(&Method::DELETE, "/v1/ping"), Routed::OtherMethods(vec!["GET"]));
        for path in ["/", "/v1", "/v1/clients/", "/v1/clients/a/b", "/V1/ping", "//v1/ping", "/v1/ping/", "/v1/%70ing"]
        {
            assert_eq!(find(&Method::GET, path), Routed::UnknownPath, "{path}");
        }
    }
}
