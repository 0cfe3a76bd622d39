//! Table `crm`, workflows. pk `COACH#<coach_id>`, sk `WORKFLOW#<uuid>`: the fields that the API shows, and the time of
//! the fact that set them.
//!
//! 1. `page` Query after a cursor, consistent.
//! 2. `put` Part of a transaction, unless the stored state is newer.

use domain::crm_list::{ById, PageRequest, Walk};
use domain::fact_time::FactTime;
use domain::id::CoachId;
use domain::workflow::Workflow;
use runtime::{BoxError, Environment};
use serde::Deserialize;

use crate::db::{Db, Part, StoreError, Table, Write, from_item, to_attribute};
use crate::fact_order::set_by_fact;
use crate::page::{Listing, Page};
use crate::workspace::key_of;

const PREFIX: &str = "WORKFLOW#";

#[derive(Deserialize)]
struct WorkflowItem {
    workflow: Workflow,
}

/// The workflows in the CRM table.
#[derive(Clone)]
pub struct Workflows {
    table: Table,
}

impl Workflows {
    /// The table that `CRM_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "CRM_TABLE")? })
    }

    /// Reads a page of a coach's workflows.
    pub async fn page(&self, coach: &CoachId, request: &PageRequest<ById>) -> Result<Page<Workflow>, StoreError> {
        let listing = Listing { table: &self.table, index: None, prefix: PREFIX };
        let request = PageRequest { walk: Walk::ById(request.walk), limit: request.limit };
        let listed = listing.page(coach, &request).await?;
        listed.try_map(|item| from_item::<WorkflowItem>("workflow", item).map(|record| Some(record.workflow)))
    }

    /// Part of a transaction: stores a workflow, unless the stored state is newer.
    pub fn put(&self, coach: &CoachId, workflow: &Workflow, at: FactTime) -> Write {
        let key = key_of(coach, &format!("{PREFIX}{}", workflow.id));
        let write = self.table.write(key).set("workflow", to_attribute(workflow));
        set_by_fact(write, at).update(Part::LaterFact)
    }
}
