//! The one shape of a fact: read, decide, commit once with its mark, then do what follows.
//!
//! A transaction has the mark of the fact with its change, so a message that arrives twice commits once. A fact that
//! has nothing to write in a transaction is marked last.

use domain::event::Event;
use domain::fact_time::FactTime;
use domain::id::{ClientId, FactId};
use domain::time::Timestamp;
use futures::future::try_join;
use store::client::{ClientState, StoredClient};
use store::unit::{Commit, Once, Unit};
use store::watch::DueMark;
use store::workspace::StoredWorkspace;
use store::{Part, StoreError, retry};

use crate::FactStore;
use crate::outcome::{Outcome, WIPING};

/// A fact as its message brings it.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) id: &'a FactId,
    pub(crate) occurred_at: FactTime,
    /// The fact is stored without events.
    pub(crate) backfill: bool,
    /// The client that the fact is about.
    pub(crate) client: Option<&'a ClientId>,
    /// The workspace of the coach that the fact names, unless the command reads it.
    pub(crate) workspace: Option<&'a StoredWorkspace>,
    /// False in a message that continues or repeats a stored fact: the fact's mark is no reason to stop.
    pub(crate) is_first: bool,
    pub(crate) now: Timestamp,
}

impl Context<'_> {
    /// The mark with which the fact makes a client, or all clients of a coach, due.
    pub(crate) fn due_mark(self) -> DueMark {
        DueMark { now: self.now, silent: self.backfill }
    }

    /// Returns true if the fact emits events of the CRM.
    pub(crate) fn emits_crm_events(self) -> bool {
        !self.backfill && self.workspace.is_some_and(|found| found.workspace.entitlements.pro_crm)
    }

    /// Returns an event of the CRM if the fact emits one.
    pub(crate) fn crm_event(self, event: impl FnOnce() -> Option<Event>) -> Option<Event> {
        if self.emits_crm_events() { event() } else { None }
    }
}

/// A kind of fact.
pub(crate) trait FactCommand {
    /// The state that the decision depends on.
    type Snapshot;
    /// The work that is left once the fact is stored.
    type Rest;

    /// Reads the state, and writes nothing. Reads again after a conflict with another write.
    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<Self::Snapshot, Stop>;

    /// Decides what the fact writes, without a call.
    fn decide(&self, app: &FactStore, fact: Context<'_>, found: Self::Snapshot) -> Decision<Self::Rest>;

    /// Does the work that is left. Idempotent: a message that arrives again repeats it.
    async fn after(&self, _app: &FactStore, _fact: Context<'_>, _rest: Self::Rest) -> Result<Outcome, StoreError> {
        Ok(Outcome::Stored)
    }
}

/// The reason why a fact ends after its reads.
pub(crate) enum Stop {
    /// No fact changes the record any more, or a newer one is stored.
    Nothing,
    /// The record that this field names is not stored yet.
    Unknown(&'static str),
    /// Something else comes first, for this reason.
    Waits(&'static str),
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// The decision about a fact.
pub(crate) enum Decision<Rest> {
    /// Nothing is to be done: what is stored is newer or the same.
    Nothing,
    /// The unit is to be committed with the fact's mark, then the rest done.
    Commit(Unit, Rest),
    /// Only the rest is to be done.
    Follow(Rest),
    /// An earlier fact left this rest. It comes first, then the state is read again.
    First(Rest),
    /// The record that this field names is not stored yet.
    Unknown(&'static str),
    /// Another fact comes first, for this reason.
    Waits(&'static str),
    /// The fact is refused, for this reason.
    Refused(&'static str),
}

/// A fact that needs no further decision.
enum Decided<Rest> {
    /// The transaction with its mark is committed, by this message or an earlier one.
    Marked {
        rest: Rest,
        is_new: bool,
    },
    /// No transaction has its mark.
    Unmarked {
        rest: Option<Rest>,
        is_new: bool,
    },
    Ended(Outcome),
}

/// Stores a fact, or does what is left of it.
pub(crate) async fn store<C: FactCommand>(
    app: &FactStore,
    command: C,
    fact: Context<'_>,
) -> Result<Outcome, StoreError> {
    let (rest, is_marked, is_new) = match retry("a fact", || attempt(app, &command, fact)).await? {
        Decided::Marked { rest, is_new } => (Some(rest), true, is_new),
        Decided::Unmarked { rest, is_new } => (rest, false, is_new),
        Decided::Ended(outcome) => return Ok(outcome),
    };
    let outcome = match rest {
        Some(rest) => command.after(app, fact, rest).await?,
        None => Outcome::Stored,
    };
    if matches!(outcome, Outcome::Stored | Outcome::Unchanged) && !is_marked {
        app.facts.mark(fact.id, fact.now).await?;
    }
    Ok(if matches!(outcome, Outcome::Stored) && !is_new { Outcome::Unchanged } else { outcome })
}

/// Reads, decides and commits. `None`: another write came between.
async fn attempt<C: FactCommand>(
    app: &FactStore,
    command: &C,
    fact: Context<'_>,
) -> Result<Option<Decided<C::Rest>>, StoreError> {
    let found = match command.read(app, fact).await {
        Ok(found) => found,
        Err(Stop::Nothing) => return Ok(Some(Decided::Unmarked { rest: None, is_new: false })),
        Err(Stop::Unknown(field)) => return Ok(Some(Decided::Ended(Outcome::Unknown(field)))),
        Err(Stop::Waits(reason)) => return Ok(Some(Decided::Ended(Outcome::Waits(reason)))),
        Err(Stop::Failed(error)) => return Err(error),
    };
    let (unit, rest) = match command.decide(app, fact, found) {
        Decision::Commit(unit, rest) => (unit, rest),
        Decision::First(rest) => {
            command.after(app, fact, rest).await?;
            return Ok(None);
        }
        Decision::Nothing => return Ok(Some(Decided::Unmarked { rest: None, is_new: false })),
        Decision::Follow(rest) => return Ok(Some(Decided::Unmarked { rest: Some(rest), is_new: true })),
        Decision::Unknown(field) => return Ok(Some(Decided::Ended(Outcome::Unknown(field)))),
        Decision::Waits(reason) => return Ok(Some(Decided::Ended(Outcome::Waits(reason)))),
        Decision::Refused(reason) => return Ok(Some(Decided::Ended(Outcome::Refused(reason)))),
    };
    let once = if fact.is_first { Once::Fact(&app.facts, fact.id) } else { Once::ByVersion };
    let decided = match app.units.commit(unit, once, fact.now).await? {
        Commit::Done if !fact.is_first => Decided::Unmarked { rest: Some(rest), is_new: true },
        Commit::Done => Decided::Marked { rest, is_new: true },
        Commit::Repeated(_) => Decided::Marked { rest, is_new: false },
        // A later fact has set the record, or the event was emitted under another fact.
        Commit::Refused(refused) if refused.is(Part::LaterFact) || refused.is(Part::EmittedMark) => {
            Decided::Unmarked { rest: Some(rest), is_new: false }
        }
        Commit::Refused(refused) if refused.is(Part::Team) => Decided::Ended(Outcome::Unknown("team_id")),
        Commit::Refused(refused) => {
            if let Some(client) = fact.client.filter(|_| refused.is(Part::Watch)) {
                app.clients.restore_watch(client, fact.now).await?;
            }
            return Ok(None);
        }
    };
    Ok(Some(decided))
}

/// Reads the client of a fact, beside what `read` reads.
pub(crate) async fn with_client<T>(
    app: &FactStore,
    client: &ClientId,
    read: impl Future<Output = Result<T, StoreError>>,
) -> Result<(StoredClient, T), Stop> {
    let (state, found) = try_join(app.clients.state(client), read).await?;
    match state {
        ClientState::Known(stored) if stored.is_wiping => Err(Stop::Waits(WIPING)),
        ClientState::Known(stored) => Ok((*stored, found)),
        ClientState::Unknown => Err(Stop::Unknown("client_id")),
        // No later fact restores an erased client.
        ClientState::Erased => Err(Stop::Nothing),
    }
}
