//! Facts with the application's whole record of a client: a creation, a change or a hand-over, depending on the stored
//! client.

use std::collections::BTreeMap;

use domain::automation::emitted_events;
use domain::client::Client;
use domain::email::Email;
use domain::event::{Event, EventType};
use domain::fact::ClientSaved;
use domain::id::{CoachId, TeamId};
use futures::future::try_join;

use crate::client::{ClientState, Clients, StoredClient};
use crate::db::{Part, StoreError, Write, to_item};
use crate::fact::{FactContext, Halt};
use crate::unit::Unit;
use crate::watch::WatchUpdate;
use crate::workspace::StoredWorkspace;

/// Seats that a change moves, by workspace and by team. Each is named once, because a transaction writes an item once.
#[derive(Default)]
pub(super) struct Seats<'a> {
    workspaces: BTreeMap<&'a CoachId, WorkspaceSeats<'a>>,
    teams: BTreeMap<&'a TeamId, i64>,
}

struct WorkspaceSeats<'a> {
    team: Option<&'a TeamId>,
    clients: i64,
    active: i64,
}

impl<'a> Seats<'a> {
    pub(super) fn add(&mut self, workspace: &'a StoredWorkspace, clients: i64, active: i64) {
        let team = workspace.workspace.team_id.as_ref();
        let entry = self.workspaces.entry(&workspace.workspace.coach_id).or_insert(WorkspaceSeats {
            team,
            clients: 0,
            active: 0,
        });
        entry.clients += clients;
        entry.active += active;
        if let Some(team) = team {
            *self.teams.entry(team).or_insert(0) += clients;
        }
    }
}

impl Clients {
    /// Stores a client from a fact, unless the stored state is newer. A backfill emits no event.
    pub async fn save(&self, saved: &ClientSaved, fact: FactContext<'_>) -> Result<Unit, Halt> {
        let at = fact.occurred_at;
        let found = match self.lookup.state(&saved.client_id).await? {
            ClientState::Erased => return Err(Halt::Done),
            ClientState::Unknown => None,
            ClientState::Known(found) => Some(found),
        };
        let next = StoredClient::apply_fact(found.as_deref(), saved, at, fact.now).ok_or(Halt::Done)?;
        let client = &next.client;
        let is_emitted = found.is_none() && !fact.backfill;
        let automations = async {
            if is_emitted {
                self.workspaces.automations_on(&saved.coach_id, &[EventType::NewClient]).await
            } else {
                Ok(Vec::new())
            }
        };
        let (workspace, automations) = try_join(self.workspaces.get(&saved.coach_id), automations).await?;
        let workspace = workspace.ok_or(Halt::Unknown("coach_id"))?;
        let former = match &found {
            None => None,
            Some(found) if found.client.coach_id == saved.coach_id => Some(workspace.clone()),
            Some(found) => self.workspaces.get(&found.client.coach_id).await?,
        };
        let mut seats = Seats::default();
        seats.add(&workspace, 1, i64::from(client.is_active));
        if let (Some(found), Some(former)) = (&found, &former) {
            seats.add(former, -1, -i64::from(found.client.is_active));
        }
        let put = self.table.write(to_item(&next)).when_version(found.as_ref().map(|found| found.version));
        let new_client = || emitted_events(Event::new_client(client, at.timestamp()), &automations);
        Ok(Unit::new()
            .write([put.put(Part::Client)])
            .write(self.seat_writes(&seats))
            .write(self.address_writes(client, found.as_deref()).await?)
            .write(self.move_external_id(found.as_deref().map(|found| &found.client), Some(client)))
            .write(self.watch_write(client, found.as_deref(), fact))
            .events(is_emitted.then(new_client).into_iter().flatten()))
    }

    /// Part of a transaction: the watch of a client that is new, or whose fields for rules have changed.
    fn watch_write(&self, client: &Client, found: Option<&StoredClient>, fact: FactContext<'_>) -> Option<Write> {
        let Some(found) = found else { return Some(self.watches.create(client, fact.now)) };
        let change = WatchUpdate::between(&found.client, client)?;
        Some(self.watches.change(&client.id, change, fact.due_mark()))
    }

    pub(super) fn seat_writes(&self, seats: &Seats<'_>) -> Vec<Write> {
        let mut writes = Vec::new();
        for (coach, WorkspaceSeats { team, clients, active }) in &seats.workspaces {
            if *clients != 0 || *active != 0 {
                writes.push(self.workspaces.move_seats(coach, *team, *clients, *active));
            }
        }
        for (team, clients) in seats.teams.iter().filter(|(_, clients)| **clients != 0) {
            writes.push(self.workspaces.move_team_seats(team, *clients));
        }
        writes
    }

    async fn address_writes(&self, client: &Client, found: Option<&StoredClient>) -> Result<Vec<Write>, StoreError> {
        let old = found.and_then(|found| found.client.profile.email.as_ref());
        let new = client.profile.email.as_ref().map(Email::key);
        if old.map(Email::key) == new {
            return Ok(Vec::new());
        }
        let mut writes = Vec::new();
        if let Some(old) = old {
            writes.extend(self.leave_address(&old.key(), &client.id).await?);
        }
        if let Some(new) = new {
            writes.extend(self.address(&new).join(self.holders(&new).await?.as_ref(), client.id.as_str()));
        }
        Ok(writes)
    }
}
