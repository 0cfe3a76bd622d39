//! `GET /v1/crm/contacts`: a page of a coach's contacts, by id, by update, or of one e-mail address.

use axum::extract::State;
use axum::response::Response;
use domain::contact::parse_email_filter;
use domain::crm_list::{PageRequest, Walk};
use domain::query::parsed;
use edge::{CrmCaller, Inbound, crm};

use crate::App;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let query = |name: &str| inbound.query(name);
        let request = PageRequest::<Walk>::parse(query)?;
        let page = match parsed(query, "email", parse_email_filter)? {
            Some(email) => app.contacts.page_with_email(&caller.coach, &email, &request).await?,
            None => app.contacts.page(&caller.coach, &request).await?,
        };
        crm::page_reply(page, |contact| contact)
    };
    app.gate.crm(&inbound, work).await
}
