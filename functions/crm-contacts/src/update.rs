//! `PATCH /v1/crm/contacts/{id}`: sets the name or the suppression. The API cannot lift a suppression.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::contact::ContactPatch;
use domain::event::Event;
use domain::id::ContactId;
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use store::contact::ContactState;

use crate::App;
use crate::create::contact_body;

pub(crate) async fn update(State(app): State<App>, inbound: Inbound) -> Response {
    app.runner.answer(&app.gate, &inbound, &Update { app: &app, inbound: &inbound }).await
}

struct Update<'a> {
    app: &'a App,
    inbound: &'a Inbound,
}

impl Command for Update<'_> {
    type Caller = CrmCaller;
    type Snapshot = (ContactPatch, ContactState);

    async fn read(&self, caller: &CrmCaller) -> Result<Self::Snapshot, Problem> {
        let contact = crm::path_id(self.inbound, ContactId::parse)?;
        let patch = ContactPatch::parse(crm::body(self.inbound)?)?;
        Ok((patch, self.app.contacts.state(&caller.coach, contact).await?))
    }

    fn decide(&self, caller: &CrmCaller, (patch, found): &Self::Snapshot) -> Result<Decision, Problem> {
        let found = crm::live(found)?;
        let changed = found.known.change(patch, caller.now);
        // Repeating the API's own update emits no change.
        let is_change = changed.contact != *found.contact();
        let written_at = changed.last_written_at();
        let change = is_change.then(|| Change::contact_updated(&caller.coach, &changed.contact, written_at));
        let event = Event::contact_updated(&caller.coach, found.contact(), &changed.contact);
        let about = About::Contact(&caller.coach, found.contact().id);
        Ok(Decision::reply(about, Reply::ok(&contact_body(&changed.contact))?)
            .write([self.app.contacts.change(found, changed, caller.now)])
            .change(change)
            .events(event))
    }
}
