//! `GET /v1/clients/{clientId}/compliance`: how many of the expected doses were logged, over a window that ends today
//! where the coach is.

use axum::extract::State;
use axum::response::Response;
use domain::compliance::{Compliance, WINDOW_DAYS, Window};
use edge::inbound::arrival;
use edge::{Inbound, Partner, Reply};
use store::record::Doses;

use crate::{App, Found, owned};

pub(crate) async fn compliance(State(app): State<App>, inbound: Inbound) -> Response {
    let days = WINDOW_DAYS.parse(inbound.query("window_days").as_deref());
    // The key's workspace, and with it the time zone, is not known yet: what any zone could need is read.
    let now = arrival(&*app.clock);
    let read = app.find(inbound.parameter(0), async |client| app.records.doses(&client, now, days).await);
    let work = async |partner: Partner, found: Option<Found<Doses>>| {
        let (client, doses) = owned(&partner, found)?;
        let window = Window::ending(now, partner.time_zone.zone()?, days);
        Reply::ok(&Compliance::of(client.id, days, window, &doses.schedule, &doses.logged))
    };
    app.gate.partner(&inbound, read, work).await
}
