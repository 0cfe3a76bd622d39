//! `GET /v1/clients/{clientId}/compliance`: the logged share of a client's expected doses, over a window that ends
//! today in the coach's time zone.

use axum::extract::State;
use axum::response::Response;
use domain::compliance::{Compliance, WINDOW_DAYS, Window};
use edge::inbound::arrival;
use edge::{Inbound, Partner, Reply};
use store::record::Doses;

use crate::app::{App, ClientRead, owned};

pub(crate) async fn compliance(State(app): State<App>, inbound: Inbound) -> Response {
    let days = WINDOW_DAYS.parse(inbound.query("window_days").as_deref());
    // The time zone is known only after authentication, so the read covers every zone.
    let now = arrival(&*app.clock);
    let read = app.find(inbound.parameter(0), async |client| app.records.doses(&client, now, days).await);
    let work = async |partner: Partner, found: Option<ClientRead<Doses>>| {
        let (client, doses) = owned(&partner, found)?;
        let window = Window::ending(now, partner.time_zone.zone()?, days);
        Reply::ok(&Compliance::of(client.id, days, window, &doses.schedule, &doses.logged))
    };
    app.gate.partner(&inbound, read, work).await
}
