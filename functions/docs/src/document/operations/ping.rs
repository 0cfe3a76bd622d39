//! `/v1/ping`.

use super::{Operation, Schemas};
use crate::document::examples::ping;
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let ping = Operation::new("GET", "/v1/ping", "ping", "Check a key")
        .about(
            "Changes nothing. 200 means that the key is valid and that its workspace is entitled to the Partner API.",
        )
        .answers(Answer::of(schemas, 200, "The key is valid.", "ping", &ping()));
    vec![ping]
}
