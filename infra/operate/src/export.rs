//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn export(_operator: &Operator, _: &options::ClientCommand) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
