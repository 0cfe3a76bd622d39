//! The request log of the coach's keys, newest first, and its numbers for each key.

use domain::cursor::CursorList;
use domain::request_log::{SUMMARY_PARAMETER, SummaryPeriod};
use edge::{Inbound, Problem, Reply, Session, request_page};

use crate::App;

/// `GET /settings/requests`
pub(crate) async fn list(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: "requests", coach: &session.coach };
    request_page(&app.requests, &list, &inbound, session.now, |filter| filter).await
}

/// `GET /settings/requests/summary`
pub(crate) async fn summary(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    inbound.only_known_parameters()?;
    let period = SummaryPeriod::parse(inbound.query(SUMMARY_PARAMETER).as_deref(), session.now)?;
    Reply::ok(&app.requests.summary(&session.coach, period, session.now).await?)
}
