//! `GET /v1/crm/contacts/{id}`: one contact. A merged contact is not found, and the refusal names the one that remains.

use axum::extract::State;
use axum::response::Response;
use domain::id::ContactId;
use edge::{CrmCaller, Inbound, Reply, crm};

use crate::App;
use crate::create::contact_body;

pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let contact = app.contacts.state(&caller.coach, crm::path_id(&inbound, ContactId::parse)?).await?;
        Reply::ok(&contact_body(crm::found(&contact)?.contact()))
    };
    app.gate.crm(&inbound, work).await
}
