//! Refuses requests that a web page could have sent. The stack listens on loopback only, but the user's browser reaches
//! it for pages of any site: under a name that resolves to loopback (DNS rebinding), or with a form or script across
//! sites. The stack's own routes and the AWS endpoint ask for no credentials, so they accept neither.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderValue, StatusCode};
use serde_json::json;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const FOREIGN_HOST: &str = "Host must be localhost or a loopback address, such as 127.0.0.1";
const FOREIGN_ORIGIN: &str = "Origin must be the stack's own: pages of other sites may not call the local stack";
const CROSS_SITE: &str =
    "pages of other sites may not call the local stack or link to it: type the address into the browser";

/// Passes a request on unless it may come from a page of another site. The refusal is readable as an error of
/// `/_local` and of AWS.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let Some(reason) = refusal(&request) else { return next.run(request).await };
    tracing::warn!("refused a request: {reason}");
    let body = json!({ "error": reason, "__type": "AccessDeniedException", "message": reason });
    // hyper closes the connection, since the body was not read.
    (StatusCode::FORBIDDEN, [(CONNECTION, "close")], axum::Json(body)).into_response()
}

/// Returns the reason to refuse a request, if any. A request without these headers is not by a browser.
fn refusal(request: &Request) -> Option<&'static str> {
    let headers = request.headers();
    let is_foreign = |host: &HeaderValue| host.to_str().map_or(true, |host| !is_loopback(host));
    if request.uri().authority().is_some_and(|host| !is_loopback(host.as_str()))
        || headers.get_all(HOST).iter().any(is_foreign)
    {
        return Some(FOREIGN_HOST);
    }
    // A browser names the host in `Host` and in `Origin` alike.
    let host = headers.get(HOST).map_or(&[][..], HeaderValue::as_bytes);
    if headers.get_all(ORIGIN).iter().any(|origin| origin.as_bytes().strip_prefix(b"http://") != Some(host)) {
        return Some(FOREIGN_ORIGIN);
    }
    // `same-site` is another port of this machine.
    let is_cross_site = |site: &HeaderValue| site != "same-origin" && site != "none";
    headers.get_all(SEC_FETCH_SITE).iter().any(is_cross_site).then_some(CROSS_SITE)
}

/// Returns true for `localhost` and the loopback addresses, with and without a port.
fn is_loopback(authority: &str) -> bool {
    let Ok(parsed) = authority.parse::<Authority>() else { return false };
    let host = parsed.host();
    let v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    !authority.contains('@')
        && (host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
            || v6.and_then(|address| address.parse().ok()) == Some(Ipv6Addr::LOCALHOST))
}
