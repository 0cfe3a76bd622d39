//! `/v1/crm/contacts` and `/v1/crm/contacts/{id}`: a coach's contacts, one file per operation.

mod create;
mod list;
mod update;

use axum::Router;
use axum::routing::{get, patch};
use domain::contact::Contact;
use edge::{Gate, Problem, Reply};
use runtime::{BoxError, Environment};
use serde_json::json;
use store::claim::{Answer, Claim, Claims};
use store::contact::{Contacts, Telling};
use store::outbox::Outbox;
use store::vault::Vault;
use store::{Db, StoreError};

#[derive(Clone)]
struct App {
    gate: Gate,
    claims: Claims,
    contacts: Contacts,
    outbox: Outbox,
}

impl App {
    /// What goes with a write of a contact.
    fn telling<'a>(&'a self, claim: &'a Claim, answer: &'a Answer) -> Telling<'a> {
        Telling { outbox: &self.outbox, claims: &self.claims, claim, answer }
    }
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let vault = Vault::open(env).await?;
    let app = App {
        gate: Gate::new(env, &db)?,
        claims: Claims::new(env, &db, &vault)?,
        contacts: Contacts::new(env, &db)?,
        outbox: Outbox::new(env, &db, &vault)?,
    };
    let router = Router::new()
        .route("/v1/crm/contacts", get(list::list).post(create::create))
        .route("/v1/crm/contacts/{id}", patch(update::update));
    Ok(router.with_state(app))
}

/// How often a write that met another one is tried.
const MAX_ROUNDS: u32 = 16;

/// The contact as answers to writes show it.
fn shown(contact: &Contact, reply: fn(&serde_json::Value) -> Result<Reply, Problem>) -> Result<Reply, Problem> {
    reply(&json!({ "contact": contact }))
}

/// Nothing was written, and the caller may try again.
fn kept_changing() -> Problem {
    StoreError::Unavailable { operation: "TransactWriteItems", source: "the contact kept changing".into() }.into()
}
