//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn dead(_operator: &Operator, _: &options::DeadCommand) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
