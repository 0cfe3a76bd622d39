//! Creates the demo workspace through the public interfaces: the bus and the settings API.

use axum::Router;
use axum::body::{Body, to_bytes};
use domain::api_key::{Permission, Scope};
use domain::event::EventType;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::facts::{self, Fact, Start};
use super::{COACH_ID, Demo, FILE, HOOK};
use crate::running::Running;
use crate::template::STACK_NAME;
use runtime::Clock;

/// Size limit of a response body; responses of the services are small.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// Maximum number of entries in a PutEvents request.
const MAX_ENTRIES: usize = 10;

/// The reason why the demo was not created, or a call to the stack failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SeedError(String);

impl SeedError {
    fn new(message: impl std::fmt::Display) -> Self {
        Self(message.to_string())
    }
}

/// Loads the demo of an earlier start and moves it to the current address, or creates a new one.
pub async fn load_or_create(running: &Running) -> Result<Demo, SeedError> {
    let state = &running.stack.state;
    let earlier = state.read(FILE).map_err(|error| SeedError::new(format!("{FILE} cannot be read: {error}")))?;
    let base_url = running.stack.base_url.clone();
    let start = Start { now: running.stack.timeline.clock.now(), base_url: &base_url, endpoint_id: "" };
    let demo = match earlier {
        Some(text) => {
            let mut demo: Demo =
                serde_json::from_str(&text).map_err(|error| SeedError::new(format!("{FILE} is damaged: {error}")))?;
            if demo.base_url != base_url {
                put_facts(running, facts::group("workspace", start)).await?;
                let path = format!("/settings/webhooks/{}", demo.endpoint_id);
                call_settings(running, Method::PATCH, &path, json!({ "url": hook_url(&base_url) })).await?;
                demo.base_url = base_url.clone();
            }
            demo
        }
        None => {
            for group in ["workspace", "records", "history"] {
                put_facts(running, facts::group(group, start)).await?;
            }
            let demo = create(running, base_url.clone()).await?;
            let start = Start { endpoint_id: &demo.endpoint_id, ..start };
            put_facts(running, facts::group("automation", start)).await?;
            demo
        }
    };
    let text = serde_json::to_string_pretty(&demo).map_err(SeedError::new)?;
    state.write(FILE, &text).map_err(|error| SeedError::new(format!("{FILE} cannot be written: {error}")))?;
    running.stack.receiver.add_secret(HOOK, &demo.webhook_secret);
    Ok(demo)
}

async fn create(running: &Running, base_url: String) -> Result<Demo, SeedError> {
    let events = json!({ "types": EventType::ALL, "payload_mode": "contact_details" });
    let partner = json!({ "name": "Demo partner", "scope": "partner", "events": events });
    let partner = call_settings(running, Method::POST, "/settings/keys", partner).await?;
    let crm = json!({ "name": "Demo CRM", "scope": "crm", "permissions": Permission::of(Scope::Crm) });
    let crm = call_settings(running, Method::POST, "/settings/keys", crm).await?;
    let endpoint = json!({
        "url": hook_url(&base_url), "events": EventType::ALL, "payload_mode": "contact_details",
        "description": "The local stack's own receiver",
    });
    let endpoint = call_settings(running, Method::POST, "/settings/webhooks", endpoint).await?;
    let text = |answer: &Value, name: &str| {
        answer[name]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| SeedError::new(format!("the settings API gave no {name}")))
    };
    Ok(Demo {
        base_url,
        partner_key: text(&partner, "key")?,
        crm_key: text(&crm, "key")?,
        endpoint_id: text(&endpoint, "id")?,
        webhook_secret: text(&endpoint, "secret")?,
    })
}

fn hook_url(base_url: &str) -> String {
    format!("{base_url}/_local/receiver/hooks/{HOOK}")
}

/// Puts facts on the bus as the application does, and waits until they are applied.
pub async fn put_facts(running: &Running, facts: Vec<Fact>) -> Result<(), SeedError> {
    let entries: Vec<Value> = facts
        .into_iter()
        .map(|(name, detail)| {
            json!({
                "EventBusName": STACK_NAME, "Source": "coaching.application", "DetailType": name,
                "Detail": detail.to_string(),
            })
        })
        .collect();
    for entries in entries.chunks(MAX_ENTRIES) {
        let request = Request::post("/")
            .header(CONTENT_TYPE, "application/x-amz-json-1.1")
            .header("x-amz-target", "AWSEvents.PutEvents")
            .body(Body::from(json!({ "Entries": entries }).to_string()))
            .map_err(SeedError::new)?;
        let answer = call(running.stack.timeline.aws.router(), request).await?;
        if answer["FailedEntryCount"] != 0 {
            return Err(SeedError::new(format!("the bus refused a fact: {answer}")));
        }
    }
    running.stack.timeline.settle().await.map_err(SeedError::new)
}

async fn call_settings(running: &Running, method: Method, path: &str, body: Value) -> Result<Value, SeedError> {
    let token = running.stack.gateway.token(COACH_ID).ok_or_else(|| SeedError::new("the API has no authorizer"))?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))
        .map_err(SeedError::new)?;
    call(running.router(), request).await
}

/// Sends a request and returns the body of its answer. A status other than 2xx is an error.
pub async fn call(router: Router, request: Request<Body>) -> Result<Value, SeedError> {
    let path = request.uri().path().to_owned();
    let answer = match router.oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    let status = answer.status();
    let body = to_bytes(answer.into_body(), MAX_ANSWER_BYTES).await.map_err(SeedError::new)?;
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() { Ok(value) } else { Err(SeedError::new(format!("{path} answered {status}: {value}"))) }
}
