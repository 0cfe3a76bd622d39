//! Table `workspaces`, programmes. pk `COACH#<coach_id>`, sk `PROGRAMME#<programme_id>`: the phases, and the time of
//! the fact that set them.
//!
//! 1. `phases`, `stored_programme` GetItem, consistent.
//! 2. `put_programme` Part of the transaction that changes the rules, on the item as it was read.

use domain::fact_time::FactTime;
use domain::id::{CoachId, ProgrammeId};
use domain::programme::{Programme, ProgrammePhase};
use serde::{Deserialize, Serialize};

use crate::db::{Item, Part, StoreError, Write, to_item};
use crate::fact_order::as_found;
use crate::workspace::{Workspaces, key_of};

/// A programme as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredProgramme {
    pub phases: Vec<ProgrammePhase>,
    saved_at: FactTime,
}

impl StoredProgramme {
    /// The time of the fact that set the programme.
    pub fn occurred_at(&self) -> FactTime {
        self.saved_at
    }
}

impl Workspaces {
    /// Reads the phases of a coach's programme, in order; none if the programme is not stored.
    pub async fn phases(&self, coach: &CoachId, id: &ProgrammeId) -> Result<Vec<ProgrammePhase>, StoreError> {
        Ok(self.stored_programme(coach, id).await?.map_or_else(Vec::new, |programme| programme.phases))
    }

    /// Reads a coach's programme.
    pub async fn stored_programme(
        &self,
        coach: &CoachId,
        id: &ProgrammeId,
    ) -> Result<Option<StoredProgramme>, StoreError> {
        self.table.get("programme", key(coach, id)).await
    }

    /// Part of a transaction: stores a programme in the place of the one that was read.
    pub fn put_programme(
        &self,
        programme: &Programme,
        occurred_at: FactTime,
        found: Option<&StoredProgramme>,
    ) -> Write {
        let mut item = key(&programme.coach_id, &programme.programme_id);
        let next = StoredProgramme { phases: programme.phases.clone(), saved_at: occurred_at };
        item.extend(to_item(&next));
        as_found(self.table.write(item), found.map(StoredProgramme::occurred_at)).put(Part::Programme)
    }
}

fn key(coach: &CoachId, id: &ProgrammeId) -> Item {
    key_of(coach, &format!("PROGRAMME#{id}"))
}
