//! The sweep over the store: a client that is due is read, judged by its coach's rules, and written, with what is told of it, in one
//! transaction on the watch that was read. Two sweeps that meet at a client write once; one that dies has written all of a client or
//! nothing; ids of events derive from the episode.
//!
//! 1. `oldest_due`, `due`  Module `watch`.
//! 2. `judge`     Query of the watch with the doses; where something is told, GetItem of the client; transaction: watch, outbox.
//! 3. `catch_up`  The same before a fact changes a client: what was due by then is told of it as it stood.
//! 4. `pass_*`    A coach whose rules have changed: the coach's watch, pages of its active clients.

use std::collections::{BTreeMap, HashMap};

use domain::automation::Trigger;
use domain::event::Event;
use domain::id::{ClientId, CoachId, ProgrammeId};
use domain::sweep::{Evaluation, MAX_TOLD, Rule, States, evaluate, reads_from};
use domain::time::Timestamp;
use domain::tz::Tz;
use futures::future::try_join;
use runtime::{BoxError, Environment};
use tokio::sync::Mutex;

use crate::client::ClientLookup;
use crate::db::{Db, MAX_ROUNDS, StoreError, stand_back};
use crate::outbox::Outbox;
use crate::programme::StoredProgramme;
use crate::rules::Rules;
use crate::watch::{Before, Observed, Watch, Watches};
use crate::workspace::Workspaces;

pub use crate::watch::{CoachWatch, Due, DueStart, SHARDS};

/// By what a coach's clients are judged, read at one time.
#[derive(Debug)]
pub struct Rulebook {
    coach_id: CoachId,
    /// When reading it began. Clients are judged by it as of then.
    as_of: Timestamp,
    zone: Tz,
    zone_before: Option<Before<Tz>>,
    rules: Vec<Rule>,
    /// Those that a client was in.
    programmes: Mutex<HashMap<ProgrammeId, StoredProgramme>>,
}

/// Why a client is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It is due.
    Due,
    /// Its coach's rules became others: who was judged by then may have been judged by those before.
    RulesChanged(Timestamp),
    /// Something is about to change it.
    FactComes,
}

/// What came of judging a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// So many events go out.
    Told(usize),
    /// It is not due any more, or with another coach, or gone.
    NotDue,
}

/// The store as the sweep uses it.
#[derive(Clone)]
pub struct Sweeper {
    watches: Watches,
    rules: Rules,
    clients: ClientLookup,
    outbox: Outbox,
}

impl Rulebook {
    /// When reading it began.
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// Whether a client could come to match anything.
    pub fn is_watched(&self) -> bool {
        self.rules.iter().any(|rule| rule.automation.active && rule.automation.trigger.computed().is_some())
    }

    /// When the time zone or a client's programme has become another since the client was judged, in order, and whether by a backfill.
    fn changes(&self, judged_at: Timestamp, programme: &StoredProgramme) -> BTreeMap<Timestamp, bool> {
        let zones = self.zone_before.iter().flat_map(Before::changes);
        let phases = programme.before.iter().flat_map(Before::changes);
        let mut changes = BTreeMap::new();
        // Who was judged at the instant of a change was judged by what was.
        for changed in zones.chain(phases).filter(|changed| judged_at < changed.at && changed.at < self.as_of) {
            *changes.entry(changed.at).or_insert(true) &= changed.backfill;
        }
        changes
    }

    /// Judges a client: where the time zone or the programme has become another since it was last judged, up to each change by what was.
    fn evaluate(&self, observed: &Observed, programme: &StoredProgramme) -> Evaluation {
        let mut evaluation = Evaluation { told: Vec::new(), states: observed.watch.states().clone() };
        for (at, backfill) in self.changes(evaluation.states.at, programme).into_iter().chain([(self.as_of, false)]) {
            let zone = Before::at(self.zone_before.as_ref(), &self.zone, at);
            let phases = Before::at(programme.before.as_ref(), &programme.phases, at);
            let next = evaluate(&observed.facts(*zone, phases.clone()), &self.rules, &evaluation.states, at);
            evaluation.told.extend(next.told);
            evaluation.states = next.states;
            if at < self.as_of && evaluation.states.at == at {
                // What it became counts from the next whole minute on, as a fact does, not from when the client was due by what was.
                evaluation.states.touch(at, backfill);
            }
            if evaluation.told.len() >= MAX_TOLD {
                // The rest would not fit the transaction. It is soon judged on from here.
                evaluation.states.wake(self.as_of);
                break;
            }
        }
        evaluation
    }

    fn asks_for_phases(&self) -> bool {
        let revisions = self.rules.iter().flat_map(|rule| {
            let former = rule.former.iter().map(|former| &former.automation);
            former.chain([&rule.automation])
        });
        revisions.map(|automation| &automation.trigger).any(|trigger| *trigger == Trigger::PhaseEligible)
    }
}

impl Sweeper {
    /// With the tables that `CLIENTS_TABLE` and `RECORDS_TABLE` name.
    pub fn new(env: &Environment, db: &Db, workspaces: &Workspaces, outbox: &Outbox) -> Result<Self, BoxError> {
        Ok(Self {
            watches: Watches::new(env, db)?,
            rules: Rules::new(env, db, workspaces)?,
            clients: ClientLookup::new(env, db)?,
            outbox: outbox.clone(),
        })
    }

    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    /// Since when the one who has waited longest in a shard has been due; `None` where nobody is due.
    pub async fn oldest_due(&self, shard: u8, by: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.watches.oldest_due(shard, by).await
    }

    /// Those of one shard who are due by an instant, who has waited longest first, from where an earlier page ended.
    pub async fn due(
        &self,
        shard: u8,
        by: Timestamp,
        limit: i32,
        start: Option<DueStart>,
    ) -> Result<(Vec<Due>, Option<DueStart>), StoreError> {
        self.watches.due(shard, by, limit, start).await
    }

    /// By what a coach's clients are judged. `now` was taken before.
    pub async fn rulebook(&self, coach: &CoachId, now: Timestamp) -> Result<Rulebook, StoreError> {
        let ((zone, zone_before), rules) = try_join(self.rules.zone(coach), self.rules.of(coach)).await?;
        let programmes = Mutex::default();
        Ok(Rulebook { coach_id: coach.clone(), as_of: now, zone, zone_before, rules, programmes })
    }

    /// Judges a client as of when the rules were read, and tells what it has come to match.
    pub async fn judge(&self, client: &ClientId, by: &Rulebook, because: Because) -> Result<Judged, StoreError> {
        let mut told_before = 0;
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let Some((observed, programme)) = self.observe(client, by).await? else { return Ok(Judged::NotDue) };
            if observed.watch.coach_id != by.coach_id || !is_to_be_judged(observed.watch.states(), by.as_of, because) {
                return Ok(if told_before > 0 { Judged::Told(told_before) } else { Judged::NotDue });
            }
            let evaluation = by.evaluate(&observed, &programme);
            let Some(events) = self.events(client, &evaluation).await? else { return Ok(Judged::NotDue) };
            let (told, is_cut) = (events.len(), evaluation.told.len() >= MAX_TOLD);
            let mut writes = vec![self.watches.put(&observed.watch.with_states(evaluation.states))];
            if told > 0 {
                writes.push(self.clients.still_there(client));
            }
            writes.extend(self.outbox.put_events(events, by.as_of));
            if !self.watches.commit(&writes).await? {
                continue;
            }
            told_before += told;
            if !is_cut {
                return Ok(Judged::Told(told_before));
            }
        }
        Err(StoreError::kept_changing("the client's watch"))
    }

    /// Before something changes a client: judges it as it stands, if what is due or new to it has to be judged so. True: it has been
    /// judged, and its watch is to be read anew.
    pub(crate) async fn catch_up(
        &self,
        client: &ClientId,
        watch: &Watch,
        coach: &CoachWatch,
        (now, backfill): (Timestamp, bool),
    ) -> Result<bool, StoreError> {
        let states = watch.states();
        // What was judged a moment ago, for the same fact, is not judged again.
        let is_judged = !states.fresh && states.at >= now && states.due.is_none_or(|due| due > now);
        // Where nobody watches there is nothing to tell.
        if !coach.is_watched
            || !watch.is_active()
            || is_judged
            || !states.comes_first(now, coach.rules_known_at(), backfill)
        {
            return Ok(false);
        }
        let rules = self.rulebook(&watch.coach_id, now).await?;
        self.judge(client, &rules, Because::FactComes).await?;
        Ok(true)
    }

    /// A client's watch with the doses that its rules ask for, from the first change on that it is judged at, and its programme.
    async fn observe(
        &self,
        client: &ClientId,
        by: &Rulebook,
    ) -> Result<Option<(Observed, StoredProgramme)>, StoreError> {
        // Who is due is judged as of now, and mostly by rules that it has been judged by: that is a guess at what is asked for.
        let mut from = reads_from(&by.rules, &States::new(by.as_of), by.as_of);
        loop {
            let Some(observed) = self.watches.with_doses(client, from).await? else { return Ok(None) };
            let (programme, states) = (self.programme(&observed.watch, by).await?, observed.watch.states());
            let first = by.changes(states.at, &programme).into_keys().next().unwrap_or(by.as_of);
            let needed = reads_from(&by.rules, states, first);
            let is_enough = match (needed, from) {
                (None, _) => true,
                (Some(needed), Some(from)) => needed >= from,
                (Some(_), None) => false,
            };
            if is_enough {
                return Ok(Some((observed, programme)));
            }
            from = needed;
        }
    }

    async fn programme(&self, watch: &Watch, by: &Rulebook) -> Result<StoredProgramme, StoreError> {
        let Some(id) = watch.programme_id.as_ref().filter(|_| by.asks_for_phases()) else {
            return Ok(StoredProgramme::default());
        };
        // Held over the read: of many clients in one programme the first reads it.
        let mut known = by.programmes.lock().await;
        if let Some(programme) = known.get(id) {
            return Ok(programme.clone());
        }
        let programme = self.rules.programme(&by.coach_id, id).await?;
        known.insert(id.clone(), programme.clone());
        Ok(programme)
    }

    /// What goes out; `None` where the client is gone.
    async fn events(&self, client: &ClientId, evaluation: &Evaluation) -> Result<Option<Vec<Event>>, StoreError> {
        if evaluation.told.iter().all(|told| told.to.is_empty()) {
            return Ok(Some(Vec::new()));
        }
        let Some(found) = self.clients.get(client).await? else { return Ok(None) };
        Ok(Some(evaluation.told.iter().filter_map(|told| Event::computed(&found.client, told)).collect()))
    }

    // The pass over a coach's clients

    /// A coach's watch, if a pass is to be made.
    pub async fn pass_of(&self, coach: &CoachId, by: Timestamp) -> Result<Option<CoachWatch>, StoreError> {
        Ok(Some(self.watches.coach(coach).await?).filter(|watch| watch.is_due(by)))
    }

    /// The clients that a pass comes to next, at most `limit`, and where they end; `None` at the end of all.
    pub async fn pass_page(
        &self,
        watch: &CoachWatch,
        limit: u32,
    ) -> Result<(Vec<ClientId>, Option<String>), StoreError> {
        self.clients.active_page(&watch.coach_id, watch.pass_after(), limit).await
    }

    /// A pass could not judge a client: it is due by itself from now on.
    pub async fn leave_due(&self, client: &ClientId, now: Timestamp) -> Result<(), StoreError> {
        self.watches.wake(client, now).await
    }

    /// The pass has come to the end of a page that ends at `after`, or to the end of all. `None`: the rules have changed meanwhile, and
    /// it begins anew.
    pub async fn pass_on(
        &self,
        watch: CoachWatch,
        by: &Rulebook,
        after: Option<String>,
    ) -> Result<Option<CoachWatch>, StoreError> {
        let mut next = watch;
        match after {
            Some(after) => next.come_to(after, by.as_of),
            None => next.finish(by.as_of, by.is_watched()),
        }
        Ok(self.watches.save_coach(&next).await?.then(|| next.stored()))
    }
}

/// Judged as of an instant: what has become due since then waits.
fn is_to_be_judged(states: &States, as_of: Timestamp, because: Because) -> bool {
    let is_due = states.due.is_some_and(|due| due <= as_of);
    match because {
        Because::Due => is_due,
        Because::RulesChanged(at) => is_due || states.at <= at,
        Because::FactComes => true,
    }
}

#[cfg(test)]
mod tests;
