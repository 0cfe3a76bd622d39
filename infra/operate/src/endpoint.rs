//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn endpoint(_operator: &Operator, _: &options::EndpointCommand) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
