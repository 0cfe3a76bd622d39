//! `GET /v1/clients/{clientId}/compliance`: the logged share of a client's expected doses, over a window that ends
//! today in the coach's time zone.

use domain::compliance::{Compliance, WINDOW_DAYS, Window};
use domain::time::Timestamp;
use edge::inbound::arrival;
use edge::{Inbound, Partner, Problem, Reply};
use store::record::Doses;

use crate::app::{App, ClientRead, owned};

/// Doses around a time, and the time. The time zone is known only after authentication, so the doses cover every zone.
type Found = (Timestamp, Option<ClientRead<Doses>>);

pub(crate) async fn find(app: App, inbound: Inbound) -> Found {
    let (now, days) = (arrival(&*app.clock), days(&inbound));
    (now, app.find(inbound.parameter(0), async |client| app.records.doses(&client, now, days).await).await)
}

pub(crate) async fn compliance(
    _: App,
    partner: Partner,
    inbound: Inbound,
    (now, found): Found,
) -> Result<Reply, Problem> {
    let (client, doses) = owned(&partner, found)?;
    let days = days(&inbound);
    let window = Window::ending(now, partner.time_zone.zone()?, days);
    Reply::ok(&Compliance::of(client.id, days, window, &doses.schedule, &doses.logged))
}

fn days(inbound: &Inbound) -> u32 {
    WINDOW_DAYS.parse(inbound.query("window_days").as_deref())
}
