//! `GET /v1/crm/calendars`: a page of the calendars that can be booked.

use axum::extract::State;
use axum::response::Response;
use domain::crm_list::{ById, PageRequest};
use domain::cursor::CursorList;
use edge::{CrmCaller, Inbound, crm};

use crate::App;

pub(crate) async fn calendars(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let list = CursorList { name: "calendars", coach: &caller.coach };
        inbound.only_parameters(&PageRequest::<ById>::PARAMETERS)?;
        let request = PageRequest::<ById>::parse(|name| inbound.query(name))?;
        let page = app.calendars.page(&caller.coach, &request).await?;
        crm::page_reply(&list, page, |found| found.calendar.view())
    };
    app.gate.crm(&inbound, work).await
}
