//! `PATCH /v1/crm/contacts/{id}`: sets the name or the suppression. The API cannot lift a suppression.

use domain::change::Change;
use domain::contact::ContactPatch;
use domain::event::Event;
use domain::id::ContactId;
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use store::contact::ContactState;

use crate::App;
use crate::create::contact_body;

pub(crate) struct Update;

impl Command for Update {
    type App = App;
    type Caller = CrmCaller;
    type Snapshot = (ContactPatch, ContactState);

    async fn read(app: &App, caller: &CrmCaller, inbound: &Inbound) -> Result<Self::Snapshot, Problem> {
        let contact = crm::path_id(inbound, ContactId::parse)?;
        let patch = ContactPatch::parse(crm::body(inbound)?)?;
        Ok((patch, app.contacts.state(&caller.coach, contact).await?))
    }

    fn decide(app: &App, caller: &CrmCaller, (patch, found): &Self::Snapshot) -> Result<Decision, Problem> {
        let found = crm::live(found)?;
        let changed = found.known.change(patch, caller.now);
        // Repeating the API's own update emits no change.
        let is_change = changed.contact != *found.contact();
        let written_at = changed.last_written_at();
        let change = is_change.then(|| Change::contact_updated(&caller.coach, &changed.contact, written_at));
        let event = Event::contact_updated(&caller.coach, found.contact(), &changed.contact);
        let about = About::Contact(&caller.coach, found.contact().id);
        Ok(Decision::reply(about, Reply::ok(&contact_body(&changed.contact))?)
            .write([app.contacts.change(found, changed, caller.now)])
            .change(change)
            .events(event))
    }
}
