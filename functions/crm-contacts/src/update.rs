//! `PATCH /v1/crm/contacts/{id}`: sets the name or the suppression. The API cannot lift a suppression.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::contact::ContactPatch;
use domain::id::ContactId;
use edge::crm::{Write, WriteContext, WriteResult};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::StoreError;
use store::contact::ContactState;

use crate::App;
use crate::create::contact_body;

pub(crate) async fn update(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Update(&app)).await
}

struct Update<'a>(&'a App);

/// The contact that a request names, and its patch.
pub(crate) struct ContactUpdate {
    contact: ContactId,
    patch: ContactPatch,
}

impl Write for Update<'_> {
    type Request = ContactUpdate;
    type Found = ContactState;

    fn parse(&self, inbound: &Inbound) -> Result<ContactUpdate, Problem> {
        let contact = crm::path_id(inbound, ContactId::parse)?;
        Ok(ContactUpdate { contact, patch: ContactPatch::parse(crm::body(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, update: &ContactUpdate) -> Result<ContactState, StoreError> {
        self.0.contacts.state(&caller.coach, update.contact).await
    }

    async fn commit(
        &self,
        context: &WriteContext<'_>,
        update: &ContactUpdate,
        found: ContactState,
    ) -> Result<WriteResult, Problem> {
        let found = found.live().map_err(|into| into.map_or(Problem::NotFound("contact"), Problem::ContactMerged))?;
        let changed = found.known.change(&update.patch, context.caller.now);
        let contact = &changed.contact;
        let reply = Reply::ok(&contact_body(contact))?;
        // Repeating the API's own update emits no change.
        let is_change = contact != found.contact();
        let change = is_change.then(|| Change::contact_updated(&context.caller.coach, contact));
        let write = context.crm_write(contact.id, &reply, change);
        Ok(WriteResult::Committed { committed: self.0.contacts.change(&found, &changed, &write).await?, reply })
    }
}
