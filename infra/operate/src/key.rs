//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn key(_operator: &Operator, _: &options::KeyCommand) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
