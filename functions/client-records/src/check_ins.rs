//! `GET /v1/clients/{clientId}/check-ins`: the times of a client's check-ins, newest first, without answers or scores.

use axum::extract::State;
use axum::response::Response;
use domain::check_in::{CheckIn, CheckInList};
use domain::list::CHECK_IN_PAGE;
use edge::{Inbound, Partner, Reply};

use crate::app::{App, ClientRead, owned};

pub(crate) async fn check_ins(State(app): State<App>, inbound: Inbound) -> Response {
    let limit = CHECK_IN_PAGE.parse(inbound.query("limit").as_deref());
    let read = app.find(inbound.parameter(0), async |client| app.records.check_ins(&client, limit).await);
    let work = async |partner: Partner, found: Option<ClientRead<Vec<CheckIn>>>| {
        let (client, check_ins) = owned(&partner, found)?;
        Reply::ok(&CheckInList::new(client.id, check_ins))
    };
    app.gate.partner(&inbound, read, work).await
}
