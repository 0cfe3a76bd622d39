//! All operations, by credential.

mod crm;
mod events;
mod partner;
mod public;
mod settings;

use super::operation::Operation;

/// Builds all operations.
pub(super) fn all() -> Vec<Operation> {
    let operations =
        [partner::operations(), crm::operations(), events::operations(), settings::operations(), public::operations()];
    operations.into_iter().flatten().collect()
}
