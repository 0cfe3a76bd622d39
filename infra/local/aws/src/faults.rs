//! Injected faults for calls of function environments. A developer's own calls never fail by them.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::access::function_of;

/// The body of `POST /_local/faults`. An absent field changes nothing. 0, `false` and an empty string clear a fault.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// The next n mails are refused.
    pub mail_failures: Option<u32>,
    /// The next n DynamoDB requests are refused before they take effect.
    pub store_failures: Option<u32>,
    /// The next n DynamoDB requests take effect, but their response is lost.
    pub store_lost_answers: Option<u32>,
    /// The next n DynamoDB writes fail by a transaction conflict.
    pub store_conflicts: Option<u32>,
    /// Each DynamoDB request takes this many milliseconds longer.
    pub store_latency_ms: Option<u32>,
    /// The function crashes right after each of its next n successful transactions.
    pub crash_after_commit: Option<u32>,
    /// The function crashes right before each of its next n calls takes effect.
    pub crash_before_call: Option<u32>,
    /// The next n calls block before they take effect, until this is set to 0.
    pub stalled_calls: Option<u32>,
    /// Every message is delivered to its function twice.
    #[serde(default, deserialize_with = "switch")]
    pub duplicate_messages: Option<bool>,
    /// Only calls of this function are affected.
    pub function: Option<String>,
    /// The next n calls are not affected.
    pub spared_calls: Option<u32>,
}

/// Parses a boolean, or a number of which 0 is `false`, so that 0 clears every fault.
fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Switch {
        Is(bool),
        Number(u32),
    }
    Ok(Option::<Switch>::deserialize(deserializer)?.map(|switch| match switch {
        Switch::Is(on) => on,
        Switch::Number(number) => number > 0,
    }))
}

/// The pending faults.
#[derive(Debug, Default)]
pub struct Faults {
    pending: Mutex<Pending>,
    /// Releases stalled calls.
    released: watch::Sender<()>,
    /// `ClientRequestToken`s of committed transactions whose answer was lost.
    lost_tokens: Mutex<HashSet<String>>,
}

/// The fault that applies to a call before it takes effect.
#[derive(Debug)]
pub(crate) enum CallFault {
    /// No fault at all.
    None,
    /// The faults of its service may follow.
    Service,
    /// Its function crashes.
    Crash,
    /// The call blocks, then the faults of its service may follow.
    Stall(watch::Receiver<()>),
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Pending {
    mail_failures: u32,
    store_failures: u32,
    store_lost_answers: u32,
    store_conflicts: u32,
    store_latency_ms: u32,
    crash_after_commit: u32,
    crash_before_call: u32,
    stalled_calls: u32,
    duplicate_messages: bool,
    function: String,
    spared_calls: u32,
}

impl Faults {
    /// Sets the faults that the plan names and leaves the others.
    pub fn set(&self, plan: FaultPlan) {
        let mut pending = self.lock();
        let release = plan.stalled_calls == Some(0);
        let mut merged = as_value(&*pending);
        if let Value::Object(plan) = as_value(&plan) {
            plan.into_iter().filter(|(_, wanted)| !wanted.is_null()).for_each(|(name, wanted)| merged[name] = wanted);
        }
        *pending = serde_json::from_value(merged).expect("a plan has the faults and their types");
        if release {
            self.released.send_replace(());
        }
    }

    /// Returns the pending faults, with the field names of [`FaultPlan`].
    pub fn current(&self) -> Value {
        as_value(&*self.lock())
    }

    /// Takes the fault for a call of this environment.
    pub(crate) fn take_call_fault(&self, environment: &str) -> CallFault {
        let mut pending = self.lock();
        if !pending.concerns(environment) || take(&mut pending.spared_calls) {
            CallFault::None
        } else if take(&mut pending.crash_before_call) {
            CallFault::Crash
        } else if take(&mut pending.stalled_calls) {
            CallFault::Stall(self.released.subscribe())
        } else {
            CallFault::Service
        }
    }

    /// The time that a DynamoDB request of this environment takes longer.
    pub(crate) fn store_latency(&self, environment: &str) -> Option<Duration> {
        let pending = self.lock();
        let is_slow = pending.store_latency_ms > 0 && pending.concerns(environment);
        is_slow.then(|| Duration::from_millis(pending.store_latency_ms.into()))
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

    /// A transaction that is repeated under its token after a lost answer has been committed: it conflicts with
    /// nothing.
    pub(crate) fn take_store_conflict(&self, token: Option<&str>) -> bool {
        !token.is_some_and(|token| self.lost_tokens().contains(token)) && take(&mut self.lock().store_conflicts)
    }

    /// Notes that a transaction with this token was committed and its answer is lost.
    pub(crate) fn remember_lost(&self, token: &str) {
        self.lost_tokens().insert(token.to_owned());
    }

    fn lost_tokens(&self) -> MutexGuard<'_, HashSet<String>> {
        self.lost_tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_crash_after_commit(&self) -> bool {
        take(&mut self.lock().crash_after_commit)
    }

    pub(crate) fn duplicates_messages(&self) -> bool {
        self.lock().duplicate_messages
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn as_value(faults: &impl Serialize) -> Value {
    serde_json::to_value(faults).expect("numbers, a flag and a text are JSON")
}

impl Pending {
    fn concerns(&self, environment: &str) -> bool {
        self.function.is_empty() || self.function == function_of(environment)
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
        assert!(!faults.take_store_conflict(None));
    }

    #[test]
    fn other_functions_and_spared_calls_are_not_affected() {
        let faults = Faults::default();
        let function = Some("clients".to_owned());
        let plan = FaultPlan { function, spared_calls: Some(1), crash_before_call: Some(1), ..FaultPlan::default() };
        faults.set(plan);
        assert!(matches!(faults.take_call_fault("relay-1"), CallFault::None));
        assert!(matches!(faults.take_call_fault("clients-1"), CallFault::None));
        assert!(matches!(faults.take_call_fault("relay-2"), CallFault::None));
        assert!(matches!(faults.take_call_fault("clients-2"), CallFault::Crash));
        assert!(matches!(faults.take_call_fault("clients-2"), CallFault::Service));
        faults.set(FaultPlan { function: Some(String::new()), crash_before_call: Some(1), ..FaultPlan::default() });
        assert!(matches!(faults.take_call_fault("relay-2"), CallFault::Crash));
    }

    #[test]
    fn a_stalled_call_continues_once_stalling_is_off() {
        let faults = Faults::default();
        faults.set(FaultPlan { stalled_calls: Some(1), ..FaultPlan::default() });
        let CallFault::Stall(released) = faults.take_call_fault("clients-1") else { panic!("it stalls") };
        assert!(matches!(faults.take_call_fault("clients-1"), CallFault::Service), "and no other does");
        faults.set(FaultPlan { stalled_calls: Some(1), ..FaultPlan::default() });
        assert!(!released.has_changed().unwrap());
        let CallFault::Stall(later) = faults.take_call_fault("clients-2") else { panic!("it stalls") };
        faults.set(FaultPlan { stalled_calls: Some(0), ..FaultPlan::default() });
        assert!(released.has_changed().unwrap() && later.has_changed().unwrap());
    }

    #[test]
    fn an_unknown_fault_is_refused() {
        assert!(serde_json::from_str::<FaultPlan>(r#"{"store_faliures": 1}"#).is_err());
    }
}
