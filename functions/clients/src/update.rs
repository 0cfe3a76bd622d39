//! `PATCH /v1/clients/{clientId}`: activates or deactivates a client, which keeps its seat, and sets its external id.

use axum::extract::State;
use axum::response::Response;
use domain::client_draft::ClientPatch;
use edge::{About, Command, Decision, Inbound, Partner, Problem, Reply};
use store::client::StoredClient;
use store::{Part, RefusedTransaction, StoreError};

use crate::App;
use crate::read::{CLIENT, find};

pub(crate) async fn update(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |partner: Partner, found: Result<Option<StoredClient>, StoreError>| {
        inbound.check_size()?;
        let patch = ClientPatch::parse(inbound.json()?)?;
        let command = Update { app: &app, inbound: &inbound, patch };
        app.runner.commit(&command, &partner, found?, None).await
    };
    app.gate.partner(&inbound, find(&app, inbound.parameter(0)), work).await
}

struct Update<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    patch: ClientPatch,
}

impl Command for Update<'_> {
    type Caller = Partner;
    type Snapshot = Option<StoredClient>;

    async fn read(&self, _: &Partner) -> Result<Option<StoredClient>, Problem> {
        Ok(find(self.app, self.inbound.parameter(0)).await?)
    }

    fn decide(&self, partner: &Partner, found: &Option<StoredClient>) -> Result<Decision, Problem> {
        let found = found.as_ref().filter(|found| found.client.coach_id == partner.coach);
        let found = found.ok_or(Problem::NotFound(CLIENT))?;
        let (client, unit) = self.app.clients.update(found, &self.patch, partner.now);
        let reply = Reply::ok(&client.to_profile())?;
        Ok(Decision::reply(About::Client(&client.id), reply).with(|_| unit))
    }

    async fn refused(
        &self,
        partner: &Partner,
        found: &Option<StoredClient>,
        refused: &RefusedTransaction,
    ) -> Result<(), Problem> {
        // A client that has changed meanwhile is read again, since it may belong to another coach by now.
        if refused.is(Part::ExternalId) && !refused.is(Part::Client) {
            return Err(Problem::ExternalIdTaken);
        }
        if let Some(found) = found.as_ref().filter(|_| refused.is(Part::Watch)) {
            self.app.clients.restore_watch(&found.client.id, partner.now).await?;
        }
        Ok(())
    }
}
