//! `GET /settings/audit`: the audit trail, newest first.

use domain::audit::{AuditCursor, AuditPage};
use domain::cursor::CursorList;
use domain::list::AUDIT_PAGE;
use edge::{Inbound, Problem, Reply, Session};

use crate::App;

pub(crate) async fn list(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let limit = AUDIT_PAGE.parse(inbound.query("limit").as_deref()) as usize;
    let list = CursorList { name: "audit", coach: &session.coach };
    let after = list.parse(inbound.query("cursor").as_deref(), AuditCursor::parse)?;
    let read = app.workspaces.audit_page(&session.coach, after.as_ref(), limit).await?;
    let next_cursor = read.next.map(|next| list.cursor(&String::from(next)));
    Reply::ok(&AuditPage { data: read.data, next_cursor })
}
