//! `GET /settings/audit`: the audit trail, newest first.

use axum::extract::State;
use axum::response::Response;
use domain::audit::AuditCursor;
use domain::list::AUDIT_PAGE;
use edge::{Inbound, Reply};

use crate::App;
use crate::session::Session;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let limit = AUDIT_PAGE.parse(inbound.query("limit").as_deref()) as usize;
        let cursor = AuditCursor::parse(inbound.query("cursor").as_deref())?;
        Reply::ok(&app.workspaces.audit_page(&session.coach, cursor.as_ref(), limit).await?)
    };
    app.sessions.answer(&inbound, work).await
}
