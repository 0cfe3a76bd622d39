//! The facts of the application, one module a kind.

mod automation;
mod calendar;
mod calendar_event;
mod check_in;
mod client;
mod contact;
mod daily_log;
mod dose;
mod emission;
mod erasure;
mod merge;
mod message;
mod opportunity;
mod phase;
mod pipeline;
mod programme;
mod team;
mod workflow;
mod workspace;

use domain::fact::{ClientHappening, Fact, FactBody};
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use store::StoreError;
use store::workspace::StoredWorkspace;

use crate::FactStore;
use crate::command::{Context, store};
use crate::outcome::{Outcome, WIPING};
use crate::progress::Progress;

impl FactStore {
    /// Stores a fact, or continues or repeats its work.
    pub async fn store(&self, fact: &Fact, progress: Progress<'_>, now: Timestamp) -> Result<Outcome, StoreError> {
        store_fact(self, fact, progress, now).await
    }
}

async fn store_fact(
    app: &FactStore,
    fact: &Fact,
    progress: Progress<'_>,
    now: Timestamp,
) -> Result<Outcome, StoreError> {
    let body = &fact.body;
    let workspace = match refers_to(body) {
        None => None,
        Some(coach) => match app.workspaces.get(coach).await? {
            Some(found) => Some(found),
            None => return Ok(Outcome::Unknown("coach_id")),
        },
    };
    if workspace.as_ref().is_some_and(StoredWorkspace::is_wiping) {
        return Ok(Outcome::Waits(WIPING));
    }
    // A removal of test data has taken what the fact stored.
    let is_removed = |found: &StoredWorkspace| {
        found.wipe.as_ref().zip(progress.stored_at).is_some_and(|(wipe, stored_at)| wipe.begun_at >= stored_at)
    };
    if workspace.as_ref().is_some_and(is_removed) {
        return Ok(Outcome::Unchanged);
    }
    let context = Context {
        id: &fact.id,
        occurred_at: fact.occurred_at,
        backfill: fact.backfill,
        client: client_of(body),
        workspace: workspace.as_ref(),
        is_first: progress.is_first(),
        now,
    };
    let after = progress.after;
    match body {
        FactBody::WorkspaceSaved(saved) => store(app, workspace::Save(saved), context).await,
        FactBody::TeamSaved(saved) => store(app, team::Save(saved), context).await,
        FactBody::ClientSaved(saved) => store(app, client::Save(saved), context).await,
        FactBody::ProgrammeSaved(saved) => store(app, programme::Save(saved), context).await,
        FactBody::AutomationSaved(to) => {
            let change = automation::Change { coach: &to.coach_id, id: &to.id, to: Some(to) };
            store(app, change, context).await
        }
        FactBody::AutomationDeleted { automation_id: id, coach_id: coach } => {
            store(app, automation::Change { coach, id, to: None }, context).await
        }
        FactBody::ContactSaved(saved) => store(app, contact::Save(saved), context).await,
        FactBody::ContactMerged(merge) => {
            store(app, merge::Store { merge, is_settled: progress.passes > 0, after }, context).await
        }
        FactBody::CalendarSaved(saved) => store(app, calendar::Save(saved), context).await,
        FactBody::CalendarEventSaved(saved) => {
            let Some(workspace) = &workspace else { return Ok(Outcome::Unknown("coach_id")) };
            store(app, calendar_event::Save { saved, workspace }, context).await
        }
        FactBody::PipelineSaved(saved) => store(app, pipeline::Save(saved), context).await,
        FactBody::OpportunitySaved(saved) => store(app, opportunity::Save(saved), context).await,
        FactBody::WorkflowSaved(saved) => store(app, workflow::Save(saved), context).await,
        FactBody::OfClient(client, happening) => store_happening(app, client, happening, after, context).await,
    }
}

async fn store_happening(
    app: &FactStore,
    client: &ClientId,
    happening: &ClientHappening,
    after: Option<&str>,
    context: Context<'_>,
) -> Result<Outcome, StoreError> {
    match happening {
        ClientHappening::CheckInSubmitted(check_in) => store(app, check_in::Submit(client, check_in), context).await,
        ClientHappening::CheckInReviewed { check_in_id: check_in, reviewed_at } => {
            store(app, check_in::Review { client, check_in, reviewed_at: *reviewed_at }, context).await
        }
        ClientHappening::CheckInDeleted { check_in_id } => {
            store(app, check_in::Delete(client, check_in_id), context).await
        }
        ClientHappening::DailyLogSaved { date } => store(app, daily_log::Save(client, *date), context).await,
        ClientHappening::DailyLogDeleted { date } => store(app, daily_log::Delete(client, *date), context).await,
        ClientHappening::DoseScheduleSaved { doses } => store(app, dose::SaveSchedule(client, doses), context).await,
        ClientHappening::DoseLogged(logged) => store(app, dose::Log(client, logged), context).await,
        ClientHappening::DoseLogDeleted { dose_log_id } => {
            store(app, dose::DeleteLog(client, dose_log_id), context).await
        }
        ClientHappening::PhaseAdvanced(advance) => store(app, phase::Advance(client, advance), context).await,
        ClientHappening::MessageReceived { message_id: message, received_at } => {
            store(app, message::Receive { client, message, received_at: *received_at }, context).await
        }
        ClientHappening::Erased {} => store(app, erasure::Erase { client, after }, context).await,
    }
}

/// The client that a fact is about.
pub fn client_of(body: &FactBody) -> Option<&ClientId> {
    match body {
        FactBody::OfClient(client, _) => Some(client),
        FactBody::ClientSaved(saved) => Some(&saved.client_id),
        _ => None,
    }
}

/// The coach that a fact names. A fact about what happened to a client names only the client.
pub fn coach_of(body: &FactBody) -> Option<&CoachId> {
    match body {
        FactBody::WorkspaceSaved(saved) => Some(&saved.coach_id),
        FactBody::ClientSaved(saved) => Some(&saved.coach_id),
        FactBody::ProgrammeSaved(saved) => Some(&saved.coach_id),
        FactBody::ContactSaved(saved) => Some(&saved.coach_id),
        FactBody::ContactMerged(merge) => Some(&merge.coach_id),
        FactBody::AutomationDeleted { coach_id, .. } => Some(coach_id),
        FactBody::AutomationSaved(saved) => Some(&saved.coach_id),
        FactBody::CalendarSaved(saved) => Some(&saved.coach_id),
        FactBody::CalendarEventSaved(saved) => Some(&saved.coach_id),
        FactBody::PipelineSaved(saved) => Some(&saved.coach_id),
        FactBody::OpportunitySaved(saved) => Some(&saved.coach_id),
        FactBody::WorkflowSaved(saved) => Some(&saved.coach_id),
        FactBody::TeamSaved(_) | FactBody::OfClient(..) => None,
    }
}

/// The coach whose workspace must be stored before the fact. The others read the workspace themselves.
fn refers_to(body: &FactBody) -> Option<&CoachId> {
    match body {
        FactBody::WorkspaceSaved(_) | FactBody::ClientSaved(_) => None,
        other => coach_of(other),
    }
}
