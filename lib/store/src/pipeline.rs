//! Table `workspaces`, pipelines. pk `COACH#<coach_id>`, sk `PIPELINE#<pipeline_id>`: the record, the time of the fact
//! that set it, and `won_once`: all stages that were ever won stages (absent while there is none).
//!
//! 1. `get` GetItem, consistent.
//! 2. `all` Query, consistent.
//! 3. `set_at` GetItem, consistent. `put` Part of a transaction on the state read: if that is newer, only the won
//!    stages are added.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::fact_time::FactTime;
use domain::id::{CoachId, PipelineId, StageId};
use domain::pipeline::Pipeline;
use runtime::{BoxError, Environment};
use serde::Deserialize;

use crate::db::{Db, Item, Part, StoreError, Table, Write, from_item, query_all, s, to_attribute};
use crate::fact_order::as_found;
use crate::workspace::{key_of, partition};

const PREFIX: &str = "PIPELINE#";

#[derive(Deserialize)]
struct PipelineItem {
    pipeline: Pipeline,
    #[serde(default)]
    won_once: BTreeSet<StageId>,
    saved_at: FactTime,
}

/// The pipelines in the workspaces table.
#[derive(Clone)]
pub struct Pipelines {
    table: Table,
}

impl Pipelines {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "WORKSPACES_TABLE")? })
    }

    /// Reads a pipeline of a coach.
    pub async fn get(&self, coach: &CoachId, id: &PipelineId) -> Result<Option<Pipeline>, StoreError> {
        self.table.item(key(coach, id)).await?.map(pipeline).transpose()
    }

    /// Reads all pipelines of a coach.
    pub async fn all(&self, coach: &CoachId) -> Result<Vec<Pipeline>, StoreError> {
        let values = [(":pk", s(partition(coach))), (":prefix", s(PREFIX))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :prefix)", values).consistent_read(true);
        query_all(query).await?.into_iter().map(pipeline).collect()
    }

    /// Reads the time of the fact that set a pipeline.
    pub async fn set_at(&self, coach: &CoachId, id: &PipelineId) -> Result<Option<FactTime>, StoreError> {
        let found: Option<PipelineItem> = self.table.get("pipeline", key(coach, id)).await?;
        Ok(found.map(|found| found.saved_at))
    }

    /// Part of a transaction: stores a pipeline in the place of the one that a fact set at `found`. Of an older state,
    /// only the stages that were won still count. `None`: nothing counts.
    pub fn put(&self, coach: &CoachId, pipeline: &Pipeline, at: FactTime, found: Option<FactTime>) -> Option<Write> {
        let won: Vec<String> = pipeline.won().map(|stage| stage.as_str().to_owned()).collect();
        let is_newer = found <= Some(at);
        if won.is_empty() && !is_newer {
            return None;
        }
        let mut write = as_found(self.table.write(key(coach, &pipeline.pipeline_id)), found);
        // DynamoDB has no empty sets.
        if !won.is_empty() {
            write = write.add("won_once", AttributeValue::Ss(won));
        }
        if is_newer {
            write = write.set("pipeline", to_attribute(pipeline)).set("saved_at", s(at.to_string()));
        }
        Some(write.update(Part::Pipeline))
    }
}

fn pipeline(item: Item) -> Result<Pipeline, StoreError> {
    from_item::<PipelineItem>("pipeline", item)
        .map(|PipelineItem { pipeline, won_once, .. }| Pipeline { won_once, ..pipeline })
}

fn key(coach: &CoachId, id: &PipelineId) -> Item {
    key_of(coach, &format!("{PREFIX}{id}"))
}
