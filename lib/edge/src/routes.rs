//! All routes of the service, each with the credential that a caller has to present.
//!
//! The permission checks, the OpenAPI document and the tests read this table. The function that receives an
//! unknown path or method answers 404 or 405 from it.

use std::fmt;

use domain::api_key::Permission::{self, *};
use domain::id_kind::IdKind::{self, *};
use domain::mode::Mode;
use domain::rate_limit::{LOGIN_LINK_REQUEST, Limit, REQUEST};
use http::Method;

/// Version of the interface, which its owner sets. Additions do not raise it.
pub const VERSION: &str = "1.2.0";

/// The path of a key's own request log.
pub const OWN_REQUESTS: &str = "/v1/requests";
/// The path of the addresses that webhooks come from. A deployment without fixed addresses has no such path, so the
/// gateway has no route of its own for it: requests arrive as those for unknown paths do.
pub const WEBHOOK_ADDRESSES: &str = "/.well-known/webhook-ips.json";
/// The path of a workspace's test data in a sandbox.
const TEST_DATA: &str = "/v1/test/data";

/// A route of the service. Displays as `GET /v1/ping`.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    /// The template of the path.
    pub path: &'static str,
    pub access: Access,
    /// The records that the path names, in the order of their ids.
    pub ids: &'static [IdKind],
    /// The names of the query parameters.
    pub query: &'static [&'static str],
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
    /// A key of either scope, whatever it and its workspace may do.
    AnyKey,
    /// Like `AnyKey`, in a sandbox alone. Elsewhere the path is unknown.
    Sandbox,
    /// A key of either scope, which the function presents to other routes of the API.
    Assistant,
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

/// Parameters of the lists of the CRM that are in the order of ids.
const BY_ID: &[&str] = &["cursor", "limit", "order"];
/// Filters of a delivery log, and parameters of its page.
const DELIVERY_LOG: &[&str] = &["status", "type", "webhook_id", "since", "until", "cursor", "limit"];
/// Filters of a key's own request log, and parameters of its page.
const REQUEST_LOG: &[&str] = &["status", "code", "method", "route", "request_id", "since", "until", "cursor", "limit"];

/// All routes.
pub const ROUTES: &[Route] = &[
    route("GET", "/v1/ping", Access::Partner(None)),
    route("GET", "/v1/key", Access::AnyKey),
    route("GET", OWN_REQUESTS, Access::AnyKey).takes(REQUEST_LOG),
    partner("GET", "/v1/clients", ClientsRead).takes(&[
        "cursor",
        "limit",
        "active",
        "name",
        "email",
        "external_id",
        "updated_since",
    ]),
    partner("POST", "/v1/clients", ClientsWrite),
    partner("GET", "/v1/clients/{clientId}", ClientsRead).of(&[Client]),
    partner("PATCH", "/v1/clients/{clientId}", ClientsWrite).of(&[Client]),
    partner("POST", "/v1/clients/{clientId}/login-link", LoginLinksCreate).of(&[Client]),
    public("GET", "/login/{token}").of(&[LoginToken]),
    public("POST", "/login/{token}").of(&[LoginToken]),
    public("GET", "/.well-known/jwks.json"),
    public("GET", WEBHOOK_ADDRESSES),
    partner("GET", "/v1/clients/{clientId}/compliance", RecordsRead).of(&[Client]).takes(&["window_days"]),
    partner("GET", "/v1/clients/{clientId}/check-ins", RecordsRead).of(&[Client]).takes(&["limit"]),
    partner("GET", "/v1/clients/{clientId}/daily-logs", RecordsRead).of(&[Client]).takes(&["limit", "from", "to"]),
    crm("GET", "/v1/crm/contacts", ContactsRead).takes(&["cursor", "limit", "order", "updated_since", "email", "name"]),
    crm("POST", "/v1/crm/contacts", ContactsWrite),
    crm("GET", "/v1/crm/contacts/{id}", ContactsRead).of(&[Contact]),
    crm("PATCH", "/v1/crm/contacts/{id}", ContactsWrite).of(&[Contact]),
    crm("GET", "/v1/crm/opportunities", OpportunitiesRead).takes(&["cursor", "limit", "order", "updated_since"]),
    crm("POST", "/v1/crm/opportunities", OpportunitiesWrite),
    crm("GET", "/v1/crm/opportunities/{id}", OpportunitiesRead).of(&[Opportunity]),
    crm("PATCH", "/v1/crm/opportunities/{id}", OpportunitiesWrite).of(&[Opportunity]),
    crm("GET", "/v1/crm/calendars", BookingsRead).takes(BY_ID),
    crm("GET", "/v1/crm/bookings", BookingsRead).takes(&[
        "cursor",
        "limit",
        "order",
        "updated_since",
        "from",
        "to",
        "calendarId",
        "leadId",
    ]),
    crm("POST", "/v1/crm/bookings", BookingsWrite),
    crm("POST", "/v1/crm/bookings/availability", BookingsRead),
    crm("GET", "/v1/crm/bookings/{id}", BookingsRead).of(&[Booking]),
    crm("PATCH", "/v1/crm/bookings/{id}", BookingsWrite).of(&[Booking]),
    crm("DELETE", "/v1/crm/bookings/{id}", BookingsWrite).of(&[Booking]).takes(&["leadId"]),
    crm("GET", "/v1/crm/workflows", WorkflowsRead).takes(BY_ID),
    route("GET", "/v1/events", Access::Events).takes(&["types", "since", "cursor", "limit", "order"]),
    route("GET", "/v1/events/samples", Access::Events).takes(&["type"]),
    sandbox("POST", "/v1/test/facts"),
    sandbox("PATCH", "/v1/test/workspace"),
    sandbox("POST", "/v1/test/evaluate"),
    sandbox("POST", "/v1/test/events"),
    sandbox("GET", "/v1/test/mail").takes(&["cursor", "limit"]),
    sandbox("GET", TEST_DATA),
    sandbox("DELETE", TEST_DATA),
    route("POST", "/mcp", Access::Assistant),
    session("GET", "/settings/workspace"),
    session("GET", "/settings/audit").takes(&["cursor", "limit"]),
    session("GET", "/settings/requests").takes(&[
        "key_id",
        "status",
        "code",
        "method",
        "route",
        "request_id",
        "since",
        "until",
        "cursor",
        "limit",
    ]),
    session("GET", "/settings/requests/summary").takes(&["hours"]),
    session("GET", "/settings/event-types"),
    session("GET", "/settings/keys").takes(&["cursor", "limit", "status"]),
    session("POST", "/settings/keys"),
    session("POST", "/settings/keys/{id}/rotate").of(&[Key]),
    session("PATCH", "/settings/keys/{id}").of(&[Key]),
    session("DELETE", "/settings/keys/{id}").of(&[Key]),
    session("GET", "/settings/webhooks"),
    session("POST", "/settings/webhooks"),
    session("GET", "/settings/webhooks/{id}").of(&[Endpoint]),
    session("PATCH", "/settings/webhooks/{id}").of(&[Endpoint]),
    session("DELETE", "/settings/webhooks/{id}").of(&[Endpoint]),
    session("POST", "/settings/webhooks/{id}/rotate-secret").of(&[Endpoint]),
    session("POST", "/settings/webhooks/{id}/test").of(&[Endpoint]),
    session("POST", "/settings/webhooks/{id}/recover").of(&[Endpoint]),
    session("GET", "/settings/webhooks/{id}/deliveries").of(&[Endpoint]).takes(DELIVERY_LOG),
    session("GET", "/settings/webhooks/{id}/deliveries/{delivery_id}").of(&[Endpoint, Delivery]),
    session("POST", "/settings/webhooks/{id}/deliveries/{delivery_id}/retry").of(&[Endpoint, Delivery]),
    session("GET", "/settings/webhooks/{id}/activity").of(&[Endpoint]).takes(&["hours"]),
    session("GET", "/settings/deliveries").takes(&[
        "status",
        "type",
        "webhook_id",
        "since",
        "until",
        "endpoint_id",
        "cursor",
        "limit",
    ]),
    session("GET", "/settings/deliveries/activity").takes(&["hours"]),
    public("GET", "/openapi.json"),
    public("GET", "/openapi-3.0.json"),
    public("GET", "/docs"),
    public("GET", "/docs/{file}"),
    public("GET", "/docs/guides/{page}"),
    public("GET", "/docs/reference/{page}"),
    public("GET", "/llms.txt"),
    public("GET", "/portal"),
    public("GET", "/portal/assets/{file}"),
];

const fn route(method: &'static str, path: &'static str, access: Access) -> Route {
    Route { method, path, access, ids: &[], query: &[] }
}

const fn partner(method: &'static str, path: &'static str, permission: Permission) -> Route {
    route(method, path, Access::Partner(Some(permission)))
}

const fn crm(method: &'static str, path: &'static str, permission: Permission) -> Route {
    route(method, path, Access::Crm(permission))
}

const fn sandbox(method: &'static str, path: &'static str) -> Route {
    route(method, path, Access::Sandbox)
}

const fn session(method: &'static str, path: &'static str) -> Route {
    route(method, path, Access::Session)
}

const fn public(method: &'static str, path: &'static str) -> Route {
    route(method, path, Access::Public)
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Route {
    /// The route, whose path names these records.
    const fn of(self, ids: &'static [IdKind]) -> Self {
        Self { ids, ..self }
    }

    /// The route, which takes these query parameters.
    const fn takes(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// Returns true if callers present an API key to the route itself.
    pub fn takes_key(&self) -> bool {
        matches!(self.access, Access::Partner(_) | Access::Crm(_) | Access::Events | Access::AnyKey | Access::Sandbox)
    }

    /// Returns true if the route changes something. A read whose question is a body has the method POST, too.
    pub fn writes(&self) -> bool {
        self.method != "GET" && self.permission().is_none_or(Permission::is_write)
    }

    /// Returns true if the route is refused while the workspace's test data is being removed. The order to remove it
    /// may be repeated.
    pub(crate) fn waits_for_wipe(&self) -> bool {
        self.writes() && self.path != TEST_DATA
    }

    /// Returns true if a deployment of the mode has the route.
    pub fn is_served(&self, mode: Mode) -> bool {
        mode == Mode::Test || self.access != Access::Sandbox
    }

    /// The route's idempotency key.
    pub fn idempotency(&self) -> Idempotency {
        match self.access {
            Access::Crm(_) if self.writes_to_crm() => Idempotency::Required,
            Access::Session | Access::Sandbox if self.method == "POST" => Idempotency::Optional,
            Access::Partner(_) if (self.method, self.path) == ("POST", "/v1/clients") => Idempotency::HeaderOrEmail,
            Access::Public
            | Access::Partner(_)
            | Access::Crm(_)
            | Access::Events
            | Access::AnyKey
            | Access::Sandbox
            | Access::Assistant
            | Access::Session => Idempotency::None,
        }
    }

    /// The limits of a key's requests to the route.
    pub(crate) fn limits(&self) -> &'static [Limit] {
        if self.path == "/v1/clients/{clientId}/login-link" { LOGIN_LINK_REQUEST } else { REQUEST }
    }

    /// The permission that the caller's key needs.
    pub fn permission(&self) -> Option<Permission> {
        match self.access {
            Access::Partner(permission) => permission,
            Access::Crm(permission) => Some(permission),
            Access::Public
            | Access::Events
            | Access::AnyKey
            | Access::Sandbox
            | Access::Assistant
            | Access::Session => None,
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

/// Returns the routes of a deployment of the mode.
pub fn served(mode: Mode) -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(move |route| route.is_served(mode))
}

/// Looks a request to a deployment of the mode up.
pub(crate) fn find_served(mode: Mode, method: &Method, path: &str) -> Routed {
    let is_served = served(mode).any(|route| matches(route.path, path));
    if is_served { find(method, path) } else { Routed::UnknownPath }
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
    fn a_route_behind_a_credential_names_the_record_of_each_id_in_its_path() {
        for route in ROUTES.iter().filter(|route| route.access != Access::Public) {
            assert_eq!(
                route.ids.len(),
                route.path.matches('{').count(),
                "{route}: name the kinds of its ids with `of`"
            );
        }
    }

    #[test]
    fn the_routes_of_a_sandbox_are_unknown_elsewhere() {
        for route in ROUTES.iter().filter(|route| !route.path.contains('{')) {
            let method = Method::from_bytes(route.method.as_bytes()).unwrap();
            assert_eq!(find_served(Mode::Test, &method, route.path), Routed::Known(route));
            let found = find_served(Mode::Live, &method, route.path);
            if route.access == Access::Sandbox {
                assert_eq!(found, Routed::UnknownPath);
                assert_eq!(find_served(Mode::Live, &Method::PUT, route.path), Routed::UnknownPath);
            } else {
                assert_eq!(found, Routed::Known(route));
            }
        }
    }

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
