//! `rebuild counts`: the numbers of a coach's clients, counted again.

use std::time::Duration;

use domain::audit::{AuditAction, AuditDetail};
use domain::id::CoachId;
use serde::Serialize;
use store::operating::Overview;
use store::operating::coach::ClientCounts;
use store::unit::Unit;

use crate::act::RecordAct;
use crate::coach::no_coach;
use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::{Consent, RebuildCommand};
use crate::output::Answer;

/// Time for an index to show writes that were just made.
const INDEX_LAG: Duration = Duration::from_secs(2);

/// A comparison.
#[derive(Serialize)]
struct Compared<'a> {
    coach_id: &'a CoachId,
    stored: Numbers,
    counted: Numbers,
    differs: bool,
    changed: bool,
}

#[derive(Serialize)]
struct Numbers {
    clients: u32,
    active: u32,
}

impl From<ClientCounts> for Numbers {
    fn from(ClientCounts { stored, active }: ClientCounts) -> Self {
        Self { clients: stored, active }
    }
}

pub(crate) async fn rebuild(operator: &Operator, command: &RebuildCommand) -> Result<Answer, Failure> {
    let RebuildCommand::Counts { coach, apply, reason, yes } = command;
    let overview = Overview::new(&operator.env, &operator.db)?;
    let (stored, counted) = compare(&overview, coach).await?;
    match reason {
        Some(reason) if *apply => {
            let consent = Consent { reason: reason.clone(), yes: *yes };
            set(operator, &overview, coach, (stored, counted), &consent).await
        }
        Some(_) | None => {
            let (differs, stored, counted) = (stored != counted, stored.into(), counted.into());
            Answer::of(&Compared { coach_id: coach, stored, counted, differs, changed: false })
        }
    }
}

/// The stored and the counted numbers. A difference has to last longer than an index lags.
async fn compare(overview: &Overview, coach: &CoachId) -> Result<(ClientCounts, ClientCounts), Failure> {
    let once = async || {
        let stored = overview.workspaces.get(coach).await?.ok_or_else(|| no_coach(coach))?;
        let stored = ClientCounts { stored: stored.client_count, active: stored.active_count };
        Ok::<_, Failure>((stored, overview.counted(coach).await?))
    };
    let (stored, counted) = once().await?;
    if stored == counted {
        return Ok((stored, counted));
    }
    tokio::time::sleep(INDEX_LAG).await;
    once().await
}

async fn set(
    operator: &Operator,
    overview: &Overview,
    coach: &CoachId,
    (stored, counted): (ClientCounts, ClientCounts),
    consent: &Consent,
) -> Result<Answer, Failure> {
    let act = RecordAct { action: AuditAction::CountsRebuilt, target: coach.as_str(), coach };
    if stored == counted {
        return act.unchanged();
    }
    let vault = operator.vault().await?;
    consent.ask(
        &operator.stack,
        &format!(
            "sets the clients of coach {coach} from {} to {}, and the active ones from {} to {}",
            stored.stored, counted.stored, stored.active, counted.active
        ),
    )?;
    let unit = Unit::new().write([overview.set_counts(coach, stored, counted)]);
    act.commit(operator, &vault, unit, consent.detail(AuditDetail::default()), operator.now()).await
}
