//! The survey of the dead letters: receives all of them, so that none comes twice, and releases them at its end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use futures::future;

use super::interrupt::Interrupt;
use super::letter::Shown;
use super::queue::{CONCURRENT_CALLS, DeadLetterQueue, Held};
use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::DeadQueue;
use crate::output::say;

/// Most dead letters of a survey.
pub(super) const MAX_SURVEYED: usize = 10_000;
/// Dead letters after which a survey says how far it is.
const SAID_EVERY: usize = 1_000;

/// The end of a survey.
#[derive(Clone, Copy)]
pub(super) enum Until<'a> {
    /// All dead letters, or [`MAX_SURVEYED`], are found.
    All,
    /// All of these are found.
    Ids(&'a BTreeSet<String>),
}

/// The dead letters of a queue.
pub(super) struct Surveyed {
    pub(super) queue: DeadQueue,
    pub(super) letters: Vec<Shown>,
    /// The number of further ones, by the approximate count of SQS: more than a survey takes, further orders of a lane,
    /// or messages that another reader holds.
    pub(super) unseen: usize,
    /// The unseen ones that no other reader holds.
    pub(super) behind: usize,
}

/// The dead letters that are held, with their receipts, by their ids.
type Found = BTreeMap<String, (Shown, String)>;

/// Surveys a queue, or both.
pub(super) async fn survey(
    operator: &Operator,
    interrupt: &Interrupt,
    queue: Option<DeadQueue>,
    until: Until<'_>,
) -> Result<Vec<Surveyed>, Failure> {
    let mut surveyed: Vec<Surveyed> = Vec::new();
    for kind in [DeadQueue::Facts, DeadQueue::Orders].into_iter().filter(|kind| queue.is_none_or(|only| only == *kind))
    {
        let before = surveyed.iter().flat_map(|queue| &queue.letters).map(|shown| shown.letter.id.clone()).collect();
        surveyed.push(survey_queue(&DeadLetterQueue::open(operator, kind)?, interrupt, until, before).await?);
    }
    Ok(surveyed)
}

/// Surveys a queue after others, in which the survey has found the dead letters of `before`.
async fn survey_queue(
    queue: &DeadLetterQueue<'_>,
    interrupt: &Interrupt,
    until: Until<'_>,
    before: BTreeSet<String>,
) -> Result<Surveyed, Failure> {
    // The count is of before the survey: SQS needs a minute to count what the survey holds.
    let depth = queue.depth().await?;
    let _holding = interrupt.holding();
    let found = RefCell::new(Found::new());
    let is_done = || match until {
        Until::All => before.len() + found.borrow().len() >= MAX_SURVEYED,
        Until::Ids(ids) => ids.iter().all(|id| before.contains(id) || found.borrow().contains_key(id)),
    };
    // Each reader goes on to an answer of its own without anything new. All readers end: an answer that nobody reads
    // would leave its messages out of sight.
    let reader = || async {
        while !interrupt.is_stopped() && !is_done() {
            let received = queue.receive().await?;
            if !add(&mut found.borrow_mut(), received) {
                break;
            }
        }
        Ok::<_, Failure>(())
    };
    let mut outcomes = future::join_all((0..CONCURRENT_CALLS).map(|_| reader())).await;
    let (letters, receipts): (Vec<Shown>, Vec<String>) = found.take().into_values().unzip();
    queue.release(receipts).await;
    outcomes.extend(interrupt.is_stopped().then(|| Err(Failure::declined("stopped, and nothing was changed"))));
    outcomes.into_iter().collect::<Result<(), _>>()?;
    let [unseen, behind] = [depth.total(), depth.visible].map(|count| count.saturating_sub(letters.len()));
    Ok(Surveyed { queue: queue.kind, letters, unseen, behind })
}

/// Adds the messages of an answer. Returns false if they are all known.
fn add(found: &mut Found, received: Vec<Held>) -> bool {
    let before = found.len();
    for Held { shown, receipt, .. } in received {
        found.insert(shown.letter.id.clone(), (shown, receipt));
    }
    if before / SAID_EVERY < found.len() / SAID_EVERY {
        say(&format!("read {} dead letters", found.len()));
    }
    before < found.len()
}
