//! Stores each kind of fact through its module of the store.

use domain::booking::CalendarEventSaved;
use domain::fact::{ClientHappening, Fact, FactBody, Merge};
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use domain::tz::Tz;
use runtime::{BoxError, Metric, add};
use store::contact::{MergeDecision, MergeOutcome};
use store::fact::{FactContext, Halt};
use store::unit::{Commit, Once, Unit};
use store::{Part, StoreError, retry};

use crate::App;
use crate::envelope::Envelope;
use crate::erase;
use crate::outcome::{Next, Outcome};

/// Confirmed bookings that an event of the feed overlaps.
const BOOKING_CONFLICTS: Metric = Metric::new("booking_conflicts", runtime::Unit::Count);

const DONE: Outcome = Outcome::Stored { is_marked: false };

/// Stores a fact, or repeats a pass over it. Work that grows with the stored data is done in parts.
pub(crate) async fn store_fact(
    app: &App,
    fact: &Fact,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<Outcome, BoxError> {
    let (body, occurred_at) = (&fact.body, fact.occurred_at);
    let workspace = match refers_to(body) {
        None => None,
        Some(coach) => match app.workspaces.get(coach).await? {
            Some(found) => Some(found),
            None => return Ok(waits_for("coach_id", envelope)),
        },
    };
    let has_crm = workspace.as_ref().is_some_and(|found| found.workspace.entitlements.pro_crm);
    let context = FactContext { id: &fact.id, occurred_at, backfill: fact.backfill, has_crm, now };
    match body {
        FactBody::OfClient(client, ClientHappening::Erased {}) => {
            Ok(erase::client(app, client, occurred_at, now, envelope.after.as_deref()).await?)
        }
        FactBody::ContactMerged(merge) => merge_contacts(app, merge, context, envelope).await,
        FactBody::CalendarSaved(saved) => {
            let coach = &saved.coach_id;
            if envelope.after.is_none() {
                app.calendars.save(coach, &saved.calendar(), occurred_at).await?;
            }
            let is_done = app.bookings.give_buffers(coach, saved.calendar_id).await?;
            Ok(if is_done { DONE } else { Outcome::Continues(Next::Rest(Some("calendar".to_owned()))) })
        }
        FactBody::CalendarEventSaved(saved) => {
            let Some(workspace) = workspace else { return Ok(waits_for("coach_id", envelope)) };
            calendar_event(app, saved, workspace.zone()?, context).await
        }
        FactBody::WorkspaceSaved(workspace) => {
            let applied = apply(app, body, context, envelope).await?;
            // After a crash here the redelivered fact finds its mark, and is copied again.
            if let Outcome::Stored { is_marked: true } = applied
                && let Some(stored) = app.workspaces.get(&workspace.coach_id).await?
            {
                app.keys.copy_entitlements(&stored, now).await?;
            }
            Ok(applied)
        }
        _ => Ok(apply(app, body, context, envelope).await?),
    }
}

/// Applies a fact in one transaction with its mark. Reads and decides again after each conflict with another write.
async fn apply(app: &App, body: &FactBody, fact: FactContext<'_>, envelope: &Envelope) -> Result<Outcome, StoreError> {
    let committed = retry("a fact", || async {
        let unit = match read_and_decide(app, body, fact).await {
            Ok(unit) => unit,
            Err(Halt::Done) => return Ok(Some(DONE)),
            Err(Halt::Repeated) => return Ok(Some(Outcome::Stored { is_marked: true })),
            Err(Halt::Unknown(field)) => return Ok(Some(waits_for(field, envelope))),
            Err(Halt::Failed(error)) => return Err(error),
        };
        match app.units.commit(unit, Once::Fact(&app.facts, fact), fact.now).await? {
            Commit::Done | Commit::Repeated(_) => Ok(Some(Outcome::Stored { is_marked: true })),
            // The event was emitted under another fact, or a later fact has set the date.
            Commit::Refused(refused) if refused.is(Part::EmittedMark) || refused.is(Part::LaterDate) => Ok(Some(DONE)),
            Commit::Refused(refused) if refused.is(Part::Team) => Ok(Some(waits_for("team_id", envelope))),
            Commit::Refused(refused) => {
                if let Some(client) = client_of(body).filter(|_| refused.is(Part::Watch)) {
                    app.clients.restore_watch(client, fact.now).await?;
                }
                Ok(None)
            }
        }
    });
    committed.await
}

/// Reads what a fact depends on, and decides what it writes.
async fn read_and_decide(app: &App, body: &FactBody, fact: FactContext<'_>) -> Result<Unit, Halt> {
    let occurred_at = fact.occurred_at;
    match body {
        FactBody::WorkspaceSaved(workspace) => app.rules.save_workspace(workspace, fact).await,
        FactBody::ProgrammeSaved(programme) => app.rules.save_programme(programme, fact).await,
        FactBody::AutomationSaved(automation) => app.rules.save_automation(automation, fact).await,
        FactBody::AutomationDeleted { automation_id, coach_id } => {
            app.rules.delete_automation(coach_id, automation_id, fact).await
        }
        FactBody::ClientSaved(saved) => app.clients.save(saved, fact).await,
        FactBody::ContactSaved(saved) => app.contacts.save(saved, fact).await,
        FactBody::OpportunitySaved(saved) => app.opportunities.save(saved, fact).await,
        FactBody::OfClient(client, happening) => record(app, client, happening, fact).await,
        // One conditional write each.
        FactBody::TeamSaved(team) => done(app.workspaces.save_team(team, occurred_at).await),
        FactBody::PipelineSaved(saved) => {
            done(app.pipelines.save(&saved.coach_id, &saved.pipeline(), occurred_at).await)
        }
        FactBody::WorkflowSaved(saved) => {
            done(app.workflows.save(&saved.coach_id, &saved.workflow(), occurred_at).await)
        }
        FactBody::CalendarSaved(_) | FactBody::CalendarEventSaved(_) | FactBody::ContactMerged(_) => Err(Halt::Done),
    }
}

fn done(written: Result<(), StoreError>) -> Result<Unit, Halt> {
    Err(written.map_or_else(Halt::Failed, |()| Halt::Done))
}

/// Stores a calendar event, even if it overlaps others or its calendar is unknown.
async fn calendar_event(
    app: &App,
    saved: &CalendarEventSaved,
    zone: Tz,
    fact: FactContext<'_>,
) -> Result<Outcome, BoxError> {
    let conflicts = app.bookings.save(saved, fact, zone).await?;
    if conflicts > 0 {
        add(BOOKING_CONFLICTS, conflicts as f64);
    }
    Ok(DONE)
}

/// Stores a fact about a client, except an erasure.
async fn record(
    app: &App,
    client: &ClientId,
    happening: &ClientHappening,
    fact: FactContext<'_>,
) -> Result<Unit, Halt> {
    let records = &app.records;
    match happening {
        ClientHappening::CheckInSubmitted(check_in) => records.submit_check_in(client, check_in, fact).await,
        ClientHappening::CheckInReviewed { check_in_id, reviewed_at } => {
            records.review_check_in(client, check_in_id, *reviewed_at, fact).await
        }
        ClientHappening::CheckInDeleted { check_in_id } => records.delete_check_in(client, check_in_id, fact).await,
        ClientHappening::DailyLogSaved { date } => {
            records.save_daily_log(client, *date, fact, app.facts.is_seen(fact)).await
        }
        ClientHappening::DailyLogDeleted { date } => records.delete_daily_log(client, *date, fact).await,
        ClientHappening::DoseScheduleSaved { doses } => records.save_dose_schedule(client, doses, fact).await,
        ClientHappening::DoseLogged(logged) => records.log_dose(client, logged, fact).await,
        ClientHappening::DoseLogDeleted { dose_log_id } => records.delete_dose_log(client, dose_log_id, fact).await,
        ClientHappening::PhaseAdvanced(advance) => records.advance_phase(client, advance, fact).await,
        ClientHappening::MessageReceived { message_id, received_at } => {
            records.receive_message(client, message_id, *received_at, fact).await
        }
        ClientHappening::Erased {} => Err(Halt::Done),
    }
}

async fn merge_contacts(
    app: &App,
    merge: &Merge,
    context: FactContext<'_>,
    envelope: &Envelope,
) -> Result<Outcome, BoxError> {
    if merge.merged_into == merge.contact_id {
        return Ok(Outcome::Refused("merged_into must be another contact than contact_id"));
    }
    let (coach, is_settled) = (&merge.coach_id, envelope.passes > 0);
    let outcome = retry("a merge", || async {
        match app.contacts.merge(coach, merge, context, is_settled).await? {
            MergeDecision::Ends(outcome) => Ok(Some(outcome)),
            MergeDecision::Commits(unit, end) => match app.units.commit(unit, Once::ByVersion, context.now).await? {
                Commit::Done => app.contacts.end_merge(coach, merge, end, context).await.map(Some),
                Commit::Repeated(_) | Commit::Refused(_) => Ok(None),
            },
        }
    });
    Ok(match outcome.await? {
        MergeOutcome::Done => DONE,
        MergeOutcome::Repeats(erased) => {
            erase::merged_contacts(app, &erased, context.now, envelope.after.as_deref()).await?
        }
        MergeOutcome::Waits(reason) => Outcome::Waits(reason.to_owned()),
        MergeOutcome::Refused(reason) => Outcome::Refused(reason),
    })
}

/// Returns true for a fact whose mark is written with its change, and which needs no look-up before.
pub(crate) fn marks_itself(body: &FactBody) -> bool {
    match body {
        FactBody::OfClient(_, happening) => !matches!(happening, ClientHappening::Erased {}),
        FactBody::WorkspaceSaved(_)
        | FactBody::ClientSaved(_)
        | FactBody::ProgrammeSaved(_)
        | FactBody::AutomationSaved(_)
        | FactBody::AutomationDeleted { .. }
        | FactBody::ContactSaved(_)
        | FactBody::OpportunitySaved(_) => true,
        FactBody::TeamSaved(_)
        | FactBody::ContactMerged(_)
        | FactBody::CalendarSaved(_)
        | FactBody::CalendarEventSaved(_)
        | FactBody::PipelineSaved(_)
        | FactBody::WorkflowSaved(_) => false,
    }
}

/// The client that a fact is about.
fn client_of(body: &FactBody) -> Option<&ClientId> {
    match body {
        FactBody::OfClient(client, _) => Some(client),
        FactBody::ClientSaved(saved) => Some(&saved.client_id),
        _ => None,
    }
}

/// The coach that a fact names. A fact about what happened to a client names only the client.
pub(crate) fn coach_of(body: &FactBody) -> Option<&CoachId> {
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

fn waits_for(field: &str, envelope: &Envelope) -> Outcome {
    let id = envelope.detail.get(field).and_then(|id| id.as_str()).unwrap_or_default();
    Outcome::Waits(format!("{field} {id} has not been seen"))
}
