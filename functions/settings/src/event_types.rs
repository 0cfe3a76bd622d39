//! `GET /settings/event-types`: all events, each in words, with its schema and examples.

use domain::event::EventCatalog;
use edge::{Inbound, Problem, Reply, Session};

use crate::App;

pub(crate) async fn list(_: App, _: Session, _: Inbound) -> Result<Reply, Problem> {
    Reply::ok(&EventCatalog::all())
}
