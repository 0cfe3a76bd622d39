//! `dead`: the dead letters, which are facts that could not be stored and orders of deliveries that failed for a day.
//!
//! ```text
//! list, show ──► survey ──► queue (receive, hold, release) ──► letter (the form of a message)
//! redrive, drop ─► survey ─► consent ─► work ─► audit line, send, delete
//! ```
//! SQS shows a message to one reader at a time: a reader holds what it receives, and releases it at its end. A command
//! that is killed (not by Ctrl-C) leaves its messages out of sight for two minutes.

mod act;
mod interrupt;
mod letter;
mod list;
mod queue;
mod survey;
mod work;

use domain::audit::AuditAction;
use domain::id::DeliveryId;

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::{DeadCommand, DeadQueue};
use crate::output::Answer;
use act::Selection;
use interrupt::Interrupt;
use survey::{Until, survey};
use work::Act;

/// Returns true if the order of a delivery is among the dead letters that can be listed.
pub(crate) async fn has_order(operator: &Operator, delivery: &DeliveryId) -> Result<bool, Failure> {
    let surveyed = survey(operator, &Interrupt::watch(), Some(DeadQueue::Orders), Until::All).await?;
    let mut found = surveyed.iter().flat_map(|queue| &queue.letters);
    Ok(found.any(|shown| shown.letter.delivery_id.as_ref() == Some(delivery)))
}

pub(crate) async fn dead(operator: &Operator, command: &DeadCommand) -> Result<Answer, Failure> {
    let interrupt = Interrupt::watch();
    match command {
        DeadCommand::List { queue } => list::list(operator, &interrupt, *queue).await,
        DeadCommand::Show { id } => list::show(operator, &interrupt, id).await,
        DeadCommand::Redrive { ids, all, queue, consent } => {
            let selection = if *all { Selection::All(*queue) } else { Selection::Ids(ids) };
            let act = Act { operator, interrupt: &interrupt, consent, action: AuditAction::DeadRedriven };
            act::act(act, selection).await
        }
        DeadCommand::Drop { ids, consent } => {
            let act = Act { operator, interrupt: &interrupt, consent, action: AuditAction::DeadDropped };
            act::act(act, Selection::Ids(ids)).await
        }
    }
}
