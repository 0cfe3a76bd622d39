//! All operations, by credential.

mod crm;
mod partner;
mod public;
mod settings;

use super::operation::Operation;

/// Builds all operations.
pub(super) fn all() -> Vec<Operation> {
    [partner::operations(), crm::operations(), settings::operations(), public::operations()]
        .into_iter()
        .flatten()
        .collect()
}
