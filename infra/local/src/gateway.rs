//! API Gateway's HTTP API, payload format 2.0, with the template's routes, JWT authorizers and CORS settings.

mod authorizer;
mod cors;
mod event;
mod route;

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, DATE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Limited};
use runtime::Clock;
use serde_json::json;

pub use authorizer::SigningKey;

use crate::environments::Pool;
use crate::request_id::request_id;
use crate::template::{Api, Authorizer, HttpRoute, TemplateError};
use event::RequestContext;
use route::Routes;

/// API Gateway's limit for a request body.
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;
/// The route in the log of a request whose body was not read.
const UNREAD: &str = "unread";
/// The form of `Date`: RFC 9110, section 5.6.7.
const HTTP_DATE: &str = "%a, %d %b %Y %H:%M:%S GMT";
const REQUEST_ID: HeaderName = HeaderName::from_static("apigw-requestid");

/// The HTTP API.
pub struct Gateway {
    api: Api,
    routes: Routes<RouteTarget>,
    key: SigningKey,
    clock: Arc<dyn Clock>,
    port: u16,
}

struct RouteTarget {
    pool: Arc<Pool>,
    authorizer: Option<Authorizer>,
}

impl Gateway {
    /// Creates an API without routes.
    pub fn new(api: Api, key: SigningKey, clock: Arc<dyn Clock>, port: u16) -> Self {
        Self { api, routes: Routes::default(), key, clock, port }
    }

    /// Adds a route.
    pub fn add(&mut self, route: &HttpRoute, pool: Arc<Pool>) -> Result<(), TemplateError> {
        let authorizer = match route.authorizer() {
            None => None,
            Some(name) => Some(self.api.authorizers.get(name).cloned().ok_or_else(|| {
                TemplateError::new(format!("has a route {} with an unknown authorizer {name}", route.path))
            })?),
        };
        if self.routes.add(&route.method, &route.path, RouteTarget { pool, authorizer }) {
            Ok(())
        } else {
            Err(TemplateError::new(format!("has the route {} {} twice", route.method, route.path)))
        }
    }

    /// Issues a token for the settings API. Returns `None` when the API has no authorizer.
    pub fn token(&self, coach_id: &str) -> Option<String> {
        let authorizer = self.api.authorizers.values().next()?;
        Some(self.key.token(coach_id, authorizer, self.clock.now()))
    }

    /// Responds to one request.
    pub async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let request_id = request_id();
        let mut answer = match Limited::new(body, MAX_BODY_BYTES).collect().await {
            Ok(body) => self.route(&head, target, &body.to_bytes(), &request_id).await,
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                closing(refused(UNREAD, &request_id, StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"))
            }
            Err(_broken) => closing(refused(UNREAD, &request_id, StatusCode::BAD_REQUEST, "Bad Request")),
        };
        if let Some(cors) = &self.api.cors {
            cors::add_headers(cors, &head, answer.headers_mut());
        }
        let request_id = HeaderValue::from_str(&request_id).expect("base64 fits into a header");
        answer.headers_mut().insert(REQUEST_ID, request_id);
        // The stack's time, which may be ahead of the machine's.
        let date = self.clock.now().format(HTTP_DATE).to_string();
        answer.headers_mut().insert(DATE, HeaderValue::from_str(&date).expect("a date is ASCII"));
        answer
    }

    async fn route(&self, head: &request::Parts, target: &str, body: &Bytes, request_id: &str) -> Response<Body> {
        let Some(matched) = self.routes.find(head.method.as_str(), head.uri.path()) else {
            if self.api.cors.is_some() && cors::is_preflight(head) {
                return cors::preflight();
            }
            return refused("unrouted", request_id, StatusCode::NOT_FOUND, "Not Found");
        };
        let now = self.clock.now();
        let claims = match &matched.target.authorizer {
            None => None,
            Some(authorizer) => {
                let header = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
                let Some(claims) = authorizer::authorize(authorizer, &self.key, header, now) else {
                    let mut answer = refused(matched.key, request_id, StatusCode::UNAUTHORIZED, "Unauthorized");
                    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                    return answer;
                };
                Some(claims)
            }
        };
        let context = RequestContext {
            route_key: matched.key,
            claims: claims.as_ref(),
            target,
            request_id,
            source_ip: Ipv4Addr::LOCALHOST.into(),
            port: self.port,
        };
        let event = event::event(head, body, &context);
        let pool = &matched.target.pool;
        let failed = || refused(matched.key, request_id, StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
        match pool.invoke(matched.key, event).await {
            Ok(returned) => event::answer(&head.method, &returned).unwrap_or_else(|| {
                tracing::warn!(function = pool.name(), "the function returned an invalid HTTP response");
                failed()
            }),
            Err(_logged) => failed(),
        }
    }
}

/// Builds a response of the gateway itself, and logs the request: no function does.
fn refused(route: &str, request_id: &str, status: StatusCode, message: &str) -> Response<Body> {
    tracing::info!(function = "gateway", route, status = status.as_u16(), request_id);
    let mut answer = Response::new(Body::from(json!({ "message": message }).to_string()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Announces that the connection closes: hyper closes it when the request body was not read to its end.
fn closing(mut answer: Response<Body>) -> Response<Body> {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

#[cfg(test)]
mod tests;
