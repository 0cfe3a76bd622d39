//! Table `crm`, workflows. pk `COACH#<coach_id>`, sk `WORKFLOW#<uuid>`: what may be shown of one, and when it was said.
//!
//! 1. `page` Query after a cursor, consistent.
//! 2. `save` UpdateItem, unless what is stored is newer.

use domain::fact_time::FactTime;
use domain::id::CoachId;
use domain::workflow::Workflow;
use runtime::{BoxError, Environment};
use serde::Deserialize;

use crate::db::{Ask, Db, StoreError, Written, from_item, n, to_attribute, write};
use crate::fact_order::{NOT_NEWER, SET_SAVED};
use crate::page::{Listed, Listing, PageRequest};
use crate::workspace::key_of;

/// What the sort keys of workflows begin with.
const PREFIX: &str = "WORKFLOW#";

#[derive(Deserialize)]
struct Record {
    workflow: Workflow,
}

/// The workflows in the CRM table.
#[derive(Clone)]
pub struct Workflows {
    db: Db,
    table: String,
}

impl Workflows {
    /// The table that `CRM_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("CRM_TABLE")?.to_owned() })
    }

    /// A page of a coach's workflows.
    pub async fn page(&self, coach: &CoachId, request: PageRequest) -> Result<Listed<Workflow>, StoreError> {
        let listing = Listing { table: &self.table, index: None, prefix: PREFIX };
        let listed = listing.page(&self.db, coach, request).await?;
        listed.try_map(|item| from_item::<Record>("workflow", item).map(|record| record.workflow))
    }

    /// Stores a workflow as the application has it, unless a newer state is stored. An equally old one applies.
    pub async fn save(&self, coach: &CoachId, workflow: &Workflow, said_at: FactTime) -> Result<(), StoreError> {
        let key = key_of(coach, &format!("{PREFIX}{}", workflow.id));
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key.clone()));
            update
                .update_expression(format!("SET workflow = :workflow, {SET_SAVED}"))
                .condition_expression(NOT_NEWER)
                .expression_attribute_values(":workflow", to_attribute(workflow))
                .expression_attribute_values(":at", n(said_at.ms()))
                .expression_attribute_values(":at_ns", n(said_at.ns_of_ms()))
                .ask()
        });
        match written.await? {
            Written::Done(_) | Written::Refused(_) => Ok(()),
        }
    }
}
