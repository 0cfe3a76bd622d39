//! All operations, by credential.

mod crm;
mod either_scope;
mod partner;
mod public;
mod sandbox;
mod settings;

use domain::mode::Mode;

use super::operation::Operation;

/// Builds all operations of a deployment of this mode.
pub(super) fn all(mode: Mode) -> Vec<Operation> {
    let operations = [
        partner::operations(),
        crm::operations(),
        either_scope::operations(mode),
        settings::operations(mode),
        public::operations(mode),
    ];
    let operations = operations.into_iter().flatten();
    match mode {
        Mode::Live => operations.collect(),
        Mode::Test => operations.chain(sandbox::operations()).map(Operation::in_sandbox).collect(),
    }
}
