//! `/v1/crm/contacts` and `/v1/crm/contacts/{id}`: a coach's contacts, one file per operation.

mod create;
mod list;
mod update;

use axum::Router;
use axum::routing::{get, patch};
use domain::contact::Contact;
use edge::Gate;
use edge::crm::Writer;
use runtime::{BoxError, Environment};
use serde_json::{Value, json};
use store::Db;
use store::contact::Contacts;
use store::vault::Vault;

#[derive(Clone)]
struct App {
    gate: Gate,
    writer: Writer,
    contacts: Contacts,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let vault = Vault::open(env).await?;
    let app =
        App { gate: Gate::new(env, &db)?, writer: Writer::new(env, &db, &vault)?, contacts: Contacts::new(env, &db)? };
    let router = Router::new()
        .route("/v1/crm/contacts", get(list::list).post(create::create))
        .route("/v1/crm/contacts/{id}", patch(update::update));
    Ok(router.with_state(app))
}

/// The body of an answer to a write.
fn contact_body(contact: &Contact) -> Value {
    json!({ "contact": contact })
}
