//! Seats that a client takes, in a workspace and in the workspace's team.

use std::collections::BTreeMap;

use domain::id::{CoachId, TeamId};

use crate::client::Clients;
use crate::db::Write;
use crate::workspace::StoredWorkspace;

/// Seats that a change moves, by workspace and by team. Each is named once, because a transaction writes an item once.
#[derive(Default)]
pub struct Seats<'a> {
    workspaces: BTreeMap<&'a CoachId, WorkspaceSeats<'a>>,
    teams: BTreeMap<&'a TeamId, i64>,
}

struct WorkspaceSeats<'a> {
    team: Option<&'a TeamId>,
    clients: i64,
    active: i64,
}

impl<'a> Seats<'a> {
    /// Adds clients, and active ones among them. Negative numbers leave.
    pub fn add(&mut self, workspace: &'a StoredWorkspace, clients: i64, active: i64) {
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
    /// Parts of a transaction: move seats, regardless of caps.
    pub fn move_seats(&self, seats: &Seats<'_>) -> Vec<Write> {
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
}
