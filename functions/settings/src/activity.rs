//! Numbers of deliveries by the hour: of one endpoint, and of all endpoints of the coach.

use domain::delivery::{ACTIVITY_PARAMETER, Activity, ActivityPeriod};
use domain::time::Timestamp;
use edge::{Inbound, Problem, Reply, Session};
use futures::future::try_join_all;

use crate::App;
use crate::webhooks::find;

/// `GET /settings/webhooks/{id}/activity`
pub(crate) async fn read(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let period = period(&inbound, session.now)?;
    let found = find(&app, &session, inbound.parameter(0)).await?;
    let hours = app.deliveries.activity(&found.endpoint.id, period).await?;
    Reply::ok(&Activity::sum(period, &[hours]))
}

/// `GET /settings/deliveries/activity`
pub(crate) async fn read_all(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let period = period(&inbound, session.now)?;
    let endpoints = app.endpoints.list_with_health(&session.coach).await?;
    let hours = endpoints.iter().map(|watched| app.deliveries.activity(&watched.endpoint.id, period));
    Reply::ok(&Activity::sum(period, &try_join_all(hours).await?))
}

fn period(inbound: &Inbound, now: Timestamp) -> Result<ActivityPeriod, Problem> {
    inbound.only_known_parameters()?;
    Ok(ActivityPeriod::parse(inbound.query(ACTIVITY_PARAMETER).as_deref(), now)?)
}
