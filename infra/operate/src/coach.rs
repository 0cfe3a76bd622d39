//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::output::Answer;

pub(crate) async fn coach(_operator: &Operator, _: &domain::id::CoachId) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
