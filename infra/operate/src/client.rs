//! Placeholder.

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

pub(crate) async fn client(_operator: &Operator, _: &options::Client) -> Result<Answer, Failure> {
    Err(Failure::refused("placeholder"))
}
