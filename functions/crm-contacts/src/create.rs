//! `POST /v1/crm/contacts`: creates a contact, or returns the contact that has the address, unchanged.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::contact::{Contact, ContactDraft, KnownContact};
use domain::id::{ContactId, new_uuid};
use edge::crm::{Write, WriteContext, WriteResult};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use serde_json::{Value, json};
use store::StoreError;
use store::contact::StoredContact;

use crate::App;

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Create(&app)).await
}

struct Create<'a>(&'a App);

impl Write for Create<'_> {
    type Request = ContactDraft;
    /// The contact that has the address.
    type Found = Option<StoredContact>;

    fn parse(&self, inbound: &Inbound) -> Result<ContactDraft, Problem> {
        Ok(ContactDraft::parse(crm::body(inbound)?)?)
    }

    async fn read(&self, caller: &CrmCaller, draft: &ContactDraft) -> Result<Option<StoredContact>, StoreError> {
        self.0.contacts.with_email(&caller.coach, &draft.email.key()).await
    }

    async fn commit(
        &self,
        context: &WriteContext<'_>,
        draft: &ContactDraft,
        found: Option<StoredContact>,
    ) -> Result<WriteResult, Problem> {
        if let Some(found) = found {
            let reply = Reply::created(&contact_body(found.contact()))?;
            let committed = context.crm_write(found.contact().id, &reply, None).answer_alone().await?;
            return Ok(WriteResult::Committed { committed, reply });
        }
        let now = context.caller.now;
        let created = KnownContact::create(ContactId(new_uuid(now.ms(), random_bytes())), draft, now);
        let change = Change::contact_created(&context.caller.coach, &created.contact);
        let reply = Reply::created(&contact_body(&created.contact))?;
        let write = context.crm_write(created.contact.id, &reply, Some(change));
        Ok(WriteResult::Committed { committed: self.0.contacts.create(&created, &write).await?, reply })
    }
}

/// The body of an answer to a write.
pub(crate) fn contact_body(contact: &Contact) -> Value {
    json!({ "contact": contact })
}
