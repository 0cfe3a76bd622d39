//! `PATCH /v1/crm/contacts/{id}`: a new name, or the suppression, which is not lifted here.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::contact::ContactPatch;
use domain::id::ContactId;
use edge::crm::{Attempt, Attempted, Write};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::StoreError;
use store::contact::ContactState;

use crate::{App, shown};

pub(crate) async fn update(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Update(&app)).await
}

struct Update<'a>(&'a App);

/// The contact that a request names, and the change that it asks for.
pub(crate) struct Asked {
    contact: ContactId,
    patch: ContactPatch,
}

impl Write for Update<'_> {
    type Request = Asked;
    type Found = ContactState;

    fn parse(&self, inbound: &Inbound) -> Result<Asked, Problem> {
        let contact = crm::path_id(inbound, ContactId::parse)?;
        Ok(Asked { contact, patch: ContactPatch::parse(crm::body(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, asked: &Asked) -> Result<ContactState, StoreError> {
        self.0.contacts.state(&caller.coach, asked.contact).await
    }

    async fn attempt(&self, attempt: &Attempt<'_>, asked: &Asked, found: ContactState) -> Result<Attempted, Problem> {
        let found = found.live().map_err(|into| into.map_or(Problem::NotFound("contact"), Problem::ContactMerged))?;
        let changed = found.known.change(&asked.patch, attempt.caller.now);
        let contact = &changed.contact;
        let reply = Reply::ok(&shown(contact))?;
        // No change is emitted if the API has set the same before.
        let is_news = contact != found.contact();
        let change = is_news.then(|| Change::contact_updated(&attempt.caller.coach, contact));
        let write = attempt.leaving(contact.id, &reply, change);
        Ok(Attempted::Committed { committed: self.0.contacts.change(&found, &changed, &write).await?, reply })
    }
}
