//! `GET /v1/clients/{clientId}/check-ins`: the times of a client's check-ins, newest first, without answers or scores.

use domain::check_in::{CheckIn, CheckInList};
use domain::list::CHECK_IN_PAGE;
use edge::{Inbound, Partner, Problem, Reply};

use crate::app::{App, ClientRead, owned};

type Found = Option<ClientRead<Vec<CheckIn>>>;

pub(crate) async fn find(app: App, inbound: Inbound) -> Found {
    let limit = CHECK_IN_PAGE.parse(inbound.query("limit").as_deref());
    app.find(inbound.parameter(0), async |client| app.records.check_ins(&client, limit).await).await
}

pub(crate) async fn check_ins(_: App, partner: Partner, _: Inbound, found: Found) -> Result<Reply, Problem> {
    let (client, check_ins) = owned(&partner, found)?;
    Reply::ok(&CheckInList::new(client.id, check_ins))
}
