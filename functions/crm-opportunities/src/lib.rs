//! `/v1/crm/opportunities` and `/v1/crm/opportunities/{id}`: a coach's opportunities in their pipeline, one file per
//! operation.

mod create;
mod list;
mod update;

use axum::Router;
use axum::routing::{get, patch};
use edge::crm::{WriteResult, Writer};
use edge::{Gate, Problem};
use runtime::{BoxError, Environment};
use store::Db;
use store::contact::Contacts;
use store::opportunity::Opportunities;
use store::pipeline::Pipelines;
use store::vault::Vault;

#[derive(Clone)]
struct App {
    gate: Gate,
    writer: Writer,
    contacts: Contacts,
    opportunities: Opportunities,
    pipelines: Pipelines,
}

/// The refusal if the configured pipeline or its initial stage is gone. In the order of checks the configuration comes
/// before the claim, so the refusal is not recorded.
const NOT_CONFIGURED: WriteResult = WriteResult::Withdrawn(Problem::CrmNotConfigured);

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let vault = Vault::open(env).await?;
    let contacts = Contacts::new(env, &db)?;
    let app = App {
        gate: Gate::new(env, &db)?,
        writer: Writer::new(env, &db, &vault)?,
        opportunities: Opportunities::new(env, &db, &contacts)?,
        contacts,
        pipelines: Pipelines::new(env, &db)?,
    };
    let router = Router::new()
        .route("/v1/crm/opportunities", get(list::list).post(create::create))
        .route("/v1/crm/opportunities/{id}", patch(update::update));
    Ok(router.with_state(app))
}
