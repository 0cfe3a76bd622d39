//! `dead list` and `dead show`. Reading leaves every message in sight again at once.

use std::collections::BTreeSet;

use serde::Serialize;

use super::interrupt::Interrupt;
use super::letter::DeadLetter;
use super::survey::{MAX_SURVEYED, Surveyed, Until, survey};
use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::DeadQueue;
use crate::output::{Answer, say};

#[derive(Serialize)]
struct List {
    /// Oldest first.
    dead: Vec<DeadLetter>,
    /// False if more are there, by the approximate count of SQS.
    complete: bool,
}

pub(super) async fn list(
    operator: &Operator,
    interrupt: &Interrupt,
    queue: Option<DeadQueue>,
) -> Result<Answer, Failure> {
    let surveyed = survey(operator, interrupt, queue, Until::All).await?;
    for Surveyed { queue, unseen, .. } in surveyed.iter().filter(|queue| queue.unseen > 0) {
        say(&match queue {
            DeadQueue::Facts => format!("about {unseen} dead facts more: beyond 10,000, or held by another reader"),
            DeadQueue::Orders => {
                format!(
                    "about {unseen} dead orders more: SQS shows ten of a lane at once, or another reader holds them"
                )
            }
        });
    }
    let is_seen = surveyed.iter().all(|queue| queue.unseen == 0);
    let mut dead: Vec<DeadLetter> =
        surveyed.into_iter().flat_map(|queue| queue.letters).map(|shown| shown.letter).collect();
    dead.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
    let complete = is_seen && dead.len() <= MAX_SURVEYED;
    dead.truncate(MAX_SURVEYED);
    Answer::of(&List { dead, complete })
}

pub(super) async fn show(operator: &Operator, interrupt: &Interrupt, id: &str) -> Result<Answer, Failure> {
    let ids = BTreeSet::from([id.to_owned()]);
    let surveyed = survey(operator, interrupt, None, Until::Ids(&ids)).await?;
    let unseen: usize = surveyed.iter().map(|queue| queue.unseen).sum();
    let found = surveyed.into_iter().flat_map(|queue| queue.letters).find(|shown| shown.letter.id == id);
    Answer::of(&found.ok_or_else(|| unknown(id, unseen))?)
}

/// The failure of a command that names a dead letter which is not there.
pub(super) fn unknown(id: &str, unseen: usize) -> Failure {
    Failure::not_found(match unseen {
        0 => format!("no dead letter {id}"),
        _ => format!("no dead letter {id} in sight, and about {unseen} are out of sight: try again in two minutes"),
    })
}
