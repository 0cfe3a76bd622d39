//! `coach`: a coach at a glance.

use domain::id::CoachId;
use domain::time::Timestamp;
use serde::Serialize;
use store::operating::Overview;
use store::operating::coach::CoachSummary;

use crate::connection::Operator;
use crate::failure::Failure;
use crate::output::Answer;

#[derive(Serialize)]
struct CoachAnswer {
    #[serde(flatten)]
    summary: CoachSummary,
    /// Entries of the outbox that wait to be sent.
    unsent: usize,
    oldest_unsent_at: Option<Timestamp>,
}

pub(crate) async fn coach(operator: &Operator, id: &CoachId) -> Result<Answer, Failure> {
    let overview = Overview::new(&operator.env, &operator.db)?;
    let summary = overview.coach(id, operator.now()).await?.ok_or_else(|| no_coach(id))?;
    let unsent = overview.unsent_of(id).await?;
    Answer::of(&CoachAnswer { summary, unsent: unsent.len(), oldest_unsent_at: unsent.into_iter().min() })
}

pub(crate) fn no_coach(id: &CoachId) -> Failure {
    Failure::not_found(format!("no coach {id}: `find` says what the id is"))
}
