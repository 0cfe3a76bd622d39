//! Stores each kind of fact through its module of the store.

use domain::booking::CalendarEventSaved;
use domain::fact::{ClientHappening, Fact, FactBody, Merge};
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use futures::future::try_join;
use futures::stream::{StreamExt, TryStreamExt, iter};
use runtime::{BoxError, Metric, Unit, add};
use store::StoreError;
use store::booking::EventFact;
use store::claim::AnswerSubject;
use store::client::FeedOutcome;
use store::contact::{MergeContext, MergeOutcome};
use store::contact_ref::ContactRef;
use store::delivery::ErasureProgress;
use store::fact::FactContext;
use store::record::RecordOutcome;
use store::workspace::Saved;

use crate::App;
use crate::envelope::Envelope;

/// Confirmed bookings that an event of the feed overlaps.
const BOOKING_CONFLICTS: Metric = Metric::new("booking_conflicts", Unit::Count);

/// Limit of the recorded answers that one message removes per contact.
const MAX_FORGOTTEN: i32 = 50;
/// Contacts whose answers are removed at once.
const CONCURRENT_CONTACTS: usize = 16;

/// The result of storing a fact.
pub(crate) enum FactOutcome {
    /// The fact is stored, or a newer record is.
    Done,
    /// The fact is stored, and its mark with it.
    DoneAndMarked,
    /// A part of the fact is stored, up to this position if given. The rest is next.
    DoneInPart(Option<String>),
    /// A client or a contact is erased. A later pass erases what was under way.
    Erased,
    /// The fact cannot be stored yet, for this reason: a record that it refers to is unknown, or another fact comes
    /// first.
    Waits(String),
    /// The fact is stored. More follows once this record arrives, which the fact refers to.
    DoneButIncomplete(String),
    /// The fact is refused, for this reason.
    Refused(&'static str),
}

impl FactOutcome {
    /// Returns the log's message about a fact, and the reason.
    pub(crate) fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Done | Self::DoneAndMarked => ("a fact was stored", None),
            Self::DoneInPart(_) => ("a fact was stored in part", None),
            Self::Erased => ("a fact erased a record", None),
            Self::Waits(reason) => ("a fact waits", Some(reason)),
            Self::DoneButIncomplete(reason) => ("a fact was stored and waits", Some(reason)),
            Self::Refused(reason) => ("a fact was refused", Some(reason)),
        }
    }
}

/// Stores a fact, or repeats a pass over it. Work that grows with the stored data is done in parts.
pub(crate) async fn store_fact(
    app: &App,
    fact: &Fact,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<FactOutcome, BoxError> {
    let occurred_at = fact.occurred_at;
    let context = FactContext { id: &fact.id, occurred_at, backfill: fact.backfill, now };
    match &fact.body {
        FactBody::WorkspaceSaved(workspace) => match app.workspaces.save(workspace, &app.watches, context).await? {
            Saved::Done(stored) => {
                // After a crash here the redelivered fact is as old as the stored one, and is copied again.
                app.keys.copy_entitlements(&stored, now).await?;
                Ok(FactOutcome::Done)
            }
            Saved::Stale => Ok(FactOutcome::Done),
            Saved::UnknownTeam => Ok(unknown("team_id", workspace.team_id.as_ref().map_or("", |id| id.as_str()))),
        },
        FactBody::TeamSaved(team) => {
            app.workspaces.save_team(team, occurred_at).await?;
            Ok(FactOutcome::Done)
        }
        FactBody::ClientSaved(saved) => match app.clients.save(saved, &app.facts, context).await? {
            FeedOutcome::Stored => Ok(FactOutcome::DoneAndMarked),
            FeedOutcome::Stale => Ok(FactOutcome::Done),
            FeedOutcome::UnknownWorkspace => Ok(unknown("coach_id", saved.coach_id.as_str())),
        },
        FactBody::ProgrammeSaved(programme) => {
            in_workspace(app, &programme.coach_id, app.rules.save_programme(programme, context)).await
        }
        FactBody::AutomationSaved(automation) => {
            in_workspace(app, &automation.coach_id, app.rules.save_automation(automation, occurred_at, now)).await
        }
        FactBody::AutomationDeleted { automation_id, coach_id: coach } => {
            in_workspace(app, coach, app.rules.delete_automation(coach, automation_id, occurred_at, now)).await
        }
        FactBody::CalendarSaved(saved) => {
            let (coach, mut is_done) = (&saved.coach_id, true);
            let save = async {
                if envelope.after.is_none() {
                    app.calendars.save(coach, &saved.calendar(), occurred_at).await?;
                }
                is_done = app.bookings.give_buffers(coach, saved.calendar_id).await?;
                Ok(())
            };
            let stored = in_workspace(app, coach, save).await?;
            Ok(if is_done { stored } else { FactOutcome::DoneInPart(Some("calendar".to_owned())) })
        }
        FactBody::CalendarEventSaved(saved) => calendar_event(app, fact, saved, now).await,
        FactBody::PipelineSaved(saved) => {
            let coach = &saved.coach_id;
            in_workspace(app, coach, app.pipelines.save(coach, &saved.pipeline(), occurred_at)).await
        }
        FactBody::OpportunitySaved(saved) => {
            in_workspace(app, &saved.coach_id, app.opportunities.save(saved, occurred_at, now)).await
        }
        FactBody::WorkflowSaved(saved) => {
            let coach = &saved.coach_id;
            in_workspace(app, coach, app.workflows.save(coach, &saved.workflow(), occurred_at)).await
        }
        FactBody::OfClient(client, ClientHappening::Erased {}) => {
            erase(app, client, occurred_at, now, envelope.after.as_deref()).await
        }
        FactBody::OfClient(client, happening) => match record(app, client, happening, context).await? {
            RecordOutcome::Applied => Ok(FactOutcome::DoneAndMarked),
            RecordOutcome::Unchanged => Ok(FactOutcome::Done),
            RecordOutcome::UnknownClient => Ok(unknown("client_id", client.as_str())),
        },
        FactBody::ContactSaved(saved) => {
            in_workspace(app, &saved.coach_id, app.contacts.save(saved, occurred_at, now)).await
        }
        FactBody::ContactMerged(merge) => {
            let coach = &merge.coach_id;
            if app.workspaces.get(coach).await?.is_none() {
                return Ok(unknown("coach_id", coach.as_str()));
            }
            merge_contacts(app, coach, merge, MergeContext { occurred_at, is_settled: envelope.passes > 0, now }).await
        }
    }
}

/// Stores a record of a coach, if the coach's workspace is known.
async fn in_workspace(
    app: &App,
    coach: &CoachId,
    save: impl Future<Output = Result<(), StoreError>>,
) -> Result<FactOutcome, BoxError> {
    if app.workspaces.get(coach).await?.is_none() {
        return Ok(unknown("coach_id", coach.as_str()));
    }
    save.await?;
    Ok(FactOutcome::Done)
}

/// Stores a calendar event, even if it overlaps others or its calendar is unknown.
async fn calendar_event(
    app: &App,
    fact: &Fact,
    saved: &CalendarEventSaved,
    now: Timestamp,
) -> Result<FactOutcome, BoxError> {
    let Some(workspace) = app.workspaces.get(&saved.coach_id).await? else {
        return Ok(unknown("coach_id", saved.coach_id.as_str()));
    };
    let event = EventFact { id: &fact.id, saved, occurred_at: fact.occurred_at, backfill: fact.backfill };
    let conflicts = app.bookings.save(event, workspace.zone()?, now).await?;
    if conflicts > 0 {
        add(BOOKING_CONFLICTS, conflicts as f64);
    }
    Ok(FactOutcome::Done)
}

/// Stores a fact about a client, except an erasure.
async fn record(
    app: &App,
    client: &ClientId,
    happening: &ClientHappening,
    fact: FactContext<'_>,
) -> Result<RecordOutcome, StoreError> {
    let records = &app.records;
    match happening {
        ClientHappening::CheckInSubmitted(check_in) => records.submit_check_in(client, check_in, fact).await,
        ClientHappening::CheckInReviewed { check_in_id, reviewed_at } => {
            records.review_check_in(client, check_in_id, *reviewed_at, fact).await
        }
        ClientHappening::CheckInDeleted { check_in_id } => records.delete_check_in(client, check_in_id, fact).await,
        ClientHappening::DailyLogSaved { date } => records.save_daily_log(client, *date, fact).await,
        ClientHappening::DailyLogDeleted { date } => records.delete_daily_log(client, *date, fact).await,
        ClientHappening::DoseScheduleSaved { doses } => records.save_dose_schedule(client, doses, fact).await,
        ClientHappening::DoseLogged(logged) => records.log_dose(client, logged, fact).await,
        ClientHappening::DoseLogDeleted { dose_log_id } => records.delete_dose_log(client, dose_log_id, fact).await,
        ClientHappening::PhaseAdvanced(advance) => records.advance_phase(client, advance, fact).await,
        ClientHappening::MessageReceived { message_id, received_at } => {
            records.receive_message(client, message_id, *received_at, fact).await
        }
        ClientHappening::Erased {} => Ok(RecordOutcome::Unchanged),
    }
}

async fn merge_contacts(
    app: &App,
    coach: &CoachId,
    merge: &Merge,
    context: MergeContext,
) -> Result<FactOutcome, BoxError> {
    Ok(match app.contacts.merge(coach, merge, context).await? {
        MergeOutcome::Done => FactOutcome::Done,
        MergeOutcome::AwaitsTarget => FactOutcome::DoneButIncomplete(format!("merged_into {}", merge.merged_into)),
        MergeOutcome::Erased(going) => {
            let erased = app.contacts.erase_all(coach, going).await?;
            if forget_answers(app, &erased.contacts).await? && erased.is_done {
                FactOutcome::Erased
            } else {
                FactOutcome::DoneInPart(None)
            }
        }
        MergeOutcome::IntoItself => FactOutcome::Refused("a contact cannot be merged into itself"),
        MergeOutcome::TooFar => {
            FactOutcome::Refused("merged_into was itself merged through some hundred contacts: name the last of them")
        }
        // The merge that moves the target on may still arrive.
        MergeOutcome::Circle => {
            FactOutcome::Waits("the contact that merged_into names was merged into this one".to_owned())
        }
    })
}

/// Removes the recorded answers about these contacts. Returns false if some are left.
async fn forget_answers(app: &App, contacts: &[ContactRef]) -> Result<bool, StoreError> {
    let mut forgetting = Vec::new();
    for contact in contacts {
        forgetting.push(forget_answers_about(app, contact));
    }
    let done: Vec<bool> = iter(forgetting).buffer_unordered(CONCURRENT_CONTACTS).try_collect().await?;
    Ok(done.into_iter().all(|is_done| is_done))
}

async fn forget_answers_about(app: &App, contact: &ContactRef) -> Result<bool, StoreError> {
    let answers = app.claims.about(contact, MAX_FORGOTTEN).await?;
    for answer in &answers {
        app.claims.forget(answer, &AnswerSubject::Contact(contact.clone())).await?;
    }
    Ok(answers.len() < MAX_FORGOTTEN as usize)
}

/// Erases a client everywhere. The tombstone comes first: work under way finds the tombstone, or a later pass finds the
/// work.
async fn erase(
    app: &App,
    client: &ClientId,
    occurred_at: FactTime,
    now: Timestamp,
    after: Option<&str>,
) -> Result<FactOutcome, BoxError> {
    let erased = app.clients.erase(client, occurred_at, now).await?;
    if let Some(claim) = &erased.claim {
        app.claims.forget(claim, &AnswerSubject::Client(client.clone())).await?;
        app.clients.forget_claim(client).await?;
    }
    let mut is_done = true;
    if let Some(lead) = &erased.lead {
        let erased = app.contacts.erase(lead, client, occurred_at, now).await?;
        is_done = forget_answers(app, &erased.contacts).await? && erased.is_done;
    }
    let rest = (app.records.erase(client), app.deliveries.erase_client(client, after, now));
    let (records_are_done, deliveries) = try_join(rest.0, rest.1).await?;
    Ok(match deliveries {
        ErasureProgress::Done if records_are_done && is_done => FactOutcome::Erased,
        ErasureProgress::Done => FactOutcome::DoneInPart(after.map(str::to_owned)),
        ErasureProgress::Until(last) => FactOutcome::DoneInPart(Some(last)),
    })
}

/// The facts whose mark is written in the transaction of their change. They need no look-up before.
const SELF_MARKING: [&str; 11] = [
    "client.saved",
    "check_in.submitted",
    "check_in.reviewed",
    "check_in.deleted",
    "daily_log.saved",
    "daily_log.deleted",
    "dose_schedule.saved",
    "dose.logged",
    "dose_log.deleted",
    "phase.advanced",
    "message.received",
];

/// Returns true for a fact whose mark is written with its change.
pub(crate) fn marks_itself(detail_type: &str) -> bool {
    SELF_MARKING.contains(&detail_type)
}

/// The coach that a fact names. A fact about what happened to a client names only the client.
pub(crate) fn coach_of(body: &FactBody) -> Option<&CoachId> {
    match body {
        FactBody::WorkspaceSaved(saved) => Some(&saved.coach_id),
        FactBody::ClientSaved(saved) => Some(&saved.coach_id),
        FactBody::ProgrammeSaved(saved) => Some(&saved.coach_id),
        FactBody::ContactSaved(saved) => Some(&saved.coach_id),
        FactBody::ContactMerged(Merge { coach_id, .. }) | FactBody::AutomationDeleted { coach_id, .. } => {
            Some(coach_id)
        }
        FactBody::AutomationSaved(saved) => Some(&saved.coach_id),
        FactBody::CalendarSaved(saved) => Some(&saved.coach_id),
        FactBody::CalendarEventSaved(saved) => Some(&saved.coach_id),
        FactBody::PipelineSaved(saved) => Some(&saved.coach_id),
        FactBody::OpportunitySaved(saved) => Some(&saved.coach_id),
        FactBody::WorkflowSaved(saved) => Some(&saved.coach_id),
        FactBody::TeamSaved(_) | FactBody::OfClient(..) => None,
    }
}

fn unknown(field: &str, id: &str) -> FactOutcome {
    FactOutcome::Waits(format!("{field} {id} has not been seen"))
}
