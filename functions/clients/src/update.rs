//! `PATCH /v1/clients/{clientId}`: activates or deactivates a client, which keeps its seat, and sets its external id.

use domain::client_draft::ClientPatch;
use domain::id_kind::IdKind;
use edge::{About, Command, Decision, EarlyCommand, Inbound, Partner, Problem, Reply};
use store::client::StoredClient;
use store::{Part, RefusedTransaction};

use crate::App;
use crate::read::find;

pub(crate) struct Update;

/// The patch, and the client in the path, of any coach.
pub(crate) struct UpdateRead {
    patch: ClientPatch,
    found: Option<StoredClient>,
}

impl EarlyCommand for Update {
    async fn read_early(app: &App, inbound: &Inbound) -> Result<UpdateRead, Problem> {
        let patch = ClientPatch::parse(inbound.json()?)?;
        Ok(UpdateRead { patch, found: find(app.clone(), inbound.clone()).await? })
    }
}

impl Command for Update {
    type App = App;
    type Caller = Partner;
    type Snapshot = UpdateRead;

    async fn read(app: &App, _: &Partner, inbound: &Inbound) -> Result<UpdateRead, Problem> {
        Self::read_early(app, inbound).await
    }

    fn decide(app: &App, partner: &Partner, UpdateRead { patch, found }: &UpdateRead) -> Result<Decision, Problem> {
        let found = found.as_ref().filter(|found| found.client.coach_id == partner.coach);
        let found = found.ok_or(Problem::not_found(IdKind::Client))?;
        let (client, unit) = app.clients.update(found, patch, partner.now);
        let reply = Reply::ok(&client.to_profile())?;
        Ok(Decision::reply(About::Client(&client.id), reply).with(|_| unit))
    }

    async fn refused(
        app: &App,
        partner: &Partner,
        UpdateRead { found, .. }: &UpdateRead,
        refused: &RefusedTransaction,
    ) -> Result<(), Problem> {
        // A client that has changed meanwhile is read again, since it may belong to another coach by now.
        if refused.is(Part::ExternalId) && !refused.is(Part::Client) {
            return Err(Problem::ExternalIdTaken);
        }
        if let Some(found) = found.as_ref().filter(|_| refused.is(Part::Watch)) {
            app.clients.restore_watch(&found.client.id, partner.now).await?;
        }
        Ok(())
    }
}
