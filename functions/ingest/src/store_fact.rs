//! Takes each kind of fact to its place.

use domain::fact::{ClientHappening, Fact, FactBody};
use domain::id::ClientId;
use domain::time::Timestamp;
use runtime::BoxError;
use store::StoreError;
use store::client::FeedOutcome;
use store::record::Recorded;
use store::workspace::Saved;

use crate::App;

/// What came of a fact.
pub(crate) enum Stored {
    /// It is stored, or what is stored is newer.
    Done,
    /// A client is erased, but for what is on its way.
    Erased,
    /// It refers to this, which has not been seen yet.
    Unknown(String),
}

pub(crate) async fn store(app: &App, fact: &Fact, now: Timestamp) -> Result<Stored, BoxError> {
    match &fact.body {
        FactBody::WorkspaceSaved(workspace) => match app.workspaces.save(workspace, fact.occurred_at).await? {
            Saved::Done(stored) => {
                // A fact that dies here comes again, is equally old, and copies again.
                app.keys.copy_entitlements(&stored).await?;
                Ok(Stored::Done)
            }
            Saved::Stale => Ok(Stored::Done),
            Saved::UnknownTeam => Ok(unknown("team_id", workspace.team_id.as_ref().map_or("", |id| id.as_str()))),
        },
        FactBody::TeamSaved(team) => {
            app.workspaces.save_team(team, fact.occurred_at).await?;
            Ok(Stored::Done)
        }
        FactBody::ClientSaved(saved) => match app.clients.save(saved, fact.occurred_at, fact.backfill, now).await? {
            FeedOutcome::Stored | FeedOutcome::Stale => Ok(Stored::Done),
            FeedOutcome::UnknownWorkspace => Ok(unknown("coach_id", saved.coach_id.as_str())),
        },
        FactBody::ProgrammeSaved(programme) => {
            if app.workspaces.get(&programme.coach_id).await?.is_none() {
                return Ok(unknown("coach_id", programme.coach_id.as_str()));
            }
            app.workspaces.save_programme(programme, fact.occurred_at).await?;
            Ok(Stored::Done)
        }
        FactBody::AutomationSaved(automation) => {
            if app.workspaces.get(&automation.coach_id).await?.is_none() {
                return Ok(unknown("coach_id", automation.coach_id.as_str()));
            }
            app.workspaces.save_automation(automation, fact.occurred_at).await?;
            Ok(Stored::Done)
        }
        FactBody::AutomationDeleted(automation, coach) => {
            if app.workspaces.get(coach).await?.is_none() {
                return Ok(unknown("coach_id", coach.as_str()));
            }
            app.workspaces.delete_automation(coach, automation, fact.occurred_at).await?;
            Ok(Stored::Done)
        }
        FactBody::OfClient(client, ClientHappening::Erased) => erase(app, client, now).await,
        FactBody::OfClient(client, happening) => match record(app, fact, client, happening, now).await? {
            Recorded::Done => Ok(Stored::Done),
            Recorded::UnknownClient => Ok(unknown("client_id", client.as_str())),
        },
        FactBody::ContactSaved(saved) => {
            let Some(workspace) = app.workspaces.get(&saved.coach_id).await? else {
                return Ok(unknown("coach_id", saved.coach_id.as_str()));
            };
            app.contacts.save(saved, workspace.workspace.country, fact.occurred_at, now).await?;
            Ok(Stored::Done)
        }
    }
}

/// Everything that happens to a client but its erasure.
async fn record(
    app: &App,
    fact: &Fact,
    client: &ClientId,
    happening: &ClientHappening,
    now: Timestamp,
) -> Result<Recorded, StoreError> {
    let (records, said_at, backfill) = (&app.records, fact.occurred_at, fact.backfill);
    match happening {
        ClientHappening::CheckInSubmitted(check_in) => {
            records.submit_check_in(client, check_in, said_at, backfill, now).await
        }
        ClientHappening::CheckInReviewed { check_in, reviewed_at } => {
            records.review_check_in(client, check_in, *reviewed_at, said_at).await
        }
        ClientHappening::CheckInDeleted(check_in) => records.delete_check_in(client, check_in).await,
        ClientHappening::DailyLogSaved(date) => records.save_daily_log(client, *date, said_at).await,
        ClientHappening::DailyLogDeleted(date) => records.delete_daily_log(client, *date, said_at).await,
        ClientHappening::DoseScheduleSaved(schedule) => records.save_dose_schedule(client, schedule, said_at).await,
        ClientHappening::DoseLogged(logged) => records.log_dose(client, logged, said_at).await,
        ClientHappening::DoseLogDeleted(log) => records.delete_dose_log(client, log).await,
        ClientHappening::PhaseAdvanced(advance) => records.advance_phase(client, advance, said_at, backfill, now).await,
        ClientHappening::MessageReceived { message, received_at } => {
            records.receive_message(client, message, *received_at, backfill, now).await
        }
        ClientHappening::Erased => Ok(Recorded::Done),
    }
}

/// Erases a client everywhere. The tombstone comes first: what is on its way meanwhile finds it, or is found by a later pass.
async fn erase(app: &App, client: &ClientId, now: Timestamp) -> Result<Stored, BoxError> {
    let erased = app.clients.erase(client, now).await?;
    if let Some(claim) = &erased.claim {
        app.claims.forget(claim).await?;
        app.clients.forget_claim(client).await?;
    }
    futures::future::try_join(app.records.erase(client), app.deliveries.erase_client(client, now)).await?;
    Ok(Stored::Erased)
}

fn unknown(field: &str, id: &str) -> Stored {
    Stored::Unknown(format!("{field} {id}"))
}
