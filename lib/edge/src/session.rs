//! The signed-in coach.

use std::future::Future;
use std::sync::Arc;

use domain::audit::AuditActor;
use domain::id::CoachId;
use domain::idempotency::Api;
use domain::mode::Mode;
use domain::sandbox::new_workspace;
use domain::time::Timestamp;
use domain::workspace::CanonicalHost;
use runtime::{BoxError, Clock, Environment, note};
use store::audit::AuditContext;
use store::first_contents::FirstContentsWriter;
use store::workspace::Workspaces;
use store::{Db, StoreError};

use crate::caller::{Admitted, Caller, Refused, Writer};
use crate::inbound::{Inbound, arrival};
use crate::problem::Problem;
use crate::routes::Route;

/// A signed-in coach.
#[derive(Debug, Clone)]
pub struct Session {
    pub coach: CoachId,
    /// The subject of the token.
    actor: AuditActor,
    /// Time of the request's arrival.
    pub now: Timestamp,
}

impl Session {
    /// The context of a change that the coach makes.
    pub fn context(&self) -> AuditContext<'_> {
        AuditContext { coach: &self.coach, actor: &self.actor, now: self.now }
    }
}

/// Reads sessions from tokens that the gateway has verified.
#[derive(Clone)]
pub struct Sessions {
    claim: String,
    clock: Arc<dyn Clock>,
    workspaces: Workspaces,
    /// Makes the workspaces of coaches whom a sandbox has not seen.
    founder: Option<Founder>,
}

/// Makes workspaces.
#[derive(Clone)]
struct Founder {
    contents: FirstContentsWriter,
    /// The address of the deployment, the host of the workspaces.
    host: CanonicalHost,
}

impl Founder {
    /// The founder of a sandbox; `None` in a live stack.
    fn of(env: &Environment, db: &Db) -> Result<Option<Self>, BoxError> {
        Ok(match env.config().parse(Mode::SETTING)? {
            Mode::Live => None,
            Mode::Test => Some(Self {
                contents: FirstContentsWriter::new(env, db)?,
                host: CanonicalHost::parse(env.config().get("BASE_ADDRESS")?)?,
            }),
        })
    }

    /// Makes the workspace of a session's coach, with its first contents, unless it is stored by now.
    async fn found(&self, coach: &CoachId, inbound: &Inbound) -> Result<(), StoreError> {
        let claim = |name| inbound.token_claim(name);
        let (name, email, zone) = (claim("name"), claim("email"), claim("zoneinfo"));
        self.contents.found(&new_workspace(coach, self.host.clone(), name, email, zone)).await
    }
}

impl Caller for Session {
    type Gate = Sessions;

    fn gate(env: &Environment, db: &Db) -> Result<Sessions, BoxError> {
        let claim = env.config().get("COACH_CLAIM")?.to_owned();
        let (workspaces, founder) = (Workspaces::new(env, db)?, Founder::of(env, db)?);
        Ok(Sessions { claim, clock: env.clock(), workspaces, founder })
    }

    /// Counts the request. A coach without a stored workspace has no settings, except in a sandbox.
    async fn admit<T: Send>(
        gate: &Sessions,
        inbound: &Inbound,
        early: impl Future<Output = T> + Send,
    ) -> Result<(Admitted<Self>, T), Refused> {
        let caller = gate.session(inbound)?;
        let counting = gate.workspaces.count_settings_request(&caller.coach, caller.now);
        let (counted, workspace) = tokio::join!(counting, gate.workspaces.get(&caller.coach));
        let counted = counted.map_err(Problem::from)?;
        let quotas = counted.quotas;
        if let Some(used_up) = counted.used_up {
            return Err(Refused { problem: Problem::RateLimited(used_up), quotas });
        }
        let refused = |problem| Err(Refused { problem, quotas: quotas.clone() });
        match (workspace.map_err(Problem::from), &gate.founder) {
            (Ok(Some(found)), _) if found.is_wiping() && inbound.route.is_some_and(Route::waits_for_wipe) => {
                refused(Problem::TestDataWiping)
            }
            (Ok(Some(_)), _) => Ok((Admitted { caller, quotas, chore: None }, early.await)),
            (Ok(None), Some(founder)) => match founder.found(&caller.coach, inbound).await {
                Ok(()) => Ok((Admitted { caller, quotas, chore: None }, early.await)),
                Err(error) => refused(error.into()),
            },
            (Ok(None), None) => refused(Problem::WorkspaceUnknown),
            (Err(problem), _) => refused(problem),
        }
    }
}

impl Writer for Session {
    const API: Api = Api::Settings;
    const READS_EARLY: bool = false;

    fn coach(&self) -> &CoachId {
        &self.coach
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Sessions {
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
