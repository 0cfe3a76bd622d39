//! `GET /settings/event-types`: all events, each in words, with its schema and examples.

use axum::extract::State;
use axum::response::Response;
use domain::event::EventCatalog;
use edge::{Inbound, Reply};

use crate::App;
use crate::session::Session;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    app.sessions.answer(&inbound, async |_: Session| Reply::ok(&EventCatalog::all())).await
}
