//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn find(_operator: &Operator, _: &options::Find) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
