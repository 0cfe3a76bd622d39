//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn rebuild(_operator: &Operator, _: &options::RebuildCommand) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
