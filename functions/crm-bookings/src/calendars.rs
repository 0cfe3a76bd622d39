//! `GET /v1/crm/calendars`: a page of the calendars that can be booked.

use domain::crm_list::{ById, PageRequest};
use domain::cursor::CursorList;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};

use crate::App;

pub(crate) async fn calendars(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: "calendars", coach: &caller.coach };
    inbound.only_known_parameters()?;
    let request = PageRequest::<ById>::parse(|name| inbound.query(name))?;
    let page = app.calendars.page(&caller.coach, &request).await?;
    crm::page_reply(&list, page, |found| found.calendar.view())
}
