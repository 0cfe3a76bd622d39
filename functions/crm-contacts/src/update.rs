//! `PATCH /v1/crm/contacts/{id}`: a new name, or the suppression, which is not lifted here.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::change::Change;
use domain::contact::ContactPatch;
use domain::id::ContactId;
use edge::crm::{Attempt, Attempted, Write};
use edge::inbound::PathParameter;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::StoreError;
use store::contact::Standing;

use crate::{App, shown};

pub(crate) async fn update(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::ContactsWrite).await;
    let work = async |caller: CrmCaller, ()| app.writer.write(&inbound, &caller, &Update { app: &app, id: &id }).await;
    app.gate.answer(&inbound, admission, work).await
}

struct Update<'a> {
    app: &'a App,
    id: &'a str,
}

/// The contact that a request names, and the change that it asks for.
pub(crate) struct Asked {
    contact: ContactId,
    patch: ContactPatch,
}

impl Write for Update<'_> {
    type Request = Asked;
    type Found = Standing;

    fn parse(&self, inbound: &Inbound) -> Result<Asked, Problem> {
        let contact = crm::path_id(self.id, ContactId::parse)?;
        Ok(Asked { contact, patch: ContactPatch::parse(crm::body(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, asked: &Asked) -> Result<Standing, StoreError> {
        self.app.contacts.standing(&caller.coach, asked.contact).await
    }

    async fn attempt(&self, attempt: &Attempt<'_>, asked: &Asked, found: Standing) -> Result<Attempted, Problem> {
        let found = crm::live(found)?;
        let changed = found.known.change(&asked.patch, attempt.caller.now);
        let contact = &changed.contact;
        let reply = Reply::ok(&shown(contact))?;
        // What only says anew what the API has said is not told.
        let is_news = contact != found.contact();
        let change = is_news.then(|| Change::contact_updated(&attempt.caller.coach, contact));
        let write = attempt.leaving(contact.id, &reply, change);
        Ok(Attempted::Committed { committed: self.app.contacts.change(&found, &changed, &write).await?, reply })
    }
}
