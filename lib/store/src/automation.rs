//! Table `workspaces`, automations. pk `COACH#<coach_id>`, sk `AUTOMATION#<automation_id>`: the record and when it was said; of a deleted
//! one that it was deleted and when, so that nothing older brings it back.
//!
//! 1. `save_automation`   PutItem, unless something newer is stored.
//! 2. `delete_automation` The same, of a tombstone.
//! 3. `automations_on`    Query of the partition, consistent: active ones that wait for one of these events, by id.

use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use domain::automation::{Automation, MAX_TRIGGERED, Step, Trigger};
use domain::event::EventType;
use domain::id::{AutomationId, CoachId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::db::{Item, StoreError, from_item, n, read_failed, s, to_item, write};
use crate::workspace::{Workspaces, partition};

const ENTITY: &str = "automation";
const SORT_PREFIX: &str = "AUTOMATION#";
/// Pages of a megabyte that are read of a coach's automations: thousands of them.
const MAX_PAGES: usize = 4;

#[derive(Serialize, Deserialize)]
struct Record {
    pk: String,
    sk: String,
    automation_id: AutomationId,
    coach_id: CoachId,
    name: String,
    active: bool,
    trigger: Trigger,
    steps: Vec<Step>,
    saved_at: i64,
}

#[derive(Serialize)]
struct Tombstone {
    pk: String,
    sk: String,
    deleted: bool,
    saved_at: i64,
}

impl Workspaces {
    /// Stores an automation as the application has it, unless a newer state is stored.
    pub async fn save_automation(&self, automation: &Automation, said_at: Timestamp) -> Result<(), StoreError> {
        let record = Record {
            pk: partition(&automation.coach_id),
            sk: sort_key(&automation.id),
            automation_id: automation.id.clone(),
            coach_id: automation.coach_id.clone(),
            name: automation.name.clone(),
            active: automation.active,
            trigger: automation.trigger.clone(),
            steps: automation.steps.clone(),
            saved_at: said_at.ms(),
        };
        self.put_automation(to_item(&record), said_at).await
    }

    /// Deletes an automation, whether or not it has come yet, unless a newer state is stored.
    pub async fn delete_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        said_at: Timestamp,
    ) -> Result<(), StoreError> {
        let tombstone = Tombstone { pk: partition(coach), sk: sort_key(id), deleted: true, saved_at: said_at.ms() };
        self.put_automation(to_item(&tombstone), said_at).await
    }

    /// A coach's active automations on these events, in the order of their ids.
    pub async fn automations_on(&self, coach: &CoachId, events: &[EventType]) -> Result<Vec<Automation>, StoreError> {
        let mut found = Vec::new();
        let mut start = None;
        for _ in 0..MAX_PAGES {
            let names: Vec<String> = (0..events.len()).map(|index| format!(":event{index}")).collect();
            let mut query = self.db().client().query().table_name(self.table());
            for (name, event) in names.iter().zip(events) {
                query = query.expression_attribute_values(name, s(event.as_str()));
            }
            let page = query
                .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
                .filter_expression(format!("#active = :true AND #trigger.#event IN ({})", names.join(", ")))
                .expression_attribute_names("#active", "active")
                .expression_attribute_names("#trigger", "trigger")
                .expression_attribute_names("#event", "event")
                .expression_attribute_values(":pk", s(partition(coach)))
                .expression_attribute_values(":prefix", s(SORT_PREFIX))
                .expression_attribute_values(":true", aws_sdk_dynamodb::types::AttributeValue::Bool(true))
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| read_failed("Query", error))?;
            for item in page.items.unwrap_or_default() {
                found.push(from_item::<Record>(ENTITY, item)?.automation());
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        if start.is_some() {
            tracing::warn!(coach_id = %coach, "a coach has more automations than are read");
        }
        warn_of_many(coach, events, &found);
        Ok(found)
    }

    async fn put_automation(&self, item: Item, said_at: Timestamp) -> Result<(), StoreError> {
        let written = write("PutItem", || {
            let put = self.db().client().put_item().table_name(self.table()).set_item(Some(item.clone()));
            put.condition_expression("attribute_not_exists(pk) OR saved_at <= :at")
                .expression_attribute_values(":at", n(said_at.ms()))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        // Refused: what is stored is newer.
        written.await?;
        Ok(())
    }
}

/// Those beyond the limit are not considered where all of them are met: somebody should know.
fn warn_of_many(coach: &CoachId, events: &[EventType], found: &[Automation]) {
    for event in events {
        let count = found.iter().filter(|automation| automation.trigger.emitted() == Some(*event)).count();
        if count > MAX_TRIGGERED {
            tracing::warn!(coach_id = %coach, event = event.as_str(), count, "a coach has more automations than are considered");
        }
    }
}

impl Record {
    fn automation(self) -> Automation {
        Automation {
            id: self.automation_id,
            coach_id: self.coach_id,
            name: self.name,
            active: self.active,
            trigger: self.trigger,
            steps: self.steps,
        }
    }
}

fn sort_key(id: &AutomationId) -> String {
    format!("{SORT_PREFIX}{id}")
}
