//! Callers of the API, and what comes of checking one.

use std::future::Future;

use domain::id::CoachId;
use domain::idempotency::Api;
use domain::rate_limit::Quota;
use domain::time::Timestamp;
use futures::future::BoxFuture;
use runtime::{BoxError, Environment};
use store::Db;

use crate::inbound::Inbound;
use crate::problem::Problem;

/// A caller of the API, by the credential that the caller's routes ask for.
pub trait Caller: Sized + Send + Sync + 'static {
    /// The check of callers of this kind.
    type Gate: Clone + Send + Sync + 'static;

    /// Connects a gate to what it checks by.
    fn gate(env: &Environment, db: &Db) -> Result<Self::Gate, BoxError>;

    /// Checks the caller of a request: credential, rate, scope and permission, entitlement.
    ///
    /// If the gate has admitted the credential before, `early` runs in parallel with the check, otherwise after it. So
    /// a forged key costs its check alone, and a malformed key no call. The work has to check who owns what was read.
    fn admit<T: Send>(
        gate: &Self::Gate,
        inbound: &Inbound,
        early: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<(Admitted<Self>, T), Refused>> + Send;
}

/// A caller of routes that write.
pub trait Writer: Caller {
    /// The API that the caller uses.
    const API: Api;
    /// True: a command reads while its key is claimed, so that a write waits less. False: a repeat reads nothing.
    const READS_EARLY: bool = true;
    fn coach(&self) -> &CoachId;
    /// Time of the request's arrival.
    fn now(&self) -> Timestamp;
}

/// A caller that was let in.
pub struct Admitted<C> {
    pub(crate) caller: C,
    pub(crate) quotas: Vec<Quota>,
    /// Work that is left, beside the operation. Nothing depends on it.
    pub(crate) chore: Option<BoxFuture<'static, ()>>,
}

/// The refusal of a caller.
pub struct Refused {
    pub(crate) problem: Problem,
    /// Empty while nobody knows who calls.
    pub(crate) quotas: Vec<Quota>,
}

impl From<Problem> for Refused {
    /// A refusal before the caller is known, so without quotas.
    fn from(problem: Problem) -> Self {
        Self { problem, quotas: Vec::new() }
    }
}
