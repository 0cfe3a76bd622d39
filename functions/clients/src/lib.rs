//! `/v1/clients` and `/v1/clients/{clientId}`: a coach's clients, one file per operation.

mod create;
mod list;
mod read;
mod update;
mod welcome;

use axum::Router;
use axum::routing::get;
use edge::Gate;
use outbound::mail::Mailer;
use runtime::{BoxError, Environment};
use store::Db;
use store::claim::Claims;
use store::client::Clients;
use store::contact::Contacts;
use store::outbox::Outbox;
use store::vault::Vault;
use store::workspace::Workspaces;

#[derive(Clone)]
struct App {
    gate: Gate,
    claims: Claims,
    clients: Clients,
    contacts: Contacts,
    workspaces: Workspaces,
    mailer: Mailer,
    /// Most welcome mails of a coach and UTC day.
    mails_per_day: u32,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let vault = Vault::open(env).await?;
    let workspaces = Workspaces::new(env, &db)?;
    let contacts = Contacts::new(env, &db)?;
    let outbox = Outbox::new(env, &db, &vault)?;
    let app = App {
        gate: Gate::new(env, &db)?,
        claims: Claims::new(env, &db, &vault)?,
        clients: Clients::new(env, &db, &workspaces, &contacts, &outbox)?,
        contacts,
        workspaces,
        mailer: Mailer::new(env)?,
        mails_per_day: env.config().parse("WELCOME_MAILS_PER_DAY")?,
    };
    let router = Router::new()
        .route("/v1/clients", get(list::list).post(create::create))
        .route("/v1/clients/{clientId}", get(read::read).patch(update::update));
    Ok(router.with_state(app))
}
