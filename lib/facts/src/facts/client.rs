//! Whole records of clients: a creation, a change or a hand-over, depending on the stored client.

use domain::automation::{Automation, emitted_events};
use domain::event::{Event, EventType};
use domain::fact::ClientSaved;
use futures::future::try_join3;
use store::Write;
use store::client::{ClientState, Seats, StoredClient};
use store::unit::Unit;
use store::watch::WatchUpdate;
use store::workspace::StoredWorkspace;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};
use crate::outcome::WIPING;

/// Stores a client, unless the stored state is newer. A backfill emits no event.
pub(crate) struct Save<'a>(pub(crate) &'a ClientSaved);

pub(crate) struct Snapshot {
    found: Option<Box<StoredClient>>,
    workspace: Option<StoredWorkspace>,
    /// The workspace of the stored client, if its coach is another.
    former: Option<StoredWorkspace>,
    automations: Vec<Automation>,
    address: Vec<Write>,
}

impl FactCommand for Save<'_> {
    type Snapshot = Snapshot;
    type Rest = ();

    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<Snapshot, Stop> {
        let saved = self.0;
        let found = match app.clients.state(&saved.client_id).await? {
            ClientState::Erased => return Err(Stop::Nothing),
            ClientState::Unknown => None,
            ClientState::Known(found) => Some(found),
        };
        let automations = async {
            if found.is_none() && !fact.backfill {
                app.workspaces.automations_on(&saved.coach_id, &[EventType::NewClient]).await
            } else {
                Ok(Vec::new())
            }
        };
        let (old, new) = (found.as_ref().and_then(|found| found.client.profile.email.as_ref()), saved.profile().email);
        let address = app.clients.move_address(&saved.client_id, old, new.as_ref());
        let reads = try_join3(app.workspaces.get(&saved.coach_id), automations, address);
        let (workspace, automations, address) = reads.await?;
        let former = match found.as_ref().map(|found| &found.client.coach_id) {
            Some(coach) if *coach != saved.coach_id => app.workspaces.get(coach).await?,
            _ => None,
        };
        Ok(Snapshot { found, workspace, former, automations, address })
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, snapshot: Snapshot) -> Decision<()> {
        let Snapshot { found, workspace, former, automations, address } = snapshot;
        let (found, at) = (found.as_deref(), fact.occurred_at);
        let Some(next) = StoredClient::apply_fact(found, self.0, at, fact.now) else { return Decision::Nothing };
        let Some(workspace) = workspace else { return Decision::Unknown("coach_id") };
        if workspace.is_wiping() {
            return Decision::Waits(WIPING);
        }
        let client = &next.client;
        let mut seats = Seats::default();
        seats.add(&workspace, 1, i64::from(client.is_active));
        if let Some(found) = found {
            let was_with = if found.client.coach_id == client.coach_id { Some(&workspace) } else { former.as_ref() };
            if let Some(former) = was_with {
                seats.add(former, -1, -i64::from(found.client.is_active));
            }
        }
        let watch = match found {
            None => Some(app.watches.create(client, fact.now)),
            Some(found) => WatchUpdate::between(&found.client, client)
                .map(|change| app.watches.change(&client.id, change, fact.due_mark())),
        };
        let is_emitted = found.is_none() && !fact.backfill;
        let new_client = || emitted_events(Event::new_client(client, at.timestamp()), &automations);
        let unit = Unit::new()
            .write(app.clients.put(&next, found))
            .write(app.clients.move_seats(&seats))
            .write(address)
            .write(watch)
            .events(is_emitted.then(new_client).into_iter().flatten());
        Decision::Commit(unit, ())
    }
}
