//! Table `workspaces`, welcome mails. pk `COACH#<coach_id>`, sk `WELCOME_MAILS`: `day` (UTC) and how many were `sent` on it.
//!
//! 1. `count_welcome_mail` UpdateItem, and another for the first mail of a day.

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use chrono::NaiveDate;
use domain::id::CoachId;

use crate::db::{Ask, Item, MAX_ROUNDS, StoreError, Written, n, s, stand_back, write};
use crate::workspace::{Workspaces, key_of};

impl Workspaces {
    /// Counts one more welcome mail of a coach. Returns false where `most` were counted on that day, and counts nothing then.
    pub async fn count_welcome_mail(&self, coach: &CoachId, day: NaiveDate, most: u32) -> Result<bool, StoreError> {
        if most == 0 {
            return Ok(false);
        }
        let today = day.to_string();
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let one_more = write("UpdateItem", || {
                let update = self.db().client().update_item().table_name(self.table());
                update
                    .set_key(Some(key(coach)))
                    .update_expression("ADD sent :one")
                    .condition_expression("#day >= :today AND sent < :most")
                    .expression_attribute_names("#day", "day")
                    .expression_attribute_values(":today", s(&today))
                    .expression_attribute_values(":most", n(most))
                    .expression_attribute_values(":one", n(1))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                    .ask()
            });
            match one_more.await? {
                Written::Done(_) => return Ok(true),
                // A function whose clock is behind counts for the day that another has begun.
                Written::Refused(Some(item)) if day_of(&item).is_some_and(|day| day >= today.as_str()) => {
                    return Ok(false);
                }
                Written::Refused(_) => {}
            }
            let first = write("UpdateItem", || {
                let update = self.db().client().update_item().table_name(self.table());
                update
                    .set_key(Some(key(coach)))
                    .update_expression("SET #day = :today, sent = :one")
                    .condition_expression("attribute_not_exists(pk) OR #day < :today")
                    .expression_attribute_names("#day", "day")
                    .expression_attribute_values(":today", s(&today))
                    .expression_attribute_values(":one", n(1))
                    .ask()
            });
            if let Written::Done(_) = first.await? {
                return Ok(true);
            }
        }
        Err(StoreError::kept_changing("the count of welcome mails"))
    }
}

fn day_of(item: &Item) -> Option<&str> {
    item.get("day")?.as_s().ok().map(String::as_str)
}

fn key(coach: &CoachId) -> Item {
    key_of(coach, "WELCOME_MAILS")
}
