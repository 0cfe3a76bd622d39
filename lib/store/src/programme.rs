//! Table `workspaces`, programmes. pk `COACH#<coach_id>`, sk `PROGRAMME#<programme_id>`: the phases, and when they were said.
//!
//! 1. `programme`     GetItem, consistent.
//! 2. `put_programme` Part of the transaction that changes the rules, on what was read.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use domain::fact_time::FactTime;
use domain::id::{CoachId, ProgrammeId};
use domain::programme::ProgrammePhase;
use serde::{Deserialize, Serialize};

use crate::db::{Item, StoreError, from_item, n, putting, to_item};
use crate::fact_order::{AS_FOUND, SavedAt};
use crate::watch::Before;
use crate::workspace::{Workspaces, key_of};

/// A programme as stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct StoredProgramme {
    pub(crate) phases: Vec<ProgrammePhase>,
    #[serde(flatten)]
    pub(crate) saved_at: SavedAt,
    /// What the phases were before, while somebody watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Before<Vec<ProgrammePhase>>>,
}

impl StoredProgramme {
    /// The time of the fact that set it.
    pub(crate) fn said_at(&self) -> FactTime {
        self.saved_at.into()
    }
}

impl Workspaces {
    /// A coach's programme.
    pub(crate) async fn programme(
        &self,
        coach: &CoachId,
        id: &ProgrammeId,
    ) -> Result<Option<StoredProgramme>, StoreError> {
        let item = self.db().get(self.table(), key(coach, id)).await?;
        item.map(|item| from_item("programme", item)).transpose()
    }

    /// Part of a transaction: a programme in the place of the one that was read.
    pub(crate) fn put_programme(
        &self,
        (coach, id): (&CoachId, &ProgrammeId),
        next: &StoredProgramme,
        found: Option<&StoredProgramme>,
    ) -> TransactWriteItem {
        let mut item = key(coach, id);
        item.extend(to_item(next));
        let put = Put::builder().table_name(self.table()).set_item(Some(item));
        putting(match found {
            None => put.condition_expression("attribute_not_exists(pk)"),
            Some(found) => put
                .condition_expression(AS_FOUND)
                .expression_attribute_values(":found", n(found.said_at().ms()))
                .expression_attribute_values(":found_ns", n(found.said_at().ns_of_ms())),
        })
    }
}

fn key(coach: &CoachId, id: &ProgrammeId) -> Item {
    key_of(coach, &format!("PROGRAMME#{id}"))
}
