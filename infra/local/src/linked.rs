//! The product's functions, linked into the stack. [`all`] lists them.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use edge::lambda::Function;
use futures::future::BoxFuture;
use lambda_runtime::{Context, LambdaEvent};
use runtime::{BoxError, Environment};
use serde::Serialize;
use serde_json::Value;

use crate::functions::{Functions, Handler};

/// A function behind the API: its crate's `router`.
macro_rules! http_function {
    ($function:ident) => {{
        async fn start(environment: Environment) -> Result<Http, BoxError> {
            Function::new(&environment, $function::router(&environment).await?).map(Http)
        }
        start
    }};
}

/// A function behind an event source: its crate's `App`, and the type of its events.
macro_rules! event_function {
    ($function:ident, $event:ty) => {{
        struct Started($function::App);

        impl Handler for Started {
            fn handle(&self, event: Value, context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
                Box::pin(async move {
                    let event: $event = serde_json::from_value(event)?;
                    self.0.handle(LambdaEvent::new(event, context)).await.into_answer()
                })
            }
        }

        async fn start(environment: Environment) -> Result<Started, BoxError> {
            $function::App::new(&environment).await.map(Started)
        }
        start
    }};
}

/// Returns all functions by the names of their binaries.
pub fn all() -> Functions {
    Functions::default()
        .with("ping", http_function!(ping))
        .with("clients", http_function!(clients))
        .with("login-links", http_function!(login_links))
        .with("client-records", http_function!(client_records))
        .with("crm-contacts", http_function!(crm_contacts))
        .with("crm-opportunities", http_function!(crm_opportunities))
        .with("crm-bookings", http_function!(crm_bookings))
        .with("crm-workflows", http_function!(crm_workflows))
        .with("events", http_function!(events))
        .with("mcp", http_function!(mcp))
        .with("sandbox", http_function!(sandbox))
        .with("settings", http_function!(settings))
        .with("docs", http_function!(docs))
        .with("portal", http_function!(portal))
        .with("ingest", event_function!(ingest, SqsEvent))
        .with("relay", event_function!(relay, relay::Invocation))
        .with("deliver", event_function!(deliver, SqsEvent))
        .with("sweep", event_function!(sweep, sweep::Invocation))
        .with("wipe", event_function!(wipe, wipe::Invocation))
}

struct Http(Function);

impl Handler for Http {
    fn handle(&self, event: Value, context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
        Box::pin(async move { self.0.invoke(&event.to_string(), context).await })
    }
}

/// The output of a function's `handle`, as the JSON that Lambda receives.
trait Outcome {
    fn into_answer(self) -> Result<Value, BoxError>;
}

impl<T: Serialize> Outcome for Result<T, BoxError> {
    fn into_answer(self) -> Result<Value, BoxError> {
        Ok(serde_json::to_value(self?)?)
    }
}

impl Outcome for SqsBatchResponse {
    fn into_answer(self) -> Result<Value, BoxError> {
        Ok(serde_json::to_value(self)?)
    }
}
