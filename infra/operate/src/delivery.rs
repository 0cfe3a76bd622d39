//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn delivery(_operator: &Operator, _: &options::Delivery) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
