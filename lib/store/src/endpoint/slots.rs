//! How many batches deliver to an endpoint at once. pk `COACH#<coach_id>`, sk `SLOTS#<endpoint_id>`: an attribute `s<number>` per slot that
//! is taken, `<until>#<owner>`. A slot whose holder died is free again when its time is over.
//!
//! Every batch needs a slot of each endpoint that it delivers to: one that hangs holds up few functions, whatever is queued for it.

use std::collections::VecDeque;

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use domain::delivery::ATTEMPT_LEASE;
use domain::id::{CoachId, EndpointId};
use domain::time::Timestamp;
use runtime::random_bytes;

use super::{Endpoints, key};
use crate::db::{Ask, Item, StoreError, Written, n, s, write};
use crate::statement::{Answer, Statement, Tried};
use crate::workspace::partition;

/// A slot that is ours.
#[derive(Debug)]
pub struct Slot {
    coach: CoachId,
    endpoint: EndpointId,
    number: usize,
    holding: String,
}

impl Slot {
    /// Whether it is the slot that is taken before all others.
    pub fn is_first(&self) -> bool {
        self.number == 0
    }
}

/// A slot that is being acquired.
struct Acquiring<'a> {
    whose: &'a (CoachId, EndpointId),
    /// Slots that are not known to be taken.
    free: VecDeque<usize>,
    /// What the slot holds once it is ours. An update whose answer was lost is known by it.
    holding: String,
    slot: Option<Slot>,
    /// It is done by itself.
    alone: bool,
}

impl<'a> Acquiring<'a> {
    fn new(whose: &'a (CoachId, EndpointId), slots: usize, now: Timestamp) -> Self {
        Self { whose, free: (0..slots).collect(), holding: holding(now), slot: None, alone: false }
    }

    /// The number of the slot that is tried next.
    fn next(&self) -> Option<usize> {
        if self.slot.is_some() || self.alone { None } else { self.free.front().copied() }
    }

    fn refused(&mut self, item: &Item, now: Timestamp) {
        let ours = look(item, &mut self.free, &self.holding, now);
        self.slot = ours.map(|number| slot(self.whose, number, &self.holding));
    }
}

impl Endpoints {
    /// Acquires one of the first `slots` slots of each endpoint; `None` where all are taken. A slot is a lease, which runs out by itself unless
    /// it is given back before.
    pub async fn acquire_slots(
        &self,
        endpoints: &[(CoachId, EndpointId)],
        slots: usize,
        now: Timestamp,
    ) -> Vec<Answer<'_, Option<Slot>>> {
        let mut all: Vec<Acquiring<'_>> = endpoints.iter().map(|whose| Acquiring::new(whose, slots, now)).collect();
        for _ in 0..slots {
            let mut open: Vec<(&mut Acquiring<'_>, usize)> =
                all.iter_mut().filter_map(|one| one.next().map(|number| (one, number))).collect();
            let statements = open.iter().map(|(one, number)| self.acquiring(one, *number, now)).collect();
            for ((one, number), tried) in open.iter_mut().zip(self.db.try_all(statements).await) {
                match tried.0 {
                    Some(Written::Done(_)) => one.slot = Some(slot(one.whose, *number, &one.holding)),
                    Some(Written::Refused(Some(item))) => one.refused(&item, now),
                    // There has been no batch yet, or it is not known what came of it.
                    Some(Written::Refused(None)) | None => one.alone = true,
                }
            }
        }
        let acquired = all.into_iter().map(|Acquiring { whose, free, holding, slot, alone }| match slot {
            None if alone => {
                let whose = whose.clone();
                Answer::awaited(async move { self.acquire_alone(&whose, free, &holding, now).await })
            }
            slot => Answer::Here(Ok(slot)),
        });
        acquired.collect()
    }

    /// Acquires a slot, where the item is there: a statement makes none.
    fn acquiring(&self, one: &Acquiring<'_>, number: usize, now: Timestamp) -> Statement {
        let ((coach, id), slot) = (one.whose, name(number));
        Statement::update(
            (&self.table, partition(coach), sort_key(id)),
            (&format!("SET {slot} = ?"), vec![s(&one.holding)]),
            (&format!("({slot} IS MISSING OR {slot} <= ?)"), vec![s(over_by(now))]),
        )
    }

    async fn acquire_alone(
        &self,
        whose: &(CoachId, EndpointId),
        mut free: VecDeque<usize>,
        holding: &str,
        now: Timestamp,
    ) -> Result<Option<Slot>, StoreError> {
        let (coach, id) = whose;
        while let Some(number) = free.pop_front() {
            let written = write("UpdateItem", || {
                let update = self.db.client().update_item().table_name(&self.table).set_key(Some(slots_key(coach, id)));
                update
                    .update_expression("SET #slot = :holding")
                    .condition_expression("attribute_not_exists(#slot) OR #slot <= :over")
                    .expression_attribute_names("#slot", name(number))
                    .expression_attribute_values(":holding", s(holding))
                    .expression_attribute_values(":over", s(over_by(now)))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                    .ask()
            });
            match written.await? {
                Written::Done(_) => return Ok(Some(slot(whose, number, holding))),
                // What was taken is seen at once; what has been given back meanwhile, the next time. It may be ours, by a take without an
                // answer.
                Written::Refused(item) => {
                    free.push_front(number);
                    let item = item.unwrap_or_default();
                    if let Some(number) = look(&item, &mut free, holding, now) {
                        return Ok(Some(slot(whose, number, holding)));
                    }
                    free.retain(|free| *free != number);
                }
            }
        }
        Ok(None)
    }

    /// The statement that gives a slot back.
    pub fn releasing(&self, slot: &Slot) -> Statement {
        let number = name(slot.number);
        Statement::update(
            (&self.table, partition(&slot.coach), sort_key(&slot.endpoint)),
            (&format!("REMOVE {number}"), Vec::new()),
            (&format!("{number} = ?"), vec![s(&slot.holding)]),
        )
    }

    /// Gives a slot back, if what came of the statement does not say that it is. Refused: its time was over, and somebody else has it.
    pub async fn released(&self, slot: &Slot, Tried(tried): Tried) -> Result<(), StoreError> {
        if tried.is_none() { self.release(slot).await } else { Ok(()) }
    }

    async fn release(&self, slot: &Slot) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let key = slots_key(&slot.coach, &slot.endpoint);
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key));
            update
                .update_expression("REMOVE #slot")
                .condition_expression("#slot = :holding")
                .expression_attribute_names("#slot", name(slot.number))
                .expression_attribute_values(":holding", s(&slot.holding))
                .ask()
        });
        // Refused: as above.
        written.await?;
        Ok(())
    }

    /// Notes that an endpoint hangs, until then.
    pub async fn mark_hanging(&self, coach: &CoachId, id: &EndpointId, until: Timestamp) -> Result<(), StoreError> {
        self.mark(coach, id, "SET hanging_until = :until ADD version :one", until).await
    }

    /// Notes that an endpoint takes its time and does answer, until then.
    pub async fn mark_slow(&self, coach: &CoachId, id: &EndpointId, until: Timestamp) -> Result<(), StoreError> {
        self.mark(coach, id, "SET slow_until = :until REMOVE hanging_until ADD version :one", until).await
    }

    /// Another version: who puts the record as it was read must not undo this.
    async fn mark(&self, coach: &CoachId, id: &EndpointId, mark: &str, until: Timestamp) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key(coach, id)));
            update
                .update_expression(mark)
                .condition_expression("attribute_exists(pk)")
                .expression_attribute_values(":until", n(until.ms()))
                .expression_attribute_values(":one", n(1))
                .ask()
        });
        // Refused: it has been deleted.
        written.await?;
        Ok(())
    }
}

fn slot((coach, endpoint): &(CoachId, EndpointId), number: usize, holding: &str) -> Slot {
    Slot { coach: coach.clone(), endpoint: endpoint.clone(), number, holding: holding.to_owned() }
}

/// Takes those that are taken out of `free`. The number of the one that is ours already, if one is.
fn look(item: &Item, free: &mut VecDeque<usize>, holding: &str, now: Timestamp) -> Option<usize> {
    let held = |number: &usize| item.get(&name(*number)).and_then(|held| held.as_s().ok());
    let ours = free.iter().copied().find(|number| held(number).is_some_and(|held| held == holding));
    free.retain(|number| held(number).is_none_or(|held| *held <= over_by(now)));
    ours
}

/// What somebody's slot holds from now on.
fn holding(now: Timestamp) -> String {
    format!("{}#{}", over_by(now + ATTEMPT_LEASE), hex::encode(random_bytes::<8>()))
}

/// A slot that holds something up to this is free again. Digits of one length are in the order of their numbers.
fn over_by(now: Timestamp) -> String {
    format!("{:015}", now.ms())
}

/// A slot's attribute.
fn name(number: usize) -> String {
    format!("s{number}")
}

fn sort_key(id: &EndpointId) -> String {
    format!("SLOTS#{id}")
}

pub(super) fn slots_key(coach: &CoachId, id: &EndpointId) -> Item {
    Item::from([("pk".to_owned(), s(partition(coach))), ("sk".to_owned(), s(sort_key(id)))])
}
