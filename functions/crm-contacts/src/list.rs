//! `GET /v1/crm/contacts`: a page of a coach's contacts, by id or by update, also of a part of a name, or of one e-mail
//! address.

use domain::contact::parse_email_filter;
use domain::crm_list::{PageRequest, Walk};
use domain::cursor::CursorList;
use domain::fields::Invalid;
use domain::name_filter::NameFilter;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::page::Page;

use crate::App;

const EMAIL: &str = "email";

pub(crate) async fn list(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: "contacts", coach: &caller.coach };
    inbound.only_known_parameters()?;
    let query = |name: &str| inbound.query(name);
    let (request, name) = (PageRequest::<Walk>::parse(&list, query)?, NameFilter::from_query(query, &[EMAIL])?);
    let page = match inbound.query(EMAIL).as_deref() {
        // A form without an address looks for nobody.
        Some("") => Page { records: Vec::new(), next: None },
        Some(text) => {
            let emails = parse_email_filter(text).map_err(|rule| Invalid::field(EMAIL, rule))?;
            app.contacts.page_with_email(&caller.coach, &emails, &request).await?
        }
        None => app.contacts.page(&caller.coach, &request, name.as_ref()).await?,
    };
    crm::page_reply(&list, page, |contact| contact)
}
