//! `GET /settings/audit`: the audit trail, newest first.

use axum::extract::State;
use axum::response::Response;
use domain::audit::{AuditCursor, AuditPage};
use domain::cursor::CursorList;
use domain::list::AUDIT_PAGE;
use edge::{Inbound, Reply};

use crate::App;
use crate::session::Session;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let limit = AUDIT_PAGE.parse(inbound.query("limit").as_deref()) as usize;
        let list = CursorList { name: "audit", coach: &session.coach };
        let after = list.parse(inbound.query("cursor").as_deref(), AuditCursor::parse)?;
        let read = app.workspaces.audit_page(&session.coach, after.as_ref(), limit).await?;
        let next_cursor = read.next.map(|next| list.cursor(&String::from(next)));
        Reply::ok(&AuditPage { data: read.data, next_cursor })
    };
    app.sessions.answer(&inbound, work).await
}
