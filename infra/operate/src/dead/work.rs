//! The work on dead letters: for each its audit line, then the message to its queue, then the deletion of the dead
//! letter. A kill between two steps leaves the message in both queues, never in none.
//!
//! The work is on those dead letters that were there at the start. A fact that fails again is a dead letter again
//! within seconds, under another id. An order takes a day for that, so orders behind the surveyed ones of their lane
//! are worked on as well: they come up when those are deleted.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use domain::audit::{AuditAction, AuditActor, AuditDetail};
use domain::id::{CoachId, DeliveryId, FactId};
use futures::future;
use serde::Serialize;
use store::StoreError;
use store::audit::AuditContext;
use store::client::ClientLookup;
use store::workspace::Workspaces;

use super::interrupt::Interrupt;
use super::letter::DeadLetter;
use super::queue::{DeadLetterQueue, Held};
use crate::actor::actor;
use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::{Consent, DeadQueue};
use crate::output::say;

/// Answers in a row without anything new after which a queue has no more to give.
const QUIET_ANSWERS: u32 = 2;
/// Dead letters after which the work says how far it is.
const SAID_EVERY: usize = 100;

/// An act on dead letters, by an operator who gave a reason.
pub(super) struct Act<'a> {
    pub(super) operator: &'a Operator,
    pub(super) interrupt: &'a Interrupt,
    pub(super) consent: &'a Consent,
    /// The action of the audit lines.
    pub(super) action: AuditAction,
}

/// The dead letters of a queue that are worked on.
pub(super) struct Wanted {
    pub(super) ids: BTreeSet<String>,
    /// The number of further ones, of any id. SQS counts approximately, so there may be fewer.
    pub(super) behind: usize,
}

/// A dead letter that is done.
#[derive(Debug, Serialize)]
pub(super) struct Done {
    id: String,
    /// The fact or the delivery.
    target: Option<String>,
    coach_id: Option<CoachId>,
}

/// Works through dead letters.
pub(super) struct Worker<'a> {
    act: &'a Act<'a>,
    actor: AuditActor,
    workspaces: Workspaces,
    clients: ClientLookup,
    /// The coaches that were looked up, and true for those with a workspace.
    looked_up: RefCell<BTreeMap<CoachId, bool>>,
}

impl Wanted {
    fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.behind == 0
    }

    /// Returns true if the dead letter is to be worked on, once.
    fn take(&mut self, id: &str) -> bool {
        if self.ids.remove(id) {
            return true;
        }
        let is_behind = self.behind > 0;
        self.behind -= usize::from(is_behind);
        is_behind
    }
}

impl<'a> Worker<'a> {
    pub(super) async fn new(act: &'a Act<'a>) -> Result<Self, Failure> {
        let Operator { env, db, .. } = act.operator;
        Ok(Self {
            act,
            actor: actor(act.operator).await?,
            workspaces: Workspaces::new(env, db)?,
            clients: ClientLookup::new(env, db)?,
            looked_up: RefCell::default(),
        })
    }

    /// Works through the dead letters of a queue, and adds those that are done. Messages that are held at the end come
    /// into sight again.
    pub(super) async fn work(&self, kind: DeadQueue, mut wanted: Wanted, done: &mut Vec<Done>) -> Result<(), Failure> {
        let queue = DeadLetterQueue::open(self.act.operator, kind)?;
        let _holding = self.act.interrupt.holding();
        let mut held = BTreeMap::new();
        let outcome = self.work_until_quiet(&queue, &mut wanted, done, &mut held).await;
        queue.release(held.into_values()).await;
        outcome?;
        match wanted.ids.len() {
            0 => Ok(()),
            gone => Err(Failure::refused(format!("{gone} dead letters are gone, or somebody else holds them"))),
        }
    }

    /// Works batch by batch, until nothing is wanted or the queue has no more to give. `held` gets the receipts of
    /// messages that stay, by their ids.
    async fn work_until_quiet(
        &self,
        queue: &DeadLetterQueue<'_>,
        wanted: &mut Wanted,
        done: &mut Vec<Done>,
        held: &mut BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let mut quiet_answers = 0;
        while !wanted.is_empty() && quiet_answers < QUIET_ANSWERS {
            if self.act.interrupt.is_stopped() {
                return Err(Failure::declined("stopped"));
            }
            let (batch, others): (Vec<Held>, Vec<Held>) =
                queue.receive().await?.into_iter().partition(|message| wanted.take(&message.shown.letter.id));
            let known = held.len();
            held.extend(others.into_iter().map(|message| (message.shown.letter.id, message.receipt)));
            let is_quiet = batch.is_empty() && held.len() == known;
            quiet_answers = if is_quiet { quiet_answers + 1 } else { 0 };
            let before = done.len();
            let outcomes = future::join_all(batch.iter().map(|message| self.work_on(queue, message))).await;
            let mut failure = None;
            for (message, outcome) in batch.into_iter().zip(outcomes) {
                match outcome {
                    Ok(one) => done.push(one),
                    Err(error) => {
                        held.insert(message.shown.letter.id, message.receipt);
                        failure = failure.or(Some(error));
                    }
                }
            }
            if before / SAID_EVERY < done.len() / SAID_EVERY {
                say(&format!("{} dead letters are done", done.len()));
            }
            failure.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    async fn work_on(&self, queue: &DeadLetterQueue<'_>, message: &Held) -> Result<Done, Failure> {
        let letter = &message.shown.letter;
        let coach_id = self.coach_of(letter).await?;
        self.leave_line(letter, coach_id.as_ref()).await?;
        if self.act.action == AuditAction::DeadRedriven {
            queue.send_again(message).await?;
        }
        queue.delete(message).await?;
        Ok(Done { id: letter.id.clone(), target: target_of(letter).map(str::to_owned), coach_id })
    }

    /// The coach that the dead letter names, or the coach of its client.
    async fn coach_of(&self, letter: &DeadLetter) -> Result<Option<CoachId>, Failure> {
        let (None, Some(client)) = (&letter.coach_id, &letter.client_id) else { return Ok(letter.coach_id.clone()) };
        match self.clients.get(client).await {
            Ok(found) => Ok(found.map(|found| found.client.coach_id)),
            // The fault that made the dead letter may be this one.
            Err(StoreError::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn leave_line(&self, letter: &DeadLetter, coach: Option<&CoachId>) -> Result<(), Failure> {
        let coach = match coach {
            Some(coach) if self.has_workspace(coach).await? => coach,
            Some(_) | None => {
                say(&format!("dead letter {} leaves no audit line, since its coach is not known", letter.id));
                return Ok(());
            }
        };
        let event_type = letter.kind.clone().filter(|_| letter.queue == DeadQueue::Facts);
        let detail = self.act.consent.detail(AuditDetail { event_type, ..AuditDetail::default() });
        let context = AuditContext { coach, actor: &self.actor, now: self.act.operator.now() };
        let target = target_of(letter).unwrap_or(&letter.id);
        Ok(self.workspaces.write_line(context, self.act.action, target, detail).await?)
    }

    async fn has_workspace(&self, coach: &CoachId) -> Result<bool, Failure> {
        let looked_up = self.looked_up.borrow().get(coach).copied();
        if let Some(is_known) = looked_up {
            return Ok(is_known);
        }
        let is_known = match self.workspaces.get(coach).await {
            Ok(workspace) => workspace.is_some(),
            Err(StoreError::Corrupt { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        self.looked_up.borrow_mut().insert(coach.clone(), is_known);
        Ok(is_known)
    }
}

/// The fact or the delivery that a dead letter is about.
fn target_of(letter: &DeadLetter) -> Option<&str> {
    letter.fact_id.as_ref().map(FactId::as_str).or(letter.delivery_id.as_ref().map(DeliveryId::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wanted_dead_letter_is_taken_once_and_as_many_others_as_are_behind() {
        let mut wanted = Wanted { ids: ["a", "b"].map(str::to_owned).into(), behind: 1 };
        let taken = ["a", "a", "c", "b", "d"].map(|id| wanted.take(id));
        // The second `a` counts as one that is behind.
        assert_eq!((taken, wanted.is_empty()), ([true, true, false, true, false], true));
    }
}
