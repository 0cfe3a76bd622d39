//! `GET /v1/crm/contacts`: a page of a coach's contacts, without merged ones.

use axum::extract::State;
use axum::response::Response;
use edge::{CrmCaller, Inbound, crm};

use crate::App;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let listed = app.contacts.page(&caller.coach, crm::page(&inbound)?).await?;
        crm::page_reply(listed, |stored| stored.contact().id.0, |stored| stored.known.contact)
    };
    app.gate.crm(&inbound, work).await
}
