//! `POST /v1/crm/contacts`: creates a contact, or returns the contact that has the address, unchanged.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::contact::{Contact, ContactDraft, KnownContact};
use domain::event::{ContactSource, Event};
use domain::id::{ContactId, new_uuid};
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use serde_json::{Value, json};
use store::contact::StoredContact;

use crate::App;

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    app.runner.answer(&app.gate, &inbound, &Create { app: &app, inbound: &inbound, random: random_bytes() }).await
}

struct Create<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    random: [u8; 10],
}

impl Command for Create<'_> {
    type Caller = CrmCaller;
    /// The draft, and the contact that has its address.
    type Snapshot = (ContactDraft, Option<StoredContact>);

    async fn read(&self, caller: &CrmCaller) -> Result<Self::Snapshot, Problem> {
        let draft = ContactDraft::parse(crm::body(self.inbound)?)?;
        let found = self.app.contacts.with_email(&caller.coach, &draft.email.key()).await?;
        Ok((draft, found))
    }

    fn decide(&self, caller: &CrmCaller, (draft, found): &Self::Snapshot) -> Result<Decision, Problem> {
        if let Some(found) = found {
            let reply = Reply::created(&contact_body(found.contact()))?;
            return Ok(Decision::reply(About::Contact(&caller.coach, found.contact().id), reply));
        }
        let id = ContactId(new_uuid(caller.now.ms(), self.random));
        let created = KnownContact::create(id, draft, caller.now);
        let reply = Reply::created(&contact_body(&created.contact))?;
        Ok(Decision::reply(About::Contact(&caller.coach, id), reply)
            .write(self.app.contacts.create(&caller.coach, &created))
            .change([Change::contact_created(&caller.coach, &created.contact)])
            .events([Event::contact_created(&caller.coach, &created.contact, ContactSource::CrmApi)]))
    }
}

/// The body of an answer to a write.
pub(crate) fn contact_body(contact: &Contact) -> Value {
    json!({ "contact": contact })
}
