//! A unit of work: all that one request or fact writes, in one transaction.
//!
//! A [`Unit`] is data. The modules of the tables build its writes, and the decision about a request or fact puts them
//! together. [`Units::commit`] adds the mark of the cause, so that the same cause never commits twice: the claim of a
//! request moves to its reply or stage, the id of a fact is marked.

use domain::change::Change;
use domain::event::Event;
use domain::id::FactId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

use crate::claim::{Claim, Claims, Recorded};
use crate::db::{Db, Part, RefusedTransaction, StoreError, Transacted, Write};
use crate::fact::SeenFacts;
use crate::outbox::{self, Content, Outbox};
use crate::vault::Vault;

/// Writes that are committed together, or not at all.
#[must_use]
#[derive(Default)]
pub struct Unit {
    writes: Vec<Write>,
    entries: Vec<Entry>,
}

/// An outbox entry, sent at once or after a time.
struct Entry {
    content: Content,
    send_after: Option<Timestamp>,
}

impl Unit {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds writes of records, counts and audit lines, each labelled with its part.
    pub fn write(mut self, writes: impl IntoIterator<Item = Write>) -> Self {
        self.writes.extend(writes);
        self
    }

    /// Adds changes that the application learns of.
    pub fn change(self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.entries(changes.into_iter().map(|change| Content::Change(Box::new(change))))
    }

    /// Adds a change that the relay publishes after this time, unless it is released earlier.
    pub fn held_change(mut self, change: Change, send_after: Timestamp) -> Self {
        self.entries.push(Entry { content: Content::Change(Box::new(change)), send_after: Some(send_after) });
        self
    }

    /// Adds the events of one cause.
    pub fn events(self, events: impl IntoIterator<Item = Event>) -> Self {
        self.entries(outbox::contents(events))
    }

    /// Adds outbox entries that are sent at once.
    pub fn entries(mut self, contents: impl IntoIterator<Item = Content>) -> Self {
        self.entries.extend(contents.into_iter().map(|content| Entry { content, send_after: None }));
        self
    }

    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.entries.is_empty()
    }
}

/// The cause of a unit, which commits once.
pub enum Once<'a> {
    /// A request with an idempotency key. Its claim records this.
    Claim(&'a Claims, &'a Claim, &'a Recorded),
    /// A fact. Its id is marked.
    Fact(&'a SeenFacts, &'a FactId),
    /// A request without an idempotency key, or an evaluation, whose versions let it commit once.
    ByVersion,
}

/// The result of a commit.
#[derive(Debug)]
pub enum Commit {
    Done,
    /// Nothing is written: another request has taken over the claim, or the fact was stored before.
    Repeated(RefusedTransaction),
    /// Nothing is written: these parts are not as they were read.
    Refused(RefusedTransaction),
}

/// Commits units.
#[derive(Clone)]
pub struct Units {
    db: Db,
    outbox: Outbox,
}

impl Units {
    /// Emits through the table that `OUTBOX_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), outbox: Outbox::new(env, db, vault)? })
    }

    /// Commits a unit and the mark of its cause, or nothing.
    pub async fn commit(&self, unit: Unit, once: Once<'_>, now: Timestamp) -> Result<Commit, StoreError> {
        match once {
            // One write needs no transaction, which costs twice as much.
            Once::Claim(claims, claim, recorded) if unit.is_empty() => {
                let is_ours = claims.record_alone(claim, recorded, now).await?;
                return Ok(if is_ours { Commit::Done } else { Commit::Repeated(RefusedTransaction::of(Part::Claim)) });
            }
            Once::ByVersion if unit.is_empty() => return Ok(Commit::Done),
            Once::Claim(..) | Once::Fact(..) | Once::ByVersion => {}
        }
        let mut writes = unit.writes;
        let entries = unit.entries.iter();
        writes.extend(entries.map(|entry| self.outbox.put(&entry.content, entry.send_after.unwrap_or(now))));
        match once {
            Once::Claim(claims, claim, recorded) => writes.extend(claims.record(claim, recorded, now)),
            Once::Fact(facts, fact) => writes.push(facts.mark_once(fact, now)),
            Once::ByVersion => {}
        }
        Ok(match self.db.transact(&writes).await? {
            Transacted::Done => Commit::Done,
            Transacted::Refused(refused) if refused.is(Part::Claim) || refused.is(Part::Fact) => {
                Commit::Repeated(refused)
            }
            Transacted::Refused(refused) => Commit::Refused(refused),
        })
    }
}
