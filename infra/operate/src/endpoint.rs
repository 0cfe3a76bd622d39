//! `endpoint disable` and `endpoint enable`: as the coach pauses and resumes an endpoint.

use domain::audit::{AuditAction, AuditDetail};
use domain::endpoint::{EndpointChange, EndpointGone, EndpointStatus, EndpointWithHealth};
use domain::id::{CoachId, EndpointId};
use store::delivery::Deliveries;
use store::endpoint::{ChangedEndpoint, Endpoints};
use store::operating::Overview;
use store::unit::Unit;

use crate::act::RecordAct;
use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::{self, EndpointCommand};
use crate::output::{Answer, say};
use crate::progress::Said;

pub(crate) async fn endpoint(operator: &Operator, command: &EndpointCommand) -> Result<Answer, Failure> {
    match command {
        EndpointCommand::Disable(wanted) => change(operator, wanted, false).await,
        EndpointCommand::Enable(wanted) => change(operator, wanted, true).await,
    }
}

async fn change(operator: &Operator, wanted: &options::EndpointChange, enabled: bool) -> Result<Answer, Failure> {
    let (id, consent) = (&wanted.id, &wanted.consent);
    let coach = coach_of(operator, id, wanted.coach.as_ref()).await?;
    let vault = operator.vault().await?;
    let endpoints = Endpoints::new(&operator.env, &operator.db, &vault)?;
    let found = endpoints.find(&coach, id).await?.ok_or_else(|| no_endpoint(id))?;
    let act = RecordAct { action: AuditAction::EndpointUpdated, target: id.as_str(), coach: &coach };
    match found.endpoint.status {
        EndpointStatus::Gone => return Err(gone(id)),
        status if (status == EndpointStatus::Enabled) == enabled => return act.unchanged(),
        EndpointStatus::Enabled | EndpointStatus::Disabled => {}
    }
    let host = found.endpoint.url.host();
    let verb = if enabled { "enables" } else { "disables" };
    consent.ask(&operator.stack, &format!("{verb} endpoint {id} ({host}) of coach {coach}"))?;
    let now = operator.now();
    let change = EndpointChange { enabled: Some(enabled), ..EndpointChange::default() };
    let ChangedEndpoint { endpoint: EndpointWithHealth { endpoint: changed, .. }, write, resume } =
        endpoints.change(&coach, &found, &change, now).map_err(|EndpointGone| gone(id))?;
    let detail = AuditDetail {
        changed: Some(change.fields()),
        status: Some(changed.status),
        ..AuditDetail::of_endpoint(&changed)
    };
    let unit = Unit::new().write([write]).entries(resume);
    let answer = act.commit(operator, &vault, unit, consent.detail(detail), now).await?;
    if !enabled {
        let deliveries = Deliveries::new(&operator.env, &operator.db, &vault)?;
        if let Err(error) = deliveries.end_pending(id, &changed.not_sent(), now).await {
            say(&format!("the endpoint is disabled; deliveries that wait end at their due time: {error}"));
        }
    }
    Ok(answer)
}

/// The coach of an endpoint, by the option or by a scan.
async fn coach_of(operator: &Operator, id: &EndpointId, coach: Option<&CoachId>) -> Result<CoachId, Failure> {
    if let Some(coach) = coach {
        return Ok(coach.clone());
    }
    let overview = Overview::new(&operator.env, &operator.db)?;
    overview.coach_of_endpoint(id, &Said::default()).await?.ok_or_else(|| no_endpoint(id))
}

fn no_endpoint(id: &EndpointId) -> Failure {
    Failure::not_found(format!("no endpoint {id}: `find` says what the id is"))
}

fn gone(id: &EndpointId) -> Failure {
    Failure::refused(format!("endpoint {id} is gone for good: its receiver answered 410"))
}
