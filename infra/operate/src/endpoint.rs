//! `endpoint disable` and `endpoint enable`: as the coach pauses and resumes an endpoint.

use domain::audit::{AuditAction, AuditDetail};
use domain::endpoint::{EndpointChange, EndpointGone, EndpointStatus};
use domain::id::{CoachId, EndpointId};
use store::audit::AuditContext;
use store::delivery::Deliveries;
use store::endpoint::Endpoints;
use store::operating::Overview;
use store::unit::{Commit, Once, Unit, Units};
use store::workspace::Workspaces;

use crate::actor::actor;
use crate::connection::Operator;
use crate::done::Done;
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
    let units = Units::new(&operator.env, &operator.db, &vault)?;
    let workspaces = Workspaces::new(&operator.env, &operator.db)?;
    let found = endpoints.find(&coach, id).await?.ok_or_else(|| no_endpoint(id))?;
    let done = |changed| {
        let (done, target, coach_id) = (AuditAction::EndpointUpdated, id.to_string(), coach.clone());
        Answer::of(&Done { done, target, coach_id, changed })
    };
    if found.endpoint.status == EndpointStatus::Gone {
        return Err(gone(id));
    }
    let change = EndpointChange { enabled: Some(enabled), ..EndpointChange::default() };
    let now = operator.now();
    let changed = endpoints.change(&coach, &found, &change, now).map_err(|EndpointGone| gone(id))?;
    let status = changed.endpoint.endpoint.status;
    if status == found.endpoint.status {
        return done(false);
    }
    let host = found.endpoint.url.host();
    let verb = if enabled { "enables" } else { "disables" };
    consent.ask(&operator.stack, &format!("{verb} endpoint {id} ({host}) of coach {coach}"))?;
    let actor = actor(operator).await?;
    let context = AuditContext { coach: &coach, actor: &actor, now };
    let detail = AuditDetail {
        changed: Some(change.fields()),
        status: Some(status),
        ..AuditDetail::of_endpoint(&changed.endpoint.endpoint)
    };
    let audited = workspaces.audit(context, AuditAction::EndpointUpdated, id.as_str(), consent.detail(detail));
    let not_sent = changed.endpoint.endpoint.not_sent();
    let unit = Unit::new().write([changed.write, audited]).entries(changed.resume);
    match units.commit(unit, Once::ByVersion, now).await? {
        Commit::Done => {}
        Commit::Refused(_) | Commit::Repeated(_) => return Err(raced(id.as_str())),
    }
    if status == EndpointStatus::Disabled {
        let deliveries = Deliveries::new(&operator.env, &operator.db, &vault)?;
        if let Err(error) = deliveries.end_pending(id, &not_sent, now).await {
            say(&format!("the endpoint is disabled; deliveries that wait end at their due time: {error}"));
        }
    }
    done(true)
}

/// The coach of an endpoint, by the option or by a scan.
pub(crate) async fn coach_of(
    operator: &Operator,
    id: &EndpointId,
    coach: Option<&CoachId>,
) -> Result<CoachId, Failure> {
    if let Some(coach) = coach {
        return Ok(coach.clone());
    }
    let overview = Overview::new(&operator.env, &operator.db)?;
    overview.coach_of_endpoint(id, &Said).await?.ok_or_else(|| no_endpoint(id))
}

pub(crate) fn no_endpoint(id: &EndpointId) -> Failure {
    Failure::not_found(format!("no endpoint {id}: `find` says what the id is"))
}

fn gone(id: &EndpointId) -> Failure {
    Failure::refused(format!("endpoint {id} is gone for good: its receiver answered 410"))
}

/// The failure of an act whose target changed after it was read.
pub(crate) fn raced(id: &str) -> Failure {
    Failure::refused(format!("{id} has changed meanwhile, nothing was done: try again"))
}
