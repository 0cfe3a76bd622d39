//! Table `workspaces`, automations. pk `COACH#<coach_id>`, sk `AUTOMATION#<automation_id>`: the record, when it was said and stored, and
//! what it was before, as long as a client may have been judged by that last; of a deleted one that it was deleted and when, so that
//! nothing older brings it back.
//!
//! 1. `automation`           GetItem, consistent.
//! 2. `put_automation`       Part of the transaction that changes the rules, on what was read.
//! 3. `automations_on`       Query of the partition, consistent: active ones that wait for one of these events, by id.
//! 4. `rules`                The same, all of them.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use chrono::TimeDelta;
use domain::automation::{Automation, MAX_TRIGGERED, Step, Trigger};
use domain::event::{ComputedType, EventName, EventType};
use domain::fact_time::FactTime;
use domain::id::{AutomationId, CoachId};
use domain::sweep::{Former, MAX_SWEPT, Rule};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::db::{Ask, Item, StoreError, failed, from_item, n, putting, s, to_item};
use crate::fact_order::{AS_FOUND, SavedAt};
use crate::workspace::{Workspaces, key_of, partition};

const ENTITY: &str = "automation";
const SORT_PREFIX: &str = "AUTOMATION#";
/// Pages of a megabyte that are read of a coach's automations: thousands of them.
const MAX_PAGES: usize = 4;
/// Most that is kept of what an automation was before. Who edits faster than that loses what came to match between two edits.
const MAX_FORMER: usize = 10;

/// An automation as stored.
#[derive(Debug)]
pub(crate) enum StoredAutomation {
    Present(Box<Record>),
    Deleted(Tombstone),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    automation_id: AutomationId,
    coach_id: CoachId,
    #[serde(flatten)]
    present: Revision,
    /// What it was before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<Revision>,
}

/// What an automation was said to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Revision {
    name: String,
    active: bool,
    trigger: Trigger,
    steps: Vec<Step>,
    /// When it was said, in ms.
    #[serde(flatten)]
    saved_at: SavedAt,
    /// When it was stored: then, those who matched it already were no news. No two revisions of an automation have the same.
    stored_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Tombstone {
    deleted: bool,
    #[serde(flatten)]
    saved_at: SavedAt,
}

impl StoredAutomation {
    fn from_item(item: Item) -> Result<Self, StoreError> {
        if item.contains_key("deleted") {
            return Ok(Self::Deleted(from_item(ENTITY, item)?));
        }
        Ok(Self::Present(Box::new(from_item(ENTITY, item)?)))
    }

    /// When it was said.
    pub(crate) fn said_at(&self) -> FactTime {
        match self {
            Self::Present(record) => record.present.saved_at.into(),
            Self::Deleted(tombstone) => tombstone.saved_at.into(),
        }
    }

    /// What sets it off; `None` where it is deleted.
    pub(crate) fn trigger(&self) -> Option<&Trigger> {
        match self {
            Self::Present(record) => Some(&record.present.trigger),
            Self::Deleted(_) => None,
        }
    }

    /// Whether it is what it is said to be.
    pub(crate) fn is_same(&self, as_said: Option<&Automation>) -> bool {
        match (self, as_said) {
            (Self::Present(record), Some(as_said)) => record.present.is_of(as_said),
            (Self::Deleted(_), None) => true,
            _ => false,
        }
    }

    /// What it becomes. Said again it is the same revision. Of what it was stays what a client may have been judged by last, unless it
    /// was switched off since or waited for something else: all that ended after every client was judged, at `passed_at`.
    pub(crate) fn next(
        found: Option<Self>,
        to: Option<&Automation>,
        (said_at, now): (FactTime, Timestamp),
        passed_at: Option<Timestamp>,
    ) -> Self {
        let Some(to) = to else { return Self::Deleted(Tombstone { deleted: true, saved_at: said_at.into() }) };
        let mut former = Vec::new();
        let mut stored_at = now;
        if let Some(Self::Present(mut record)) = found {
            if record.present.is_of(to) {
                record.present.saved_at = said_at.into();
                return Self::Present(record);
            }
            // It tells one revision from the next, whatever the clocks of two functions say.
            stored_at = now.max(record.present.stored_at + TimeDelta::milliseconds(1));
            former = record.former;
            former.push(record.present);
        }
        let ends: Vec<Timestamp> = former.iter().skip(1).map(|next| next.stored_at).chain([stored_at]).collect();
        let is_over = |at: usize| passed_at.is_some_and(|passed_at| ends[at] < passed_at) || !former[at].is_swept();
        let over = (0..former.len()).rev().find(|at| is_over(*at)).map_or(0, |at| at + 1);
        former.drain(..over.max(former.len().saturating_sub(MAX_FORMER)));
        let present = Revision::new(to, said_at, stored_at);
        Self::Present(Box::new(Record { automation_id: to.id.clone(), coach_id: to.coach_id.clone(), present, former }))
    }
}

impl Revision {
    fn new(automation: &Automation, said_at: FactTime, stored_at: Timestamp) -> Self {
        Self {
            name: automation.name.clone(),
            active: automation.active,
            trigger: automation.trigger.clone(),
            steps: automation.steps.clone(),
            saved_at: said_at.into(),
            stored_at,
        }
    }

    /// Whether sweeps judge clients by it.
    fn is_swept(&self) -> bool {
        self.active && self.trigger.computed().is_some()
    }

    fn is_of(&self, automation: &Automation) -> bool {
        self.name == automation.name
            && self.active == automation.active
            && self.trigger == automation.trigger
            && self.steps == automation.steps
    }

    fn automation(&self, id: &AutomationId, coach: &CoachId) -> Automation {
        Automation {
            id: id.clone(),
            coach_id: coach.clone(),
            name: self.name.clone(),
            active: self.active,
            trigger: self.trigger.clone(),
            steps: self.steps.clone(),
        }
    }
}

impl Record {
    fn automation(&self) -> Automation {
        self.present.automation(&self.automation_id, &self.coach_id)
    }

    fn rule(&self) -> Rule {
        let former = self.former.iter().map(|former| Former {
            automation: former.automation(&self.automation_id, &self.coach_id),
            revision: former.stored_at,
            saved_at: former.stored_at,
        });
        Rule {
            automation: self.automation(),
            revision: self.present.stored_at,
            saved_at: self.present.stored_at,
            former: former.collect(),
        }
    }
}

impl Workspaces {
    /// A coach's automation.
    pub(crate) async fn automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
    ) -> Result<Option<StoredAutomation>, StoreError> {
        let item = self.db().get(self.table(), key(coach, id)).await?;
        item.map(StoredAutomation::from_item).transpose()
    }

    /// Part of a transaction: an automation, where what is stored was said then, or where there is none.
    pub(crate) fn put_automation(
        &self,
        (coach, id): (&CoachId, &AutomationId),
        next: &StoredAutomation,
        found_at: Option<FactTime>,
    ) -> TransactWriteItem {
        let mut item = key(coach, id);
        item.extend(match next {
            StoredAutomation::Present(record) => to_item(record),
            StoredAutomation::Deleted(tombstone) => to_item(tombstone),
        });
        let put = Put::builder().table_name(self.table()).set_item(Some(item));
        putting(match found_at {
            None => put.condition_expression("attribute_not_exists(pk)"),
            Some(at) => put
                .condition_expression(AS_FOUND)
                .expression_attribute_values(":found", n(at.ms()))
                .expression_attribute_values(":found_ns", n(at.ns_of_ms())),
        })
    }

    /// A coach's active automations on these events, in the order of their ids.
    pub async fn automations_on(&self, coach: &CoachId, events: &[EventType]) -> Result<Vec<Automation>, StoreError> {
        let names: Vec<&str> = events.iter().map(|event| event.as_str()).collect();
        let mut found = self.automations_of(coach, &names).await?;
        found.retain(|record| record.present.active);
        let found: Vec<Automation> = found.iter().map(Record::automation).collect();
        warn_of_many(coach, events, &found);
        Ok(found)
    }

    /// All automations of a coach, in the order of their ids: those that no sweep judges, too, since what they told of clients is remembered
    /// as long as they are there.
    pub(crate) async fn rules(&self, coach: &CoachId) -> Result<Vec<Rule>, StoreError> {
        let (computed, emitted) = (ComputedType::ALL.map(ComputedType::as_str), EventType::ALL.map(EventType::as_str));
        let found = self.automations_of(coach, &[&computed[..], &emitted[..]].concat()).await?;
        let active = found.iter().filter(|record| record.present.is_swept()).count();
        if active > MAX_SWEPT {
            // That many of each kind count: whoever has more in all may be near it, and somebody should know.
            tracing::warn!(coach_id = %coach, active, "a coach has many automations on computed events");
        }
        Ok(found.iter().map(Record::rule).collect())
    }

    async fn automations_of(&self, coach: &CoachId, events: &[&str]) -> Result<Vec<Record>, StoreError> {
        let mut found = Vec::new();
        let mut start = None;
        for _ in 0..MAX_PAGES {
            let names: Vec<String> = (0..events.len()).map(|index| format!(":event{index}")).collect();
            let mut query = self.db().client().query().table_name(self.table());
            for (name, event) in names.iter().zip(events) {
                query = query.expression_attribute_values(name, s(*event));
            }
            let page = query
                .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
                .filter_expression(format!("#trigger.#event IN ({})", names.join(", ")))
                .expression_attribute_names("#trigger", "trigger")
                .expression_attribute_names("#event", "event")
                .expression_attribute_values(":pk", s(partition(coach)))
                .expression_attribute_values(":prefix", s(SORT_PREFIX))
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .ask()
                .await
                .map_err(|error| failed("Query", error))?;
            for item in page.items.unwrap_or_default() {
                found.push(from_item::<Record>(ENTITY, item)?);
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        if start.is_some() {
            tracing::warn!(coach_id = %coach, "a coach has more automations than are read");
        }
        Ok(found)
    }
}

/// Those beyond the limit are not considered where all of them are met: somebody should know.
fn warn_of_many(coach: &CoachId, events: &[EventType], found: &[Automation]) {
    for event in events {
        let count = found.iter().filter(|automation| automation.trigger.event() == EventName::from(*event)).count();
        if count > MAX_TRIGGERED {
            tracing::warn!(coach_id = %coach, event = event.as_str(), count, "a coach has more automations than are considered");
        }
    }
}

fn key(coach: &CoachId, id: &AutomationId) -> Item {
    key_of(coach, &format!("{SORT_PREFIX}{id}"))
}

#[cfg(test)]
mod tests;
