//! A receiver for webhooks. The guide to verifying shows it from the first blank line on; tests/verification runs it.
#![expect(clippy::disallowed_methods, reason = "a partner's program has no `runtime::Config`")]

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::net::TcpListener;

static LOCK: Mutex<()> = Mutex::new(());

/// Stores the event. Returns false if it is stored already.
fn store(id: &str, body: &[u8]) -> io::Result<bool> {
    let (file, draft) = (Path::new("inbox").join(id), Path::new("inbox/draft"));
    let _held = LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if file.exists() {
        return Ok(false);
    }
    fs::write(draft, body)?;
    fs::rename(draft, file)?; // atomic
    Ok(true)
}

async fn work(id: String, event: Value) {
    println!("accepted {id} {}", event["type"].as_str().unwrap_or_default());
}

async fn receive(State(webhook): State<Arc<Webhook>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let verified = webhook.verify(&body, &headers).is_ok(); // the raw bytes
    let Some(id) = headers.get("webhook-id").and_then(|id| id.to_str().ok()).filter(|_| verified) else {
        return StatusCode::BAD_REQUEST;
    };
    let Ok(event) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    match store(id, &body) {
        Ok(is_new) if is_new => drop(tokio::spawn(work(id.to_owned(), event))),
        Ok(_) => {}
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR,
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let webhook = Arc::new(Webhook::new(&env::var("WEBHOOK_SECRET")?)?);
    fs::create_dir_all("inbox")?;
    let port = env::var("PORT").unwrap_or_else(|_| "9000".to_owned());
    let listener = TcpListener::bind(format!("0.0.0.0:{port}")).await?;
    let app = Router::new().route("/{*any}", post(receive)).with_state(webhook);
    Ok(axum::serve(listener, app).await?)
}
