//! `GET /v1/crm/contacts`: a page of a coach's contacts, by id, by update, or of one e-mail address.

use domain::contact::parse_email_filter;
use domain::crm_list::{PageRequest, Walk};
use domain::cursor::CursorList;
use domain::fields::Invalid;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::page::Page;

use crate::App;

const EMAIL: &str = "email";

pub(crate) async fn list(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: "contacts", coach: &caller.coach };
    inbound.only_parameters(&[&PageRequest::<Walk>::PARAMETERS[..], &[EMAIL]].concat())?;
    let request = PageRequest::<Walk>::parse(&list, |name| inbound.query(name))?;
    let page = match inbound.query(EMAIL).as_deref() {
        // A form without an address looks for nobody.
        Some("") => Page { records: Vec::new(), next: None },
        Some(text) => {
            let emails = parse_email_filter(text).map_err(|rule| Invalid::field(EMAIL, rule))?;
            app.contacts.page_with_email(&caller.coach, &emails, &request).await?
        }
        None => app.contacts.page(&caller.coach, &request).await?,
    };
    crm::page_reply(&list, page, |contact| contact)
}
