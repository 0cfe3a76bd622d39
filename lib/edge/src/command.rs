//! A write of the API: read, count, decide, commit once, and read again if another write was faster.
//!
//! [`Runner`] does everything that all writes share: the idempotency key, the transaction with the recorded answer, the
//! backoff after a conflict, replays. A [`Command`] is the rest.
//!
//! A write with a key happens at most once, and a repeat learns its result. If the store does not answer in time, the
//! function answers itself, before the gateway would. The repeat replays what was committed, or takes over the claim.
//! After the takeover the earlier request can no longer commit.

use std::borrow::Cow;
use std::future::Future;

use domain::change::Change;
use domain::event::Event;
use domain::id::{ClientId, CoachId, ContactId};
use domain::idempotency::{Api, ReplyKind};
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::Serialize;
use serde_json::Value;
use store::claim::{Claims, Recorded, RecordedSubject};
use store::contact_ref::ContactRef;
use store::outbox::Content;
use store::unit::{Commit, Once, Unit, Units};
use store::vault::Vault;
use store::{Db, RefusedTransaction, Write, retry};

use crate::caller::Writer;
use crate::idempotency::{Claimed, IdempotentRequest, Stage, key_of, once};
use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;

/// A write operation of a route.
pub trait Command: 'static {
    /// The state of the function.
    type App: Sync;
    type Caller: Writer;
    /// Everything that the decision depends on: the parsed request, what is stored, and random bytes.
    type Snapshot: Send + Sync;

    /// The payload of the request's fingerprint.
    fn payload(inbound: &Inbound) -> Cow<'_, Value> {
        inbound.payload()
    }

    /// Parses the request, reads what is stored and draws what is random. Writes nothing: it is called again after each
    /// conflict with another write.
    fn read(
        app: &Self::App,
        caller: &Self::Caller,
        inbound: &Inbound,
    ) -> impl Future<Output = Result<Self::Snapshot, Problem>> + Send;

    /// Counts the request under a limit of its own, or refuses it. Called once, after the first read.
    fn count(
        _app: &Self::App,
        _caller: &Self::Caller,
        _found: &Self::Snapshot,
    ) -> impl Future<Output = Result<(), Problem>> + Send {
        async { Ok(()) }
    }

    /// Decides what is written and answered. Pure: no clock but the caller's, no call. `app` builds the writes.
    fn decide(app: &Self::App, caller: &Self::Caller, found: &Self::Snapshot) -> Result<Decision, Problem>;

    /// Gives the reason of a refused commit. `Ok` if another write was faster: the command reads and decides again.
    fn refused(
        _app: &Self::App,
        _caller: &Self::Caller,
        _found: &Self::Snapshot,
        _refused: &RefusedTransaction,
    ) -> impl Future<Output = Result<(), Problem>> + Send {
        async { Ok(()) }
    }

    /// Follows a commit up, such as by a metric. Returns the answer.
    fn committed(
        _app: &Self::App,
        _caller: &Self::Caller,
        _found: &Self::Snapshot,
        reply: Reply,
    ) -> impl Future<Output = Reply> + Send {
        async { reply }
    }

    /// Brings a stage up to date that an earlier request committed.
    fn resume(
        _app: &Self::App,
        _caller: &Self::Caller,
        stage: Stage,
    ) -> impl Future<Output = Result<Stage, Problem>> + Send {
        async { Ok(stage) }
    }

    /// Does the work after a committed stage, such as a mail, and records the answer under the claim.
    fn finish(
        _app: &Self::App,
        _caller: &Self::Caller,
        _stage: Stage,
        _recorder: Recorder<'_>,
    ) -> impl Future<Output = Result<Reply, Problem>> + Send {
        async { Err(Problem::internal("finish a command", "the command has no stage")) }
    }
}

/// A write that is more than one transaction. Each of its steps takes effect once, so a repeat does what is left.
pub trait Steps: 'static {
    /// The state of the function.
    type App: Sync;
    type Caller: Writer;

    /// Does all steps, whichever of them an earlier request with the idempotency key did.
    fn run(
        app: &Self::App,
        caller: &Self::Caller,
        inbound: &Inbound,
    ) -> impl Future<Output = Result<Reply, Problem>> + Send;
}

/// A command whose first read needs no caller, so that it runs beside the check of the caller.
pub trait EarlyCommand: Command {
    /// Reads as [`Command::read`] does. The decision has to check who owns what was read.
    fn read_early(app: &Self::App, inbound: &Inbound) -> impl Future<Output = Result<Self::Snapshot, Problem>> + Send;
}

/// The decision of a command.
#[must_use]
pub struct Decision {
    unit: Unit,
    then: Then,
    subject: Option<RecordedSubject>,
}

/// The person that a reply shows. The person's erasure finds and removes the recorded reply.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    Client(&'a ClientId),
    Contact(&'a CoachId, ContactId),
    /// The reply shows nobody, such as in the settings.
    Nobody,
}

/// The continuation after the commit.
enum Then {
    Reply(Reply, ReplyKind),
    /// An answer that shows a secret once, and the same answer without it.
    Secret {
        whole: Reply,
        redacted: Reply,
    },
    /// Work that depends on the commit, from this stage.
    Stage(Stage),
}

impl Decision {
    /// Answers with a reply about a person. The records to write are added.
    pub fn reply(about: About<'_>, reply: Reply) -> Self {
        Self::new(about, Then::Reply(reply, ReplyKind::Other))
    }

    /// Answers with a password, which is recorded for a shorter time under a derived key.
    pub fn password(about: About<'_>, reply: Reply) -> Self {
        Self::new(about, Then::Reply(reply, ReplyKind::Password))
    }

    /// Answers a coach with a secret. A late repeat gets the `redacted` answer.
    pub fn secret(whole: Reply, redacted: Reply) -> Self {
        Self::new(About::Nobody, Then::Secret { whole, redacted })
    }

    /// Continues with [`Command::finish`] after the commit.
    pub fn stage(about: About<'_>, stage: &impl Serialize) -> Result<Self, Problem> {
        Ok(Self::new(about, Then::Stage(Stage::of(stage)?)))
    }

    fn new(about: About<'_>, then: Then) -> Self {
        let subject = match about {
            About::Client(client) => Some(RecordedSubject::Client(client.clone())),
            About::Contact(coach, contact) => Some(RecordedSubject::Contact(ContactRef::new(coach, contact))),
            About::Nobody => None,
        };
        Self { unit: Unit::new(), then, subject }
    }

    /// Adds writes of records.
    pub fn write(self, writes: impl IntoIterator<Item = Write>) -> Self {
        self.with(|unit| unit.write(writes))
    }

    /// Adds changes that the application learns of.
    pub fn change(self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.with(|unit| unit.change(changes))
    }

    /// Adds events for receivers.
    pub fn events(self, events: impl IntoIterator<Item = Event>) -> Self {
        self.with(|unit| unit.events(events))
    }

    /// Adds an outbox entry.
    pub fn entry(self, content: Content) -> Self {
        self.with(|unit| unit.entries([content]))
    }

    /// Changes the unit.
    pub fn with(self, change: impl FnOnce(Unit) -> Unit) -> Self {
        Self { unit: change(self.unit), ..self }
    }
}

/// Runs commands.
#[derive(Clone)]
pub struct Runner {
    claims: Claims,
    units: Units,
}

impl Runner {
    /// Claims keys in the idempotency table and emits through the outbox.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { claims: Claims::new(env, db, vault)?, units: Units::new(env, db, vault)? })
    }

    /// Runs a command, once for all requests with its idempotency key. The snapshot is read while the key is claimed,
    /// unless it was read before.
    ///
    /// A repeat gets the recorded answer. Another payload under the key is refused, or replayed with a mark for
    /// partners. If the store does not answer a CRM write, the result is unknown: the caller gets
    /// [`Problem::Unconfirmed`], and the repeat learns the result.
    pub(crate) async fn run<C: Command>(
        &self,
        app: &C::App,
        caller: &C::Caller,
        inbound: &Inbound,
        read: Option<Result<C::Snapshot, Problem>>,
    ) -> Result<Reply, Problem> {
        let key = key_of(inbound, caller)?;
        let run = Run { runner: self, app, caller, inbound };
        let reads = key.is_none() || C::Caller::READS_EARLY;
        let read = async {
            match read {
                None if reads => Some(C::read(app, caller, inbound).await),
                read => read,
            }
        };
        let Some(key) = key else { return run.commit::<C>(read.await, None).await };
        let work = async |claimed: Claimed, read: Option<Result<C::Snapshot, Problem>>| {
            let done = match &claimed.stage {
                // A committed stage is finished, whatever the payload of this request.
                Some(stage) => run.resume::<C>(stage.clone(), &claimed).await,
                None => run.commit::<C>(read, Some(&claimed)).await,
            };
            done.map_err(unconfirmed::<C>)
        };
        let request = IdempotentRequest { key, mismatch: C::Caller::API.mismatch(), payload: C::payload(inbound) };
        once(&self.claims, inbound, request, caller.now(), read, work).await.map_err(unconfirmed::<C>)
    }

    /// Does all steps of a write, once for all requests with its idempotency key. A repeat gets the recorded answer.
    pub(crate) async fn run_steps<S: Steps>(
        &self,
        app: &S::App,
        caller: &S::Caller,
        inbound: &Inbound,
    ) -> Result<Reply, Problem> {
        let Some(key) = key_of(inbound, caller)? else { return S::run(app, caller, inbound).await };
        let request = IdempotentRequest { key, mismatch: S::Caller::API.mismatch(), payload: inbound.payload() };
        let work = async |claimed: Claimed, ()| {
            let reply = S::run(app, caller, inbound).await?;
            let recorded = Recorded::reply(reply.to_recorded(), claimed.key.retention(ReplyKind::Other));
            match self.claims.record_alone(&claimed.claim, &recorded, caller.now()).await? {
                true => Ok(reply),
                false => Err(Problem::IdempotencyInProgress),
            }
        };
        once(&self.claims, inbound, request, caller.now(), async {}, work).await
    }

    fn cause<'a>(&'a self, claimed: Option<&'a Claimed>, recorded: Option<&'a Recorded>) -> Once<'a> {
        match claimed.zip(recorded) {
            Some((claimed, recorded)) => Once::Claim(&self.claims, &claimed.claim, recorded),
            None => Once::ByVersion,
        }
    }
}

/// One run of a command.
struct Run<'a, App, Caller> {
    runner: &'a Runner,
    app: &'a App,
    caller: &'a Caller,
    inbound: &'a Inbound,
}

impl<App: Sync, C: Writer> Run<'_, App, C> {
    /// Counts, decides and commits. Reads and decides again after each conflict with another write.
    async fn commit<W: Command<App = App, Caller = C>>(
        &self,
        read: Option<Result<W::Snapshot, Problem>>,
        claimed: Option<&Claimed>,
    ) -> Result<Reply, Problem> {
        let Self { runner, app, caller, inbound } = *self;
        let found = match read {
            Some(read) => read?,
            None => W::read(app, caller, inbound).await?,
        };
        W::count(app, caller, &found).await?;
        let mut first = Some(found);
        retry("a command", || {
            let found = first.take();
            async move {
                let found = match found {
                    Some(found) => found,
                    None => W::read(app, caller, inbound).await?,
                };
                let Decision { unit, then, subject } = W::decide(app, caller, &found)?;
                let recorded = claimed.map(|claimed| then.recorded(claimed).about(subject));
                match runner.units.commit(unit, runner.cause(claimed, recorded.as_ref()), caller.now()).await? {
                    Commit::Done => {}
                    Commit::Repeated(_) => return Err(Problem::IdempotencyInProgress),
                    Commit::Refused(refused) => {
                        W::refused(app, caller, &found, &refused).await?;
                        return Ok(None);
                    }
                }
                match (then, claimed) {
                    (Then::Reply(reply, _) | Then::Secret { whole: reply, .. }, _) => {
                        Ok(Some(W::committed(app, caller, &found, reply).await))
                    }
                    (Then::Stage(stage), Some(claimed)) => {
                        W::finish(app, caller, stage, Recorder { runner, claimed }).await.map(Some)
                    }
                    (Then::Stage(_), None) => Err(Problem::internal("finish a command", "its route has no claim")),
                }
            }
        })
        .await
    }

    /// Finishes from the stage of an earlier request.
    async fn resume<W: Command<App = App, Caller = C>>(
        &self,
        stage: Stage,
        claimed: &Claimed,
    ) -> Result<Reply, Problem> {
        let Self { runner, app, caller, .. } = *self;
        let stage = W::resume(app, caller, stage).await?;
        W::finish(app, caller, stage, Recorder { runner, claimed }).await
    }
}

/// Records the answer of a command that finishes after its stage.
#[derive(Clone, Copy)]
pub struct Recorder<'a> {
    runner: &'a Runner,
    claimed: &'a Claimed,
}

impl Recorder<'_> {
    /// The record of a reply about a client, whose erasure removes the record.
    pub fn reply_about_client(&self, reply: &Reply, kind: ReplyKind, client: &ClientId) -> Recorded {
        let subject = RecordedSubject::Client(client.clone());
        Recorded::reply(reply.to_recorded(), self.claimed.key.retention(kind)).about(Some(subject))
    }

    /// Commits a unit with the answer of the claim.
    pub async fn commit(&self, unit: Unit, recorded: &Recorded, now: Timestamp) -> Result<Commit, Problem> {
        let Self { runner, claimed } = *self;
        Ok(runner.units.commit(unit, runner.cause(Some(claimed), Some(recorded)), now).await?)
    }
}

impl Then {
    fn recorded(&self, claimed: &Claimed) -> Recorded {
        match self {
            Self::Reply(reply, kind) => Recorded::reply(reply.to_recorded(), claimed.key.retention(*kind)),
            Self::Secret { whole, redacted } => Recorded::secret(whole.to_recorded(), redacted.to_recorded()),
            Self::Stage(stage) => Recorded::stage(stage.0.clone()),
        }
    }
}

/// Turns the fault of a silent store into [`Problem::Unconfirmed`] for a caller of the CRM.
fn unconfirmed<C: Command>(problem: Problem) -> Problem {
    if C::Caller::API == Api::Crm { problem.unconfirmed() } else { problem }
}
