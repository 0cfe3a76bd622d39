//! Items about a contact, in the coach's partition: opportunities and calendar events. A contact's erasure deletes the
//! opportunities, and removes the contact from the events.

use domain::id::CalendarEntryId;
use domain::time::Timestamp;

use crate::db::{ItemWrite, StoreError, to_attribute};
use crate::updated::{UPDATED, Updated};

pub(crate) const OPPORTUNITY_PREFIX: &str = "OPPORTUNITY#";
pub(crate) const EVENT_PREFIX: &str = "EVENT#";
/// Prefix of the index `listed`, which lists read.
pub(crate) const LISTED_PREFIX: &str = "BOOKING#";

/// Removes an erased contact from the item at this sort key, or the item.
pub(crate) async fn forget(about: ItemWrite<'_>, sk: &str, now: Timestamp) -> Result<(), StoreError> {
    if sk.starts_with(OPPORTUNITY_PREFIX) {
        about.delete_now().await?;
    } else if sk.starts_with(EVENT_PREFIX) {
        forget_contact(about, sk, now).await?;
    }
    Ok(())
}

/// Removes an erased contact from an event, which stays as busy time. A booking that is listed shows the change.
async fn forget_contact(event: ItemWrite<'_>, sk: &str, now: Timestamp) -> Result<(), StoreError> {
    let event = event.remove(["lead_id", "contact_ref"]).count("version");
    if let Some(Ok(id)) = sk.strip_prefix(EVENT_PREFIX).map(CalendarEntryId::parse) {
        let listed = event.clone().set(UPDATED, to_attribute(&first_updated(id, now)));
        if listed.when("#updated < :updated", []).update_now().await?.is_done() {
            return Ok(());
        }
    }
    // A private entry, or a booking that is updated already.
    event.update_now().await?;
    Ok(())
}

/// The position of a booking in the list of updates.
pub(crate) fn first_updated(id: CalendarEntryId, now: Timestamp) -> Updated {
    Updated::first(LISTED_PREFIX, id.0, now)
}
