//! Placeholder.

use domain::id::DeliveryId;

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn dead(_operator: &Operator, _: &options::DeadCommand) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}

pub(crate) async fn has_order(_operator: &Operator, _: &DeliveryId) -> Result<bool, Failure> {
    Ok(false)
}
