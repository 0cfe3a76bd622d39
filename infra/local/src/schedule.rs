//! EventBridge schedules on stack time.

mod rate;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::environments::Pool;
use crate::template::{ACCOUNT, REGION, STACK_NAME, ScheduleSource, TemplateError};
use crate::work::Work;
use rate::Rate;

/// The template's schedules.
#[derive(Default)]
pub struct Schedules(Vec<Arc<Schedule>>);

struct Schedule {
    name: String,
    rate: Rate,
    pool: Arc<Pool>,
    next: Mutex<Option<DateTime<Utc>>>,
    running: AtomicBool,
}

impl Schedules {
    /// Adds a schedule, which first fires at its first time after `now`. `name` is the event's name in the template.
    pub fn add(
        &mut self,
        name: &str,
        source: &ScheduleSource,
        pool: Arc<Pool>,
        now: DateTime<Utc>,
    ) -> Result<(), TemplateError> {
        let rate = Rate::parse(&source.schedule)?;
        let next = Mutex::new(rate.next_after(now));
        let name = format!("{STACK_NAME}-{}-{name}", pool.name());
        self.0.push(Arc::new(Schedule { name, rate, pool, next, running: AtomicBool::new(false) }));
        Ok(())
    }

    /// Returns the earliest time at which a schedule fires.
    pub fn next_due(&self) -> Option<DateTime<Utc>> {
        self.0.iter().filter_map(|schedule| *schedule.lock_next()).min()
    }

    /// Invokes the due schedules and returns their number. A schedule whose previous invocation still runs is skipped.
    pub fn fire_due(&self, now: DateTime<Utc>, work: &Work) -> usize {
        self.0.iter().filter(|schedule| schedule.fire_if_due(now, work)).count()
    }
}

impl Schedule {
    fn fire_if_due(self: &Arc<Self>, now: DateTime<Utc>, work: &Work) -> bool {
        let due = {
            let mut next = self.lock_next();
            let Some(due) = next.filter(|due| *due <= now) else { return false };
            *next = self.rate.next_after(now);
            due
        };
        if self.running.swap(true, Ordering::AcqRel) {
            tracing::warn!(schedule = self.name, "schedule skipped: its previous invocation still runs");
            return false;
        }
        // Counted before the task starts, so that a concurrent settle waits for the invocation.
        let task = work.begin();
        let schedule = Arc::clone(self);
        tokio::spawn(async move {
            // The pool has logged the error. The schedule's next time is the retry.
            let _ = schedule.pool.invoke(&schedule.name, event(&schedule.name, due)).await;
            schedule.running.store(false, Ordering::Release);
            drop(task);
        });
        true
    }

    fn lock_next(&self) -> std::sync::MutexGuard<'_, Option<DateTime<Utc>>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds EventBridge's scheduled event.
fn event(name: &str, due: DateTime<Utc>) -> Value {
    json!({
        "version": "0",
        "id": Uuid::new_v4(),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": due.to_rfc3339_opts(SecondsFormat::Secs, true),
        "region": REGION,
        "resources": [format!("arn:aws:events:{REGION}:{ACCOUNT}:rule/{name}")],
        "detail": {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_has_eventbridges_shape() {
        let event = event("partner-api-relay-Unsent", "2026-02-01T10:15:00Z".parse().unwrap());
        assert_eq!(event["detail-type"], "Scheduled Event");
        assert_eq!(event["time"], "2026-02-01T10:15:00Z");
        assert_eq!(event["resources"][0], "arn:aws:events:us-east-1:000000000000:rule/partner-api-relay-Unsent");
    }
}
