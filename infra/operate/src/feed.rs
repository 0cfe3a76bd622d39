//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::output::Answer;

pub(crate) async fn feed(_operator: &Operator, _: ()) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
