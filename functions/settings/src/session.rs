//! The signed-in coach.

use std::sync::Arc;

use axum::response::Response;
use domain::audit::AuditActor;
use domain::fields::Fields;
use domain::id::CoachId;
use domain::idempotency::Api;
use domain::time::Timestamp;
use edge::inbound::arrival;
use edge::{Caller, Command, Inbound, Problem, Reply, Runner};
use runtime::{BoxError, Clock, Environment, note};
use store::audit::AuditContext;
use store::workspace::Workspaces;

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

impl Caller for Session {
    const API: Api = Api::Settings;
    const READS_EARLY: bool = false;

    fn coach(&self) -> &CoachId {
        &self.coach
    }

    fn now(&self) -> Timestamp {
        self.now
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
    runner: Runner,
}

impl Sessions {
    pub(crate) fn new(env: &Environment, workspaces: &Workspaces, runner: Runner) -> Result<Self, BoxError> {
        let claim = env.config().get("COACH_CLAIM")?.to_owned();
        Ok(Self { claim, clock: env.clock(), workspaces: workspaces.clone(), runner })
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

    /// Answers like [`Sessions::answer`], by a command.
    pub(crate) async fn run<C: Command<Caller = Session>>(&self, inbound: &Inbound, command: &C) -> Response {
        self.answer(inbound, async |session| self.runner.run(inbound, &session, command).await).await
    }

    fn session(&self, inbound: &Inbound) -> Result<Session, Problem> {
        if !inbound.has_session() {
            return Err(Problem::NoSession);
        }
        let (coach, actor) = identity(inbound.token_claim(&self.claim), inbound.token_claim("sub"))
            .ok_or(Problem::SessionWithoutCoach)?;
        note("coach_id", coach.as_str());
        Ok(Session { coach, actor, now: arrival(&*self.clock) })
    }
}

/// Returns the coach of a session and who acts. Without a subject, which an issuer may leave out beside another claim
/// for the coach, the coach acts. `None`: one of the two is unusable.
fn identity(coach: Option<&str>, subject: Option<&str>) -> Option<(CoachId, AuditActor)> {
    let coach = CoachId::parse(coach?).ok()?;
    let actor = AuditActor::of_session(subject.unwrap_or(coach.as_str()))?;
    Some((coach, actor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::the_subject_is_the_coach(Some("auth0|5f7c"), Some("auth0|5f7c"), Some("auth0|5f7c"))]
    #[case::another_claim_names_the_coach(Some("ada"), Some("Ada Lovelace"), Some("Ada Lovelace"))]
    #[case::another_claim_and_no_subject(Some("ada"), None, Some("ada"))]
    #[case::a_coach_of_this_name_and_somebody_who_acts(Some("service"), Some("ada"), Some("ada"))]
    #[case::the_subject_is_the_service(Some("ada"), Some("service"), None)]
    #[case::the_coach_is_the_service(Some("service"), None, None)]
    #[case::the_subject_is_empty(Some("ada"), Some(""), None)]
    #[case::the_subject_has_a_control_character(Some("ada"), Some("ada\u{7}"), None)]
    #[case::no_coach(None, Some("ada"), None)]
    #[case::a_list_of_several(Some("[a b]"), Some("ada"), None)]
    #[case::a_coach_of_another_form(Some("a b"), Some("a b"), None)]
    fn a_session_names_its_coach_and_who_acts(
        #[case] coach: Option<&str>,
        #[case] subject: Option<&str>,
        #[case] actor: Option<&str>,
    ) {
        let found = identity(coach, subject);
        assert_eq!(found.as_ref().map(|(_, actor)| actor.as_str()), actor);
        assert_eq!(found.as_ref().map(|(coach, _)| coach.as_str()), actor.and(coach));
    }
}
