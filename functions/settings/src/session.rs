//! The signed-in coach.

use std::sync::Arc;

use axum::response::Response;
use domain::audit::AuditActor;
use domain::fields::Fields;
use domain::id::CoachId;
use domain::idempotency::{Api, Mismatch};
use domain::time::Timestamp;
use edge::idempotency::{ClaimedRequest, IdempotentRequest, Outcome, once, optional_key_of};
use edge::inbound::arrival;
use edge::{Inbound, Problem, Reply};
use runtime::{BoxError, Clock, Environment, note};
use store::audit::AuditContext;
use store::claim::Claims;
use store::workspace::Workspaces;

use crate::recorder::Recorder;

/// A signed-in coach.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) coach: CoachId,
    /// The subject of the token.
    actor: AuditActor,
    /// Time of the request's arrival.
    pub(crate) now: Timestamp,
}

impl Session {
    /// The context of a change that the coach makes.
    pub(crate) fn context(&self) -> AuditContext<'_> {
        AuditContext { coach: &self.coach, actor: &self.actor, now: self.now }
    }
}

/// Refuses a body with fields, for a route that takes none. A body without fields is allowed.
pub(crate) fn refuse_fields(inbound: &Inbound) -> Result<(), Problem> {
    let Some(body) = inbound.json_if_sent()? else { return Ok(()) };
    Ok(Fields::body(body)?.only(&[])?)
}

/// Reads sessions from verified tokens.
#[derive(Clone)]
pub(crate) struct Sessions {
    claim: String,
    clock: Arc<dyn Clock>,
    workspaces: Workspaces,
    claims: Claims,
}

impl Sessions {
    pub(crate) fn new(env: &Environment, workspaces: &Workspaces, claims: Claims) -> Result<Self, BoxError> {
        let claim = env.config().get("COACH_CLAIM")?.to_owned();
        Ok(Self { claim, clock: env.clock(), workspaces: workspaces.clone(), claims })
    }

    /// Counts a signed-in coach's request, does its work and answers it. A coach without a stored workspace has no
    /// settings.
    pub(crate) async fn answer(
        &self,
        inbound: &Inbound,
        work: impl AsyncFnOnce(Session) -> Result<Reply, Problem>,
    ) -> Response {
        let mut quotas = Vec::new();
        let result = async {
            let session = self.session(inbound)?;
            let counting = self.workspaces.count_settings_request(&session.coach, session.now);
            let (counted, workspace) = tokio::join!(counting, self.workspaces.get(&session.coach));
            let counted = counted?;
            quotas = counted.quotas;
            if let Some(used_up) = counted.used_up {
                return Err(Problem::RateLimited(used_up));
            }
            if workspace?.is_none() {
                return Err(Problem::WorkspaceUnknown);
            }
            inbound.check_size()?;
            work(session).await
        };
        let result = result.await;
        // The limit of this route is not among the quotas of all routes.
        if let Err(Problem::RateLimited(used_up)) = &result
            && !quotas.contains(used_up)
        {
            quotas.push(*used_up);
        }
        let reply = result.unwrap_or_else(|problem| Reply::problem(&problem, inbound));
        reply.with_quotas(&quotas).into_response_for(inbound)
    }

    /// Answers like [`Sessions::answer`]. If the request has an idempotency key, its work is done once, and a repeat
    /// gets the recorded answer. The work records its answer itself.
    pub(crate) async fn answer_once(
        &self,
        inbound: &Inbound,
        work: impl AsyncFnOnce(Session, Recorder) -> Result<Reply, Problem>,
    ) -> Response {
        let work_once = async |session: Session| {
            let Some(key) = optional_key_of(inbound, &session.coach, Api::Settings)? else {
                return work(session, Recorder::none()).await;
            };
            let now = session.now;
            let run = async |claimed: ClaimedRequest<()>, ()| {
                match work(session, Recorder::of(&self.claims, claimed.claim, now)).await {
                    Ok(reply) => Ok(Outcome::Answered(reply)),
                    // The same request may pass in the next minute.
                    Err(problem @ Problem::RateLimited(_)) => Ok(Outcome::Withdrawn(problem)),
                    Err(Problem::IdempotencyInProgress) => Ok(Outcome::ClaimLost),
                    Err(problem) => Err(problem),
                }
            };
            let request = IdempotentRequest { key, mismatch: Mismatch::Refused, payload: inbound.payload() };
            once(&self.claims, inbound, request, now, async {}, run).await
        };
        self.answer(inbound, work_once).await
    }

    fn session(&self, inbound: &Inbound) -> Result<Session, Problem> {
        let coach = inbound.claim(&self.claim).and_then(|claim| CoachId::parse(claim).ok());
        let coach = coach.ok_or(Problem::NoSession)?;
        note("coach_id", coach.as_str());
        // The coach's claim may be another one, and the issuer may leave the subject out.
        let actor = AuditActor::of_session(inbound.claim("sub").unwrap_or(coach.as_str()));
        Ok(Session { coach, actor, now: arrival(&*self.clock) })
    }
}
