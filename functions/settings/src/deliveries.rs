//! `GET /settings/webhooks/{id}/deliveries`: the delivery log of an endpoint, newest first.

use axum::extract::State;
use axum::response::Response;
use domain::delivery::{DeliveryPage, DeliveryStatus};
use domain::fields::Invalid;
use domain::id::DeliveryId;
use domain::list::DELIVERY_PAGE;
use edge::{Inbound, Reply};

use crate::App;
use crate::session::Session;
use crate::webhooks::find;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let limit = DELIVERY_PAGE.parse(inbound.query("limit").as_deref()) as usize;
        let status = inbound.query("status").map(|status| DeliveryStatus::parse(&status));
        let status = status.transpose().map_err(|rule| Invalid::field("status", rule))?;
        let cursor = inbound.cursor().map(|cursor| DeliveryId::parse_whole(&cursor));
        let cursor =
            cursor.transpose().map_err(|_| Invalid::field("cursor", "must be the next_cursor of an earlier answer"))?;
        let endpoint = find(&app, &session, inbound.parameter(0)).await?;
        let page = app.deliveries.page(&endpoint.id, status, cursor.as_ref(), limit, session.now).await?;
        Reply::ok(&DeliveryPage { data: page.deliveries, next_cursor: page.next_cursor })
    };
    app.sessions.answer(&inbound, work).await
}
