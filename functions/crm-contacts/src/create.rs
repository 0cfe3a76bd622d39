//! `POST /v1/crm/contacts`: creates a contact, or returns the contact that has the address, unchanged.

use domain::change::Change;
use domain::contact::{Contact, ContactDraft, KnownContact};
use domain::event::{ContactSource, Event};
use domain::id::{ContactId, new_uuid};
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use serde_json::{Value, json};
use store::contact::StoredContact;

use crate::App;

pub(crate) struct Create;

/// The draft, the contact that has its address, and the random part of a new id.
pub(crate) struct CreateRead {
    draft: ContactDraft,
    found: Option<StoredContact>,
    random: [u8; 10],
}

impl Command for Create {
    type App = App;
    type Caller = CrmCaller;
    type Snapshot = CreateRead;

    async fn read(app: &App, caller: &CrmCaller, inbound: &Inbound) -> Result<CreateRead, Problem> {
        let draft = ContactDraft::parse(crm::body(inbound)?)?;
        let found = app.contacts.with_email(&caller.coach, &draft.email.key()).await?;
        Ok(CreateRead { draft, found, random: random_bytes() })
    }

    fn decide(app: &App, caller: &CrmCaller, read: &CreateRead) -> Result<Decision, Problem> {
        let CreateRead { draft, found, random } = read;
        if let Some(found) = found {
            let reply = Reply::created(&contact_body(found.contact()))?;
            return Ok(Decision::reply(About::Contact(&caller.coach, found.contact().id), reply));
        }
        let id = ContactId(new_uuid(caller.now.ms(), *random));
        let created = KnownContact::create(id, draft, caller.now);
        let reply = Reply::created(&contact_body(&created.contact))?;
        Ok(Decision::reply(About::Contact(&caller.coach, id), reply)
            .write(app.contacts.create(&caller.coach, &created))
            .change([Change::contact_created(&caller.coach, &created.contact)])
            .events([Event::contact_created(&caller.coach, &created.contact, ContactSource::CrmApi)]))
    }
}

/// The body of an answer to a write.
pub(crate) fn contact_body(contact: &Contact) -> Value {
    json!({ "contact": contact })
}
