//! Numbers of deliveries by the hour: of one endpoint, and of all endpoints of the coach.

use axum::extract::State;
use axum::response::Response;
use domain::delivery::{ACTIVITY_PARAMETER, Activity, ActivityPeriod};
use domain::time::Timestamp;
use edge::{Inbound, Problem, Reply};
use futures::future::try_join_all;

use crate::App;
use crate::session::Session;
use crate::webhooks::find;

/// `GET /settings/webhooks/{id}/activity`
pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let period = period(&inbound, session.now)?;
        let found = find(&app, &session, inbound.parameter(0)).await?;
        let hours = app.deliveries.activity(&found.endpoint.id, period).await?;
        Reply::ok(&Activity::sum(period, &[hours]))
    };
    app.sessions.answer(&inbound, work).await
}

/// `GET /settings/deliveries/activity`
pub(crate) async fn read_all(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let period = period(&inbound, session.now)?;
        let endpoints = app.endpoints.list_with_health(&session.coach).await?;
        let hours = endpoints.iter().map(|watched| app.deliveries.activity(&watched.endpoint.id, period));
        Reply::ok(&Activity::sum(period, &try_join_all(hours).await?))
    };
    app.sessions.answer(&inbound, work).await
}

fn period(inbound: &Inbound, now: Timestamp) -> Result<ActivityPeriod, Problem> {
    inbound.only_parameters(&[ACTIVITY_PARAMETER])?;
    Ok(ActivityPeriod::parse(inbound.query(ACTIVITY_PARAMETER).as_deref(), now)?)
}
