//! `/v1/ping`.

use domain::ping::PingResult;

use super::{KEY, Operation, Schemas};
use crate::document::examples::{ping, to_json};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let ping = Operation::new("GET", "/v1/ping", "ping")
        .tag(KEY)
        .partner()
        .summary("Check a key")
        .about("Changes nothing. 200 means that the key counts and that its workspace is entitled to the Partner API.")
        .answers(Answer::json(200, "The key counts.", schemas.of::<PingResult>(), &[("ping", to_json(&ping()))]));
    vec![ping]
}
