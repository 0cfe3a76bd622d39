//! Faults on demand, for requests of function environments alone: a developer's own calls always work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The body of `POST /_local/faults`. An absent field changes nothing; 0 and `false` switch a fault off.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// The next n mails are refused.
    pub mail_failures: Option<u32>,
    /// The next n DynamoDB requests are refused before they take effect.
    pub store_failures: Option<u32>,
    /// The next n DynamoDB requests take effect and their answer is lost.
    pub store_lost_answers: Option<u32>,
    /// The next n DynamoDB writes lose to another transaction.
    pub store_conflicts: Option<u32>,
    /// The function dies right after its next n successful transactions.
    pub crash_after_commit: Option<u32>,
    /// Every message that a function gets arrives twice.
    pub duplicate_messages: Option<bool>,
}

/// The faults that are still to happen.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Pending>);

#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Pending {
    mail_failures: u32,
    store_failures: u32,
    store_lost_answers: u32,
    store_conflicts: u32,
    crash_after_commit: u32,
    duplicate_messages: bool,
}

impl Faults {
    /// Takes over what the plan names and leaves the rest.
    pub fn set(&self, plan: FaultPlan) {
        let mut pending = self.lock();
        let Pending {
            mail_failures,
            store_failures,
            store_lost_answers,
            store_conflicts,
            crash_after_commit,
            duplicate_messages,
        } = &mut *pending;
        for (now, wanted) in [
            (mail_failures, plan.mail_failures),
            (store_failures, plan.store_failures),
            (store_lost_answers, plan.store_lost_answers),
            (store_conflicts, plan.store_conflicts),
            (crash_after_commit, plan.crash_after_commit),
        ] {
            *now = wanted.unwrap_or(*now);
        }
        *duplicate_messages = plan.duplicate_messages.unwrap_or(*duplicate_messages);
    }

    /// What is still to happen, with the field names of [`FaultPlan`].
    pub fn current(&self) -> Value {
        serde_json::to_value(*self.lock()).expect("numbers and a flag are JSON")
    }

    pub(crate) fn take_mail_failure(&self) -> bool {
        take(&mut self.lock().mail_failures)
    }

    pub(crate) fn take_store_failure(&self) -> bool {
        take(&mut self.lock().store_failures)
    }

    pub(crate) fn take_store_lost_answer(&self) -> bool {
        take(&mut self.lock().store_lost_answers)
    }

    pub(crate) fn take_store_conflict(&self) -> bool {
        take(&mut self.lock().store_conflicts)
    }

    pub(crate) fn take_crash_after_commit(&self) -> bool {
        take(&mut self.lock().crash_after_commit)
    }

    pub(crate) fn duplicates_messages(&self) -> bool {
        self.lock().duplicate_messages
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(left: &mut u32) -> bool {
    let happens = *left > 0;
    *left = left.saturating_sub(1);
    happens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_changes_only_what_it_names() {
        let faults = Faults::default();
        faults.set(FaultPlan { store_failures: Some(2), duplicate_messages: Some(true), ..FaultPlan::default() });
        faults.set(FaultPlan { mail_failures: Some(1), ..FaultPlan::default() });
        assert!(faults.take_store_failure() && faults.take_store_failure() && !faults.take_store_failure());
        assert_eq!(faults.current()["mail_failures"], 1);
        assert_eq!(faults.current()["duplicate_messages"], true);
    }

    #[test]
    fn zero_switches_a_fault_off() {
        let faults = Faults::default();
        faults.set(FaultPlan { store_conflicts: Some(5), ..FaultPlan::default() });
        faults.set(FaultPlan { store_conflicts: Some(0), ..FaultPlan::default() });
        assert!(!faults.take_store_conflict());
    }

    #[test]
    fn an_unknown_fault_is_refused() {
        assert!(serde_json::from_str::<FaultPlan>(r#"{"store_faliures": 1}"#).is_err());
    }
}
