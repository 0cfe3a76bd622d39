//! `dead redrive` and `dead drop`: finds the dead letters, asks, and has them worked on. Nothing is held while the
//! operator thinks.

use std::collections::{BTreeMap, BTreeSet};

use domain::audit::AuditAction;
use serde::Serialize;

use super::letter::{DeadLetter, Shown};
use super::list::unknown;
use super::survey::{Surveyed, Until, survey};
use super::work::{Act, Done, Wanted, Worker};
use crate::failure::Failure;
use crate::options::DeadQueue;
use crate::output::{Answer, say};

/// The dead letters that an act is about.
pub(super) enum Selection<'a> {
    Ids(&'a [String]),
    /// All of a queue, or of both.
    All(Option<DeadQueue>),
}

#[derive(Serialize)]
struct Acted {
    done: AuditAction,
    dead: Vec<Done>,
    changed: bool,
}

pub(super) async fn act(act: Act<'_>, selection: Selection<'_>) -> Result<Answer, Failure> {
    let selected = select(&act, &selection).await?;
    let mut dead = Vec::new();
    let unseen: usize = selected.iter().map(|queue| queue.unseen - queue.behind).sum();
    if unseen > 0 {
        say(&format!("about {unseen} dead letters more, beyond 10,000 or held by another reader: try again later"));
    }
    if selected.iter().all(|queue| queue.letters.is_empty() && queue.behind == 0) {
        return Answer::of(&Acted { done: act.action, dead, changed: false });
    }
    ask(&act, question(act.action, &selected)).await?;
    let worker = Worker::new(&act).await?;
    for Surveyed { queue, letters, behind, .. } in selected {
        let ids = letters.into_iter().map(|shown| shown.letter.id).collect();
        let outcome = worker.work(queue, Wanted { ids, behind }, &mut dead).await;
        outcome.map_err(|failure| Failure {
            error: format!(
                "{} dead letters are done and have their lines in the audit trail, the others are not: {}",
                dead.len(),
                failure.error
            ),
            ..failure
        })?;
    }
    let changed = !dead.is_empty();
    Answer::of(&Acted { done: act.action, dead, changed })
}

/// Finds the dead letters. If one of the ids is unknown, the act fails before it changes anything.
async fn select(act: &Act<'_>, selection: &Selection<'_>) -> Result<Vec<Surveyed>, Failure> {
    let ids = match selection {
        Selection::All(queue) => {
            let mut surveyed = survey(act.operator, act.interrupt, *queue, Until::All).await?;
            // Facts that fail again come back while the work goes on, and nothing tells them from unseen ones.
            let facts = surveyed.iter_mut().filter(|queue| queue.queue == DeadQueue::Facts);
            facts.for_each(|facts| facts.behind = 0);
            return Ok(surveyed);
        }
        Selection::Ids(ids) => BTreeSet::from_iter(ids.iter().cloned()),
    };
    let mut surveyed = survey(act.operator, act.interrupt, None, Until::Ids(&ids)).await?;
    let found = |id: &String| surveyed.iter().flat_map(|queue| &queue.letters).any(|shown| shown.letter.id == *id);
    if let Some(id) = ids.iter().find(|id| !found(id)) {
        return Err(unknown(id, surveyed.iter().map(|queue| queue.unseen).sum()));
    }
    for queue in &mut surveyed {
        queue.letters.retain(|shown| ids.contains(&shown.letter.id));
        (queue.unseen, queue.behind) = (0, 0);
    }
    Ok(surveyed)
}

/// Asks on another thread, so that Ctrl-C ends the process while the operator thinks.
async fn ask(act: &Act<'_>, question: String) -> Result<(), Failure> {
    let (consent, stack) = (act.consent.clone(), act.operator.stack.clone());
    let asked = tokio::task::spawn_blocking(move || consent.ask(&stack, &question)).await;
    asked.unwrap_or_else(|_| Err(Failure::declined("not confirmed, nothing was changed")))
}

/// The dead letters by queue and type, such as `deletes 3 dead letters: facts (3 client.saved)`.
fn question(action: AuditAction, selected: &[Surveyed]) -> String {
    let count: usize = selected.iter().map(|queue| queue.letters.len()).sum();
    let queues: Vec<String> = selected.iter().filter_map(by_type).collect();
    let queues = queues.join(", ");
    let letters = if count == 1 { "dead letter" } else { "dead letters" };
    match action {
        AuditAction::DeadDropped => format!("deletes {count} {letters}: {queues}"),
        _ => format!("sends {count} {letters} to the source queue again: {queues}"),
    }
}

/// The dead letters of a queue by type. `None`: there are none.
fn by_type(Surveyed { queue, letters, behind, .. }: &Surveyed) -> Option<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for Shown { letter: DeadLetter { kind, .. }, .. } in letters {
        *counts.entry(kind.as_deref().unwrap_or("of unknown type")).or_default() += 1;
    }
    let behind = (*behind > 0).then(|| format!("about {behind} behind these"));
    let counts = counts.into_iter().map(|(kind, count)| format!("{count} {kind}")).chain(behind);
    let counts = counts.collect::<Vec<_>>().join(", ");
    let name = match queue {
        DeadQueue::Facts => "facts",
        DeadQueue::Orders => "orders",
    };
    (!counts.is_empty()).then(|| format!("{name} ({counts})"))
}
