//! Table `workspaces`, automations. pk `COACH#<coach_id>`; sk `AUTOMATION#<automation_id>` of an active automation; sk
//! `AUTOMATION_OFF#<automation_id>` of an inactive one, and of the tombstone that keeps older facts from restoring a
//! deleted automation. Emission and evaluation read active automations only.
//!
//! 1. `automation` BatchGetItem of both keys, consistent.
//! 2. `put_automation` Part of the transaction that changes the rules, on both items as they were read.
//! 3. `automations_on` Query of the active automations on these events, by id, consistent.
//! 4. `rules` The same query for computed events.

use chrono::TimeDelta;
use domain::automation::{Automation, MAX_TRIGGERED, Step, Trigger};
use domain::event::{ComputedType, EventName, EventType};
use domain::fact_time::FactTime;
use domain::id::{AutomationId, CoachId};
use domain::sweep::{MAX_SWEPT, Rule};
use domain::time::Timestamp;
use runtime::{Metric, Unit, add};
use serde::{Deserialize, Serialize};

use crate::db::{Item, Part, StoreError, Write, from_item, query_page, s, sk_of, to_item};
use crate::fact_order::as_found;
use crate::workspace::{Workspaces, key_of, partition};

/// Active automations of a coach beyond the limit of their event. They are not evaluated.
const LEFT_OUT: Metric = Metric::new("automations_left_out", Unit::Count);

const ENTITY: &str = "automation";
const ACTIVE_PREFIX: &str = "AUTOMATION#";
const INACTIVE_PREFIX: &str = "AUTOMATION_OFF#";
/// Pages, a megabyte each, that one call reads of a coach's active automations: thousands of them.
const MAX_PAGES: usize = 4;

/// An automation as stored.
#[derive(Debug)]
enum StoredAutomation {
    Present(Box<AutomationItem>),
    Deleted(AutomationTombstone),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AutomationItem {
    #[serde(flatten, with = "AutomationAttributes")]
    automation: Automation,
    saved_at: FactTime,
    /// The time at which the present revision was stored. Two revisions of an automation never have the same time.
    stored_at: Timestamp,
}

/// The attributes of an automation.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Automation")]
struct AutomationAttributes {
    #[serde(rename = "automation_id")]
    id: AutomationId,
    coach_id: CoachId,
    name: String,
    active: bool,
    trigger: Trigger,
    steps: Vec<Step>,
}

#[derive(Debug, Serialize, Deserialize)]
struct AutomationTombstone {
    deleted: bool,
    saved_at: FactTime,
}

/// The items of an automation under its two keys.
#[derive(Debug, Default)]
pub struct FoundAutomation {
    active: Option<StoredAutomation>,
    inactive: Option<StoredAutomation>,
}

/// The next state of an automation.
pub struct NextAutomation {
    stored: StoredAutomation,
    /// Clients have to be evaluated again: another revision emits a computed event, or none does any more.
    pub changes_rules: bool,
}

impl StoredAutomation {
    fn from_item(item: Item) -> Result<Self, StoreError> {
        if item.contains_key("deleted") {
            return Ok(Self::Deleted(from_item(ENTITY, item)?));
        }
        Ok(Self::Present(Box::new(from_item(ENTITY, item)?)))
    }

    fn occurred_at(&self) -> FactTime {
        match self {
            Self::Present(record) => record.saved_at,
            Self::Deleted(tombstone) => tombstone.saved_at,
        }
    }

    fn present(&self) -> Option<&AutomationItem> {
        match self {
            Self::Present(record) => Some(record),
            Self::Deleted(_) => None,
        }
    }

    fn is_active(&self) -> bool {
        self.present().is_some_and(|record| record.automation.active)
    }
}

/// Returns true if the sweep evaluates the automation.
fn is_swept(automation: &Automation) -> bool {
    automation.active && automation.trigger.computed().is_some()
}

impl FoundAutomation {
    fn latest(&self) -> Option<&StoredAutomation> {
        [&self.active, &self.inactive].into_iter().flatten().max_by_key(|stored| stored.occurred_at())
    }

    /// The state that a fact sets; `to` is `None` for a deletion. Returns `None` if the stored state is newer, or the
    /// same.
    pub fn next(&self, to: Option<&Automation>, occurred_at: FactTime, now: Timestamp) -> Option<NextAutomation> {
        let found = self.latest();
        if found.is_some_and(|found| found.occurred_at() > occurred_at) {
            return None;
        }
        let was = found.and_then(StoredAutomation::present);
        let was_swept = was.is_some_and(|was| is_swept(&was.automation));
        let Some(to) = to else {
            let stored = StoredAutomation::Deleted(AutomationTombstone { deleted: true, saved_at: occurred_at });
            return Some(NextAutomation { stored, changes_rules: was_swept });
        };
        // Another name alone does not make another revision.
        let same = was.filter(|was| Automation { name: to.name.clone(), ..was.automation.clone() } == *to);
        let stored_at = match (same, was) {
            (Some(same), _) => same.stored_at,
            // Two revisions never have the same time, even if the clocks of two functions differ.
            (None, Some(was)) => now.max(was.stored_at + TimeDelta::milliseconds(1)),
            (None, None) => now,
        };
        let changes_rules = same.is_none() && (was_swept || is_swept(to));
        let record = AutomationItem { automation: to.clone(), saved_at: occurred_at, stored_at };
        (was != Some(&record))
            .then(|| NextAutomation { stored: StoredAutomation::Present(Box::new(record)), changes_rules })
    }
}

impl Workspaces {
    /// Reads the stored state of a coach's automation.
    pub async fn automation(&self, coach: &CoachId, id: &AutomationId) -> Result<FoundAutomation, StoreError> {
        let keys = [ACTIVE_PREFIX, INACTIVE_PREFIX].map(|prefix| key(coach, prefix, id));
        let mut found = FoundAutomation::default();
        for item in self.table.read(keys.into()).await? {
            let is_active = sk_of(&item).starts_with(ACTIVE_PREFIX);
            let stored = Some(StoredAutomation::from_item(item)?);
            if is_active { found.active = stored } else { found.inactive = stored }
        }
        Ok(found)
    }

    /// Parts of a transaction: store an automation under the key of its state and delete the other key. Both items must
    /// be as they were read.
    pub fn put_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        next: &NextAutomation,
        found: &FoundAutomation,
    ) -> [Write; 2] {
        let active = (key(coach, ACTIVE_PREFIX, id), &found.active);
        let inactive = (key(coach, INACTIVE_PREFIX, id), &found.inactive);
        let ((mut item, own), (other_key, other)) =
            if next.stored.is_active() { (active, inactive) } else { (inactive, active) };
        item.extend(match &next.stored {
            StoredAutomation::Present(record) => to_item(record),
            StoredAutomation::Deleted(tombstone) => to_item(tombstone),
        });
        let [own, other] = [own, other].map(|stored| stored.as_ref().map(StoredAutomation::occurred_at));
        [
            as_found(self.table.write(item), own).put(Part::Automation),
            as_found(self.table.write(other_key), other).delete(Part::Automation),
        ]
    }

    /// Reads a coach's active automations on these events, in the order of their ids.
    pub async fn automations_on(&self, coach: &CoachId, events: &[EventType]) -> Result<Vec<Automation>, StoreError> {
        let names: Vec<&str> = events.iter().map(|event| event.as_str()).collect();
        let found = self.active_automations(coach, &names).await?;
        let found: Vec<Automation> = found.into_iter().map(|record| record.automation).collect();
        for event in events {
            let waiting = found.iter().filter(|automation| automation.trigger.event() == EventName::from(*event));
            note_left_out(coach, event.as_str(), waiting.count(), MAX_TRIGGERED);
        }
        Ok(found)
    }

    /// Reads a coach's active automations on computed events, in the order of their ids.
    pub async fn rules(&self, coach: &CoachId) -> Result<Vec<Rule>, StoreError> {
        let found = self.active_automations(coach, &ComputedType::ALL.map(ComputedType::as_str)).await?;
        for event in ComputedType::ALL {
            let waiting = found.iter().filter(|record| record.automation.trigger.computed() == Some(event));
            note_left_out(coach, event.as_str(), waiting.count(), MAX_SWEPT);
        }
        let rules = found.into_iter();
        Ok(rules.map(|AutomationItem { automation, stored_at, .. }| Rule { automation, revision: stored_at }).collect())
    }

    async fn active_automations(&self, coach: &CoachId, events: &[&str]) -> Result<Vec<AutomationItem>, StoreError> {
        let names: Vec<String> = (0..events.len()).map(|index| format!(":event{index}")).collect();
        let values = [(":pk", s(partition(coach))), (":prefix", s(ACTIVE_PREFIX))];
        let mut query = self
            .table
            .query("pk = :pk AND begins_with(sk, :prefix)", values)
            .filter_expression(format!("#trigger.#event IN ({})", names.join(", ")))
            .expression_attribute_names("#trigger", "trigger")
            .expression_attribute_names("#event", "event")
            .consistent_read(true);
        for (name, event) in names.iter().zip(events) {
            query = query.expression_attribute_values(name, s(*event));
        }
        let mut found: Vec<AutomationItem> = Vec::new();
        let mut start = None;
        for _ in 0..MAX_PAGES {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            for item in page.items {
                found.push(from_item(ENTITY, item)?);
            }
            start = page.next;
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

/// Counts the automations of an event beyond the limit in a metric, and logs them.
fn note_left_out(coach: &CoachId, event: &str, count: usize, limit: usize) {
    if count > limit {
        add(LEFT_OUT, (count - limit) as f64);
        tracing::warn!(coach_id = %coach, event, count, "a coach has more automations than are evaluated");
    }
}

fn key(coach: &CoachId, prefix: &str, id: &AutomationId) -> Item {
    key_of(coach, &format!("{prefix}{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_from_its_item() {
        let trigger = Trigger::ComplianceDrop { threshold: 70.0, window_days: 7 };
        let record = AutomationItem {
            automation: Automation {
                id: AutomationId::parse("a1").unwrap(),
                coach_id: CoachId::parse("coach_1").unwrap(),
                name: "Low".to_owned(),
                active: true,
                trigger,
                steps: Vec::new(),
            },
            saved_at: FactTime::parse("2026-11-20T09:30:00.123456789Z").unwrap(),
            stored_at: Timestamp::from_ms(6),
        };
        let item = to_item(&record);
        let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
        names.sort_unstable();
        let attributes = ["active", "automation_id", "coach_id", "name", "saved_at", "steps", "stored_at", "trigger"];
        assert_eq!(names, attributes);
        assert_eq!(from_item::<AutomationItem>(ENTITY, item).unwrap(), record);
    }
}
