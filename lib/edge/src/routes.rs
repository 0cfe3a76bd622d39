//! All routes of the service. Unknown paths and methods reach whatever function the gateway sends them to; it answers
//! by this table.

use http::Method;

/// Method and path template of each route, by path.
pub const ROUTES: &[(&str, &str)] = &[
    ("GET", "/v1/ping"),
    ("GET", "/v1/clients"),
    ("POST", "/v1/clients"),
    ("GET", "/v1/clients/{clientId}"),
    ("PATCH", "/v1/clients/{clientId}"),
    ("POST", "/v1/clients/{clientId}/login-link"),
    ("GET", "/login/{token}"),
    ("HEAD", "/login/{token}"),
    ("POST", "/login/{token}"),
    ("GET", "/.well-known/jwks.json"),
    ("GET", "/v1/clients/{clientId}/compliance"),
    ("GET", "/v1/clients/{clientId}/check-ins"),
    ("GET", "/v1/clients/{clientId}/daily-logs"),
    ("GET", "/v1/crm/contacts"),
    ("POST", "/v1/crm/contacts"),
    ("PATCH", "/v1/crm/contacts/{id}"),
    ("GET", "/v1/crm/opportunities"),
    ("POST", "/v1/crm/opportunities"),
    ("PATCH", "/v1/crm/opportunities/{id}"),
    ("GET", "/v1/crm/calendars"),
    ("GET", "/v1/crm/bookings"),
    ("POST", "/v1/crm/bookings"),
    ("POST", "/v1/crm/bookings/availability"),
    ("PATCH", "/v1/crm/bookings/{id}"),
    ("DELETE", "/v1/crm/bookings/{id}"),
    ("GET", "/v1/crm/workflows"),
    ("GET", "/settings/keys"),
    ("POST", "/settings/keys"),
    ("POST", "/settings/keys/{id}/rotate"),
    ("DELETE", "/settings/keys/{id}"),
    ("GET", "/settings/webhooks"),
    ("POST", "/settings/webhooks"),
    ("GET", "/settings/webhooks/{id}"),
    ("PATCH", "/settings/webhooks/{id}"),
    ("DELETE", "/settings/webhooks/{id}"),
    ("POST", "/settings/webhooks/{id}/rotate-secret"),
    ("POST", "/settings/webhooks/{id}/test"),
    ("POST", "/settings/webhooks/{id}/recover"),
    ("GET", "/settings/webhooks/{id}/deliveries"),
    ("POST", "/settings/webhooks/{id}/deliveries/{delivery_id}/retry"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs/{file}"),
    ("GET", "/docs/guides/{page}"),
];

/// Those of them that take neither a key nor a session.
pub const PUBLIC: &[(&str, &str)] = &[
    ("GET", "/login/{token}"),
    ("HEAD", "/login/{token}"),
    ("POST", "/login/{token}"),
    ("GET", "/.well-known/jwks.json"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs/{file}"),
    ("GET", "/docs/guides/{page}"),
];

/// What the table says of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Routed {
    /// The path's template.
    Known(&'static str),
    /// The methods that the path has.
    OtherMethods(Vec<&'static str>),
    UnknownPath,
}

/// Looks a request up.
pub fn route(method: &Method, path: &str) -> Routed {
    // A path that is written out goes before one with a parameter, whatever its methods.
    let written_out = ROUTES.iter().any(|(_, template)| *template == path);
    let fits = |template: &str| if written_out { template == path } else { matches(template, path) };
    let mut methods = Vec::new();
    for (known, template) in ROUTES.iter().filter(|(_, template)| fits(template)) {
        if *known == method.as_str() {
            return Routed::Known(template);
        }
        methods.push(*known);
    }
    if methods.is_empty() { Routed::UnknownPath } else { Routed::OtherMethods(methods) }
}

/// Whether a route writes to the CRM, so that nobody knows what has come of a request that was not answered.
pub(crate) fn writes_to_crm(method: &Method, template: &str) -> bool {
    template.starts_with("/v1/crm/") && method != Method::GET && template != "/v1/crm/bookings/availability"
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
        assert_eq!(route(&Method::GET, "/v1/clients/c1"), Routed::Known("/v1/clients/{clientId}"));
        assert_eq!(route(&Method::HEAD, "/v1/clients/c1"), Routed::OtherMethods(vec!["GET", "PATCH"]));
        assert_eq!(route(&Method::PATCH, "/v1/crm/bookings/availability"), Routed::OtherMethods(vec!["POST"]));
        assert_eq!(route(&Method::DELETE, "/v1/ping"), Routed::OtherMethods(vec!["GET"]));
        for path in ["/", "/v1", "/v1/clients/", "/v1/clients/a/b", "/V1/ping", "//v1/ping", "/v1/ping/", "/v1/%70ing"]
        {
            assert_eq!(route(&Method::GET, path), Routed::UnknownPath, "{path}");
        }
    }
}
