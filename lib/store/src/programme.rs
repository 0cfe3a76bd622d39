//! Table `workspaces`, programmes. pk `COACH#<coach_id>`, sk `PROGRAMME#<programme_id>`: the phases, and when they were said.
//!
//! 1. `programme`     GetItem, consistent.
//! 2. `put_programme` Part of the transaction that changes the rules, on what was read.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use domain::fact_time::FactTime;
use domain::id::{CoachId, ProgrammeId};
use domain::programme::ProgrammePhase;
use serde::{Deserialize, Serialize};

use crate::db::{Item, StoreError, from_item, n, putting, s, to_item};
use crate::fact_order::AS_FOUND;
use crate::watch::Before;
use crate::workspace::{Workspaces, key_of};

/// A programme as stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct StoredProgramme {
    pub(crate) phases: Vec<ProgrammePhase>,
    /// The time of the fact that set it.
    pub(crate) saved_at: FactTime,
    /// What the phases were before, while somebody watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Before<Vec<ProgrammePhase>>>,
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
                .expression_attribute_values(":found", s(found.saved_at.to_string()))
                .expression_attribute_values(":found_ms", n(found.saved_at.ms())),
        })
    }
}

fn key(coach: &CoachId, id: &ProgrammeId) -> Item {
    key_of(coach, &format!("PROGRAMME#{id}"))
}
