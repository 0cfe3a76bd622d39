//! The rules, the time zone and the programmes of a coach, read once for many clients.

use std::collections::HashMap;

use domain::id::{CoachId, ProgrammeId};
use domain::programme::ProgrammePhase;
use domain::sweep::{Rule, asks_for_phases, is_watched};
use domain::time::Timestamp;
use domain::tz::Tz;
use futures::future::try_join;
use store::StoreError;
use store::watch::CoachWatch;
use store::workspace::Workspaces;
use tokio::sync::Mutex;

/// The rules of a coach as they were read at one time.
#[derive(Debug)]
pub struct Rulebook {
    pub coach_id: CoachId,
    /// The version of the rules. The version is read before the rules, so the rules are at least as new.
    pub(crate) version: u64,
    /// Clients who were evaluated under an earlier version are evaluated silently.
    pub(crate) silent_version: u64,
    /// The instant of the evaluations.
    pub as_of: Timestamp,
    pub(crate) zone: Tz,
    pub(crate) rules: Vec<Rule>,
    /// The phases of the programmes that clients are in.
    programmes: Mutex<HashMap<ProgrammeId, Vec<ProgrammePhase>>>,
}

impl Rulebook {
    /// Reads the rules and the time zone of a coach. `watch` and `now` must be read before.
    pub(crate) async fn read(workspaces: &Workspaces, watch: &CoachWatch, now: Timestamp) -> Result<Self, StoreError> {
        let coach = &watch.coach_id;
        let zone = async || match watch.zone {
            Some(zone) => Ok(zone),
            None => workspaces.zone(coach).await,
        };
        let (zone, rules) = try_join(zone(), workspaces.rules(coach)).await?;
        Ok(Self {
            coach_id: coach.clone(),
            version: watch.rules_version,
            silent_version: watch.silent_version,
            as_of: now,
            zone,
            rules,
            programmes: Mutex::default(),
        })
    }

    /// Returns true if the rules can match a client.
    pub fn is_watched(&self) -> bool {
        is_watched(&self.rules)
    }

    /// The phases of a programme. Empty if no rule asks for phases.
    pub(crate) async fn phases(
        &self,
        workspaces: &Workspaces,
        programme: Option<&ProgrammeId>,
    ) -> Result<Vec<ProgrammePhase>, StoreError> {
        let Some(id) = programme.filter(|_| asks_for_phases(&self.rules)) else { return Ok(Vec::new()) };
        // The lock is held during the read, so clients of one programme read its phases once.
        let mut known = self.programmes.lock().await;
        if let Some(phases) = known.get(id) {
            return Ok(phases.clone());
        }
        let phases = workspaces.phases(&self.coach_id, id).await?;
        known.insert(id.clone(), phases.clone());
        Ok(phases)
    }
}
