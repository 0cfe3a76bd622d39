//! Takes each kind of fact to its place.

use domain::fact::{Fact, FactBody};
use domain::time::Timestamp;
use runtime::BoxError;
use store::client::FeedOutcome;
use store::workspace::Saved;

use crate::App;

/// What came of a fact.
pub(crate) enum Stored {
    /// It is stored, or what is stored is newer.
    Done,
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
        FactBody::ContactSaved(saved) => {
            let Some(workspace) = app.workspaces.get(&saved.coach_id).await? else {
                return Ok(unknown("coach_id", saved.coach_id.as_str()));
            };
            app.contacts.save(saved, workspace.workspace.country, fact.occurred_at, now).await?;
            Ok(Stored::Done)
        }
    }
}

fn unknown(field: &str, id: &str) -> Stored {
    Stored::Unknown(format!("{field} {id}"))
}
