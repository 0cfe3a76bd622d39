//! `POST /v1/crm/contacts`: makes a contact, or finds the one that has the address and leaves it as it is.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::contact::{ContactDraft, KnownContact};
use domain::id::{ContactId, new_uuid};
use edge::crm::{Attempt, Attempted, Write};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use store::StoreError;
use store::contact::StoredContact;

use crate::{App, shown};

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

    async fn attempt(
        &self,
        attempt: &Attempt<'_>,
        draft: &ContactDraft,
        found: Option<StoredContact>,
    ) -> Result<Attempted, Problem> {
        if let Some(found) = found {
            let reply = Reply::created(&shown(found.contact()))?;
            let committed = attempt.leaving(found.contact().id, &reply, None).answer_alone().await?;
            return Ok(Attempted::Committed { committed, reply });
        }
        let now = attempt.caller.now;
        let made = KnownContact::create(ContactId(new_uuid(now.ms(), random_bytes())), draft, now);
        let change = Change::contact_created(&attempt.caller.coach, &made.contact);
        let reply = Reply::created(&shown(&made.contact))?;
        let write = attempt.leaving(made.contact.id, &reply, Some(change));
        Ok(Attempted::Committed { committed: self.0.contacts.create(&made, &write).await?, reply })
    }
}
