//! All operations, by credential.

mod crm;
mod either_scope;
mod partner;
mod public;
mod settings;

use super::operation::Operation;

/// Builds all operations.
pub(super) fn all() -> Vec<Operation> {
    let operations = [
        partner::operations(),
        crm::operations(),
        either_scope::operations(),
        settings::operations(),
        public::operations(),
    ];
    operations.into_iter().flatten().collect()
}
