//! Table `workspaces`, pipelines. pk `COACH#<coach_id>`, sk `PIPELINE#<pipeline_id>`: the record, when it was said, and
//! `won_once`, all stages that were won ones at some time (absent while there was none).
//!
//! 1. `get`  GetItem, consistent.
//! 2. `all`  Query, consistent.
//! 3. `save` UpdateItem, unless what is stored is newer; then the won stages alone are added.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::fact_time::FactTime;
use domain::id::{CoachId, PipelineId, StageId};
use domain::pipeline::Pipeline;
use runtime::{BoxError, Environment};
use serde::Deserialize;

use crate::db::{Ask, Db, Item, StoreError, Written, from_item, n, query_all, s, to_attribute, write};
use crate::fact_order::{NOT_NEWER, SET_SAVED};
use crate::workspace::{key_of, partition};

/// What the sort keys of pipelines begin with.
const PREFIX: &str = "PIPELINE#";

#[derive(Deserialize)]
struct Record {
    pipeline: Pipeline,
    #[serde(default)]
    won_once: BTreeSet<StageId>,
}

/// The pipelines in the workspaces table.
#[derive(Clone)]
pub struct Pipelines {
    db: Db,
    table: String,
}

impl Pipelines {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("WORKSPACES_TABLE")?.to_owned() })
    }

    /// A pipeline of a coach.
    pub async fn get(&self, coach: &CoachId, id: &PipelineId) -> Result<Option<Pipeline>, StoreError> {
        self.db.get(&self.table, key(coach, id)).await?.map(pipeline).transpose()
    }

    /// All pipelines of a coach.
    pub async fn all(&self, coach: &CoachId) -> Result<Vec<Pipeline>, StoreError> {
        let query = self.db.client().query().table_name(&self.table).consistent_read(true);
        let query = query
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":pk", s(partition(coach)))
            .expression_attribute_values(":prefix", s(PREFIX));
        query_all(query).await?.into_iter().map(pipeline).collect()
    }

    /// Stores a pipeline as the application has it, unless a newer state is stored. An equally old one applies.
    pub async fn save(&self, coach: &CoachId, pipeline: &Pipeline, said_at: FactTime) -> Result<(), StoreError> {
        let won: Vec<String> = pipeline.won().map(|stage| stage.as_str().to_owned()).collect();
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table);
            let update = update.set_key(Some(key(coach, &pipeline.pipeline_id)));
            // There is no empty set.
            let update = if won.is_empty() {
                update.update_expression(format!("SET pipeline = :pipeline, {SET_SAVED}"))
            } else {
                update
                    .update_expression(format!("SET pipeline = :pipeline, {SET_SAVED} ADD won_once :won"))
                    .expression_attribute_values(":won", AttributeValue::Ss(won.clone()))
            };
            update
                .condition_expression(NOT_NEWER)
                .expression_attribute_values(":pipeline", to_attribute(pipeline))
                .expression_attribute_values(":at", n(said_at.ms()))
                .expression_attribute_values(":at_ns", n(said_at.ns_of_ms()))
                .ask()
        });
        match written.await? {
            Written::Refused(_) if !won.is_empty() => self.add_won(coach, &pipeline.pipeline_id, won).await,
            Written::Done(_) | Written::Refused(_) => Ok(()),
        }
    }

    /// Of a state that is over, all that counts is what was won in it.
    async fn add_won(&self, coach: &CoachId, id: &PipelineId, won: Vec<String>) -> Result<(), StoreError> {
        write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key(coach, id)));
            update
                .update_expression("ADD won_once :won")
                .condition_expression("attribute_exists(pk)")
                .expression_attribute_values(":won", AttributeValue::Ss(won.clone()))
                .ask()
        })
        .await?;
        Ok(())
    }
}

fn pipeline(item: Item) -> Result<Pipeline, StoreError> {
    from_item::<Record>("pipeline", item).map(|Record { pipeline, won_once }| Pipeline { won_once, ..pipeline })
}

fn key(coach: &CoachId, id: &PipelineId) -> Item {
    key_of(coach, &format!("{PREFIX}{id}"))
}
