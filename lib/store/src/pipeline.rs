//! Table `workspaces`, pipelines. pk `COACH#<coach_id>`, sk `PIPELINE#<pipeline_id>`: the record, the time of the fact
//! that set it, and `won_once`: all stages that were ever won stages (absent while there is none).
//!
//! 1. `get` GetItem, consistent.
//! 2. `all` Query, consistent.
//! 3. `save` UpdateItem, unless the stored state is newer; then only the won stages are added.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::fact_time::FactTime;
use domain::id::{CoachId, PipelineId, StageId};
use domain::pipeline::Pipeline;
use runtime::{BoxError, Environment};
use serde::Deserialize;

use crate::db::{Db, Item, StoreError, Table, from_item, query_all, s, to_attribute};
use crate::fact_order::set_by_fact;
use crate::workspace::{key_of, partition};

const PREFIX: &str = "PIPELINE#";

#[derive(Deserialize)]
struct PipelineItem {
    pipeline: Pipeline,
    #[serde(default)]
    won_once: BTreeSet<StageId>,
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

    /// Stores a pipeline from a fact, unless the stored state is newer. A fact of the same time applies.
    pub async fn save(&self, coach: &CoachId, pipeline: &Pipeline, occurred_at: FactTime) -> Result<(), StoreError> {
        let won: Vec<String> = pipeline.won().map(|stage| stage.as_str().to_owned()).collect();
        let mut add_won = self.table.write(key(coach, &pipeline.pipeline_id));
        // DynamoDB has no empty sets.
        if !won.is_empty() {
            add_won = add_won.add("won_once", AttributeValue::Ss(won.clone()));
        }
        let save = set_by_fact(add_won.clone().set("pipeline", to_attribute(pipeline)), occurred_at);
        if !save.update_now().await?.is_done() && !won.is_empty() {
            // The stages that were won in an older state still count.
            add_won.when_present().update_now().await?;
        }
        Ok(())
    }
}

fn pipeline(item: Item) -> Result<Pipeline, StoreError> {
    from_item::<PipelineItem>("pipeline", item)
        .map(|PipelineItem { pipeline, won_once }| Pipeline { won_once, ..pipeline })
}

fn key(coach: &CoachId, id: &PipelineId) -> Item {
    key_of(coach, &format!("{PREFIX}{id}"))
}
