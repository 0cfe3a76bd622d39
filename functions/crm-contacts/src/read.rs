//! `GET /v1/crm/contacts/{id}`: one contact. A merged contact is not found, and the refusal names the one that remains.

use domain::id::ContactId;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};

use crate::App;
use crate::create::contact_body;

pub(crate) async fn read(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let contact = app.contacts.state(&caller.coach, crm::path_id(&inbound, ContactId::parse)?).await?;
    Reply::ok(&contact_body(crm::found(&contact)?.contact()))
}
