//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn retry(_operator: &Operator, _: &options::DeliveryCommand) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
